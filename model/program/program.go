// Package program runs methods of ExecuTorch programs. Build makes a graph of the engine from the Vulkan
// delegate of a method. Load puts the graph on a device. Program.Run runs the graph once, with inputs of any
// shapes that the method allows:
//
//	m, err := program.Build(file, "forward", dev.Info().Limits, program.Options{})
//	p, err := program.Load(dev, m)
//	outputs, err := p.Run(ctx, inputs)
//
// Each operator of the delegate becomes one or more operators of package ops. Their names start with the
// number of the operator in the file: "12.linear_q4gsw". Inputs and mutable buffers are named after the
// value in the file: "%3". A constant's name is its key. If the key is a hash, the name is made of the
// constant's number, for example "constant5". Method.Value takes the number that a value has in the file
// and returns the value in the engine's graph. If a method calls several delegates, they become one graph,
// in which the numbers continue from delegate to delegate.
//
// The engine computes in f32 and i32. 64-bit integers are converted to 32 bits when they are copied to the
// device; a number that does not fit is an error. Bools, int8 and uint8 are f32 numbers on the device. Run
// converts the outputs to the types of the method.
package program

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// Options selects how a method is built and run.
type Options struct {
	Fuse   string            // fusion rules, as in graph.SelectFusions
	Routes map[string]string // requested routes, as in graph.Builder.AskRoutes
	Live   graph.LiveOptions // how shapes are propagated
	// DumpPass names a planning pass. Its report then lists the graph before and after the pass.
	DumpPass string
	Check    bool            // re-plan every operator before each run, and fail if a plan was out of date
	Progress engine.Progress // progress of loading; may be nil
}

// Method is a method of a program, converted to a graph of the engine. A Method needs no device. Its weights
// are read only when it is loaded.
type Method struct {
	Graph *graph.Graph

	options Options
	method  *pte.Method
	source  *vulkan.Graph // the graph of the delegate, or of all delegates (see merge)
	changes *vulkan.Changes
	calls   []*pte.Instruction // the calls of delegates
	call    *pte.Instruction   // a call of `source`, with the arguments of the calls of all delegates
	copies  []hostCopy         // host instructions after the calls
	values  []value            // indexed by the value id in the delegate's graph
	// indices has an entry for each input whose elements are row indices into a table: the number of rows of
	// the table.
	indices map[graph.ValueID]int
	// sizes has an entry for each input whose elements are positions or sizes: the allowed range of each
	// element. The host reads these elements.
	sizes map[graph.ValueID][]elementRange
}

// elementRange is the range of an element of a tensor. A negative index counts from the end of its dim.
type elementRange struct {
	at     []int
	lo, hi int64
}

// hostCopy is an instruction on the host that copies a value of the method. calls is the number of delegate
// calls before the copy.
type hostCopy struct{ from, to, calls int }

// copyOperator is the only portable operator that gpuscope runs. Exporters put it after the calls of
// delegates, to copy the new contents of a buffer that the method updates.
const copyOperator = "aten::copy_"

// Build builds the graph of a method for a device with these limits. The error wraps an *UnknownOperators if
// gpuscope does not implement some of the operators. It wraps a *HostError if gpuscope cannot run other parts
// of the method, and an *OperatorError if an operator has arguments that are not supported.
func Build(f *pte.File, method string, limits gpu.Limits, o Options) (*Method, error) {
	m, err := f.Method(method)
	if err != nil {
		return nil, err
	}
	out := &Method{method: m, options: o}
	if err := out.open(f); err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", f.Name(), m.Name, err)
	}
	rules, err := graph.SelectFusions(ops.Fusions, o.Fuse)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder(limits)
	b.AskRoutes(o.Routes)
	b.Fuse(rules...)
	if o.DumpPass != "" {
		if err := b.DumpPass(o.DumpPass); err != nil {
			return nil, err
		}
	}
	if err := out.build(b, nil, (*builder).outputs); err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", f.Name(), m.Name, err)
	}
	return out, nil
}

// open reads the instructions and the graphs of the delegates.
func (m *Method) open(f *pte.File) error {
	if err := m.readInstructions(); err != nil {
		return err
	}
	graphs := make([]*vulkan.Graph, len(m.method.Delegates))
	for _, call := range m.calls {
		if graphs[call.Target] != nil {
			continue
		}
		g, err := vulkan.Parse(m.method.Delegates[call.Target].Data, f.Lookup)
		if err != nil {
			return err
		}
		graphs[call.Target] = g
	}
	m.source = graphs[m.call.Target]
	if len(m.calls) > 1 {
		if err := m.merge(graphs); err != nil {
			return err
		}
	}
	m.changes = vulkan.ChangesOf(m.method, graphs)
	var unknown counts
	for i := range m.source.Operators {
		if op := &m.source.Operators[i]; operators[op.Name] == nil || !op.Known() {
			unknown.add(op.Name)
		}
	}
	if len(unknown) > 0 {
		return &UnknownOperators{Operators: unknown.sorted()}
	}
	return nil
}

// readInstructions finds the calls of delegates and the copies after them.
func (m *Method) readInstructions() error {
	var refused counts
	for c := range m.method.Chains {
		for i := range m.method.Chains[c].Instructions {
			in := &m.method.Chains[c].Instructions[i]
			switch in.Op {
			case pte.DelegateCall:
				backend := m.method.Delegates[in.Target].Backend
				if backend != vulkan.Backend {
					refused.add("delegate of " + backend)
					continue
				}
				m.calls = append(m.calls, in)
				m.call = m.calls[0]
			case pte.KernelCall:
				name := m.method.Operators[in.Target].String()
				if name != copyOperator || m.call == nil || len(in.Args) < 2 {
					refused.add(name)
					continue
				}
				m.copies = append(m.copies, hostCopy{from: in.Args[1], to: in.Args[0], calls: len(m.calls)})
				if out := in.Args[len(in.Args)-1]; out != in.Args[0] {
					m.copies = append(m.copies, hostCopy{from: in.Args[1], to: out, calls: len(m.calls)})
				}
			case pte.MoveCall:
				if m.call == nil || len(in.Args) != 2 {
					refused.add(in.Op.String())
					continue
				}
				m.copies = append(m.copies, hostCopy{from: in.Args[0], to: in.Args[1], calls: len(m.calls)})
			case pte.FreeCall:
			default:
				refused.add(in.Op.String())
			}
		}
	}
	switch {
	case len(refused) > 0:
		return &HostError{Instructions: refused.sorted()}
	case m.call == nil:
		return &HostError{}
	}
	return nil
}

// value is the counterpart of a value of the file in the engine's graph: a tensor or an integer. The field
// `is` is the zero value until the operator that computes the value has been added.
type value struct {
	is     valueIs
	tensor graph.ValueID
	symInt kind.Int
	sum    [2]kind.Int // the two summands, if symInt is the result of the operator add
}

type valueIs uint8

const (
	isNothing valueIs = iota
	isTensor
	isInt
)

// builder builds the graph of a delegate.
type builder struct {
	*graph.Builder
	m         *Method
	g         *vulkan.Graph
	*language                 // nil if the method does not run as a language model
	mutable   map[int]bool    // tensors that an operator updates in place
	shared    map[string]bool // names of constants that tensors of different types or shapes use
	limits    map[int]int     // for each SymInt that is a position: the number of possible positions
	sizes     map[size]kind.Int
	named     map[uint32]string         // for each operator of the file: its name
	added     map[string]int            // for each name: number of operators of the engine that have it
	producers map[int]*vulkan.Operator  // for each value: the operator that computes it
	hostOnly  map[*vulkan.Operator]bool // operators whose results only the host reads; see findHostOnly
}

// build adds the operators of the delegate to a builder, and finishes the graph. `outputs` adds the outputs.
// `part` is nil if the method does not run as a language model.
func (m *Method) build(g *graph.Builder, part *language, outputs func(*builder)) error {
	inputs, _, err := m.source.Split(m.call.Args)
	if err != nil {
		return err
	}
	named := map[uint32]string{}
	for i := range m.source.Operators {
		named[m.source.Operators[i].ID] = m.source.Operators[i].Name
	}
	if g.Fuses(lastRule) {
		m.source = lastRows(m.source, part != nil)
	}
	if part != nil {
		part.places = m.source.Places()
	}
	b := &builder{
		Builder: g, m: m, g: m.source, language: part, named: named, added: map[string]int{},
		mutable: map[int]bool{},
		sizes:   map[size]kind.Int{}, shared: map[string]bool{}, limits: map[int]int{},
		producers: producersOf(m.source), hostOnly: map[*vulkan.Operator]bool{},
	}
	m.values = make([]value, len(m.source.Values))
	m.sizes = map[graph.ValueID][]elementRange{}
	b.survey()
	for i, id := range m.source.Inputs {
		b.input(id, inputs[i])
	}
	for i := range m.source.Operators {
		if part != nil {
			b.Scope("", part.places[i].Layer, part.places[i].Block)
		}
		if err := b.operator(&m.source.Operators[i]); err != nil {
			return err
		}
	}
	b.Scope("", -1, "")
	outputs(b)
	m.Graph, err = b.Finish()
	return err
}

// outputs declares the outputs of the delegate's graph.
func (b *builder) outputs() {
	_, results, _ := b.g.Split(b.m.call.Args) // build has checked the number of arguments
	for i, id := range b.g.Outputs {
		b.output(id, results[i])
	}
}

// survey sets the fields `mutable`, `limits`, `hostOnly` and `shared` before the first operator is added.
func (b *builder) survey() {
	for i := range b.g.Operators {
		op := &b.g.Operators[i]
		for _, id := range b.g.Updates(op) {
			b.mutable[id] = true
		}
		b.limitPositions(op)
	}
	b.findHostOnly()
	first := map[string]*vulkan.Tensor{}
	for _, v := range b.g.Values {
		t, ok := v.(*vulkan.Tensor)
		if !ok || t.Constant < 0 {
			continue
		}
		name := b.constantName(t.Constant)
		if other := first[name]; other == nil {
			first[name] = t
		} else if other.Type != t.Type || !slices.Equal(other.Dims, t.Dims) {
			b.shared[name] = true
		}
	}
}

// producersOf returns the operator that computes each value of a graph.
func producersOf(g *vulkan.Graph) map[int]*vulkan.Operator {
	by := map[int]*vulkan.Operator{}
	for i := range g.Operators {
		op := &g.Operators[i]
		for _, id := range g.Writes(op) {
			by[id] = op
		}
	}
	return by
}

// input declares an input of the delegate's graph. `outer` is the id of the value that the method passes as
// this input.
func (b *builder) input(id, outer int) {
	if b.language != nil && id == b.position {
		return // the position is a SymInt; see tensorOf
	}
	t := b.g.Values[id].(*vulkan.Tensor) // vulkan.Parse has checked that inputs are tensors
	host, ok := b.m.method.Values[outer].(*pte.Tensor)
	if !ok || !slices.Equal(host.Sizes, t.Dims) {
		b.Errorf("input %%%d: the delegate reads a tensor of shape %v, but value %d of the method is not a tensor of this shape",
			id, t.Dims, outer)
		return
	}
	dtype, ok := deviceType(t.Type)
	passed, known := deviceType(host.Type)
	switch {
	case !ok:
		b.Errorf("input %%%d: %w", id, &TypeError{t.Type})
	case !known || passed != dtype:
		b.Errorf("input %%%d: the delegate reads type %s, but value %d of the method has type %s", id,
			t.Type, outer, host.Type)
	case host.Memory != pte.Constant && !slices.Contains(b.m.method.Inputs, outer):
		b.Errorf("input %%%d: value %d of the method is neither an input nor a constant", id, outer)
	}
	if b.Err() != nil {
		return
	}
	lowest := slices.Clone(t.Dims)
	for k, change := range b.m.changes.Of(outer, host) {
		if change != vulkan.Fixed {
			lowest[k] = 1
		}
	}
	name, highest := valueName(id), t.Dims
	if b.language != nil { // id is the tokens
		name, highest = "tokens", []int{1, b.chunk}
	}
	if !b.mutable[id] {
		b.set(id, b.Input(name, dtype, lowest, highest))
		return
	}
	if !slices.Equal(lowest, t.Dims) {
		b.Errorf("input %s: the shape (at most %v) changes from run to run, but an input that operators "+
			"update in place needs a fixed shape",
			name,
			t.Dims)
		return
	}
	b.set(id, b.State(name, dtype, t.Dims))
}

// output declares an output of the delegate's graph. `outer` is the id of the value in the method that
// receives this output.
func (b *builder) output(id, outer int) {
	t := b.g.Values[id].(*vulkan.Tensor) // vulkan.Parse has checked that outputs are tensors
	host, ok := b.m.method.Values[outer].(*pte.Tensor)
	if !ok || elements[host.Type].numpy == "" || elements[host.Type].device != elements[t.Type].device {
		b.Errorf("output %%%d: the delegate computes a tensor of type %s, but value %d of the method is not a tensor "+
			"of a matching type", id, t.Type, outer)
		return
	}
	v := b.tensorOf(id)
	if info, ok := b.Value(v); ok && (info.Role == graph.Input || info.Role == graph.Constant) {
		// The output is an input or a constant that no operator changes. An operator must write each output,
		// so add a view.
		dims := make([]kind.Int, len(info.MaxDims))
		for k := range dims {
			dims[k] = basic.Rest
			if b.MinDims(v)[k] == info.MaxDims[k] {
				dims[k] = kind.Fixed(info.MaxDims[k])
			}
		}
		v = basic.View(b.Builder, "output "+valueName(id), v, dims...)
		b.set(id, v)
	}
	b.Output(v)
}

func valueName(id int) string { return fmt.Sprintf("%%%d", id) }

func (b *builder) set(id int, v graph.ValueID) {
	if b.Err() == nil {
		b.m.values[id] = value{is: isTensor, tensor: v}
	}
}

// tensorOf returns the tensor of the engine's graph for a tensor of the file. It declares a constant when the
// constant is first used.
func (b *builder) tensorOf(id int) graph.ValueID {
	if b.Err() != nil {
		return graph.None
	}
	if v := &b.m.values[id]; v.is == isTensor {
		return v.tensor
	}
	t, ok := b.g.Values[id].(*vulkan.Tensor)
	switch {
	case b.language != nil && id == b.position:
		b.posTensor = b.Input(valueName(id), graph.I32, []int{1}, []int{1})
		b.set(id, b.posTensor)
		return b.posTensor
	case !ok:
		b.Errorf("value %%%d is %s, want a tensor", id, describeValue(b.g.Values[id]))
	case t.Constant < 0:
		b.Errorf("value %%%d is read, but no earlier operator computes it", id)
	default:
		v := b.constant(id, t, t.Dims)
		b.set(id, v)
		return v
	}
	return graph.None
}

// constantName returns the name of a constant: its key in the file, or "constant" and its number if it has no
// readable key. Exporters often use the SHA-256 of the bytes as key.
func (b *builder) constantName(i int) string {
	if i < 0 {
		return "" // after an error
	}
	key := b.g.Constants[i].Key
	hash := len(key) == 64 && strings.Trim(key, "0123456789abcdef") == ""
	plain := !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if key == "" || hash || !plain || len(key) > 80 || strings.HasPrefix(key, "constant") {
		return fmt.Sprintf("constant%d", i)
	}
	return key
}

// constant declares a constant of the file. If `dims` is smaller than the dims in the file, the constant
// consists of the first elements. Tensors with the same bytes, type and dims share memory, except tensors
// that an operator updates.
func (b *builder) constant(id int, t *vulkan.Tensor, dims []int) graph.ValueID {
	from := &b.g.Constants[t.Constant]
	if from.Missing != nil {
		b.Errorf("constant %%%d: %w", id, from.Missing)
		return graph.None
	}
	dtype, ok := deviceType(t.Type)
	if !ok {
		b.Errorf("constant %%%d: %w", id, &TypeError{t.Type})
		return graph.None
	}
	size, _ := t.Type.Bytes(dims)
	load := func() ([]byte, error) {
		data, err := from.Data.Bytes()
		if err != nil {
			return nil, err
		}
		return toDevice(t.Type, data[:size])
	}
	if b.mutable[id] {
		if b.language != nil && b.halfKV[id] && dtype == graph.F32 {
			return b.StateFrom(valueName(id), graph.F16, dims, halved(load))
		}
		return b.StateFrom(valueName(id), dtype, dims, load)
	}
	name := b.constantName(t.Constant)
	if n, _ := t.Type.Bytes(dims); n != from.Data.Size() || b.shared[name] {
		name += fmt.Sprint(dims)
	}
	return b.Constant(name, dtype, dims, load)
}

// operator adds the operators of the engine for an operator of the file.
func (b *builder) operator(op *vulkan.Operator) error {
	if b.Err() != nil || b.hostOnly[op] {
		return b.Err()
	}
	c := &call{builder: b, op: op, names: op.Arguments()}
	if len(c.outputs()) == 0 {
		b.Errorf("the operator's list of outputs is empty")
	} else {
		operators[op.Name](c)
	}
	if err := b.Err(); err != nil {
		return &OperatorError{ID: op.ID, Name: op.Name, Err: err}
	}
	return nil
}

// limitIndices records that the elements of tensor v are row indices, which must be less than n.
func (m *Method) limitIndices(v graph.ValueID, n int) {
	if m.indices == nil {
		m.indices = map[graph.ValueID]int{}
	}
	if old, ok := m.indices[v]; !ok || n < old {
		m.indices[v] = n
	}
}

// NumValues returns the number of values in the delegate's graph. Their ids are less than this number.
func (m *Method) NumValues() int { return len(m.values) }

// Value returns the value in the engine's graph for the tensor with this id in the delegate's graph. It
// returns graph.None if the engine's graph has no such value.
func (m *Method) Value(id int) graph.ValueID {
	if id < 0 || id >= len(m.values) || m.values[id].is != isTensor {
		return graph.None
	}
	return m.values[id].tensor
}

// operatorName returns the name of an operator in the graph of the engine: "12.linear_q4gsw".
func operatorName(id uint32, name string) string { return fmt.Sprintf("%d.%s", id, shortName(name)) }

// shortName returns the name of an operator without namespace and overload: linear_q4gsw for
// et_vk.linear_q4gsw.default.
func shortName(name string) string {
	parts := strings.Split(name, ".")
	switch len(parts) {
	case 1:
		return name
	case 2:
		return parts[0]
	}
	return parts[1]
}
