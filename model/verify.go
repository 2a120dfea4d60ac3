package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// The command verify compares the values of a step with float64 references of its operators. The step runs
// again, and the output of each operator is read from the device before its memory is reused. There are two
// comparisons. In the first, the reference of an operator runs on the inputs that the device computed. The
// difference is then the error of this one operator. In the second, the reference run, the references compute
// the whole text from its token ids and keep their own State. The difference from this run is the error that
// has accumulated up to the operator.

// verifyGFLOP is the default limit for the work of each of the two comparisons, in 10^9 floating-point
// operations. A CPU core of a laptop executes 1 to 2 GFLOP of references per second.
const verifyGFLOP = 100

// MostVerifyGFLOP is the largest limit that a command can request, in 10^9 floating-point operations.
const MostVerifyGFLOP = 1 << 30

// beginVerify checks a verify command before any step is run.
func (s *live) beginVerify(c session.Command) (stepping.Work, error) {
	of, err := s.StepAgain(c.Step)
	if err != nil {
		return nil, err
	}
	if c.N > MostVerifyGFLOP {
		return nil, session.Refusef("verify: a limit of %d GFLOP was requested, but the maximum is %d", c.N,
			MostVerifyGFLOP)
	}
	t := s.text.Find(of.Index)
	var only []trace.DispatchID
	slots := s.runner.Net.Graph.NumDispatches()
	for _, p := range c.Parts {
		for _, id := range p.Dispatches {
			if id < 0 || int(id) >= slots {
				return nil, session.Refusef("verify: group %.40q: there is no dispatch %d; the graph has %d dispatches",
					p.Name, id, slots)
			}
			only = append(only, id)
		}
	}
	budget := 1e9 * float64(verifyGFLOP)
	if c.N > 0 {
		budget = 1e9 * float64(c.N)
	}
	return func(ctx context.Context, _ *session.Reply) error {
		s.Upto = nil
		err := s.verify(ctx, t, only, budget)
		// After a cancellation, do not restore the values of the current step here: the next command that
		// needs them calls Hold.
		if ctx.Err() == nil {
			err = gpu.Join(err, s.Hold(ctx))
		}
		return err
	}, nil
}

// verify compares the dispatches of a step with references. If `only` is empty, verify compares all
// dispatches and makes both comparisons. Otherwise verify compares only the dispatches in the list, without
// the reference run.
func (s *live) verify(ctx context.Context, t *run.Turn, only []trace.DispatchID, budget float64) error {
	if s.Ran != t.Index {
		if _, err := s.Again(ctx, stepOf(t), engine.TimingOff); err != nil {
			return err
		}
	}
	s.ForgetLook()
	if s.reference == nil {
		s.reference = newReferenceRun(s.runner.Net)
	}
	v := newVerification(s, t, only)
	note := ""
	if len(only) == 0 {
		before := s.text.All()[:t.Position]
		all := v.flops * (1 + float64(s.reference.missing(before))/float64(len(t.Tokens)))
		if all <= budget {
			if err := s.reference.catchUp(ctx, s, before, s.Progress()); err != nil {
				return fmt.Errorf("reference run: %w", err)
			}
			v.full = s.reference.x
		} else {
			note = fmt.Sprintf("; the reference run was left out, because it would need %.0f GFLOP, but the limit is %.0f GFLOP",
				all/1e9, budget/1e9)
		}
	}
	if v.part = min(1, budget/max(v.flops, 1)); v.part < 1 {
		note += fmt.Sprintf("; in large operators, only %.1f %% of the elements were checked", 100*v.part)
	}
	if v.full != nil {
		s.reference.ids = nil // unknown until v.run has advanced the reference run by this step
		s.reference.use(v.net, v.step)
	}
	err := v.run(ctx, s.Progress())
	if err == nil && v.full != nil {
		s.reference.ids = s.text.All()[:t.Position+len(t.Tokens)]
	}
	if len(v.gaps) == 0 {
		return err
	}
	slices.SortFunc(v.gaps, func(a, b trace.DispatchError) int { return int(a.Dispatch - b.Dispatch) })
	s.Record(trace.Record{Gaps: &trace.NumericErrors{
		Step: t.Index,
		Gaps: v.gaps,
	}}) // from here on v.gaps must not change
	asked := slices.Clone(s.runner.Exec.Live().Active())
	if err != nil {
		asked = nil // the verification stopped early, so do not report how many dispatches were not checked
	} else if len(only) > 0 {
		asked = slices.DeleteFunc(asked, func(id trace.DispatchID) bool { return !slices.Contains(only, id) })
	}
	s.tellVerified(t, v, asked, note)
	return err
}

// tellVerified records an event with the result. The event also reports how many requested dispatches were
// not compared. Such a dispatch writes only an intermediate value for the next dispatch of the same operator.
func (s *live) tellVerified(t *run.Turn, v *verification, asked []trace.DispatchID, note string) {
	held := func(id trace.DispatchID) bool {
		return slices.ContainsFunc(v.gaps, func(g trace.DispatchError) bool { return g.Dispatch == id })
	}
	switch others := len(slices.DeleteFunc(slices.Clone(asked), held)); {
	case others == 1:
		note = "; 1 other dispatch was not checked" + note
	case others > 1:
		note = fmt.Sprintf("; %d other dispatches were not checked", others) + note
	}
	wrong := func(g trace.DispatchError) bool { return !(g.Gap.Share <= 1) }
	text := fmt.Sprintf("%d dispatches are within their tolerance", len(v.gaps))
	infinite := 0
	for i := range v.gaps {
		if v.gaps[i].Gap.NotFinite > 0 {
			infinite++
		}
	}
	if infinite > 0 {
		text = fmt.Sprintf("%d dispatches are within their tolerance; %d others have NaN or Inf in their outputs",
			len(v.gaps)-infinite, infinite)
	} else if len(v.gaps) == 1 {
		id := v.gaps[0].Dispatch
		text = fmt.Sprintf("dispatch %d (%s) is within its tolerance", id, s.Watch.Name(id))
	}
	var first *trace.DispatchID
	if i := slices.IndexFunc(v.gaps, wrong); i >= 0 {
		g := v.gaps[i]
		first = &g.Dispatch
		text = fmt.Sprintf("first divergence: dispatch %d (%s): %s",
			g.Dispatch, s.Watch.Name(g.Dispatch), g.Gap.Over())
	}
	s.Record(trace.Record{Event: &trace.Event{
		Step: t.Index, Dispatch: first, Kind: "verify", Text: text + note,
	}})
}

// referenceRun computes the text with the references instead of the device, step by step, and keeps its own
// State.
type referenceRun struct {
	x    *reference.Interpreter
	ids  []int // tokens that x has processed
	slot int   // slot of the recurrent State that holds the state after ids
	// recurrent is true for a model with recurrent layers, whose State holds only the state after the last
	// token of ids. A text that does not begin with all of ids is then processed from position 0.
	recurrent bool
}

func newReferenceRun(n *network.Network) *referenceRun {
	return &referenceRun{x: reference.NewInterpreter(n.Graph), recurrent: n.Recurrent != nil}
}

// missing returns how many tokens of a text the reference run has not processed yet.
func (r *referenceRun) missing(ids []int) int { return len(ids) - r.common(ids) }

// common returns how many tokens at the start of `ids` the reference run has already processed.
func (r *referenceRun) common(ids []int) int {
	n := 0
	for n < min(len(ids), len(r.ids)) && ids[n] == r.ids[n] {
		n++
	}
	if r.recurrent && n < len(r.ids) {
		return 0
	}
	return n
}

// use moves the recurrent state to the slot that a step reads. The reference run of the step then uses the
// same slots as the device.
func (r *referenceRun) use(n *network.Network, step *graph.StepInput) {
	if n.Recurrent == nil {
		return
	}
	from, to := network.Slots(step)
	for _, state := range n.Recurrent.State {
		if data := r.x.Tensor(state).Data; data != nil { // else no step has run
			at, end := n.Elements(state, r.slot)
			first, _ := n.Elements(state, from)
			copy(data[first:], data[at:end])
		}
	}
	r.slot = to
}

// catchUp processes the tokens of a text that the reference run has not processed yet. Cache positions after
// the end of the text may still hold values of another text, but no step reads these positions.
func (r *referenceRun) catchUp(ctx context.Context, s *live, ids []int, progress engine.Progress) error {
	from := r.common(ids)
	r.ids = nil
	for from < len(ids) {
		n := min(s.m.maxChunk, len(ids)-from)
		all := s.runner.Net.Graph.NumOps()
		done := 0
		in := s.runner.Net.Input(from, ids[from:from+n])
		if r.recurrent {
			network.SetSlots(in, r.slot, (r.slot+1)%s.runner.Net.Recurrent.Slots)
			_, r.slot = network.Slots(in)
		}
		err := r.x.Step(in, func(graph.OpID) error {
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
