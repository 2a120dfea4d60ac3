package engine

import "slices"

// addOneKernel is what unary and binary do, in one.
var addOneKernel = testKernel("addone", "rrw", 1, "if (i < params.p0) { z[i] = x[i] + y[i] + 1u; }")

// addOneOp is binary with one of its operands through unary.
type addOneOp struct{ a, b, out ValueID }

func (o *addOneOp) Spec() Spec {
	return Spec{
		Kind: "addone", Inputs: []ValueID{o.a, o.b}, Outputs: []ValueID{o.out},
		Slots: []Slot{{Uses: []Use{on(addOneKernel, o.a, o.b, o.out)}}},
	}
}

func (o *addOneOp) Corners(r *Ranges) []Corner { return r.Ends(o.a, o.b) }

func (o *addOneOp) Plan(p *Planner) error {
	if !slices.Equal(p.Dims(o.a), p.Dims(o.b)) {
		return p.Errorf("operands %v and %v are not of one shape", p.Dims(o.a), p.Dims(o.b))
	}
	p.SetDims(o.out, p.Dims(o.a)...)
	p.Dispatch(0, threads(p, p.Numel(o.a), 64)).Params.U32("p0", p.Numel(o.a))
	return nil
}

// sumRule fuses a unary into the binary that reads it; where another operator reads it too, it stays.
var sumRule = Fusion{
	Name: "sum", Doc: "x + (y + 1) in one dispatch",
	Pattern: Pattern{Kinds: []string{"binary"}, Of: []Pattern{{Kinds: []string{"unary"}}}},
	Replace: func(_ *Builder, m *Match) Operator {
		u, s := m.Ops[0].(*unaryOp), m.Last().(*binaryOp)
		other := s.a
		if s.a == u.out {
			other = s.b
		}
		return &addOneOp{other, u.in, s.out}
	},
}

// mapRule takes a unary into the first kernel of the routed operator that reads it, as far as this test goes:
// it reads the unary's input in place of its output.
var mapRule = Fusion{
	Name: "map", Doc: "drop a unary before a routed",
	Pattern: Pattern{Kinds: []string{"routed"}, Of: []Pattern{{Kinds: []string{"unary"}}}},
	Replace: func(b *Builder, m *Match) Operator {
		r := m.Last().(*routedOp)
		return &routedOp{m.Ops[0].(*unaryOp).in, r.out, b.Scratch("fresh", U32)}
	},
}

// pairRule makes one operator of two unaries that feed the same reader.
var pairRule = Fusion{
	Name: "pair", Doc: "two unaries are one operator",
	Pattern: Pattern{Kinds: []string{"unary"}}, Beside: []string{"unary"},
	Replace: func(_ *Builder, m *Match) Operator {
		first, ok := m.Ops[0].(*unaryOp)
		second, both := m.Last().(*unaryOp)
		if !ok || !both {
			return nil // one of them is a pair
		}
		return &pairOp{first, second}
	},
}

// pairOp is two unaries.
type pairOp struct{ first, second *unaryOp }

func (o *pairOp) Spec() Spec {
	s := Spec{Kind: "unary"}
	for i, u := range []*unaryOp{o.first, o.second} {
		s.Inputs, s.Outputs = append(s.Inputs, u.in), append(s.Outputs, u.out)
		s.Slots = append(s.Slots,
			Slot{Label: []string{"first", "second"}[i], Uses: []Use{on(unaryKernel, u.in, u.out)}})
	}
	return s
}

func (o *pairOp) Corners(r *Ranges) []Corner { return r.Ends(o.first.in, o.second.in) }

func (o *pairOp) Plan(p *Planner) error {
	for slot, u := range []*unaryOp{o.first, o.second} {
		p.SetDims(u.out, p.Dims(u.in)...)
		p.Dispatch(slot, threads(p, p.Numel(u.in), 64)).Params.U32("p0", p.Numel(u.in))
	}
	return nil
}
