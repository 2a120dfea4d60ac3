package chrome

import (
	"fmt"
	"io"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
)

// Format is Chrome JSON.
var Format = trace.Export{
	Name: "chrome", Doc: "Chrome JSON for Perfetto and chrome://tracing: the whole run on a time axis",
	Suffix: ".ct.json", Write: write,
}

// write writes a trace as Chrome JSON.
func write(out io.Writer, t *trace.Trace) error {
	w := newWriter(out, t)
	w.Object()
	w.StringMember("displayTimeUnit", "ns")
	w.Line()
	w.Key("metadata")
	w.Object()
	w.metadata()
	w.EndObject()
	w.Line()
	w.Key("traceEvents")
	w.Array()
	w.tracks()
	c := counters{writer: w}
	events := eventsOf(t)
	for s := range w.line.Steps(0) {
		w.chromeStep(s)
		c.step(s)
		for _, e := range events[s.Index] {
			w.instant("event", e.Kind, hostPID, hostTID, s.Start)
			w.Key("args")
			w.Object()
			w.StringMember("text", e.Text)
			w.endArgs()
		}
		if w.Err() != nil {
			break
		}
	}
	c.end()
	w.EndArray()
	w.EndObject()
	return w.Flush()
}

// eventsOf returns the events of each step. The key is Step.Index.
func eventsOf(t *trace.Trace) map[int][]*trace.Event {
	m := map[int][]*trace.Event{}
	for i := range t.Events {
		e := &t.Events[i]
		m[e.Step] = append(m[e.Step], e)
	}
	return m
}

// tracks writes the names of processes and threads. Lanes after the first are named when they are used.
func (w *writer) tracks() {
	host := "gpuscope"
	if w.t.Engine != "" {
		host = w.t.Engine
	}
	w.name(hostPID, 0, host, 0)
	w.name(hostPID, hostTID, "engine", 1)
	w.name(gpuPID, 0, "GPU: "+w.t.Device.Name, 1)
	w.name(gpuPID, spansTID, "steps", spansTID)
	w.name(gpuPID, queueTID, "queue 0", queueTID)
	w.lanes = 1
}

// lane returns the thread of a slice on the GPU's queue, and names the thread if it is new.
func (w *writer) lane(s *timeline.Slice) int {
	for ; w.lanes <= s.Lane; w.lanes++ {
		tid := laneOf(w.lanes)
		w.name(gpuPID, tid, fmt.Sprintf("queue 0 / lane %d", w.lanes), tid)
	}
	return laneOf(s.Lane)
}

// chromeStep writes the slices of a step, and an arrow from its submit to the first dispatch.
func (w *writer) chromeStep(s *timeline.Step) {
	var submit, first *timeline.Slice
	for i := range s.Host {
		slice := &s.Host[i]
		if slice.Kind == timeline.StepSlice {
			w.slice("step", slice.Name, hostPID, hostTID, slice)
			w.stepArgs(s)
			w.endArgs()
			continue
		}
		w.slice("host", slice.Name, hostPID, hostTID, slice)
		w.IntMember("step", int64(s.Index))
		w.endArgs()
		if slice.Name == timeline.Submit {
			submit = slice
		}
	}
	for i := range s.GPU {
		slice := &s.GPU[i]
		if slice.Kind == timeline.SpanSlice {
			w.slice("gpu_step", slice.Name, gpuPID, spansTID, slice)
			w.stepArgs(s)
			w.endArgs()
			continue
		}
		w.gpuSlice(s, slice)
		if first == nil && slice.Drawn() {
			first = slice
		}
	}
	if submit != nil && submit.Drawn() && first != nil && submit.From <= first.From {
		w.flow("s", "submit", s.At+1, hostPID, hostTID, submit.From)
		w.flow("f", "submit", s.At+1, gpuPID, laneOf(first.Lane), first.From)
	}
}

// gpuSlice writes a block or a dispatch.
func (w *writer) gpuSlice(s *timeline.Step, slice *timeline.Slice) {
	tid := w.lane(slice)
	if slice.Kind == timeline.BlockSlice {
		w.slice("block", slice.Name, gpuPID, tid, slice)
	} else {
		w.slice("kernel", slice.Name, gpuPID, tid, slice)
	}
	w.endGPUSlice(s, slice)
}

// endGPUSlice writes the last arguments of a block or a dispatch, and ends the event.
func (w *writer) endGPUSlice(s *timeline.Step, slice *timeline.Slice) {
	if slice.Kind == timeline.BlockSlice {
		w.IntMember("dispatches", int64(s.Blocks[slice.At].Dispatches))
	} else {
		w.Raw(w.launchArgs(s, slice))
	}
	w.IntMember("seq", int64(slice.At))
	w.IntMember("step", int64(s.Index))
	w.StringMember("phase", string(s.Phase))
	w.StringMember("provenance", "measured")
	w.endArgs()
}

// counters writes counter events: one when a value changes, and one at the end.
type counters struct {
	*writer
	last [3]struct {
		written bool
		values  [2]int64
	}
}

var counterNames = [3]struct {
	name string
	keys [2]string
}{
	{"memory_bytes", [2]string{"live", "unused"}},
	{"workgroups", [2]string{"needed", "surplus"}},
	{"position", [2]string{"tokens", ""}},
}

func (c *counters) step(s *timeline.Step) {
	memory := s.Memory
	c.sample(0, s.Start, memory.LiveBytes, max(0, analyze.Add(memory.AllocatedBytes, -memory.LiveBytes)))
	needed, launched := c.line.Workgroups(s)
	if len(s.Dispatches) > 0 {
		c.sample(1, s.Start, needed, max(0, analyze.Add(launched, -needed)))
	}
	c.sample(2, s.Start, int64(s.Position), 0)
}

// sample writes a counter if its values changed.
func (c *counters) sample(k int, ts int64, values ...int64) {
	last := &c.last[k]
	if last.written && last.values == [2]int64(values) {
		return
	}
	last.written, last.values = true, [2]int64(values)
	c.write(k, ts)
}

func (c *counters) write(k int, ts int64) {
	c.event("C", "counter", counterNames[k].name, hostPID, hostTID, ts)
	c.Key("args")
	c.Object()
	for i, key := range counterNames[k].keys {
		if key != "" {
			c.IntMember(key, c.last[k].values[i])
		}
	}
	c.endArgs()
}

// end repeats the last values at the end of the trace, because viewers hold a value until the next one.
func (c *counters) end() {
	for k := range c.last {
		if c.last[k].written {
			c.write(k, c.line.End)
		}
	}
}
