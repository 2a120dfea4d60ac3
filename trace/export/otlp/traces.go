package otlp

import (
	"io"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/jsonstream"
)

// writeTraces writes the spans of a run: the run, its steps, and in a step the phases of the host and the
// dispatches. If an operator has several dispatches in a step, they are in a span for the operator. Times
// that were not measured have no span.
//
// A dispatch has its measured time in gpuscope.dur_ns. No other span has that attribute, so that a sum over
// all spans counts each dispatch once.
func writeTraces(out io.Writer, t *trace.Trace) error {
	w := &spans{
		writer: newWriter(out, t), plans: make([][]byte, len(t.Plans)), ops: map[trace.OpID]*operator{},
		events: map[int][]*trace.Event{},
	}
	for i := range t.Events {
		e := &t.Events[i]
		w.events[e.Step] = append(w.events[e.Step], e)
	}
	w.begin("Spans", "spans")
	w.run()
	for s := range w.line.Steps(0) {
		w.step(s)
		if w.Err() != nil {
			break
		}
	}
	w.end()
	w.EndObject()
	return w.Flush()
}

type spans struct {
	*writer
	plans  [][]byte                 // attributes of the dispatches of each plan that was used
	events map[int][]*trace.Event   // events of each step, by Step.Index
	ops    map[trace.OpID]*operator // operators of the current step
	next   uint64                   // number of the next span in the step
}

// operator is an operator in a step.
type operator struct {
	from, to, ns int64 // first and last instant of its dispatches, and the sum of their times
	dispatches   int
	id           string // span of the operator, or "" if it has none
}

// span begins a span. The caller writes its attributes and ends the object.
func (w *spans) span(id, parent, name string, from, to int64) {
	w.Object()
	w.StringMember("traceId", w.id)
	w.StringMember("spanId", id)
	if parent != "" {
		w.StringMember("parentSpanId", parent)
	}
	w.StringMember("name", name)
	w.IntMember("kind", 1) // span kind INTERNAL
	w.instant("startTimeUnixNano", from)
	w.instant("endTimeUnixNano", to)
}

// inner returns the id of the next span in the current step.
func (w *spans) inner() string {
	w.next++
	return w.ids.span(w.next)
}

// run writes the span of the run.
func (w *spans) run() {
	operation, input, output := "text_completion", int64(0), int64(0)
	for i := range w.t.Steps {
		s := &w.t.Steps[i]
		switch {
		case s.Phase == trace.Execute:
			operation = string(trace.Execute)
		case s.Phase == trace.Prefill:
			input += int64(len(s.Tokens))
		}
		if s.Token != nil {
			output++
		}
	}
	w.span(w.ids.span(0), "", operation+" "+w.t.Model.Name, 0, w.line.End)
	w.attributes(func() {
		w.text("gen_ai.operation.name", operation)
		w.text("gen_ai.request.model", w.t.Model.Name)
		if input > 0 {
			w.number("gen_ai.usage.input_tokens", input)
		}
		if output > 0 {
			w.number("gen_ai.usage.output_tokens", output)
		}
		w.text("gpuscope.model.architecture", w.t.Model.Architecture)
		w.text("gpuscope.model.quantization", w.t.Model.Quantization)
		w.number("gpuscope.steps", int64(len(w.t.Steps)))
		w.flag("gpuscope.placed", w.line.Placed) // whether the starts of all steps were measured
	})
	w.EndObject()
}

// step writes the span of a step and the spans in it.
func (w *spans) step(s *timeline.Step) {
	w.next = stepNumber(s.At)
	id := w.ids.step(s.At)
	w.span(id, w.ids.span(0), string(s.Phase), s.From, s.To)
	w.attributes(func() {
		w.number("gpuscope.step", int64(s.Index))
		w.text("gpuscope.phase", string(s.Phase))
		w.number("gpuscope.position", int64(s.Position))
		w.number("gpuscope.tokens", int64(len(s.Tokens)))
		w.number("gpuscope.dispatches", int64(len(s.Dispatches)))
		w.text("gpuscope.timing", string(s.Timing))
		w.measured("gpuscope.wall_ns", s.CPU.TotalNS)
		gpu := analyze.GPUOf(s.Step)
		w.measured("gpuscope.gpu_span_ns", gpu.SpanNS)
		w.measured("gpuscope.gpu_busy_ns", gpu.BusyNS)
		if s.Cold {
			w.flag("gpuscope.cold", true)
		}
	})
	if events := w.events[s.Index]; events != nil {
		w.Key("events")
		w.Array()
		for _, e := range events {
			w.Object()
			w.instant("timeUnixNano", s.From)
			w.StringMember("name", e.Kind)
			w.attributes(func() { w.text("gpuscope.text", e.Text) })
			w.EndObject()
		}
		w.EndArray()
	}
	w.EndObject()
	for i := range s.Host {
		if h := &s.Host[i]; h.Kind == timeline.PhaseSlice {
			w.span(w.inner(), id, h.Name, h.From, analyze.Add(h.From, h.NS))
			w.attributes(func() { w.number("gpuscope.host_ns", h.NS) })
			w.EndObject()
		}
	}
	w.operators(s)
	for i := range s.GPU {
		w.gpu(s, &s.GPU[i], id)
	}
}

// operators adds up the dispatches of each operator of a step.
func (w *spans) operators(s *timeline.Step) {
	clear(w.ops)
	for i := range s.GPU {
		g := &s.GPU[i]
		if g.Kind != timeline.DispatchSlice {
			continue
		}
		op, to := w.line.Launch(s, g).Op.ID, analyze.Add(g.From, g.NS)
		o := w.ops[op]
		if o == nil {
			o = &operator{from: g.From, to: to}
			w.ops[op] = o
		}
		o.from, o.to = min(o.from, g.From), max(o.to, to)
		o.ns, o.dispatches = analyze.Add(o.ns, g.NS), o.dispatches+1
	}
}

// gpu writes the span of a dispatch or of a block. Before the first dispatch of an operator with several
// dispatches, it writes the span of this operator.
func (w *spans) gpu(s *timeline.Step, g *timeline.Slice, parent string) {
	to := analyze.Add(g.From, g.NS)
	switch g.Kind {
	case timeline.BlockSlice:
		w.span(w.inner(), parent, g.Name, g.From, to)
		w.attributes(func() {
			w.number("gpuscope.dur_ns", g.NS)
			w.number("gpuscope.block_dispatches", int64(s.Blocks[g.At].Dispatches))
		})
	case timeline.DispatchSlice:
		launch := w.line.Launch(s, g)
		if o := w.ops[launch.Op.ID]; o.dispatches > 1 {
			if o.id == "" {
				o.id = w.inner()
				w.operator(o, launch.Op, parent)
			}
			parent = o.id
		}
		w.span(w.inner(), parent, g.Name, g.From, to)
		w.attributes(func() {
			w.number("gpuscope.dur_ns", g.NS)
			w.Raw(w.plan(&launch))
		})
	default:
		return
	}
	w.EndObject()
}

func (w *spans) operator(o *operator, op *trace.Op, parent string) {
	w.span(o.id, parent, op.Name, o.from, o.to)
	w.attributes(func() {
		w.operatorAttributes(op)
		w.number("gpuscope.dispatches", int64(o.dispatches))
		w.number("gpuscope.operator_ns", o.ns) // sum over the dispatches
	})
	w.EndObject()
}

func (w *writer) operatorAttributes(op *trace.Op) {
	w.text("gpuscope.operator", op.Name)
	w.text("gpuscope.operator_kind", op.Kind)
	if op.Layer != nil {
		w.number("gpuscope.layer", int64(*op.Layer))
	}
}

// plan returns the attributes of the dispatches of a plan, which are the same in each step.
func (w *spans) plan(l *timeline.Launch) []byte {
	p := l.Plan
	if w.plans[p.ID] == nil {
		w.plans[p.ID] = jsonstream.Members(func(out *jsonstream.Writer) {
			part := &writer{Writer: out}
			waste := analyze.WasteOf(p, nil)
			part.number("gpuscope.dispatch", int64(p.Dispatch))
			part.operatorAttributes(l.Op)
			part.text("gpuscope.route", p.Route)
			part.number("gpuscope.workgroups", waste.Launched)
			part.number("gpuscope.workgroups_wasted", waste.Groups())
		})
	}
	return w.plans[p.ID]
}
