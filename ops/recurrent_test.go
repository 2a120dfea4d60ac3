package ops

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/recurrent"
	"gpuscope/trace"
)

// slotsIn adds the SymInts of the slots of a State.
func slotsIn(b *graph.Builder, slots int) recurrent.Slots {
	return recurrent.Slots{
		Position: kind.Sym(b.SymInt("pos", 0, 1000, 0)),
		From:     kind.Sym(b.SymInt("from", 0, int64(slots-1), 0)),
		To:       kind.Sym(b.SymInt("to", 0, int64(slots-1), 1)),
	}
}

// recurrentSteps returns steps of the given numbers of tokens, in which each step reads the slot that the
// previous one wrote. dims returns the dims of the inputs for a number of tokens. In the reverse order, which
// trials also run, the steps read the states of other steps.
func recurrentSteps(slots int, tokens []int, dims func(tokens int) step) (list []step) {
	at := 0
	for i, n := range tokens {
		s := dims(n)
		s["pos"], s["from"], s["to"] = []int{at}, []int{i % slots}, []int{(i + 1) % slots}
		list, at = append(list, s), at+n
	}
	return list
}

// convOf returns a trial of a causal convolution of channels, in a State with 3 slots.
func convOf(channels, taps int, inGate, outGate, silu bool, tokens ...int) *trial {
	most := slices.Max(tokens)
	return &trial{
		name: fmt.Sprintf("%d channels, %d taps, gates %v %v, silu %v", channels, taps, inGate, outGate,
			silu),
		abs: 1e-5, rel: 1e-5, state: true,
		build: func(b *graph.Builder) {
			input := func(name string) graph.ValueID {
				return b.Input(name, graph.F32, []int{1, 1, channels}, []int{1, most, channels})
			}
			c := recurrent.Conv{
				X: input("x"), Weight: constant(b, "weight", channels, taps),
				State:  b.State("state", graph.F32, []int{3, taps - 1, channels}),
				InGate: graph.None, OutGate: graph.None, SiLU: silu,
			}
			if inGate {
				c.InGate = input("in_gate")
			}
			if outGate {
				c.OutGate = input("out_gate")
			}
			b.Output(recurrent.CausalConv(b, "y", c, slotsIn(b, 3)))
		},
		steps: recurrentSteps(3, tokens, func(n int) step {
			dims := []int{1, n, channels}
			s := step{"x": dims}
			if inGate {
				s["in_gate"] = dims
			}
			if outGate {
				s["out_gate"] = dims
			}
			return s
		}),
	}
}

func sampleCausalConv(t *rapid.T) *trial {
	tokens := rapid.SliceOfN(rapid.IntRange(1, 70), 1, 4).Draw(t, "tokens")
	return convOf(draw(t, "channels", 1, 70), rapid.IntRange(2, 5).Draw(t, "taps"),
		rapid.Bool().Draw(t, "in gate"), rapid.Bool().Draw(t, "out gate"), rapid.Bool().Draw(t, "silu"),
		tokens...)
}

func TestCausalConv(t *testing.T) {
	hold(t, convOf(6, 3, true, true, false, 1, 2, 3, 1, 1, 70), convOf(64, 4, false, false, true, 5, 1, 1, 2))
}

// deltaHeads are the sizes of a gated delta rule.
type deltaHeads struct {
	keys, values     int // numbers of heads
	keyDim, valueDim int
	tiled            bool
}

func (d deltaHeads) width() int { return 2*d.keys*d.keyDim + d.values*d.valueDim }

// add adds a gated delta rule with a State of 3 slots, for steps of least to most tokens.
func (d deltaHeads) add(b *graph.Builder, least, most int, at recurrent.Slots) graph.ValueID {
	input := func(name string, width int) graph.ValueID {
		return b.Input(name, graph.F32, []int{1, least, width}, []int{1, most, width})
	}
	return recurrent.DeltaRule(b, "y", recurrent.Delta{
		QKV: input("qkv", d.width()), Alpha: input("alpha", d.values), Beta: input("beta", d.values),
		A: b.Input("a", graph.F32, []int{d.values}, []int{d.values}), DT: constant(b, "dt", d.values),
		State: b.State("state", graph.F32, []int{3, d.values, d.keyDim, d.valueDim}), Eps: 1e-6,
		Tiled: d.tiled,
	}, at)
}

func (d deltaHeads) step(tokens int) step {
	return step{
		"qkv": {1, tokens, d.width()}, "alpha": {1, tokens, d.values}, "beta": {1, tokens, d.values},
		"a": {d.values},
	}
}

// trial returns a trial whose decay factors are at most 0.
func (d deltaHeads) trial(tokens ...int) *trial {
	return &trial{
		name: fmt.Sprintf("%+v", d), abs: 1e-4, rel: 1e-4, state: true,
		build: func(b *graph.Builder) { b.Output(d.add(b, 1, slices.Max(tokens), slotsIn(b, 3))) },
		fill:  map[string]func(i int) float64{"a": func(i int) float64 { return -0.01 * float64(1+i*i) }},
		steps: recurrentSteps(3, tokens, d.step),
	}
}

func sampleDeltaRule(t *rapid.T) *trial {
	d := deltaHeads{
		keys: rapid.IntRange(1, 2).Draw(t, "key heads"), keyDim: 4 * rapid.IntRange(1, 17).Draw(t, "quads"),
		valueDim: draw(t, "value dim", 1, 65), tiled: rapid.Bool().Draw(t, "tiled"),
	}
	d.values = d.keys * rapid.IntRange(1, 2).Draw(t, "repeats")
	return d.trial(rapid.SliceOfN(rapid.IntRange(1, 20), 1, 4).Draw(t, "tokens")...)
}

func TestDeltaRule(t *testing.T) {
	hold(t, deltaHeads{keys: 2, values: 4, keyDim: 32, valueDim: 32}.trial(1, 9, 1, 1),
		deltaHeads{keys: 2, values: 4, keyDim: 64, valueDim: 48, tiled: true}.trial(17, 1, 8),
		deltaHeads{keys: 1, values: 2, keyDim: 128, valueDim: 20}.trial(1, 5, 1),
		deltaHeads{keys: 1, values: 2, keyDim: 12, valueDim: 7}.trial(5, 1, 1))
}

// gatedNormOf returns a trial of gated_rms_norm with rows of the given width.
func gatedNormOf(width int, rows ...int) *trial {
	most := slices.Max(rows)
	c := &trial{
		name: fmt.Sprintf("width %d", width), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			input := func(name string) graph.ValueID {
				return b.Input(name, graph.F32, []int{1, 1, width}, []int{1, most, width})
			}
			x, gate, weight := input("x"), input("gate"), constant(b, "weight", width)
			b.Output(recurrent.GatedNorm(b, "y", x, gate, weight, 1e-6))
		},
	}
	for _, n := range rows {
		c.steps = append(c.steps, step{"x": {1, n, width}, "gate": {1, n, width}})
	}
	return c
}

func sampleGatedNorm(t *rapid.T) *trial {
	rows := rapid.SliceOfN(rapid.IntRange(1, 70), 1, 4).Draw(t, "rows")
	return gatedNormOf(draw(t, "width", 1, 130), rows...)
}

func TestGatedNorm(t *testing.T) {
	hold(t, gatedNormOf(7, 1, 3, 130), gatedNormOf(128, 1, 33))
}

// The operators give the same bits however a prompt is divided into steps, and however often a step runs.
func TestRecurrentResultsDoNotDependOnChunks(t *testing.T) {
	dev := gputest.Open(t)
	for _, d := range []deltaHeads{
		{keys: 1, values: 2, keyDim: 32, valueDim: 32}, {keys: 1, values: 2, keyDim: 128, valueDim: 24},
	} {
		t.Run(fmt.Sprintf("%+v", d), func(t *testing.T) { holdChunks(t, dev, d) })
	}
}

// holdChunks checks that a delta rule gives the same bits for any division of a prompt into steps. A step of
// one token runs a kernel of its own.
func holdChunks(t *testing.T, dev gpu.Device, d deltaHeads) {
	const all, slots = 23, 3
	b := graph.NewBuilder(dev.Info().Limits)
	b.Output(d.add(b, 1, all, slotsIn(b, slots)))
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	whole := d.trial(all)
	prompt := whole.input(t, g, whole.steps[0])
	run := func(chunk int) (y []byte) {
		for at, i := 0, 0; at < all; i++ {
			n := min(chunk, all-at)
			in := whole.input(t, g, d.step(n).with("pos", at).with("from", i%slots).with("to", (i+1)%slots))
			for k := range in.Inputs { // the rows of these tokens
				if dims := in.Inputs[k].Dims; len(dims) == 3 {
					row := 4 * dims[2]
					in.Inputs[k].Data = prompt.Inputs[k].Data[at*row : (at+n)*row]
				}
			}
			for range 1 + i%3 {
				if err := x.Step(t.Context(), in, engine.TimingOff); err != nil {
					t.Fatal(err)
				}
			}
			part := make([]byte, 4*n*d.values*d.valueDim)
			if _, err := x.Output(g.Outputs()[0], part); err != nil {
				t.Fatal(err)
			}
			y, at = append(y, part...), at+n
		}
		return y
	}
	want := run(all)
	for _, chunk := range []int{1, 2, 7, 16} {
		if !bytes.Equal(run(chunk), want) {
			t.Errorf("in chunks of %d tokens, the results differ", chunk)
		}
	}
}

// Traces mark the State of recurrent operators, but not a KV cache.
func TestRecurrentStateIsMarked(t *testing.T) {
	b := graph.NewBuilder(gputest.Open(t).Info().Limits)
	x, at := b.Input("x", graph.F32, []int{1, 1, 8}, []int{1, 4, 8}), slotsIn(b, 3)
	conv := recurrent.CausalConv(b, "conv", recurrent.Conv{
		X: x, Weight: constant(b, "weight", 8, 4), State: b.State("conv_state", graph.F32, []int{3, 3, 8}),
		InGate: graph.None, OutGate: graph.None,
	}, at)
	b.Output(conv)
	b.Output(deltaHeads{keys: 1, values: 2, keyDim: 32, valueDim: 32}.add(b, 1, 4, at))
	cache := b.State("cache", graph.F32, []int{1, 16, 2, 4})
	k := b.Input("k", graph.F32, []int{1, 1, 2, 4}, []int{1, 4, 2, 4})
	basic.UpdateCache(b, "update", k, cache, at.Position)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, v := range g.Describe().Values {
		if v.Recurrent || v.Role == trace.RoleState {
			marked[v.Name] = v.Recurrent
		}
	}
	want := map[string]bool{"conv_state": true, "state": true, "cache": false}
	if !maps.Equal(marked, want) {
		t.Errorf("marked: %v, want %v", marked, want)
	}
}

// with returns the step with another value of a SymInt.
func (s step) with(name string, n int) step {
	s[name] = []int{n}
	return s
}

// BenchmarkDeltaRule measures the gated delta rule at the shapes of Qwen3.5 models, for one token and for
// prompts. Another copy of the state is used each time, as in the layers of a model.
func BenchmarkDeltaRule(b *testing.B) {
	dev := benchDevice(b)
	for _, heads := range [][2]int{{16, 32}, {16, 48}, {16, 64}} {
		for _, tokens := range []int{1, 16, 64, 512} {
			b.Run(fmt.Sprintf("heads%d/%d/S%d", heads[0], heads[1], tokens), func(b *testing.B) {
				d := deltaHeads{keys: heads[0], values: heads[1], keyDim: 128, valueDim: 128}
				at := recurrent.Slots{Position: kind.Fixed(1), From: kind.Fixed(0), To: kind.Fixed(1)}
				x := newBench(b, dev, func(b *graph.Builder) { b.Output(d.add(b, tokens, tokens, at)) }, true)
				defer x.release()
				x.run(b)
			})
		}
	}
}
