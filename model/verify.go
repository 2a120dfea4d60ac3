package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/run"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// A step is held to the float64 references of its operators. It runs again, and what each operator gave is
// read while its memory is its own. Then each reference runs on what the device had as the operator's
// inputs, so that the difference is the kernel's own error. Beside it another reference run takes the whole
// text from its tokens on, with State of its own: the difference from that is all that has gathered.

// verifyGFLOP is what each of the two references of a step may take where nothing else was asked for, in
// 10^9 operations: a core of a laptop does one or two a second.
const verifyGFLOP = 100

// MostVerifyGFLOP is the most that can be asked for.
const MostVerifyGFLOP = 1 << 30

// beginVerify checks what does not take a run of the step.
func (s *live) beginVerify(c session.Command) (work, error) {
	t, err := s.turnAgain(c.Step)
	if err != nil {
		return nil, err
	}
	if c.N > MostVerifyGFLOP {
		return nil, session.Refusef("verify: %d GFLOP, want at most %d", c.N, MostVerifyGFLOP)
	}
	var only []trace.DispatchID
	slots := s.runner.Net.Graph.NumDispatches()
	for _, p := range c.Parts {
		for _, id := range p.Dispatches {
			if id < 0 || int(id) >= slots {
				return nil, session.Refusef("verify %.40q: dispatch %d, the graph has %d", p.Name, id, slots)
			}
			only = append(only, id)
		}
	}
	budget := 1e9 * float64(verifyGFLOP)
	if c.N > 0 {
		budget = 1e9 * float64(c.N)
	}
	return func(ctx context.Context, _ *session.Reply) error {
		s.upto = nil
		err := s.verify(ctx, t, only, budget)
		if ctx.Err() == nil { // else the next that needs the current step does it
			err = gpu.Join(err, s.hold(ctx))
		}
		return err
	}, nil
}

// verify holds the dispatches of a step to the references: all, or those that are named, which are held to
// the reference on their own inputs alone.
func (s *live) verify(ctx context.Context, t *run.Turn, only []trace.DispatchID, budget float64) error {
	if s.ran != t.Index {
		if _, err := s.again(ctx, t, engine.TimingOff); err != nil {
			return err
		}
	}
	s.looked = replayed{step: nowhere}
	if s.reference == nil {
		s.reference = &referenceRun{x: reference.NewInterpreter(s.runner.Net.Graph)}
	}
	v := newVerification(s, t, only)
	note := ""
	if len(only) == 0 {
		before := s.text.All()[:t.Position]
		all := v.flops * (1 + float64(s.reference.missing(before))/float64(len(t.Tokens)))
		if all <= budget {
			if err := s.reference.catchUp(ctx, s, before, s.progress()); err != nil {
				return fmt.Errorf("reference run: %w", err)
			}
			v.full = s.reference.x
		} else {
			note = fmt.Sprintf("; no reference run: it takes %.0f GFLOP, and %.0f are what it may", all/1e9,
				budget/1e9)
		}
	}
	if v.part = min(1, budget/max(v.flops, 1)); v.part < 1 {
		note += fmt.Sprintf("; samples of %.1f %% of the elements that take most", 100*v.part)
	}
	if v.full != nil {
		s.reference.ids = nil // until it has come through
	}
	err := v.run(ctx, s.progress())
	if err == nil && v.full != nil {
		s.reference.ids = s.text.All()[:t.Position+len(t.Tokens)]
	}
	if len(v.gaps) == 0 {
		return err
	}
	slices.SortFunc(v.gaps, func(a, b trace.DispatchError) int { return int(a.Dispatch - b.Dispatch) })
	s.record(trace.Record{Gaps: &trace.NumericErrors{
		Step: t.Index,
		Gaps: v.gaps,
	}}) // they do not change from here on
	asked := slices.Clone(s.runner.Exec.Live().Active())
	if err != nil {
		asked = nil // it broke off: of the others nothing is known
	} else if len(only) > 0 {
		asked = slices.DeleteFunc(asked, func(id trace.DispatchID) bool { return !slices.Contains(only, id) })
	}
	s.tellVerified(t, v, asked, note)
	return err
}

// tellVerified records what came out, and how many of the dispatches asked for were held to nothing: what
// they write is for the next of their operator.
func (s *live) tellVerified(t *run.Turn, v *verification, asked []trace.DispatchID, note string) {
	held := func(id trace.DispatchID) bool {
		return slices.ContainsFunc(v.gaps, func(g trace.DispatchError) bool { return g.Dispatch == id })
	}
	switch others := len(slices.DeleteFunc(slices.Clone(asked), held)); {
	case others == 1:
		note = "; 1 other has no result of its own" + note
	case others > 1:
		note = fmt.Sprintf("; %d others have no results of their own", others) + note
	}
	wrong := func(g trace.DispatchError) bool { return !(g.Gap.Share <= 1) }
	text := fmt.Sprintf("%d dispatches are within their tolerance", len(v.gaps))
	if len(v.gaps) == 1 {
		id := v.gaps[0].Dispatch
		text = fmt.Sprintf("dispatch %d (%s) is within its tolerance", id, s.watch.name(id))
	}
	var first *trace.DispatchID
	if i := slices.IndexFunc(v.gaps, wrong); i >= 0 {
		g := v.gaps[i]
		first = &g.Dispatch
		text = fmt.Sprintf("the first that diverges is dispatch %d (%s): %s",
			g.Dispatch, s.watch.name(g.Dispatch), g.Gap.Over())
	}
	s.record(trace.Record{Event: &trace.Event{
		Step: t.Index, Dispatch: first, Kind: "verify", Text: text + note,
	}})
}

// referenceRun runs the text by the references, step by step, with State of its own.
type referenceRun struct {
	x   *reference.Interpreter
	ids []int // that its State is of
}

// missing is how many tokens of a text it has to take in yet.
func (r *referenceRun) missing(ids []int) int { return len(ids) - r.common(ids) }

// common is how many of the tokens that it took in a text begins with.
func (r *referenceRun) common(ids []int) int {
	n := 0
	for n < min(len(ids), len(r.ids)) && ids[n] == r.ids[n] {
		n++
	}
	return n
}

// catchUp takes in what it has not of a text. State past the end of the text may be left over from another
// text; it is never read.
func (r *referenceRun) catchUp(ctx context.Context, s *live, ids []int, progress engine.Progress) error {
	from := r.common(ids)
	r.ids = nil
	for from < len(ids) {
		n := min(s.m.maxChunk, len(ids)-from)
		all := s.runner.Net.Graph.NumOps()
		done := 0
		err := r.x.Step(s.runner.Net.Input(from, ids[from:from+n]), func(graph.OpID) error {
			done++
			return errors.Join(progress("reference run", done, all), ctx.Err())
		})
		if err != nil {
			return err
		}
		from += n
	}
	r.ids = slices.Clone(ids)
	return nil
}
