//go:build !race

package model

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
	"gpuscope/session"
)

// The test compares every output of every operator of the demo model with the float64 references. It reads
// each value before its memory is reused. The steps are a prompt, a token, and a token after a step back.
func TestEveryValueOfAStepMatchesTheReferences(t *testing.T) {
	r := onDevice(t, Options{})
	x, net := r.Exec, r.Net
	ref := reference.NewInterpreter(net.Graph)
	prompt := []int{1, 47, 300, 12, 77, 5, 261, 19, 4, 90, 33}
	for _, step := range []struct {
		position int
		tokens   []int
	}{{0, prompt}, {len(prompt), []int{260}}, {len(prompt) - 3, []int{300}}} {
		in := net.Input(step.position, step.tokens)
		if err := x.Step(context.Background(), in, engine.TimingOff); err != nil {
			t.Fatal(err)
		}
		if err := ref.Step(in, nil); err != nil {
			t.Fatal(err)
		}
		looks := x.OutputLooks()
		for i := range looks {
			looks[i].Into = make([]byte, x.LiveSize(looks[i].Value))
		}
		if err := x.Replay(context.Background(), looks...); err != nil {
			t.Fatal(err)
		}
		if n := len(looks); n < 45 {
			t.Errorf("only %d values were compared", n)
		}
		for _, l := range looks {
			info := net.Graph.Value(l.Value)
			if info.DType != graph.F32 {
				continue
			}
			want := ref.Tensor(l.Value).Data
			if len(want) != len(l.Into)/4 {
				t.Fatalf("%s: %d elements, the reference has %d", info.Name, len(l.Into)/4, len(want))
			}
			var worst, largest float64
			for i, w := range want {
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(l.Into[4*i:])))
				worst, largest = max(worst, math.Abs(got-w)), max(largest, math.Abs(w))
			}
			if !(worst <= 1e-3*max(largest, 1)) {
				t.Errorf("position %d: %s after dispatch %d is off by %.3g of at most %.3g", step.position,
					info.Name, l.After, worst, largest)
			}
		}
		if first, found, err := x.FirstNonFinite(context.Background()); err != nil || found {
			t.Errorf("position %d: %+v is reported as NaN or Inf, %v", step.position, first, err)
		}
	}
}

// The values that a session shows are those that the reference computes. The test inspects the last step, an
// earlier one, and the cache.
func TestInspectedValuesMatchTheReferencesOnTheDevice(t *testing.T) {
	s, end := deviceSession(t, Options{IgnoreEOS: true})
	defer end()
	net := s.runner.Net
	do := func(c session.Command) session.Reply {
		t.Helper()
		reply, err := s.Do(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	prompt := []int{1, 47, 300, 12, 77, 5, 261}
	do(session.Command{Kind: session.Prompt, Tokens: prompt})
	do(session.Command{Kind: session.Run, N: 2})
	left := map[int]bool{} // values that a step of one token, like the last one, defers to their readers
	for v := range net.Graph.NumValues() {
		left[v] = len(s.runner.Exec.Writers(graph.ValueID(v))) == 0
	}
	ref := reference.NewInterpreter(net.Graph)
	for i, turn := range s.text.Turns {
		if err := ref.Step(net.Input(turn.Position, turn.Tokens), nil); err != nil {
			t.Fatal(err)
		}
		looked := 0
		for v := range net.Graph.NumValues() {
			info := net.Graph.Value(graph.ValueID(v))
			if v%5 != i || left[v] && len(turn.Tokens) == 1 || info.SymInt || info.DType != graph.F32 ||
				info.Role != graph.Intermediate && info.Role != graph.State {
				continue
			}
			at := session.LookAt{Value: graph.ValueID(v), Step: &turn.Index, Count: 64, Statistics: true}
			reply, err := s.Do(context.Background(), session.Command{Kind: session.Look, At: &at})
			if err != nil && len(turn.Tokens) > 1 && strings.Contains(err.Error(), "no dispatch writes") {
				continue // a value that exists only in steps of one row, in place of others
			}
			if err != nil {
				t.Fatal(err)
			}
			got := reply.Tensor
			want := ref.Tensor(graph.ValueID(v)).Data
			if info.Column != nil {
				lies := want
				want = make([]float64, len(lies))
				for at, x := range lies {
					want[info.Column(at)] = x
				}
			}
			largest := 1e-9
			for _, w := range want {
				largest = max(largest, math.Abs(w))
			}
			if got.Statistics.Elements != len(want) && info.Role != graph.State {
				t.Errorf("%s: %d elements, want %d", info.Name, got.Statistics.Elements, len(want))
			}
			most := max(-got.Statistics.Min, got.Statistics.Max)
			if info.Role != graph.State && math.Abs(most-largest) > 1e-3*largest {
				t.Errorf("step %d: the maximum of %s is %g, want %g", i, info.Name, most, largest)
			}
			for k, n := range got.Numbers {
				if math.Abs(float64(n)-want[k]) > 1e-3*largest {
					t.Fatalf("step %d: element %d of %s is %g, want %g", i, k, info.Name, n, want[k])
				}
			}
			looked++
		}
		if looked < 10 {
			t.Errorf("step %d: only %d values were compared", i, looked)
		}
	}
}
