package graphtest

import (
	"slices"

	"gpuscope/engine/graph"
)

// addOneKernel computes x + y + 1. It combines the unary kernel, which adds 1, with the binary kernel, which
// adds its operands.
var addOneKernel = TestKernel("addone", "rrw", 1, "if (i < params.p0) { z[i] = x[i] + y[i] + 1u; }")

// AddOneOp computes a + b + 1. It replaces a binary operator and the unary operator that computes one of its
// operands.
type AddOneOp struct{ A, B, Out graph.ValueID }

func (o *AddOneOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "addone", Inputs: []graph.ValueID{o.A, o.B}, Outputs: []graph.ValueID{o.Out},
		Slots: []graph.Slot{{Uses: []graph.Use{On(addOneKernel, o.A, o.B, o.Out)}}},
	}
}

func (o *AddOneOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.A, o.B) }

func (o *AddOneOp) Plan(p *graph.Planner) error {
	if !slices.Equal(p.Dims(o.A), p.Dims(o.B)) {
		return p.Errorf("the operands have different shapes: %v and %v", p.Dims(o.A), p.Dims(o.B))
	}
	p.SetDims(o.Out, p.Dims(o.A)...)
	p.Dispatch(0, Threads(p, p.Numel(o.A), 64)).Params.U32("p0", p.Numel(o.A))
	return nil
}

// SumRule fuses a unary operator into the binary operator that reads it. It does not match if another
// operator also reads the unary operator's output.
var SumRule = graph.Fusion{
	Name: "sum", Doc: "x + (y + 1) in one dispatch",
	Pattern: graph.Pattern{Kinds: []string{"binary"}, Of: []graph.Pattern{{Kinds: []string{"unary"}}}},
	Replace: func(_ *graph.Builder, m *graph.Match) graph.Operator {
		u, s := m.Ops[0].(*UnaryOp), m.Last().(*BinaryOp)
		other := s.A
		if s.A == u.Out {
			other = s.B
		}
		return &AddOneOp{other, u.In, s.Out}
	},
}

// MapRule removes a unary operator whose output a routed operator reads. The routed operator then reads the
// input of the unary operator, so nothing adds 1 any more.
var MapRule = graph.Fusion{
	Name: "map", Doc: "drop a unary operator before a routed operator",
	Pattern: graph.Pattern{Kinds: []string{"routed"}, Of: []graph.Pattern{{Kinds: []string{"unary"}}}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		r := m.Last().(*routedOp)
		return &routedOp{m.Ops[0].(*UnaryOp).In, r.Out, b.Scratch("fresh", graph.U32)}
	},
}

// PairRule fuses two unary operators that feed the same reader into one operator.
var PairRule = graph.Fusion{
	Name: "pair", Doc: "replace two unary operators by one",
	Pattern: graph.Pattern{Kinds: []string{"unary"}}, Beside: []string{"unary"},
	Replace: func(_ *graph.Builder, m *graph.Match) graph.Operator {
		first, ok := m.Ops[0].(*UnaryOp)
		second, both := m.Last().(*UnaryOp)
		if !ok || !both {
			return nil // one of the operators is already a pair
		}
		return &pairOp{first, second}
	},
}

// pairOp runs two unary operators, each in its own dispatch.
type pairOp struct{ first, second *UnaryOp }

func (o *pairOp) Spec() graph.Spec {
	s := graph.Spec{Kind: "unary"}
	for i, u := range []*UnaryOp{o.first, o.second} {
		s.Inputs, s.Outputs = append(s.Inputs, u.In), append(s.Outputs, u.Out)
		s.Slots = append(
			s.Slots,
			graph.Slot{
				Label: []string{"first", "second"}[i],
				Uses:  []graph.Use{On(UnaryKernel, u.In, u.Out)},
			},
		)
	}
	return s
}

func (o *pairOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.first.In, o.second.In) }

func (o *pairOp) Plan(p *graph.Planner) error {
	for slot, u := range []*UnaryOp{o.first, o.second} {
		p.SetDims(u.Out, p.Dims(u.In)...)
		p.Dispatch(slot, Threads(p, p.Numel(u.In), 64)).Params.U32("p0", p.Numel(u.In))
	}
	return nil
}
