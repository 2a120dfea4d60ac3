// Package chrome writes a trace as Chrome JSON, also called Trace Event Format: for Perfetto, for
// chrome://tracing, and in PyTorch's dialect (Kineto) for HolisticTraceAnalysis.
//
// Times in these files are µs with three decimals, which are exact. The duration that is drawn can be a few
// ns shorter than the one that was measured (see package timeline), so each slice has the measured duration
// as its argument dur_ns. A measured time that has no room on its track, such as 0 ns, is written as an
// instant event with the same arguments.
package chrome

import (
	"io"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/facts"
	"gpuscope/trace/export/jsonstream"
)

// Processes and threads of the file. Ids must be positive. Perfetto reserves process 0.
const (
	hostPID, gpuPID = 1, 1000

	hostTID  = 1 // thread of the engine on the host
	spansTID = 5 // whole steps on the GPU
	queueTID = 7 // lane 0 of the GPU's queue
	laneTID  = 100
)

// laneOf returns the thread of a lane of the GPU's queue.
func laneOf(lane int) int { return queueTID + laneTID*lane }

// writer writes the events of a trace.
type writer struct {
	*jsonstream.Writer
	t     *trace.Trace
	line  *timeline.Timeline
	plans [][]byte // arguments of each plan, once it was used
	lanes int      // number of lanes that have a name
}

func newWriter(out io.Writer, t *trace.Trace) *writer {
	return &writer{
		Writer: jsonstream.New(out), t: t, line: timeline.New(analyze.NewIndex(t)),
		plans: make([][]byte, len(t.Plans)),
	}
}

// event begins an event on a new line. The caller writes the other members and ends the object.
func (w *writer) event(ph, cat, name string, pid, tid int, ts int64) {
	w.Line()
	w.Object()
	w.StringMember("ph", ph)
	w.StringMember("cat", cat)
	w.StringMember("name", name)
	w.IntMember("pid", int64(pid))
	w.IntMember("tid", int64(tid))
	w.Key("ts")
	w.Micros(ts)
}

// slice begins an event for a slice, and its arguments. The caller writes more arguments and calls endArgs.
func (w *writer) slice(cat, name string, pid, tid int, s *timeline.Slice) {
	if s.Drawn() {
		w.event("X", cat, name, pid, tid, s.From)
		w.Key("dur")
		w.Micros(s.To - s.From)
	} else {
		w.instant(cat, name, pid, tid, s.From)
	}
	w.Key("args")
	w.Object()
	w.IntMember("dur_ns", s.NS)
}

// instant begins an instant event.
func (w *writer) instant(cat, name string, pid, tid int, ts int64) {
	w.event("i", cat, name, pid, tid, ts)
	w.StringMember("s", "t")
}

// endArgs ends the arguments and the event.
func (w *writer) endArgs() {
	w.EndObject()
	w.EndObject()
}

// name writes the name and the place of a process or a thread. tid is 0 for a process.
func (w *writer) name(pid, tid int, name string, order int) {
	kind := "thread_"
	if tid == 0 {
		kind = "process_"
	}
	meta := func(what string, value func()) {
		w.Line()
		w.Object()
		w.StringMember("ph", "M")
		w.StringMember("name", kind+what)
		w.IntMember("pid", int64(pid))
		if tid != 0 {
			w.IntMember("tid", int64(tid))
		}
		w.Key("args")
		w.Object()
		value()
		w.endArgs()
	}
	meta("name", func() { w.StringMember("name", name) })
	meta("sort_index", func() { w.IntMember("sort_index", int64(order)) })
}

// flow writes one end of an arrow: "s" for its start, "f" for its end. The instant must be inside a slice.
func (w *writer) flow(ph, name string, id, pid, tid int, ts int64) {
	w.event(ph, name, name, pid, tid, ts)
	w.IntMember("id", int64(id))
	if ph == "f" {
		w.StringMember("bp", "e")
	}
	w.EndObject()
}

// stepArgs writes the arguments that describe a step.
func (w *writer) stepArgs(s *timeline.Step) {
	w.IntMember("step", int64(s.Index))
	w.StringMember("phase", string(s.Phase))
	w.IntMember("position", int64(s.Position))
	w.IntMember("tokens", int64(len(s.Tokens)))
	w.StringMember("timing", string(s.Timing))
	if s.Text != "" {
		w.StringMember("text", s.Text)
	}
	w.Key("cold")
	w.Bool(s.Cold)
	w.Key("pipelined")
	w.Bool(s.Pipelined)
	w.Key("placed")
	w.Bool(s.Placed)
	w.Key("gpu_placed")
	w.Bool(s.GPUPlaced)
	if s.ShiftNS != 0 {
		w.IntMember("gpu_shift_ns", s.ShiftNS)
	}
}

// launchArgs returns the arguments that describe a launch. All dispatches of the plan share the returned
// bytes.
func (w *writer) launchArgs(s *timeline.Step, slice *timeline.Slice) []byte {
	id := s.Dispatches[slice.At].Plan
	if w.plans[id] == nil {
		l := w.line.Launch(s, slice)
		w.plans[id] = jsonstream.Members(func(m *jsonstream.Writer) { writeLaunch(m, &l) })
	}
	return w.plans[id]
}

func writeLaunch(w *jsonstream.Writer, l *timeline.Launch) {
	p := l.Plan
	w.IntMember("dispatch", int64(l.Dispatch.ID))
	w.IntMember("plan", int64(p.ID))
	w.StringMember("op", l.Dispatch.Named(l.Op.Name))
	w.StringMember("op_kind", l.Op.Kind)
	if l.Op.Layer != nil {
		w.IntMember("layer", int64(*l.Op.Layer))
	}
	if l.Op.Block != "" {
		w.StringMember("model_block", l.Op.Block)
	}
	if p.Route != "" {
		w.StringMember("route", p.Route)
	}
	w.IntsMember("grid", p.Workgroups[:]...)
	if l.Kernel != nil {
		w.IntsMember("block", l.Kernel.WorkgroupSize[:]...)
	}
	w.IntMember("workgroups", analyze.Product(p.Workgroups))
	w.IntMember("workgroups_needed", p.NeededGroups)
	w.IntMember("bytes_modelled", p.Bytes)
	w.IntMember("flops_modelled", p.FLOPs)
}

// metadata writes the facts about the run and its clocks, as members of an object.
func (w *writer) metadata() {
	for _, f := range facts.Of(w.t, w.line) {
		w.Key(f.Key)
		switch v := f.Value.(type) {
		case string:
			w.String(v)
		case int64:
			w.Int(v)
		case float64:
			w.Float(v)
		case bool:
			w.Bool(v)
		}
	}
}
