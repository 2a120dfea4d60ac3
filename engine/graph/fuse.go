package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fusion. A rule says which operators, each feeding the next, one operator can do in their place, or which
// operator can do its own work in fewer dispatches. It is a row of a table that the graph's builder gives to
// Builder.Fuse; the engine finds the places, checks that nothing else sees the values in between, and puts
// the replacement where the last of the operators stood. Fused operators are operators like any other from
// there on: their routes, grids and memory come from their own plan.
//
// What a value between them was keeps its id, with the role Fused: it exists nowhere. So does a constant that
// nothing reads any more, because the replacement has its numbers in another form.

// Fusion is a rule of the fuse pass.
type Fusion struct {
	Name string // "residual"
	Doc  string // what it does, in a line
	// Pattern is the last of the operators, with those before it.
	Pattern Pattern
	// Beside are kinds of an operator to do with the pattern's last: one that stands before it, feeds what
	// that feeds, and nothing up to there. Its outputs are then the replacement's too, before the others.
	Beside []string
	// Unnamed: the replacement goes by the name of the last of the operators alone, because at some shapes it
	// does nothing else.
	Unnamed bool
	// Replace gives the operator that does the work of all that matched, nil where it cannot: the conditions
	// of the rule are here. The outputs of the match's last operator are the replacement's, of the shapes
	// that they had; after them it may give others, made with b.Tensor. Scratch may be taken over from any
	// of them, or be made with b.Scratch. b.Remake gives an operator that is put together as for any other
	// graph.
	Replace func(b *Builder, m *Match) Operator
}

// Pattern is an operator of one of some kinds. Of are patterns of operators that give its inputs, each a
// different one (or several, all that it gives), in any order of the inputs.
type Pattern struct {
	Kinds []string
	Of    []Pattern
}

// String is the pattern as people write it: "add(linear)".
func (p Pattern) String() string {
	of := make([]string, len(p.Of))
	for i := range p.Of {
		of[i] = p.Of[i].String()
	}
	s := strings.Join(p.Kinds, "|")
	if len(of) > 0 {
		s += "(" + strings.Join(of, ", ") + ")"
	}
	return s
}

// Match is a place where a rule's pattern stands. Ops are the operators in the order of the pattern written
// out: what gives an input before what reads it, so the last one is the pattern's own. Between are the values
// that would be gone, by the operator of Ops that gives them.
type Match struct {
	Ops     []Operator
	Between []ValueID
	ids     []OpID
	gives   []ValueID // the outputs that stay
	name    string    // of the replacement
}

// Last is the operator at the end of the pattern.
func (m *Match) Last() Operator { return m.Ops[len(m.Ops)-1] }

// remade is what a fusion rule has put together so far.
type remade struct {
	name    string
	outputs []ValueID // that are still to be handed out
	ops     []Operator
}

// Remake has an operator put together that gives the outputs of a match's last one: add does it with the name
// that it is given, as it would add to a graph. What it declares as outputs are those of the match, in their
// order; the operator is returned, not added. Nil after an error, which is in the builder.
func (b *Builder) Remake(m *Match, add func(name string)) Operator {
	if b.err != nil {
		return nil
	}
	r := &remade{name: m.name, outputs: m.gives}
	prefix := b.prefix
	b.prefix, b.remade = "", r
	add(r.name)
	b.prefix, b.remade = prefix, nil
	if len(r.outputs) > 0 || len(r.ops) != 1 {
		b.Errorf("%s: %d operators were made of the match, and %d of its outputs left, want one and none",
			r.name, len(r.ops), len(r.outputs))
	}
	if b.err != nil {
		return nil
	}
	return r.ops[0]
}

// output declares what the next operator gives.
func (b *Builder) output(v Value) ValueID {
	r := b.remade
	if r == nil || b.err != nil {
		return b.add(v)
	}
	if len(r.outputs) == 0 {
		b.Errorf("%s: it gives %s beside what the match gives", r.name, v.Name)
		return None
	}
	id := r.outputs[0]
	if given := &b.values[id]; given.Kind != v.Kind || given.Kind == Tensor && given.DType != v.DType {
		b.Errorf("%s: it gives a %s of type %s as %s of type %s", r.name, v.Kind, v.DType, given.Name,
			given.DType)
		return None
	}
	r.outputs = r.outputs[1:]
	return id
}

// forget drops the values that were declared from first on: nothing uses them.
func (b *Builder) forget(first int) {
	for i := range b.values[first:] {
		if v := &b.values[first+i]; v.Role == Constant {
			delete(b.constants, v.Name)
		}
	}
	b.values = b.values[:first]
	b.env.dims, b.env.ints, b.env.host = b.env.dims[:first], b.env.ints[:first], b.env.host[:first]
	b.env.deferred = b.env.deferred[:first]
}

// Fuse makes Finish apply rules, in their order. It may come at any time before.
func (b *Builder) Fuse(rules ...Fusion) { b.fusions = rules }

// SelectFusions are the rules that a person asks for: "on" or "" for all, "off" for none, else names with
// commas between them. They are tried in their own order, whatever that of the names: some take what others
// leave them.
func SelectFusions(rules []Fusion, want string) ([]Fusion, error) {
	switch want {
	case "on", "":
		return rules, nil
	case "off":
		return nil, nil
	}
	wanted := strings.Split(want, ",")
	var known []string
	var selected []Fusion
	for _, r := range rules {
		if known = append(known, r.Name); slices.Contains(wanted, r.Name) {
			selected = append(selected, r)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no fusion rule %q: want on or off alone, or some of %s", name,
				strings.Join(known, ", "))
		}
	}
	return selected, nil
}

// Readers are the operators that read a value, in the order of the graph; false where it is an output too, or
// of another kind than what an operator gives.
func (b *Builder) Readers(v ValueID) (list []Operator, all bool) {
	if !b.has(v) {
		return nil, false
	}
	for _, o := range slices.Sorted(slices.Values(b.values[v].Consumers)) {
		list = append(list, b.ops[o].impl)
	}
	return list, b.values[v].Role == Intermediate
}

// ReadersAfter counts the readers of v that come after the producer of other.
func (b *Builder) ReadersAfter(v, other ValueID) (n int) {
	for _, o := range b.values[v].Consumers {
		if o > b.values[other].Producer {
			n++
		}
	}
	return n
}

// RouteAsked says whether a route was asked of the operator that gives a value, of its kind, or of one of its
// parts.
func (b *Builder) RouteAsked(v ValueID) bool {
	return b.has(v) && b.values[v].Producer >= 0 && b.ops[b.values[v].Producer].request.must
}

// fuse applies the rules to the recorded operators, and leaves the graph's ids dense.
func (b *Builder) fuse() (notes []string, err error) {
	gone, read := make([]bool, len(b.ops)), b.constantsRead()
	for _, rule := range b.fusions {
		n := 0
		for i := range b.ops {
			if gone[i] {
				continue
			}
			m := b.find(&rule, &b.ops[i])
			if m == nil {
				continue
			}
			declared := len(b.values)
			done, err := b.replace(&rule, m)
			if errors.Is(err, ErrRoute) {
				return nil, err
			}
			if err != nil {
				return nil, fmt.Errorf("fusion %s: %w", rule.Name, err)
			}
			if !done {
				b.forget(declared)
				continue
			}
			for _, id := range m.ids[:len(m.ids)-1] {
				gone[id] = true
			}
			n++
		}
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%d × %s", n, rule.Name))
		}
	}
	if len(notes) > 0 {
		b.renumber(gone)
		still := b.constantsRead()
		for v := range read {
			if !still[v] {
				b.values[v].Role = Fused
			}
		}
	}
	return notes, nil
}

// constantsRead are those that operators read or that are outputs.
func (b *Builder) constantsRead() map[ValueID]bool {
	read := map[ValueID]bool{}
	add := func(list []ValueID) {
		for _, v := range list {
			if b.values[v].Role == Constant {
				read[v] = true
			}
		}
	}
	for i := range b.ops {
		add(b.ops[i].Spec.Inputs)
	}
	add(b.outputs)
	return read
}

// find is the match of a rule of which an operator is the last; nil where there is none.
func (b *Builder) find(rule *Fusion, o *Op) *Match {
	m := &Match{}
	if rule.Beside != nil {
		beside := b.beside(rule.Beside, o)
		if beside == nil {
			return nil
		}
		m.Ops, m.ids = append(m.Ops, beside.impl), append(m.ids, beside.ID)
		m.gives = append(m.gives, beside.Spec.Outputs...)
	}
	if !b.match(&rule.Pattern, o, m) {
		return nil
	}
	m.gives = append(m.gives, o.Spec.Outputs...)
	named := m.ids
	if rule.Unnamed {
		named = named[len(named)-1:]
	}
	m.name = b.fusedName(named)
	return m
}

// beside is an operator of some kinds that may as well stand where another does, and feeds what that feeds.
func (b *Builder) beside(kinds []string, o *Op) *Op {
	for _, v := range o.Spec.Outputs {
		for _, reader := range b.values[v].Consumers {
			for _, in := range b.ops[reader].Spec.Inputs {
				id := b.values[in].Producer
				if id < 0 || id >= o.ID || !slices.Contains(kinds, b.ops[id].Spec.Kind) {
					continue
				}
				early := func(v ValueID) bool {
					return slices.ContainsFunc(b.values[v].Consumers, func(c OpID) bool { return c <= o.ID })
				}
				if spec := &b.ops[id].Spec; !b.stays(spec) && !slices.ContainsFunc(spec.Outputs, early) {
					return &b.ops[id]
				}
			}
		}
	}
	return nil
}

// stays says whether an operator must stay where it is among others, because it keeps or reads State, or
// makes what others leave.
func (b *Builder) stays(s *Spec) bool {
	ofState := func(in ValueID) bool { return b.values[in].Role == State }
	return len(s.State) > 0 || len(s.Materializes) > 0 || slices.ContainsFunc(s.Inputs, ofState)
}

// match finds what feeds an operator as the pattern says, and appends it and the operator to the match.
func (b *Builder) match(p *Pattern, o *Op, m *Match) bool {
	if !slices.Contains(p.Kinds, o.Spec.Kind) {
		return false
	}
	used := map[ValueID]bool{}
	for i := range p.Of {
		found := false
		for _, v := range o.Spec.Inputs {
			if used[v] || !b.private(v, o) {
				continue
			}
			mark := *m
			if before := &b.ops[b.values[v].Producer]; b.match(&p.Of[i], before, m) {
				found = true
				for _, v := range before.Spec.Outputs {
					used[v] = true
				}
				m.Between = append(m.Between, before.Spec.Outputs...)
				break
			}
			*m = mark
		}
		if !found {
			return false
		}
	}
	m.Ops, m.ids = append(m.Ops, o.impl), append(m.ids, o.ID)
	return true
}

// private says whether a value, and all else that the operator which gives it gives, exists for one argument
// of a reader alone: nobody else would miss it, and the operator may stand where the reader does.
func (b *Builder) private(v ValueID, reader *Op) bool {
	if b.values[v].Producer < 0 {
		return false
	}
	spec := &b.ops[b.values[v].Producer].Spec
	for _, v := range spec.Outputs {
		val := &b.values[v]
		if val.Kind != Tensor || val.Role != Intermediate || len(val.Consumers) != 1 ||
			val.Consumers[0] != reader.ID {
			return false
		}
		i := slices.Index(reader.Spec.Inputs, v)
		if slices.Contains(reader.Spec.Inputs[i+1:], v) {
			return false
		}
	}
	return !b.stays(spec)
}

// replace puts the rule's operator in the place of a match's last one; false where the rule does not want to,
// or a route that was asked for is one that the operator does not have.
func (b *Builder) replace(rule *Fusion, m *Match) (bool, error) {
	impl := rule.Replace(b, m)
	if b.err != nil || impl == nil {
		return false, b.err
	}
	last := &b.ops[m.ids[len(m.ids)-1]]
	o := Op{
		ID: last.ID, Name: m.name, Layer: last.Layer, Block: last.Block,
		Spec: impl.Spec(), impl: impl,
	}
	if n := len(m.gives); len(o.Spec.Outputs) < n || !slices.Equal(o.Spec.Outputs[:n], m.gives) {
		return false, fmt.Errorf("%s gives other values than %s", o.Name, last.Name)
	}
	var targets []string
	for _, id := range m.ids {
		part := &b.ops[id]
		targets = append(targets, part.targets()...)
		o.parts = append(o.parts, part.partNames()...)
	}
	if len(m.ids) == 1 {
		o.parts = last.parts // it is what it was, done in another way
	}
	targets = append(targets, o.targets()...)
	if _, err := b.request(&o, o.targets()[1:]); err != nil { // by the name that it has from here on
		return false, err
	}
	if _, err := b.request(&o, targets); err != nil {
		return false, nil
	}
	was := map[ValueID]Value{}
	for _, v := range m.gives {
		was[v] = b.values[v]
		b.values[v].Producer, b.values[v].minDims, b.values[v].MaxDims = -1, nil, nil
	}
	for _, id := range m.ids {
		for _, v := range b.ops[id].Spec.Scratch {
			b.values[v].Producer, b.values[v].minDims, b.values[v].MaxDims = -1, nil, nil
		}
	}
	role := map[ValueID]Role{}
	for _, v := range m.gives { // as they were when an operator first gave them
		role[v], b.values[v].Role = b.values[v].Role, Intermediate
	}
	err := b.admit(&o, targets)
	for v, r := range role {
		b.values[v].Role = r
	}
	if err != nil {
		return false, err
	}
	for v, old := range was {
		if now := &b.values[v]; now.Kind == Tensor &&
			(!slices.Equal(now.MaxDims, old.MaxDims) || !slices.Equal(now.minDims, old.minDims)) {
			return false, fmt.Errorf("%s gives %s the dims %v to %v, its parts %v to %v", o.Name, now.Name,
				now.minDims, now.MaxDims, old.minDims, old.MaxDims)
		}
	}
	for _, id := range m.ids {
		b.dissolve(&b.ops[id], &o)
	}
	*last = o
	b.connect(last)
	return true, nil
}

// partNames are the operators that an operator was made of: itself, where it is as it was written.
func (o *Op) partNames() []string {
	if o.parts != nil {
		return o.parts
	}
	return []string{o.Name}
}

// dissolve takes a part of a fused operator out of the values it reads and gives.
func (b *Builder) dissolve(part, fused *Op) {
	for _, v := range part.Spec.Inputs {
		val := &b.values[v]
		val.Consumers = slices.DeleteFunc(val.Consumers, func(c OpID) bool { return c == part.ID })
	}
	for _, v := range part.Spec.Materializes {
		b.values[v].materializer = -1
	}
	for _, v := range slices.Concat(part.Spec.Outputs, part.Spec.Scratch) {
		if !slices.Contains(fused.Spec.Outputs, v) && !slices.Contains(fused.Spec.Scratch, v) {
			val := &b.values[v]
			val.Role, val.Producer = Fused, -1
		}
	}
}

// fusedName is the names of operators, each without what it has in common with the first:
// "layers.0.attn.o+add".
func (b *Builder) fusedName(ids []OpID) string {
	name := b.ops[ids[0]].Name
	prefix := name[:strings.LastIndexByte(name, '.')+1]
	for _, id := range ids[1:] {
		name += "+" + strings.TrimPrefix(b.ops[id].Name, prefix)
	}
	return name
}

// renumber closes the gaps that parts have left among the operators.
func (b *Builder) renumber(gone []bool) {
	kept := b.ops[:0]
	for i := range gone {
		if !gone[i] {
			kept = append(kept, b.ops[i])
		}
	}
	b.ops = kept
	for i := range b.values {
		b.values[i].Consumers, b.values[i].materializer = b.values[i].Consumers[:0], -1
	}
	for i := range b.ops {
		b.ops[i].ID = OpID(i)
		b.connect(&b.ops[i])
	}
}
