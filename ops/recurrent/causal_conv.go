package recurrent

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Conv has the tensors of a causal convolution.
type Conv struct {
	X       graph.ValueID // [1, S, C]
	Weight  graph.ValueID // [C, K], K at least 2
	State   graph.ValueID // State [slots, K-1, C]: the K-1 columns before the step
	InGate  graph.ValueID // factor of x before the convolution, with the dims of x; or graph.None
	OutGate graph.ValueID // factor of y, with the dims of x; or graph.None
	SiLU    bool          // y is silu of the convolution
}

// CausalConv adds causal_conv1d, a short convolution along the tokens, separately for each channel. For a
// channel, y at a token is a sum of K products: each of the channel's K weights is multiplied by one element
// of x, at the token itself or at one of the K-1 tokens before it. State has the elements of the tokens
// before the step.
//
//	y[s] = silu(sum over k of weight[k] * (x * in_gate)[s - (K-1) + k]) * out_gate[s]
//
// An invocation computes 4 channels of one token, or one channel if the number of channels is not a multiple
// of 4. Further invocations store the last K-1 columns in State.
//
// Sources: Gu and Dao, Mamba (2023); for the gates Liquid AI, LFM2 (2025).
func CausalConv(b *graph.Builder, name string, c Conv, at Slots) graph.ValueID {
	return kindCausalConv.BuildOne(b, name, at.args(kind.Args{
		"x": c.X, "weight": c.Weight, "state": c.State, "in_gate": c.InGate, "out_gate": c.OutGate,
		"silu": c.SiLU,
	}))
}

var kindCausalConv = kind.Kind{
	Name: "causal_conv1d",
	Doc: "A convolution along the tokens, separately for each channel. The input state holds the columns " +
		"of the last tokens before the step.",
	Args: slices.Concat([]kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("weight", kind.F32Tensor),
		kind.Required("state", kind.F32State),
	}, slotArgs, []kind.Arg{
		kind.Optional("in_gate", kind.F32Tensor, graph.None),
		kind.Optional("out_gate", kind.F32Tensor, graph.None), kind.Optional("silu", kind.BoolType, false),
	}),
	Constructors: []string{"CausalConv"}, Add: addCausalConv,
}

// mostTaps is the largest number of weights of a channel.
const mostTaps = 64

func addCausalConv(c *kind.Call) []graph.ValueID {
	o := &causalConv{
		Conv: Conv{
			X: c.ArgTensor("x"), Weight: c.ArgTensor("weight"), State: c.ArgTensor("state"),
			InGate: c.ArgTensor("in_gate"), OutGate: c.ArgTensor("out_gate"), SiLU: c.ArgBool("silu"),
		},
		at: slotsOf(c), vec: 1,
	}
	x, w, state := c.MaxDims(o.X), c.MaxDims(o.Weight), c.MaxDims(o.State)
	switch {
	case len(x) != 3 || x[0] != 1 || c.MinDims(o.X)[2] != x[2]:
		return c.Fail("x has dims %v, want [1, S, C] with a fixed number of channels C", x)
	case len(w) != 2 || w[0] != x[2] || w[1] < 2 || w[1] > mostTaps || !slices.Equal(c.MinDims(o.Weight), w):
		return c.Fail("weight has dims %v, want [%d, K] with a fixed K from 2 to %d", w, x[2], mostTaps)
	case len(state) != 3 || state[0] < 2 || state[1] != w[1]-1 || state[2] != x[2]:
		return c.Fail("state has dims %v, want [slots, %d, %d] with at least 2 slots", state, w[1]-1, x[2])
	}
	for _, gate := range []graph.ValueID{o.InGate, o.OutGate} {
		if gate != graph.None && !slices.Equal(c.MaxDims(gate), x) {
			return c.Fail("a gate has dims %v and x has dims %v, want the same dims", c.MaxDims(gate), x)
		}
	}
	o.y, o.channels, o.taps = c.Out("", graph.F32), x[2], w[1]
	if o.channels%4 == 0 {
		o.vec = 4
	}
	o.kernel = c.NewKernel("causal_conv1d", shaders.Constants{
		"Lanes": kind.ThreadLanes, "Vec": o.vec, "Columns": o.channels / o.vec, "Taps": o.taps,
		"InGate": o.InGate != graph.None, "OutGate": o.OutGate != graph.None, "SiLU": o.SiLU,
	})
	return c.AddOp(o, o.y)
}

type causalConv struct {
	Conv
	at             Slots
	y              graph.ValueID
	channels, taps int
	vec            int // channels of an invocation
	kernel         *graph.Kernel
}

// tensors returns the tensors that have a row for each token: x and the gates.
func (o *causalConv) tensors() []graph.ValueID {
	list := []graph.ValueID{o.X}
	for _, gate := range []graph.ValueID{o.InGate, o.OutGate} {
		if gate != graph.None {
			list = append(list, gate)
		}
	}
	return list
}

func (o *causalConv) Spec() graph.Spec {
	bind := []graph.Binding{graph.Bind("x", o.X), graph.Bind("weight", o.Weight)}
	if o.InGate != graph.None {
		bind = append(bind, graph.Bind("in_gate", o.InGate))
	}
	if o.OutGate != graph.None {
		bind = append(bind, graph.Bind("out_gate", o.OutGate))
	}
	bind = append(bind, graph.Bind("state", o.State), graph.Bind("y", o.y))
	return graph.Spec{
		Kind: "causal_conv1d", Inputs: o.at.operands(append(o.tensors(), o.Weight)...),
		State: []graph.ValueID{o.State}, Recurrent: true, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: kind.Uses(o.kernel, bind...)}},
		Attrs: o.at.attrs(map[string]any{"taps": o.taps, "silu": o.SiLU}),
	}
}

func (o *causalConv) Corners(r *graph.Ranges) []graph.Corner { return o.at.ends(r, o.tensors()...) }

func (o *causalConv) Plan(p *graph.Planner) error {
	x := p.Dims(o.X)
	for _, v := range [2]graph.ValueID{o.InGate, o.OutGate} {
		if v != graph.None && !slices.Equal(p.Dims(v), x) {
			return p.Errorf("a gate has dims %v and x has dims %v, want the same dims", p.Dims(v), x)
		}
	}
	at, err := o.at.at(p, o.State)
	if err != nil {
		return err
	}
	p.SetDims(o.y, x...)
	tokens, kept := x[1], o.taps-1
	n, columns := (tokens+kept)*o.channels, o.channels/o.vec
	l := p.Dispatch(0, p.Vectors(n, o.vec, kind.ThreadLanes))
	l.Params.U32("n", n/o.vec).U32("tokens", tokens).U32("state_from", at.from*kept*columns).
		U32("state_to", at.to*kept*columns).U32("fresh", at.fresh)
	each := int64(tokens) * int64(o.channels)
	reads := each
	if o.InGate != graph.None {
		reads += each
	}
	if o.OutGate != graph.None {
		reads += each
	}
	l.Bytes = 4 * (reads + each + int64(o.taps)*int64(o.channels) +
		int64(2-at.fresh)*int64(kept)*int64(o.channels))
	l.FLOPs = each * int64(2*o.taps+3)
	return nil
}

// columns returns, in the float64 reference, the elements that the convolution reads: those of State, then
// those of the step's tokens. Each row has all channels.
func (o *causalConv) columns(r *reference.Ref) []float64 {
	x := r.Tensor(o.X)
	before, _ := o.at.in(r, o.State, (o.taps-1)*o.channels)
	all := slices.Concat(before, x.Data)
	if o.InGate != graph.None {
		for i, g := range r.Tensor(o.InGate).Data {
			all[len(before)+i] *= g
		}
	}
	return all
}

func (o *causalConv) Reference(r *reference.Ref) {
	x, weight, all := r.Tensor(o.X), r.Tensor(o.Weight), o.columns(r)
	y := r.Result(o.y, x.Dims...)
	for s := range r.Rows(o.y, x.Dims[1]) {
		for c := range o.channels {
			sum := 0.0
			for k, w := range weight.Row(c) {
				sum += w * all[(s+k)*o.channels+c]
			}
			if o.SiLU {
				sum /= 1 + math.Exp(-sum)
			}
			if o.OutGate != graph.None {
				sum *= r.Tensor(o.OutGate).Row(s)[c]
			}
			y.Row(s)[c] = sum
		}
	}
	_, after := o.at.in(r, o.State, (o.taps-1)*o.channels)
	copy(after, all[x.Dims[1]*o.channels:])
	r.Set(o.y, y)
}

// Tolerance has a term for the largest sum of K products, because the products in a sum can cancel each other
// out. The slope of silu is at most 1.1.
func (o *causalConv) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v == o.State {
		if o.InGate == graph.None {
			return reference.Exact
		}
		return reference.OneRounding
	}
	most := r.Tensor(o.Weight).LongestRow() * math.Sqrt(float64(o.taps)) * reference.Largest(o.columns(r))
	t := reference.Tolerance{
		Rel: reference.ULPs(2), Abs: 1.1 * reference.SumRoundings(o.taps) * reference.Rounding * most,
		Why: fmt.Sprintf("%d products summed in f32", o.taps),
	}
	if o.SiLU {
		t.Rel, t.Why = reference.ExpTolerance.Rel, t.Why+"; "+reference.ExpTolerance.Why
	}
	if o.OutGate != graph.None {
		t.Abs *= r.Largest(o.OutGate)
	}
	return t
}
