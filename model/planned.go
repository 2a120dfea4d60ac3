package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/run"
	"gpuscope/session"
)

// Without a device (Options.Device is trace.NoDevice) a session steps through the plan alone: its steps have
// shapes, grids, resize passes and modelled bytes, no times and no numbers. Weights are not read. Nothing
// gives a token: the ids of decode steps are 0.

// errNothingRuns is why a session without a device does not do something.
var errNothingRuns = errors.New("there is no device (--device none): steps are planned, and nothing runs")

// openPlanned is the session of a model without a device.
func (m *Model) openPlanned(ctx context.Context, progress engine.Progress, log func(string)) (*live, error) {
	set := cmp.Or(m.options.Limits, gpu.LimitSets[0])
	log(fmt.Sprintf("no device: planned for the limits %s; nothing runs", set.Doc))
	n, err := m.graphFor(set.Limits, progress, log)
	if err != nil {
		return nil, err
	}
	exec, err := engine.Unloaded(n.Graph, m.options.Live)
	if err != nil {
		return nil, err
	}
	r := run.NewRunner(nil, exec, n)
	header := m.header(r)
	ctx, stop := context.WithTimeout(ctx, aheadWithin)
	defer stop()
	planned := await(n.PlanAhead(ctx, m.options.Live), progress)
	if header.Forecast = planned.Forecast; planned.Err != nil {
		log(planned.Err.Error())
	} else if ctx.Err() != nil {
		log(fmt.Sprintf("curves go as far as was planned in %v: a smaller --context has less", aheadWithin))
	}
	return start(m, r, header), nil
}

// aheadWithin is how long opening without a device plans ahead: there is no upload to hide behind. Of the
// largest models the forecast goes as far as that takes it.
const aheadWithin = 400 * time.Millisecond

// beginPlan makes a step of any shape the current one. The text is one that nobody knows, of which what is
// before the step is in the cache.
func (s *live) beginPlan(c session.Command) (work, error) {
	if s.runner.Exec.Loaded() {
		return nil, session.Refusef("plan: steps of this session run; gpuscope --device none plans them at any shape, and gpuscope graph --at prints one")
	}
	if err := s.m.checkShape(c.N, c.Until); err != nil {
		return nil, err
	}
	s.text, s.upto = unknownText(c.N, c.Until), nil
	s.event(s.runner.Rec.Next(), "plan", "a step of %d tokens at position %d was planned", c.N, c.Until)
	return s.step, nil
}

// unknownText is a text of which the next step takes so many tokens in at a position.
func unknownText(tokens, position int) run.Transcript {
	n := position + tokens
	if tokens == 1 && position > 0 {
		n = position // it is a decode step then
	}
	return run.Transcript{IDs: make([]int, n), Kept: position, Chunks: []int{tokens}}
}
