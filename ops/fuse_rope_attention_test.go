package ops

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// turnedAttention is attention after a rotation (RoPE) of q and k.
type turnedAttention struct {
	attention
	pairs     string
	turned    int  // rotated elements of a head, for half-split pairs
	positions int  // rows of the tables; 0 for as many as the cache has
	start     int  // start of the rotation if it is not the position; else 0
	norms     bool // normalize the heads of q and k before the rotation
	both      func(b *graph.Builder, yq, yk graph.ValueID)
}

func (c turnedAttention) build(b *graph.Builder) {
	q, k, v := c.inputs(b)
	if c.norms {
		q = RMSNorm(b, "q_norm", q, constant(b, "q_norm.w", c.headDim), 1e-5)
		k = RMSNorm(b, "k_norm", k, constant(b, "k_norm.w", c.headDim), 1e-5)
	}
	position := c.position(b)
	start := position
	if c.start > 0 {
		start = kind.Fixed(c.start)
	}
	positions := c.context
	if c.positions > 0 {
		positions = c.positions
	}
	var cos, sin graph.ValueID
	rotate := func(name string, q, k graph.ValueID) (yq, yk graph.ValueID) {
		if c.pairs == neighbourPairs {
			return ApplyRotaryEmb(b, name, q, k, cos, sin)
		}
		return ApplyRotaryEmbHF(b, name, q, k, cos, sin, start)
	}
	if c.pairs == neighbourPairs {
		cos = b.Input("cos", graph.F32, []int{1, c.headDim / 2}, []int{c.tokens, c.headDim / 2})
		sin = b.Input("sin", graph.F32, []int{1, c.headDim / 2}, []int{c.tokens, c.headDim / 2})
	} else {
		cos, sin = constant(b, "cos", positions, c.turned), constant(b, "sin", positions, c.turned)
	}
	q, k = rotate("rope", q, k)
	if c.both != nil {
		c.both(b, q, k)
	}
	kCache, vCache := c.caches(b)
	b.Output(c.attendTo(b, "sdpa", q, k, v, kCache, vCache, position))
	if c.shared {
		q = c.input(b, "other", c.qHeads, c.tokens)
		if c.norms {
			q = RMSNorm(b, "other_q_norm", q, constant(b, "other_q_norm.w", c.headDim), 1e-5)
		}
		q, _ = rotate("other_rope", q, graph.None)
		b.Output(c.attendTo(b, "other_sdpa", q, graph.None, graph.None, kCache, vCache, position))
	}
}

func (c turnedAttention) points() (points []step) {
	for _, at := range c.live {
		s := c.step(at[0], at[1])
		if c.pairs == neighbourPairs {
			s["cos"], s["sin"] = []int{at[0], c.headDim / 2}, []int{at[0], c.headDim / 2}
		}
		points = append(points, s)
	}
	return points
}

func TestAttentionTakesTheRotationBeforeIt(t *testing.T) {
	small := attention{qHeads: 4, kvHeads: 2, headDim: 16, tokens: 3, context: 20}
	wide, sinks := small, small
	wide.headDim, sinks.sinks = 516, 1
	for name, c := range map[string]struct {
		turnedAttention
		fused bool
	}{
		"adjacent pairs":           {turnedAttention{attention: small, pairs: neighbourPairs}, true},
		"half-split pairs":         {turnedAttention{attention: small, turned: 16}, true},
		"half of a head":           {turnedAttention{attention: small, turned: 8}, true},
		"4 elements of a head":     {turnedAttention{attention: small, turned: 4}, false},
		"different start position": {turnedAttention{attention: small, turned: 16, start: 2}, false},
		"longer table":             {turnedAttention{attention: small, turned: 16, positions: 40}, true},
		"heads too wide to decode": {turnedAttention{attention: wide, pairs: neighbourPairs}, false},
		"more bindings than 8":     {turnedAttention{attention: sinks, turned: 16}, false},
		"keys are an output": {turnedAttention{
			attention: small, turned: 16,
			both: func(b *graph.Builder, _, yk graph.ValueID) { b.Output(yk) },
		}, false},
		"queries have another reader": {turnedAttention{
			attention: small, pairs: neighbourPairs,
			both: func(b *graph.Builder, yq, _ graph.ValueID) { b.Output(basic.Sigmoid(b, "other", yq)) },
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fused, plain := fusedAndNot(t, fuseRopeAttention, c.build, gpu.DefaultLimits())
			want := []string{"rope+sdpa (sdpa_with_kv_cache) = [rope sdpa]"}
			if !c.fused {
				want = nil
			}
			if got := partsOf(fused); !slices.Equal(got, want) {
				t.Fatalf("fused %v, want %v", got, want)
			}
			levels := func(g *graph.Graph, tokens int) int {
				c.live = [][2]int{{tokens, 0}}
				return len(liveAt(t, g, (&trial{}).input(t, g, c.points()[0])).Levels())
			}
			if !c.fused {
				return
			}
			if f, p := levels(fused, 1), levels(plain, 1); f != p-1 {
				t.Errorf("%d levels for one token, want one less than the unfused %d", f, p)
			}
			if f, p := levels(fused, 3), levels(plain, 3); f != p {
				t.Errorf("%d levels for three tokens, want the unfused %d", f, p)
			}
		})
	}
}

// partlyTurned lists attentions with various heads. Only some columns of a head are rotated.
var partlyTurned = []turnedAttention{
	{
		attention: attention{
			qHeads: 4, kvHeads: 2, headDim: 16, tokens: 5, context: 40, window: 9, softCap: 0.5,
		},
		turned: 8,
	},
	{
		attention: attention{qHeads: 8, kvHeads: 2, headDim: 64, tokens: 5, context: 500, half: true},
		turned:    64,
	},
	{attention: attention{qHeads: 3, kvHeads: 1, headDim: 80, tokens: 70, context: 470}, turned: 32},
	{
		attention: attention{
			qHeads: 8, kvHeads: 2, headDim: 32, tokens: 9, context: 500, sinks: 2, Last: true,
		},
		turned: 24,
	},
	{attention: attention{qHeads: 4, kvHeads: 1, headDim: 512, tokens: 5, context: 450}, turned: 512},
}

func TestFusingRoPEIntoAttentionKeepsResults(t *testing.T) {
	dev := gputest.Open(t)
	for i, c := range partlyTurned {
		if testing.Short() && i%2 == 0 {
			continue
		}
		for _, c.pairs = range dealt(i/2, []string{neighbourPairs, halfPairs}) {
			c.live = [][2]int{{5, 0}, {1, 5}, {4, 6}, {1, 10}, {1, c.context - 1}, {2, c.context - 2}, {1, 0}}
			t.Run(c.String()+c.pairs, func(t *testing.T) {
				if n := referencesAgreeOn(t, large, fuseRopeAttention, c.build, c.points()); n != 1 {
					t.Errorf("fused in %d places, want 1", n)
				}
				near := 5e-5
				if c.half { // keys rotated by another kernel may round to other f16 values
					near = 0x1p-9
				}
				kernelsAgreeWithin(t, dev, fuseRopeAttention, c.build, c.points(), near)
			})
		}
	}
}

// The device and the reference may round a rotated key to different f16 values. The tolerance of attention on
// that key must allow for it.
func TestAKeyBetweenTwoHalvesMayBeEither(t *testing.T) {
	c := turnedAttention{pairs: neighbourPairs, attention: attention{
		qHeads: 2, kvHeads: 2, headDim: 16, tokens: 2, context: 8, half: true, live: [][2]int{{2, 0}},
	}}
	g, _ := fusedAndNot(t, fuseRopeAttention, c.build, gpu.DefaultLimits())
	y := g.Outputs()[0]
	with := func(key float32) (reference.Tensor, reference.Tolerance) {
		in := (&trial{}).input(t, g, c.points()[0])
		for i := range in.Inputs {
			data := in.Inputs[i].Data
			set := func(at int, x float32) { binary.LittleEndian.PutUint32(data[4*at:], math.Float32bits(x)) }
			switch g.Value(in.Inputs[i].Value).Name {
			case "cos", "sin":
				for at := range len(data) / 4 {
					set(at, map[bool]float32{true: 1}[g.Value(in.Inputs[i].Value).Name == "cos"])
				}
			case "q":
				for at := range len(data) / 4 {
					set(at, 1)
				}
			case "k":
				set(0, key)
			}
		}
		x := reference.NewInterpreter(g)
		if err := x.Step(in, nil); err != nil {
			t.Fatal(err)
		}
		return x.Tensor(y), x.Tolerance(0, y)
	}
	one, tolerance := with(1 + 0x1p-11 - 0x1p-20)
	other, _ := with(1 + 0x1p-11 + 0x1p-20)
	most := 0.0
	for i := range one.Data {
		most = max(most, math.Abs(one.Data[i]-other.Data[i]))
	}
	if most == 0 || most > tolerance.Abs {
		t.Errorf("results differ by %g, want more than 0 and at most %g", most, tolerance.Abs)
	}
}
