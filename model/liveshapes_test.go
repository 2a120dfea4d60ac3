package model

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// TestDemoTraceHoldsLiveShapesAndBarriers plans random steps of the demo model in both orders, with and
// without --static, and with steps back. It checks the live shapes in the trace, and compares the recorded
// barriers with those derived from the memory that each dispatch uses.
func TestDemoTraceHoldsLiveShapesAndBarriers(t *testing.T) {
	t.Parallel()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 8 {
			return // opening the demo takes a while
		}
		live := graph.LiveOptions{
			Order: graph.Order(
				rapid.IntRange(0, 1).Draw(rt, "order"),
			), Static: rapid.Bool().Draw(rt, "static"),
		}
		context := rapid.SampledFrom([]int{64, 300, 512}).Draw(rt, "context")
		s, err := Open(t.Context(), Options{Device: trace.NoDevice, Context: context, Live: live}, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var m session.Mirror
		done := make(chan error)
		go func() {
			var err error
			for e := range s.Events() {
				err = errors.Join(err, m.Apply(e))
			}
			done <- err
		}()
		commands := []session.Command{promptOf(rapid.IntRange(1, 60).Draw(rt, "prompt"))}
		for range rapid.IntRange(1, 8).Draw(rt, "commands") {
			commands = append(commands, rapid.SampledFrom([]session.Command{
				{Kind: session.Next},
				{Kind: session.Chunk, N: 4},
				{Kind: session.Previous},
				{Kind: session.Run, N: 2},
				promptOf(1), promptOf(9), promptOf(33),
			}).Draw(rt, "command"))
		}
		for _, c := range commands {
			if _, err := s.Do(t.Context(), c); err != nil && !errors.Is(err, session.ErrUsage) {
				rt.Fatal(err)
			}
		}
		if err := errors.Join(s.Close(), <-done); err != nil {
			rt.Fatal(err)
		}
		if what := unexplained(m.Trace); what != "" {
			rt.Fatal(what)
		}
		for i := range m.Trace.Steps {
			levels, waits := tracetest.Barriers(m.Trace, i)
			recorded, recordedWaits := tracetest.Recorded(m.Trace, i)
			if d := cmp.Diff(recorded, levels) + cmp.Diff(recordedWaits, waits); d != "" {
				rt.Fatalf("step %d (-recorded +derived):\n%s", i, d)
			}
		}
	})
}
