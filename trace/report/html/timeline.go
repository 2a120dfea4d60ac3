package html

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html/template"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/analyze/workclass"
	"gpuscope/trace/table"
)

// These numbers bound the size of the timeline. If a run has more dispatches, the dispatches of each step are
// merged, so that mostSlices slices remain in total.
const (
	mostSlices = 150_000
	mostSteps  = 5_000 // the last steps of a longer run
)

// timelineView is the timeline of the page.
type timelineView struct {
	Data  template.JS // a JSON object, see timelineData
	Notes []string
	First string // name of the row to fix first; "" if not known
	Timed bool   // some dispatches were timed while they ran
}

// timelineData is what the script of the page draws. Times are in ns. The lists Steps, Host and GPU are
// streams of varints in base64. Numbers that can be negative are stored as in encoding/binary.
//
// Steps has for each step: its index, the index of its phase in Names, its position, the start (from the
// start of the previous step, signed), and the length.
//
// Host has for each step: the number of slices, then for each slice the start (from the end of the previous
// slice, signed), the drawn length, the measured length minus the drawn length, and the index of the name.
// The first slice of a step is the step itself if its wall time was measured; its name is that of the phase.
//
// GPU has for each step: the number of slices, k+1 if Patterns[k] lists the names of the slices, then for
// each slice the start and the drawn length as in Host, and a number that combines two: (measured length -
// drawn length) * MaxLanes + lane. The difference is signed and stored as the zigzag code. If the
// dispatches of the step are merged, 0 replaces k+1, and each slice also has the index of its name and the
// number of its dispatches.
type timelineData struct {
	End      int64    `json:"end"`
	Names    []string `json:"names"`    // names of slices; that of a dispatch has its kernel on a second line
	Tones    []int    `json:"tones"`    // of each name: 0 first to fix, 1 matrices, 2 attention, 3 other
	Patterns []string `json:"patterns"` // names of the slices of a step, as varints in base64
	Count    int      `json:"count"`    // number of steps
	Lanes    int      `json:"lanes"`
	Max      int      `json:"max"` // MaxLanes
	Steps    string   `json:"steps"`
	Host     string   `json:"host"`
	GPU      string   `json:"gpu"`
}

func (p *Page) timeline(ctx context.Context, x *analyze.Index, h *headline.Headline) error {
	if h == nil {
		return nil
	}
	e := newEncoder(x, h)
	from, slices := max(0, len(x.Trace.Steps)-mostSteps), 0
	for i := from; i < len(x.Trace.Steps); i++ {
		slices += len(x.Trace.Steps[i].Dispatches)
	}
	most := 0 // number of slices of a step; 0 for all
	if slices > mostSlices {
		most = max(1, mostSlices/(len(x.Trace.Steps)-from))
	}
	line := timeline.New(x)
	for s := range line.Steps(from) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e.step(line, s, most)
	}
	data, err := json.Marshal(e.finish())
	if err != nil {
		return err
	}
	p.Timeline = &timelineView{Data: template.JS(data), Timed: e.timed > 0}
	if h.First != nil {
		p.Timeline.First = clean(h.First.Name)
	}
	note := func(format string, args ...any) {
		p.Timeline.Notes = append(p.Timeline.Notes, fmt.Sprintf(format, args...))
	}
	if from > 0 {
		note("The last %s of %s steps.", table.Integer(mostSteps), table.Integer(len(x.Trace.Steps)))
	}
	if most > 0 {
		note("The run has %s dispatches. Neighbouring dispatches of a step are merged to at most %s.",
			table.Integer(slices), table.Integer(most))
	}
	if e.timed == 0 {
		note("No dispatch was timed while it ran, so the GPU's track has only whole steps. Record with " +
			"gpuscope run --timing dispatch to see the dispatches.")
	}
	if !line.Placed {
		note("The start of some steps was not measured. Such a step follows the previous one.")
	}
	if line.Shifted > 0 {
		note("In %s, the clocks said that the GPU started before the submit. Its slices are moved to the submit.",
			table.Plural(line.Shifted, "step"))
	}
	return nil
}

// mostOff limits the stored difference between the measured length of a slice and its drawn length, in ns.
// The difference is stored multiplied by MaxLanes, and scripts compute in double precision.
const mostOff = 1 << 46

// encoder builds the data of a timeline.
type encoder struct {
	x        *analyze.Index
	data     timelineData
	names    map[string]int
	patterns map[string]int
	byPlan   []int // index in Names of the slices of each plan, or -1
	tones    []int // tone of each operator
	first    map[trace.DispatchID]bool
	steps    []byte
	host     []byte
	gpu      []byte
	begin    int64 // start of the previous step
	hostEnd  int64
	gpuEnd   int64
	timed    int
}

func newEncoder(x *analyze.Index, h *headline.Headline) *encoder {
	g := &x.Trace.Graph
	e := &encoder{
		x: x, names: map[string]int{}, patterns: map[string]int{}, byPlan: make([]int, len(x.Trace.Plans)),
		tones: make([]int, len(g.Ops)), first: map[trace.DispatchID]bool{},
	}
	for i := range e.byPlan {
		e.byPlan[i] = -1
	}
	for i, class := range workclass.Of(g) {
		switch class {
		case workclass.QO, workclass.KV, workclass.QKV, workclass.GateUp, workclass.Down, workclass.Experts,
			workclass.Head:
			e.tones[i] = 1
		case workclass.Attention, workclass.Recurrent:
			e.tones[i] = 2
		default:
			e.tones[i] = 3
		}
	}
	if h.First != nil {
		for _, id := range h.First.Dispatches {
			e.first[id] = true
		}
	}
	e.data.Max = timeline.MaxLanes
	return e
}

// name returns the index of a name in Names. If the name is new, it is added with this tone.
func (e *encoder) name(s string, tone int) int { return e.shown(clean(s), tone) }

// shown returns the index of a name that is safe to show. If the name is new, it is added with this tone.
func (e *encoder) shown(s string, tone int) int {
	i, there := e.names[s]
	if !there {
		i = len(e.data.Names)
		e.names[s] = i
		e.data.Names, e.data.Tones = append(e.data.Names, s), append(e.data.Tones, tone)
	}
	return i
}

// dispatch returns the index of the name of a block slice or dispatch slice. A dispatch can run another
// kernel in each step, so its name has the kernel of the plan that this step used, on a line of its own.
func (e *encoder) dispatch(line *timeline.Timeline, s *timeline.Step, slice *timeline.Slice) int {
	if slice.Kind == timeline.BlockSlice {
		return e.name(slice.Name, 3)
	}
	l := line.Launch(s, slice)
	at := &e.byPlan[l.Plan.ID]
	if *at < 0 {
		tone := e.tones[l.Op.ID]
		if e.first[l.Dispatch.ID] {
			tone = 0
		}
		*at = e.shown(clean(e.x.Name(l.Dispatch.ID))+"\n"+clean(l.Plan.Kernel), tone)
	}
	return *at
}

func (e *encoder) step(line *timeline.Timeline, s *timeline.Step, most int) {
	put := binary.AppendUvarint
	e.steps = put(e.steps, uint64(max(0, s.Index)))
	e.steps = put(e.steps, uint64(e.name(string(s.Phase), 3)))
	e.steps = put(e.steps, uint64(max(0, s.Position)))
	e.steps = binary.AppendVarint(e.steps, s.From-e.begin)
	e.steps = put(e.steps, uint64(max(0, s.To-s.From)))
	e.begin = s.From
	e.data.Count++
	e.data.End = max(e.data.End, s.To)

	e.host = put(e.host, uint64(len(s.Host)))
	for i := range s.Host {
		h := &s.Host[i]
		e.host = binary.AppendVarint(e.host, h.From-e.hostEnd)
		e.host = put(e.host, uint64(h.To-h.From))
		e.host = put(e.host, uint64(min(max(0, h.NS-(h.To-h.From)), mostOff)))
		e.host = put(e.host, uint64(e.name(h.Name, 3)))
		if e.hostEnd = h.To; h.Kind == timeline.StepSlice {
			e.hostEnd = h.From // the first phase begins together with the step
		}
	}
	e.queue(line, s, most)
}

// queue encodes the GPU's slices of a step: its dispatches or blocks, or only its span.
func (e *encoder) queue(line *timeline.Timeline, s *timeline.Step, most int) {
	list := s.GPU
	if len(list) > 1 && list[0].Kind == timeline.SpanSlice {
		list = list[1:]
	}
	for i := range list {
		if list[i].Kind != timeline.SpanSlice {
			e.timed++
		}
		e.data.Lanes = max(e.data.Lanes, list[i].Lane+1)
	}
	put := binary.AppendUvarint
	place := func(from, to, ns int64, lane int) {
		e.gpu = binary.AppendVarint(e.gpu, from-e.gpuEnd)
		e.gpu = put(e.gpu, uint64(to-from))
		off := min(max(analyze.Add(ns, from-to), -mostOff), mostOff)
		e.gpu = put(e.gpu, (uint64(off<<1)^uint64(off>>63))*timeline.MaxLanes+uint64(lane))
		e.gpuEnd = to
	}
	if most > 0 && len(list) > most {
		merged := timeline.Merge(list, most)
		kernels := map[string]int{}
		for i := range list {
			kernels[list[i].Name] = 3 // tone of a block
			if list[i].Kind == timeline.DispatchSlice {
				op := line.Launch(s, &list[i]).Op.ID
				kernels[list[i].Name] = e.tones[op]
			}
		}
		e.gpu = put(put(e.gpu, uint64(len(merged))), 0)
		for _, m := range merged {
			place(m.From, m.To, m.BusyNS, m.Lane)
			e.gpu = put(put(e.gpu, uint64(e.name(m.Name, kernels[m.Name]))), uint64(m.Slices))
		}
		return
	}
	var pattern []byte
	for i := range list {
		name := 0
		if list[i].Kind == timeline.SpanSlice {
			name = e.name(list[i].Name, 3)
		} else {
			name = e.dispatch(line, s, &list[i])
		}
		pattern = put(pattern, uint64(name))
	}
	k, there := e.patterns[string(pattern)]
	if !there {
		k = len(e.data.Patterns)
		e.patterns[string(pattern)] = k
		e.data.Patterns = append(e.data.Patterns, base64.StdEncoding.EncodeToString(pattern))
	}
	e.gpu = put(put(e.gpu, uint64(len(list))), uint64(k+1))
	for i := range list {
		place(list[i].From, list[i].To, list[i].NS, list[i].Lane)
	}
}

func (e *encoder) finish() *timelineData {
	d := &e.data
	d.Lanes = max(1, d.Lanes)
	d.Steps = base64.StdEncoding.EncodeToString(e.steps)
	d.Host = base64.StdEncoding.EncodeToString(e.host)
	d.GPU = base64.StdEncoding.EncodeToString(e.gpu)
	return d
}
