package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A fusion rule replaces a chain of operators by a single operator. In a chain each operator reads the output
// of the previous one. A rule can also replace a single operator by a cheaper one. The rules are passed to
// Builder.Fuse. The builder finds the matches of each rule and checks that no operator outside of the match
// reads the values that are passed within it. The replacement takes the position of the last matched
// operator. The replacement is an ordinary operator: it has its own plan, with routes, grids and memory.
//
// A value between fused operators keeps its id and gets the role Fused, which means that it has no memory. A
// constant also gets this role if the replacement uses a repacked copy and no other operator reads the
// constant.

// Fusion is a rule of the fuse pass.
type Fusion struct {
	Name string // name for the command line, such as "residual"
	Doc  string // one line of help
	// Pattern describes the operators to match: the last one and those that feed it.
	Pattern Pattern
	// Beside lists kinds of operators. If it is not nil, the rule also fuses a sibling of the last matched
	// operator: an earlier operator of one of these kinds that feeds the same reader. The sibling can move
	// to the position of the last operator if only later operators read its outputs. The sibling's outputs
	// become the first outputs of the replacement.
	Beside []string
	// Unnamed gives the replacement the name of the last matched operator instead of the joined names. A
	// rule sets Unnamed if at some shapes the replacement does only the work of that operator.
	Unnamed bool
	// Replace returns the operator that does the work of the match, or nil if the rule does not apply. The
	// first outputs of the returned operator must be the outputs of the last matched operator, with the
	// same shapes. Replace declares further outputs with b.Tensor. The operator may reuse scratch tensors
	// of the matched operators, or use new ones from b.Scratch. Replace can call b.Remake to build the
	// operator with the usual constructors, such as those of package ops.
	Replace func(b *Builder, m *Match) Operator
}

// Pattern matches an operator whose kind is in Kinds. Each pattern in Of must match the producer of one of
// the operator's inputs. Different patterns must match different inputs, in any order.
type Pattern struct {
	Kinds []string
	Of    []Pattern
}

// String returns the pattern in readable form, such as "add(linear)".
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

// Match is one match of a fusion rule.
type Match struct {
	Ops     []Operator // matched operators, producers before readers
	Between []ValueID  // values between the matched operators, which fusion removes, in the order of Ops
	ids     []OpID
	gives   []ValueID // outputs that the replacement must have
	name    string    // name of the replacement
}

// Last returns the last matched operator, which matches the outermost pattern of the rule.
func (m *Match) Last() Operator { return m.Ops[len(m.Ops)-1] }

// remade is the operator that a fusion rule is building with Remake.
type remade struct {
	name    string
	outputs []ValueID // outputs of the match for which add has not declared an output yet
	ops     []Operator
}

// Remake builds the replacement of a match with the usual constructors, which add an operator to the builder.
// Remake calls the function `add`, which must add one operator with the given name and declare its outputs.
// Remake maps the declared outputs to the outputs of the match, in order. It returns the operator without
// adding it to the graph. After an error it returns nil, and Err returns the error.
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
		b.Errorf("%s: the fusion rule must build one operator with all outputs of the match, but built %d operators and left out %d outputs",
			r.name, len(r.ops), len(r.outputs))
	}
	if b.err != nil {
		return nil
	}
	return r.ops[0]
}

// output declares an output of the next operator. While a fusion rule builds an operator, output returns the
// next output of the match.
func (b *Builder) output(v Value) ValueID {
	r := b.remade
	if r == nil || b.err != nil {
		return b.add(v)
	}
	if len(r.outputs) == 0 {
		b.Errorf("%s: the fused operator declares output %s, but has already declared all outputs of the match", r.name, v.Name)
		return None
	}
	id := r.outputs[0]
	if given := &b.values[id]; given.Kind != v.Kind || given.Kind == Tensor && given.DType != v.DType {
		b.Errorf("%s: the fused operator outputs a %s of type %s, but this output must replace %s, which has type %s",
			r.name, v.Kind, v.DType, given.Name, given.DType)
		return None
	}
	r.outputs = r.outputs[1:]
	return id
}

// forget removes all values whose id is at least `first`. No operator may use these values.
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

// Fuse sets the fusion rules that Finish applies, in order.
func (b *Builder) Fuse(rules ...Fusion) { b.fusions = rules }

// Fuses reports whether Finish applies the fusion rule with this name.
func (b *Builder) Fuses(rule string) bool {
	return slices.ContainsFunc(b.fusions, func(f Fusion) bool { return f.Name == rule })
}

// SelectFusions selects rules by name. `want` is "on" or "" for all rules, "off" for no rules, or a list of
// names separated by commas. The order of names in `want` has no effect. The result keeps the order of the
// argument `rules`, because earlier rules change what later rules match.
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

// Readers returns the operators that read a value, in graph order. `all` is true if nothing else reads the
// value. This is the case if the value is an intermediate, because the host cannot read intermediates.
func (b *Builder) Readers(v ValueID) (list []Operator, all bool) {
	if !b.has(v) {
		return nil, false
	}
	for _, o := range slices.Sorted(slices.Values(b.values[v].Consumers)) {
		list = append(list, b.ops[o].impl)
	}
	return list, b.values[v].Role == Intermediate
}

// ReadersAfter returns how many operators read v and come after the producer of `other` in graph order.
func (b *Builder) ReadersAfter(v, other ValueID) (n int) {
	for _, o := range b.values[v].Consumers {
		if o > b.values[other].Producer {
			n++
		}
	}
	return n
}

// RouteAsked reports whether the user requested a route for the operator that outputs v. The request may name
// the operator's kind, the operator itself, or an operator that was fused into it.
func (b *Builder) RouteAsked(v ValueID) bool {
	return b.has(v) && b.values[v].Producer >= 0 && b.ops[b.values[v].Producer].request.must
}

// fuse applies the fusion rules to the recorded operators and renumbers the remaining operators. `notes` has
// an entry such as "2 × residual" for each rule that was applied.
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

// constantsRead returns the set of all constants that are graph outputs or are read by at least one operator.
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

// find matches a rule with o as the last matched operator. It returns nil if the rule does not match.
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

// beside returns a sibling of o to fuse with o, or nil if there is none. A sibling is an earlier operator
// whose kind is in `kinds`. It feeds the same reader as o, and it can move to the position of o.
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

// stays reports whether an operator must keep its position, because it uses State or materializes an output
// of another operator.
func (b *Builder) stays(s *Spec) bool {
	ofState := func(in ValueID) bool { return b.values[in].Role == State }
	return len(s.State) > 0 || len(s.Materializes) > 0 || slices.ContainsFunc(s.Inputs, ofState)
}

// match reports whether o and the producers of its inputs match the pattern. If so, match appends these
// operators to m, producers first.
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

// private reports whether the producer of v can be fused into `reader`: only `reader` reads the producer's
// outputs, and it reads each of them through a single argument.
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

// replace puts the rule's operator in the position of the match's last operator. It returns false if the
// rule does not apply, or if the replacement lacks a route that the user requested for a matched operator.
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
		return false, fmt.Errorf("the first outputs of the fused operator %s must be those of the matched operators, the last of which is %s",
			o.Name, last.Name)
	}
	var targets []string
	for _, id := range m.ids {
		part := &b.ops[id]
		targets = append(targets, part.targets()...)
		o.parts = append(o.parts, part.partNames()...)
	}
	if len(m.ids) == 1 {
		o.parts = last.parts // a rule that matches one operator only replaces its implementation
	}
	targets = append(targets, o.targets()...)
	if _, err := b.request(&o, o.targets()[1:]); err != nil { // fails on an unknown route
		return false, err
	}
	if _, err := b.request(&o, targets); err != nil {
		return false, nil
	}
	was := map[ValueID]Value{}
	for _, v := range m.gives { // admit expects each output to be an intermediate without dims
		was[v] = b.values[v]
		b.values[v].Producer, b.values[v].minDims, b.values[v].MaxDims = -1, nil, nil
		b.values[v].Role = Intermediate
	}
	for _, id := range m.ids {
		for _, v := range b.ops[id].Spec.Scratch {
			b.values[v].Producer, b.values[v].minDims, b.values[v].MaxDims = -1, nil, nil
		}
	}
	err := b.admit(&o, targets)
	for v, old := range was {
		b.values[v].Role = old.Role
	}
	if err != nil {
		return false, err
	}
	for v, old := range was {
		if now := &b.values[v]; now.Kind == Tensor &&
			(!slices.Equal(now.MaxDims, old.MaxDims) || !slices.Equal(now.minDims, old.minDims)) {
			return false, fmt.Errorf("%s computes %s with dims from %v to %v, but without fusion the dims are from "+
				"%v to %v", o.Name, now.Name, now.minDims, now.MaxDims, old.minDims, old.MaxDims)
		}
	}
	for _, id := range m.ids {
		b.dissolve(&b.ops[id], &o)
	}
	*last = o
	b.connect(last)
	return true, nil
}

// partNames returns the names of the operators that o was fused from, or the name of o if it is not fused.
func (o *Op) partNames() []string {
	if o.parts != nil {
		return o.parts
	}
	return []string{o.Name}
}

// dissolve unlinks an operator that was fused into another one: values no longer name it as their producer
// or consumer.
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

// fusedName joins the names of operators to a name such as "layers.0.attn.o+add". Only the first name keeps
// the prefix that the names share.
func (b *Builder) fusedName(ids []OpID) string {
	name := b.ops[ids[0]].Name
	prefix := name[:strings.LastIndexByte(name, '.')+1]
	for _, id := range ids[1:] {
		name += "+" + strings.TrimPrefix(b.ops[id].Name, prefix)
	}
	return name
}

// renumber removes the operators that are marked in `gone`. It gives the remaining operators consecutive ids.
func (b *Builder) renumber(gone []bool) {
	b.ops = slices.DeleteFunc(b.ops, func(o Op) bool { return gone[o.ID] })
	for i := range b.values {
		b.values[i].Consumers, b.values[i].materializer = b.values[i].Consumers[:0], -1
	}
	for i := range b.ops {
		b.ops[i].ID = OpID(i)
		b.connect(&b.ops[i])
	}
}
