package model

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/network"
	"gpuscope/model/source"
	"gpuscope/trace"
)

func BenchmarkForecast8B(b *testing.B) {
	for _, positions := range []int{4096, 131072} {
		b.Run(fmt.Sprint(positions, " positions"), func(b *testing.B) {
			n := hollowNetwork(b, gguftest.Llama8B, positions)
			for b.Loop() {
				f, err := n.Forecast(context.Background(), graph.LiveOptions{})
				if err != nil {
					b.Fatal(err)
				}
				text, err := json.Marshal(f)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(text))/1e3, "kB")
			}
		})
	}
}

func hollowNetwork(t testing.TB, s shape, positions int) *network.Network {
	t.Helper()
	m, err := Read(Options{Path: hollow(t, s), Context: positions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	n, err := m.build(deviceLimits())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The forecast of a model covers positions up to the end of its context.
func TestForecastCoversTheContextOfAModel(t *testing.T) {
	const chunk = 512
	positions := 131072
	if testing.Short() {
		positions /= 16 // the race detector only needs lines that are planned concurrently
	}
	n := hollowNetwork(t, deep(1), positions)
	f, err := n.Forecast(t.Context(), graph.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{positions - 1, chunk, positions - chunk} {
		if got := f.Lines[i].To; got != want {
			t.Errorf("line %d, along the %s, ends at %d, want %d", i, f.Lines[i].Along, got, want)
		}
	}
}

// At every point of its lines, a forecast equals the plan of a graph at that point.
func TestForecastIsWhatThePlansAreThere(t *testing.T) {
	for name, o := range map[string]graph.LiveOptions{"dynamic": {}, "static": {Static: true}} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(Options{Context: 256, MaxChunk: 96})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			n, err := m.build(deviceLimits())
			if err != nil {
				t.Fatal(err)
			}
			f, err := n.Forecast(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range f.Lines {
				for at := line.From; at <= line.To; at++ {
					if testing.Short() && at%8 > 0 {
						continue // one goroutine compares them, so the race detector needs few
					}
					tokens, position := line.At, at
					if line.Along == trace.AlongTokens {
						tokens, position = at, line.At
					}
					compareForecast(t, n, o, &line, at, tokens, position)
				}
			}
		})
	}
}

func compareForecast(t *testing.T, n *network.Network, o graph.LiveOptions, line *trace.Line,
	at, tokens, position int,
) {
	t.Helper()
	l, err := graph.NewLive(n.Graph, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.SetShape(l, tokens, position); err != nil {
		t.Fatal(err)
	}
	if err := l.Propagate(); err != nil {
		t.Fatal(err)
	}
	l.Commit()
	plans := map[trace.DispatchID]trace.Plan{}
	all, _ := l.Step()
	for _, p := range all {
		plans[p.Dispatch] = p
	}
	for id := range n.Graph.NumDispatches() {
		got, runs := line.Plan(trace.DispatchID(id), at)
		want, does := plans[trace.DispatchID(id)]
		if runs != does {
			t.Fatalf("%s %d: dispatch %d runs: forecast %v, planned %v", line.Along, at, id, runs, does)
		}
		if !runs {
			continue
		}
		want.ID, want.Params, want.Grid = -1, "", nil
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s %d: planned (-) and forecast (+):\n%s", line.Along, at, d)
		}
	}
}

// A step that the graph does not support is refused. The error states the limit and how to raise it.
func TestShapesThatNoStepHasAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct{ most, tokens, position int }{
		{1, 5, 0},
		{16, 17, 0},
		{16, 65, 0},
		{16, 0, 0},
		{16, 1, -1},
		{16, 16, 49},
	} {
		m := &Model{file: boundless{}, maxChunk: c.most, context: 64}
		name := fmt.Sprintf("%d tokens at %d, at most %d", c.tokens, c.position, c.most)
		golden.Error(name, m.checkShape(c.tokens, c.position))
	}
}

// boundless is a file whose model allows chunks of any size.
type boundless struct{ source.Source }

func (boundless) Bounds(context, maxChunk int) (positions, tokens int, err error) {
	return context, maxChunk, nil
}
