package model

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace/table"
)

// A session without a device (Options.Device is trace.NoDevice) only plans the steps of a text. For each
// step, shapes, grids, resize passes and the modelled number of bytes are known, but no times and no values.
// The weights are not read. No tokens are computed, so all tokens of decode steps have the id 0.

// openPlanned opens a session without a device.
func (m *Model) openPlanned(ctx context.Context, progress engine.Progress, log func(string)) (*live, error) {
	set := cmp.Or(m.options.Limits, gpu.LimitSets[0])
	log(fmt.Sprintf("no device: steps are planned for the limits %s, but not run", set.Doc))
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
		log(fmt.Sprintf("the forecast for Curves is incomplete, because planning was stopped after %v; use a smaller --context", aheadWithin))
	}
	return start(m, r, header), nil
}

// aheadWithin is the time limit for the forecast in a session without a device. With a device, the forecast
// is computed while the weights are uploaded. Without a device, the user has to wait for the forecast. For
// the largest models it therefore covers only the positions that were planned within this time.
const aheadWithin = 400 * time.Millisecond

// beginPlan plans a step with the requested number of tokens at the requested position, and makes it the next
// step. The token ids of the step are unknown. All earlier positions of the cache count as filled.
func (s *live) beginPlan(c session.Command) (stepping.Work, error) {
	if s.runner.Exec.Loaded() {
		return nil, session.Refusef("plan: this session runs steps on a device. To plan steps of any shape, start gpuscope --device none; to print a planned step, use gpuscope graph --at")
	}
	if err := s.m.checkShape(c.N, c.Until); err != nil {
		return nil, err
	}
	s.text, s.Upto = unknownText(c.N, c.Until), nil
	s.Event(s.runner.Rec.Next(), "plan", "planned a step with %s at position %d",
		table.Plural(c.N, "token"), c.Until)
	return s.step, nil
}

// unknownText returns a transcript without known token ids. The next step of the transcript has the given
// number of tokens and the given position.
func unknownText(tokens, position int) run.Transcript {
	n := position + tokens
	if tokens == 1 && position > 0 {
		n = position // the whole prompt is in the cache, so the next step is a decode step
	}
	return run.Transcript{IDs: make([]int, n), Kept: position, Chunks: []int{tokens}}
}
