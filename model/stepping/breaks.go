package stepping

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gpuscope/engine"
	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
)

// Watch checks after each step of a run whether the step meets a breakpoint, at which the run must pause.
// Only the goroutine that runs the steps uses a Watch. Runs without breakpoints skip the check.
type Watch struct {
	breaks []breakpoint
	Graph  *trace.Graph

	step   int // index of the last recorded step, or -1; `now` and `shape` describe this step
	shape  string
	before []engine.InForce // dispatches of the step before the last recorded one
	now    []engine.InForce
	past   map[trace.DispatchID]*history
}

// breakpoint is a session.Break whose arguments have been checked.
type breakpoint struct {
	session.Break
	has   func(text string) bool // reports whether a text matches the pattern; always true without a pattern
	limit float64                // numeric argument of the condition, or 0
	meets condition
}

// moment describes a step that has just ended.
type moment struct {
	Session *Session
	Step    Step
	NS      int64 // duration in ns on the GPU, or on the host if the GPU time is not known
	follows bool  // whether the Watch knows the previous step
	// alike is true if the inputs of this step have the same shapes as the inputs of the previous step. Grids
	// and durations depend on the shapes, so they are compared only if alike is true.
	alike bool
}

// hit describes how a step meets the condition of a breakpoint.
type hit struct {
	dispatch *trace.DispatchID // nil if the step as a whole meets the condition
	text     string
	upto     bool // whether to run the step again, but only up to the dispatch
}

// condition reports whether a step meets a breakpoint, and at which dispatch.
type condition func(context.Context, *Watch, *breakpoint, *moment) (hit, bool, error)

// conditions maps the name of each condition in session.Breaks to the function that checks the condition.
var conditions = map[string]condition{
	"kernel": func(_ context.Context, w *Watch, b *breakpoint, _ *moment) (hit, bool, error) {
		return w.first(true, func(f *engine.InForce) (string, bool) { return f.Kernel, b.has(f.Kernel) })
	},
	"op": func(_ context.Context, w *Watch, b *breakpoint, _ *moment) (hit, bool, error) {
		return w.first(true, func(f *engine.InForce) (string, bool) { return "", w.isOf(f, b) })
	},
	"grid": func(_ context.Context, w *Watch, b *breakpoint, m *moment) (hit, bool, error) {
		if !m.alike {
			return hit{}, false, nil
		}
		return w.changed(b, func(was, is *engine.InForce) string {
			if was.Workgroups == is.Workgroups {
				return ""
			}
			return gridText(was.Workgroups) + "→" + gridText(is.Workgroups)
		})
	},
	"route": func(_ context.Context, w *Watch, b *breakpoint, m *moment) (hit, bool, error) {
		if !m.follows {
			return hit{}, false, nil
		}
		return w.changed(b, func(was, is *engine.InForce) string {
			if was.Route == is.Route && was.Kernel == is.Kernel {
				return ""
			}
			return was.Kernel + "→" + is.Kernel
		})
	},
	"nan": func(ctx context.Context, w *Watch, _ *breakpoint, m *moment) (hit, bool, error) {
		if !m.Session.Exec.Loaded() {
			return hit{}, false, ErrNothingRuns
		}
		if err := m.Session.host.Rewind(); err != nil {
			return hit{}, false, err
		}
		first, found, err := m.Session.Exec.FirstNonFinite(ctx)
		if err != nil || !found {
			return hit{}, false, err
		}
		return hit{&first.Dispatch, fmt.Sprintf("%v, element %d of %s", first.Number, first.Index,
			m.Session.Graph.Value(first.Value).Name), true}, true, nil
	},
	"time": func(_ context.Context, w *Watch, b *breakpoint, m *moment) (hit, bool, error) {
		if !m.Session.Exec.Loaded() {
			return hit{}, false, ErrNothingRuns
		}
		h, met := w.late(b.limit, m)
		return h, met, nil
	},
	"position": func(_ context.Context, _ *Watch, b *breakpoint, m *moment) (hit, bool, error) {
		from, to := m.Step.Position, m.Step.Position+m.Step.Tokens
		met := float64(from) < b.limit && float64(to) >= b.limit // only the step that reaches it
		return hit{text: fmt.Sprintf("position %d", to)}, met, nil
	},
}

func NewWatch(g trace.Graph) *Watch {
	return &Watch{Graph: &g, step: -1, past: map[trace.DispatchID]*history{}}
}

// Set replaces all breakpoints by the list. If a breakpoint in the list is invalid, Set changes nothing.
func (w *Watch) Set(list []session.Break) error {
	breaks := make([]breakpoint, len(list))
	for i, b := range list {
		if err := b.Check(); err != nil {
			return err
		}
		p := breakpoint{Break: b, meets: conditions[b.On]}
		p.limit, _ = strconv.ParseFloat(b.Of, 64)
		p.has, _ = b.Matcher() // b.Check has already checked the pattern
		breaks[i] = p
	}
	w.breaks = breaks
	return nil
}

// From records the current step, so that the next step can be compared with the current one. The executor
// must have run the current step last.
func (w *Watch) From(s *Session) {
	switch t, ok := s.host.Current(); {
	case !ok:
		w.step = -1
	case t.Index != w.step:
		w.take(s, &t)
	}
}

func (w *Watch) take(s *Session, t *Step) {
	w.before, w.now = w.now, w.before[:0]
	w.now = s.Exec.InForce(w.now)
	w.step, w.shape = t.Index, t.Shape
}

// look checks whether a step that has just ended meets a breakpoint. It returns the event for the first such
// breakpoint, or nil. The boolean result is true if the step must run again, but only up to the dispatch in
// the event.
func (w *Watch) look(ctx context.Context, m *moment) (*trace.Event, bool, error) {
	m.follows = w.step >= 0
	m.alike = m.follows && w.shape == m.Step.Shape
	w.take(m.Session, &m.Step)
	defer w.remember(m)
	for i := range w.breaks {
		b := &w.breaks[i]
		h, met, err := b.meets(ctx, w, b, m)
		if err != nil {
			return nil, false, fmt.Errorf("breakpoint %s: %w", b.Break, err)
		}
		if !met {
			continue
		}
		text := fmt.Sprintf("breakpoint %s: %s", b.Break, h.text)
		return &trace.Event{
			Step: m.Step.Index, Dispatch: h.dispatch, Kind: "breakpoint", Text: printable.Short(text, 400),
		}, h.upto, nil
	}
	return nil, false, nil
}

// Pauses reports whether a step that has just ended meets a breakpoint. If so, it records an event. Some
// breakpoints pause in the middle of a step: Pauses then runs the step again up to the dispatch. `begin` is
// the time at which the step began.
func (s *Session) Pauses(ctx context.Context, of Step, begin time.Time, r *session.Reply) (bool, error) {
	m := &moment{Session: s, Step: of, NS: time.Since(begin).Nanoseconds()}
	if ns, _, ok := s.Exec.SpanNS(); ok {
		m.NS = ns
	}
	hit, upto, err := s.Watch.look(ctx, m)
	if err != nil || hit == nil {
		return false, err
	}
	r.Hit = hit
	s.Record(trace.Record{Event: hit})
	if upto && s.Exec.Loaded() {
		return true, s.RunUpto(ctx, *hit.Dispatch)
	}
	return true, nil
}

// Name returns the display name of a dispatch: its operator, followed by its slot if the operator has
// several slots.
func (w *Watch) Name(id trace.DispatchID) string {
	d := &w.Graph.Dispatches[id]
	return d.Named(w.Graph.Ops[d.Op].Name)
}

// isOf reports whether a dispatch belongs to an operator that matches the pattern of a breakpoint.
func (w *Watch) isOf(f *engine.InForce, b *breakpoint) bool {
	return session.InDispatch(b.has, w.Graph, &w.Graph.Dispatches[f.Dispatch])
}

// first finds the dispatches of the step for which the function `of` returns true. The hit contains the name
// of the first dispatch and the number of further dispatches.
func (w *Watch) first(upto bool, of func(*engine.InForce) (string, bool)) (hit, bool, error) {
	h, others := hit{upto: upto}, 0
	for i := range w.now {
		f := &w.now[i]
		said, ok := of(f)
		switch {
		case !ok:
		case h.dispatch != nil:
			others++
		default:
			h.dispatch, h.text = &f.Dispatch, strings.TrimSpace(w.Name(f.Dispatch)+" "+said)
		}
	}
	if others > 0 {
		h.text += fmt.Sprintf(" and %d more", others)
	}
	return h, h.dispatch != nil, nil
}

// changed finds the dispatches that match the pattern of the breakpoint and changed since the previous
// step. The function `how` describes the change of a dispatch, or returns "" if there is none. The hit
// contains the name and the change of the first of these dispatches, and the number of further ones.
func (w *Watch) changed(b *breakpoint, how func(was, is *engine.InForce) string) (hit, bool, error) {
	at := 0
	return w.first(false, func(is *engine.InForce) (string, bool) {
		for at < len(w.before) && w.before[at].Dispatch < is.Dispatch {
			at++
		}
		if at == len(w.before) || w.before[at].Dispatch != is.Dispatch || !w.isOf(is, b) {
			return "", false
		}
		said := how(&w.before[at], is)
		return said, said != ""
	})
}

// history holds the most recent durations of one dispatch, or of the whole step.
type history struct {
	ns   []int64 // the last durations in ns, at most `memory` elements, in no particular order
	next int
}

// fewest is the smallest number of durations from which a median is computed. memory is the maximum number of
// durations that a history keeps.
const fewest, memory = 5, 31

func (h *history) add(ns int64) {
	if len(h.ns) < memory {
		h.ns = append(h.ns, ns)
		return
	}
	h.ns[h.next] = ns
	h.next = (h.next + 1) % memory
}

// median returns the median of the durations in ns, or 0 if there are fewer durations than `fewest`.
func (h *history) median() int64 {
	if h == nil || len(h.ns) < fewest {
		return 0
	}
	ns, _ := median(slices.Clone(h.ns)).NS()
	return ns
}

// whole is the key in Watch.past under which the durations of whole steps are kept.
const whole trace.DispatchID = -1

// late finds the dispatch whose duration has the largest ratio to its median duration, if this ratio exceeds
// `times`. If there is no such dispatch, late checks the duration of the whole step in the same way.
func (w *Watch) late(times float64, m *moment) (hit, bool) {
	if !m.alike {
		return hit{}, false
	}
	worst, of := times, hit{}
	look := func(id trace.DispatchID, name string, ns int64) {
		if usual := w.past[id].median(); usual > 0 && float64(ns) > worst*float64(usual) {
			worst = float64(ns) / float64(usual)
			of = hit{text: fmt.Sprintf("%s took %.1f µs, %.1f times its median time", name, float64(ns)/1e3,
				worst)}
			if id != whole {
				of.dispatch = &id
			}
		}
	}
	if list, ok := m.Session.Exec.DispatchNS(); ok && len(list) == len(w.now) {
		for i, ns := range list {
			look(w.now[i].Dispatch, w.Name(w.now[i].Dispatch), ns)
		}
	}
	if of.dispatch == nil {
		look(whole, "the step", m.NS)
	}
	return of, of.text != ""
}

// remember adds the durations of a step to the histories in w.past. It first clears the histories if the
// shapes of the inputs differ from those of the previous step.
func (w *Watch) remember(m *moment) {
	if !slices.ContainsFunc(w.breaks, func(b breakpoint) bool { return b.On == "time" }) {
		return
	}
	if !m.alike {
		clear(w.past)
	}
	add := func(id trace.DispatchID, ns int64) {
		if w.past[id] == nil {
			w.past[id] = &history{}
		}
		w.past[id].add(ns)
	}
	add(whole, m.NS)
	if list, ok := m.Session.Exec.DispatchNS(); ok && len(list) == len(w.now) {
		for i, ns := range list {
			add(w.now[i].Dispatch, ns)
		}
	}
}

// gridText formats a grid as the tables do.
func gridText(grid [3]int) string {
	text := strconv.Itoa(grid[0])
	if grid[1] != 1 || grid[2] != 1 {
		text += "×" + strconv.Itoa(grid[1])
	}
	if grid[2] != 1 {
		text += "×" + strconv.Itoa(grid[2])
	}
	return text
}
