package recurrent

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// Kinds lists the kinds of operators in this package.
var Kinds = []kind.Kind{kindCausalConv, kindDeltaRule, kindGatedNorm}

// Slots tells an operator which slot of its State holds the state before the step, and which slot the step
// writes.
type Slots struct {
	Position kind.Int // position of the first token; at 0 the state before the step is zero
	From, To kind.Int // slots that the step reads and writes
}

// slotArgs are the arguments that every operator of this package has.
var slotArgs = []kind.Arg{
	kind.Required("input_pos", kind.SymIntType), kind.Required("state_from", kind.SymIntType),
	kind.Required("state_to", kind.SymIntType),
}

// args adds the slots to the arguments of a constructor.
func (s Slots) args(args kind.Args) kind.Args {
	args["input_pos"], args["state_from"], args["state_to"] = s.Position, s.From, s.To
	return args
}

func slotsOf(c *kind.Call) Slots {
	return Slots{Position: c.ArgSym("input_pos"), From: c.ArgSym("state_from"), To: c.ArgSym("state_to")}
}

// corner returns corner entries that set the slots From and To to different values.
func (s Slots) corner(r *graph.Ranges) graph.Corner {
	from, last := s.From.Span(r)
	to, lastTo := s.To.Span(r)
	switch {
	case from != to:
	case lastTo > to:
		to++
	case last > from:
		from++
	}
	return append(s.From.Set(from), s.To.Set(to)...)
}

// ends returns the corners of an operator whose grid depends only on the number of tokens in x.
func (s Slots) ends(r *graph.Ranges, tokens ...graph.ValueID) []graph.Corner {
	list := r.Ends(tokens...)
	for i := range list {
		list[i] = append(list[i], s.corner(r)...)
	}
	return list
}

// operands returns the inputs of an operator: tensors, and the SymInts of the slots.
func (s Slots) operands(tensors ...graph.ValueID) []graph.ValueID {
	return kind.Operands(tensors, s.Position, s.From, s.To)
}

// attrs adds the slots to the attributes of an operator.
func (s Slots) attrs(attrs map[string]any) map[string]any {
	attrs["input_pos"], attrs["state_from"], attrs["state_to"] = s.Position.Attr(), s.From.Attr(), s.To.Attr()
	return attrs
}

// planned has the facts about the slots that the plan of a step needs.
type planned struct {
	from, to int
	fresh    int // 1 if the state before the step is zero, else 0
}

// at returns the slots in the step that p plans. `state` is a State tensor of the operator.
func (s Slots) at(p *graph.Planner, state graph.ValueID) (planned, error) {
	n, at, from, to := p.Dim(state, 0), s.Position.At(p), s.From.At(p), s.To.At(p)
	fresh := 0
	if at == 0 {
		fresh = 1
	}
	switch {
	case at < 0:
		return planned{}, p.Errorf("position is %d, want at least 0", at)
	case min(from, to) < 0 || max(from, to) >= n:
		return planned{}, p.Errorf("the step reads slot %d of the state and writes slot %d, want slots from 0 to %d",
			from, to, n-1)
	case from == to:
		return planned{}, p.Errorf("the step reads and writes slot %d of the state, want two different slots",
			from)
	}
	return planned{from, to, fresh}, nil
}

// in is used by the float64 reference. It returns the state before the step, and the memory for the state
// after the step. Both have `size` elements.
func (s Slots) in(r *reference.Ref, state graph.ValueID, size int) (before, after []float64) {
	data, from, to := r.Tensor(state).Data, s.From.In(r), s.To.In(r)
	if before = data[from*size:][:size]; s.Position.In(r) == 0 {
		before = make([]float64, size)
	}
	return before, data[to*size:][:size]
}
