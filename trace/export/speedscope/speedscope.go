// Package speedscope writes a trace in the format of speedscope, a viewer of profiles in the browser.
//
// A file holds up to five profiles: the dispatches on the GPU's queue, the host, whole steps on the GPU,
// workgroups without work, and all workgroups. A profile without content is left out. The first three show
// when a frame opened and closed, in ns. Layout: https://www.speedscope.app/file-format-schema.json.
//
// The member "gpuscope" of the file holds the measured time of each dispatch, and speedscope ignores it. The
// frames do not always show this time: the frame of a dispatch ends early if another dispatch starts before
// its end.
package speedscope

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/jsonstream"
	"gpuscope/trace/export/samples"
)

// Format is the export "speedscope".
var Format = trace.Export{
	Name: "speedscope", Doc: "for speedscope: dispatches and host phases over time, and workgroups without work",
	Suffix: ".speedscope.json", Write: write,
}

// Names of the profiles of a file. Dispatches that overlap others are in further profiles, one for each lane.
const (
	QueueProfile = "GPU queue"
	HostProfile  = "host"
	StepsProfile = "GPU steps"
	WasteProfile = "workgroups without work"
	WorkProfile  = "workgroups"
)

// ErrEmpty is the error for a trace without times and without dispatches: speedscope cannot open a file
// without a profile.
var ErrEmpty = errors.New("the trace has nothing that speedscope can show: neither times nor dispatches")

type writer struct {
	*jsonstream.Writer
	t       *trace.Trace
	x       *analyze.Index
	line    *timeline.Timeline
	frames  map[samples.Function]int // index of each frame
	kernels map[string]int           // index of the frame of each kernel
	list    []samples.Function       // frames in order
	// profiles is the number of profiles so far.
	profiles int
}

func write(out io.Writer, t *trace.Trace) error {
	x := analyze.NewIndex(t)
	w := &writer{
		Writer: jsonstream.New(out), t: t, x: x, line: timeline.New(x), frames: map[samples.Function]int{},
		kernels: map[string]int{},
	}
	w.Object()
	w.StringMember("$schema", "https://www.speedscope.app/file-format-schema.json")
	w.StringMember("exporter", t.Producer.Name+"@"+t.Producer.Version)
	w.StringMember("name", t.Model.Name)
	w.IntMember("activeProfileIndex", 0)
	w.Line()
	w.Key("profiles")
	w.Array()
	for lane := range w.lanes() {
		name := QueueProfile
		if lane > 0 {
			name = fmt.Sprintf("%s, lane %d", QueueProfile, lane)
		}
		w.evented(name, w.gpu(func(s *timeline.Slice) bool {
			return s.Kind != timeline.SpanSlice && s.Lane == lane
		}))
	}
	w.evented(HostProfile, w.host)
	w.evented(StepsProfile, w.gpu(func(s *timeline.Slice) bool { return s.Kind == timeline.SpanSlice }))
	stacks := samples.Of(t)
	w.sampled(WasteProfile, stacks, func(s *samples.Sample) int64 { return s.Wasted })
	w.sampled(WorkProfile, stacks, func(s *samples.Sample) int64 { return s.Workgroups })
	w.EndArray()
	if w.profiles == 0 {
		return ErrEmpty
	}
	w.Line()
	w.Key("shared")
	w.Object()
	w.Key("frames")
	w.Array()
	for _, f := range w.list {
		w.Line()
		w.Object()
		w.StringMember("name", f.Name)
		if f.File != "" {
			w.StringMember("file", f.File)
		}
		if f.Line > 0 {
			w.IntMember("line", f.Line)
		}
		w.EndObject()
	}
	w.EndArray()
	w.EndObject()
	w.Line()
	w.Key("gpuscope")
	w.measured()
	w.EndObject()
	return w.Flush()
}

// lanes returns the number of lanes on which dispatches or blocks are drawn.
func (w *writer) lanes() (n int) {
	for s := range w.line.Steps(0) {
		for i := range s.GPU {
			if g := &s.GPU[i]; g.Kind != timeline.SpanSlice && g.Drawn() {
				n = max(n, g.Lane+1)
			}
		}
	}
	return n
}

// frame returns the index of a frame. There is one for each function, however often it ran.
func (w *writer) frame(f samples.Function) int {
	n, found := w.frames[f]
	if !found {
		n = len(w.list)
		w.frames[f] = n
		w.list = append(w.list, f)
	}
	return n
}

// kernel returns the frame of a kernel.
func (w *writer) kernel(name string) int {
	n, found := w.kernels[name]
	if !found {
		n = w.frame(samples.KernelFunction(name, w.x.Kernel(name)))
		w.kernels[name] = n
	}
	return n
}

// evented writes a profile of the type evented. The function `events` writes its events, and must call begin
// before the first one. If it never calls begin, the profile is left out.
func (w *writer) evented(name string, events func(begin func())) {
	begun := false
	events(func() {
		if begun {
			return
		}
		begun = true
		w.profile("evented", name, "nanoseconds", w.line.End)
		w.Key("events")
		w.Array()
	})
	if begun {
		w.EndArray()
		w.EndObject()
	}
}

// profile begins a profile.
func (w *writer) profile(typ, name, unit string, end int64) {
	w.profiles++
	w.Line()
	w.Object()
	w.StringMember("type", typ)
	w.StringMember("name", name)
	w.StringMember("unit", unit)
	w.IntMember("startValue", 0)
	w.IntMember("endValue", end)
}

// event writes an event: at an instant, a frame is opened ("O") or closed ("C").
func (w *writer) event(typ string, frame int, at int64) {
	w.Object()
	w.StringMember("type", typ)
	w.IntMember("frame", int64(frame))
	w.IntMember("at", at)
	w.EndObject()
}

// track draws slices in order. A slice ends where it was measured to end, or where the next one starts. It is
// therefore drawn when the next one is known.
type track struct {
	w         *writer
	frame     int
	from, end int64
	pending   bool // there is a slice that is not drawn yet
}

// add draws the previous slice and keeps a new one.
func (t *track) add(frame int, s *timeline.Slice) {
	t.close(s.From)
	t.frame, t.from, t.end, t.pending = frame, s.From, analyze.Add(s.From, s.NS), true
}

// close draws the last slice. The drawing ends at the limit at the latest.
func (t *track) close(limit int64) {
	if t.pending {
		t.w.event("O", t.frame, t.from)
		t.w.event("C", t.frame, min(t.end, limit))
	}
	t.pending = false
}

// gpu returns a function that writes the events of one track of the GPU: of the slices that `on` accepts.
func (w *writer) gpu(on func(s *timeline.Slice) bool) func(begin func()) {
	return func(begin func()) {
		t := track{w: w}
		for s := range w.line.Steps(0) {
			for i := range s.GPU {
				g := &s.GPU[i]
				if !g.Drawn() || !on(g) {
					continue
				}
				begin()
				frame := 0
				if g.Kind == timeline.DispatchSlice {
					frame = w.kernel(g.Name)
				} else {
					frame = w.frame(samples.Named(g.Name))
				}
				t.add(frame, g)
			}
			if w.Err() != nil {
				return
			}
		}
		t.close(w.line.End)
	}
}

// host writes the steps and, inside them, the phases of the host.
func (w *writer) host(begin func()) {
	for s := range w.line.Steps(0) {
		step := -1
		var until int64
		for i := range s.Host {
			h := &s.Host[i]
			if !h.Drawn() {
				continue
			}
			begin()
			// A slice is drawn 1 ns shorter if another one starts at its end. speedscope needs no such gap.
			frame, end := w.frame(samples.Named(h.Name)), min(analyze.Add(h.From, h.NS), h.To+1, w.line.End)
			w.event("O", frame, h.From)
			if h.Kind == timeline.StepSlice {
				step, until = frame, end
			} else {
				w.event("C", frame, end)
			}
		}
		if step >= 0 {
			w.event("C", step, until)
		}
		if w.Err() != nil {
			return
		}
	}
}

// sampled writes a profile with one sample for each stack. The weight of this sample is the sum of `value`
// over all samples of the stack in the trace. The profile is left out if all sums are 0.
func (w *writer) sampled(name string, from *samples.Profile, value func(*samples.Sample) int64) {
	sums, all := make([]int64, len(from.Stacks)), int64(0)
	for i := range w.t.Steps {
		for s := range from.Step(i) {
			n := max(0, value(&s))
			sums[s.Stack], all = analyze.Add(sums[s.Stack], n), analyze.Add(all, n)
		}
	}
	if all == 0 {
		return
	}
	w.profile("sampled", name, "none", all)
	w.Key("samples")
	w.Array()
	for stack, sum := range sums {
		if sum == 0 {
			continue
		}
		w.Array()
		for _, f := range slices.Backward(from.Stacks[stack]) {
			w.Int(int64(w.frame(from.Functions[f])))
		}
		w.EndArray()
	}
	w.EndArray()
	w.Key("weights")
	w.Array()
	for _, sum := range sums {
		if sum != 0 {
			w.Int(sum)
		}
	}
	w.EndArray()
	w.EndObject()
}

// measured writes the measured GPU times of all dispatches, or of all blocks of steps that were timed by
// blocks. Times that were not measured are left out.
func (w *writer) measured() {
	w.Object()
	w.Key("placed") // whether all starts of steps were measured
	w.Bool(w.line.Placed)
	w.Key("steps")
	w.Array()
	var times []int64
	for s := range w.line.Steps(0) {
		times = times[:0]
		for i := range s.GPU {
			g := &s.GPU[i]
			if g.Kind == timeline.SpanSlice {
				continue
			}
			if len(times) == 0 {
				w.Line()
				w.Object()
				w.IntMember("index", int64(s.Index))
				w.StringMember("phase", string(s.Phase))
				w.Key(map[timeline.Kind]string{
					timeline.BlockSlice: "blocks", timeline.DispatchSlice: "dispatches",
				}[g.Kind])
				w.Array()
			}
			if g.Kind == timeline.BlockSlice {
				w.String(g.Name)
			} else {
				w.Int(int64(w.line.Launch(s, g).Dispatch.ID))
			}
			times = append(times, g.NS)
		}
		if len(times) > 0 {
			w.EndArray()
			w.Key("dur_ns")
			w.Array()
			for _, ns := range times {
				w.Int(ns)
			}
			w.EndArray()
			w.EndObject()
		}
		if w.Err() != nil {
			break
		}
	}
	w.EndArray()
	w.EndObject()
}
