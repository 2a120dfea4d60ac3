package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fusion. A rule replaces several operators, each reading the previous one's output, by one operator, or
// replaces one operator by a cheaper one. Rules are rows of a table that is passed to Builder.Fuse. The
// builder finds the matches, checks that nothing else reads the values between the matched operators, and
// puts the replacement in the position of the last one. A fused operator is an operator like any other: its
// routes, grids and memory come from its own plan.
//
// A value between fused operators keeps its id and gets the role Fused: it has no memory. So does a constant
// that nothing reads any more because the replacement uses a repacked copy.

// Fusion is a rule of the fuse pass.
type Fusion struct {
	Name string // "residual"
	Doc  string // one line for users
	// Pattern matches the last operator and those that feed it.
	Pattern Pattern
	// Beside lists kinds of a sibling to fuse with the last operator: one that comes earlier, feeds the same
	// reader, and has no reader before the last operator. Its outputs become the replacement's first outputs.
	Beside []string
	// Unnamed: name the replacement after the last operator only, because at some shapes it does no other
	// work.
	Unnamed bool
	// Replace returns the operator that does the work of the match, or nil if the rule's conditions do not
	// hold. Its outputs are those of the match's last operator, with the same shapes, optionally followed by
	// new ones made with b.Tensor. It may reuse scratch of the matched operators or make its own with
	// b.Scratch. b.Remake builds an operator by the same functions as any other graph.
	Replace func(b *Builder, m *Match) Operator
}

// Pattern matches an operator of one of Kinds. Each pattern of Of must match the producer of a different
// input, in any order.
type Pattern struct {
	Kinds []string
	Of    []Pattern
}

// String is the pattern as people write it, such as "add(linear)".
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

// Match is one match of a rule's pattern. Ops are the matched operators, producers before readers, so the
// last one matches the pattern itself. Between are the values that the fusion removes, in the order of their
// producers in Ops.
type Match struct {
	Ops     []Operator
	Between []ValueID
	ids     []OpID
	gives   []ValueID // outputs of the replacement
	name    string    // of the replacement
}

// Last is the operator that matches the end of the pattern.
func (m *Match) Last() Operator { return m.Ops[len(m.Ops)-1] }

// remade is the operator that a fusion rule is building.
type remade struct {
	name    string
	outputs []ValueID // not yet assigned
	ops     []Operator
}

// Remake builds an operator with the outputs of a match's last operator: add is called with the name to use
// and declares outputs and adds the operator as in any other graph. The declared outputs are mapped to the
// match's, in order; the operator is returned, not added. It returns nil after an error, which Err has.
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
		b.Errorf("%s: built %d operators with %d outputs of the match unused; want 1 and 0",
			r.name, len(r.ops), len(r.outputs))
	}
	if b.err != nil {
		return nil
	}
	return r.ops[0]
}

// output declares an output of the next operator.
func (b *Builder) output(v Value) ValueID {
	r := b.remade
	if r == nil || b.err != nil {
		return b.add(v)
	}
	if len(r.outputs) == 0 {
		b.Errorf("%s: output %s is not an output of the match", r.name, v.Name)
		return None
	}
	id := r.outputs[0]
	if given := &b.values[id]; given.Kind != v.Kind || given.Kind == Tensor && given.DType != v.DType {
		b.Errorf("%s: outputs a %s of type %s for %s of type %s", r.name, v.Kind, v.DType, given.Name,
			given.DType)
		return None
	}
	r.outputs = r.outputs[1:]
	return id
}

// forget drops the values declared from first on, which nothing uses.
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

// Fuse sets the rules that Finish applies, in order.
func (b *Builder) Fuse(rules ...Fusion) { b.fusions = rules }

// SelectFusions selects rules by name: "on" or "" for all, "off" for none, else names separated by commas.
// The order stays that of rules, because earlier rules change what later ones match.
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
			return nil, fmt.Errorf("unknown fusion rule %q: want on, off, or a list of %s", name,
				strings.Join(known, ", "))
		}
	}
	return selected, nil
}

// Readers are the operators that read a value, in graph order. all is false if the value is also a graph
// output, or is not an intermediate.
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

// RouteAsked reports whether the user requested a route for the producer of v: by its kind, its name or the
// name of one of its parts.
func (b *Builder) RouteAsked(v ValueID) bool {
	return b.has(v) && b.values[v].Producer >= 0 && b.ops[b.values[v].Producer].request.must
}

// fuse applies the rules to the recorded operators and renumbers the rest.
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

// constantsRead are the constants that operators read or that are graph outputs.
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

// find matches a rule whose last operator is o; nil if it does not match.
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

// beside finds an operator of one of kinds that can move to o's position and feeds the same reader.
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

// stays reports whether an operator cannot move, because it uses State or materializes an output of another
// operator.
func (b *Builder) stays(s *Spec) bool {
	ofState := func(in ValueID) bool { return b.values[in].Role == State }
	return len(s.State) > 0 || len(s.Materializes) > 0 || slices.ContainsFunc(s.Inputs, ofState)
}

// match matches the producers of o's inputs against the pattern, and appends them and o to the match.
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

// private reports whether one argument of reader is the only use of all outputs of v's producer, so that the
// producer can be fused into the reader.
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

// replace puts the rule's operator in the position of the match's last operator. It returns false if the rule
// declines, or if the replacement lacks a requested route.
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
		return false, fmt.Errorf("%s has other outputs than %s", o.Name, last.Name)
	}
	var targets []string
	for _, id := range m.ids {
		part := &b.ops[id]
		targets = append(targets, part.targets()...)
		o.parts = append(o.parts, part.partNames()...)
	}
	if len(m.ids) == 1 {
		o.parts = last.parts // the same operator, implemented differently
	}
	targets = append(targets, o.targets()...)
	if _, err := b.request(&o, o.targets()[1:]); err != nil { // by its new name
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
	for _, v := range m.gives { // as the original operators computed them
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
			return false, fmt.Errorf("%s computes %s with dims %v to %v; its parts with %v to %v", o.Name,
				now.Name,
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

// partNames are the operators that o was fused from, or o itself.
func (o *Op) partNames() []string {
	if o.parts != nil {
		return o.parts
	}
	return []string{o.Name}
}

// dissolve removes a fused part from the producers and consumers of its values.
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

// fusedName joins the names of operators, each without the prefix it shares with the first:
// "layers.0.attn.o+add".
func (b *Builder) fusedName(ids []OpID) string {
	name := b.ops[ids[0]].Name
	prefix := name[:strings.LastIndexByte(name, '.')+1]
	for _, id := range ids[1:] {
		name += "+" + strings.TrimPrefix(b.ops[id].Name, prefix)
	}
	return name
}

// renumber makes operator ids dense again after fusion.
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
