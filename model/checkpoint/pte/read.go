package pte

import (
	"fmt"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte/internal/flat"
)

// reader reads the FlatBuffer of a program.
type reader struct {
	f      *File
	buffer Data // the FlatBuffer that contains the blobs

	constants       []Data       // constants stored in the FlatBuffer
	inlineDelegates []Data       // delegates stored in the FlatBuffer
	packed          subsegment   // segment of the constants
	mutable         []subsegment // segments with the initial contents of mutable buffers
}

// subsegment is a segment that contains several tensors. The file stores the offsets of the tensors but not
// their sizes.
type subsegment struct {
	data    Data
	offsets []uint64 // offset of each tensor in data
}

// read reads a .pte or .bpte file.
func (f *File) read(d Data) error {
	head, err := d.header(headerEnd)
	if err != nil {
		return err
	}
	if identified(head) == bundleID {
		return f.readBundle(d)
	}
	return f.readProgram(d)
}

// readBundle reads a .bpte file. The bytes of the program are a field of the bundle.
func (f *File) readBundle(d Data) error {
	data, err := d.Bytes()
	if err != nil {
		return err
	}
	b := flat.New(data)
	r := &reader{f: f, buffer: d}
	root := b.Root(bundleKind)
	f.Bundled = true
	f.Suites = tables(root, bundleSuites, suiteKind, r.suite)
	inner := r.blob(root, bundleProgram)
	if err := b.Err(); err != nil {
		return err
	}
	return f.readProgram(inner)
}

func (f *File) readProgram(d Data) error {
	l, err := programLayout(d)
	if err != nil {
		return err
	}
	data, err := l.buffer.Bytes()
	if err != nil {
		return err
	}
	f.Extended = l.extended
	b := flat.New(data)
	r := &reader{f: f, buffer: l.buffer}
	r.program(b.Root(programKind), l.segments)
	return b.Err()
}

// tables reads a field that is a list of tables. It calls `read` for each table and returns the results, or
// nil if the buffer has an error.
func tables[T any](t *flat.Table, slot int, kind *flat.Kind, read func(*flat.Table) T) []T {
	list := make([]T, 0, t.Len(slot))
	for _, item := range t.Tables(slot, kind) {
		list = append(list, read(item))
		if item.Failed() {
			return nil
		}
	}
	return slices.Clip(list)
}

func (r *reader) program(t *flat.Table, segments Data) {
	f := r.f
	f.Version = flat.Number[uint32](t, programVersion, 0)
	f.Segments = tables(t, programSegments, segmentKind, segmentIn(segments))
	r.constants = tables(t, programConstants, bufferKind, r.inline)
	r.inlineDelegates = tables(t, programDelegates, inlineKind, r.inline)
	if packed := t.Table(programConstantSegment, subsegmentKind); packed != nil {
		r.packed = r.subsegment(packed)
	}
	r.mutable = tables(t, programMutableSegments, subsegmentKind, r.subsegment)
	f.Named, f.named = named(t, programNamed, f.Segments)
	f.Methods = tables(t, programPlans, planKind, r.method)
	seen := map[string]bool{}
	for _, m := range f.Methods {
		if seen[m.Name] {
			t.Failf(programPlans, "two methods are named %q", printable.Short(m.Name, 80))
		}
		seen[m.Name] = true
	}
}

// segmentIn returns a function that reads an entry of the segment table and returns the bytes of this
// segment. `segments` holds the bytes of all segments.
func segmentIn(segments Data) func(*flat.Table) Data {
	return func(t *flat.Table) Data {
		at, n := flat.Number[uint64](t, segmentOffset, 0), flat.Number[uint64](t, segmentSize, 0)
		d, err := segments.Slice(at, n)
		if err != nil {
			t.Failf(segmentOffset, "outside the segments: %v", err)
		}
		return d
	}
}

// blob returns the bytes of a field that is a list of bytes, without copying them.
func (r *reader) blob(t *flat.Table, slot int) Data {
	at, n := t.Bytes(slot)
	d, err := r.buffer.Slice(uint64(at), uint64(n))
	if err != nil { // this error cannot occur, because r.buffer contains the whole FlatBuffer
		t.Failf(slot, "%v", err)
	}
	return d
}

func (r *reader) inline(t *flat.Table) Data { return r.blob(t, blobBytes) }

func (r *reader) subsegment(t *flat.Table) subsegment {
	i := index(t, subsegmentIndex, len(r.f.Segments), "segments")
	if t.Failed() {
		return subsegment{}
	}
	return subsegment{r.f.Segments[i], flat.Numbers[uint64](t, subsegmentOffsets)}
}

// tensor returns the bytes of the tensor with index i in the segment. n is the size of the tensor in bytes.
func (s *subsegment) tensor(i int, n int64) (Data, error) {
	if i >= len(s.offsets) {
		return Data{}, fmt.Errorf("tensor index %d is out of range: the segment contains only %d tensors", i,
			len(s.offsets))
	}
	return s.data.Slice(s.offsets[i], uint64(n))
}

// named reads a list of blobs and their keys. It is an error if two blobs have the same key.
func named(t *flat.Table, slot int, segments []Data) ([]Named, map[string]Data) {
	byKey := map[string]Data{}
	list := tables(t, slot, namedKind, func(t *flat.Table) Named {
		key, i := t.Text(namedKey), index(t, namedSegment, len(segments), "segments")
		if _, twice := byKey[key]; twice {
			t.Fail(namedKey, ErrTwice, fmt.Sprintf("%s occurs twice", printable.Short(key, 80)))
		}
		if t.Failed() {
			return Named{}
		}
		byKey[key] = segments[i]
		return Named{key, segments[i], layoutOf(t.Table(namedLayout, layoutKind), segments[i])}
	})
	return list, byKey
}

func layoutOf(t *flat.Table, d Data) *Layout {
	if t == nil {
		return nil
	}
	l := &Layout{Type: typeOf(t, layoutType), Sizes: sizes(t, layoutSizes)}
	l.DimOrder = dimOrder(t, layoutDimOrder, len(l.Sizes))
	n, ok := l.Type.Bytes(l.Sizes)
	if !ok || n > d.Size() {
		t.Failf(layoutSizes, "a tensor of shape %v and type %v is larger than its segment of %d bytes",
			l.Sizes, l.Type, d.Size())
	}
	return l
}

// index reads a field that is an index into a list of n items. `what` names the items in error messages.
func index(t *flat.Table, slot, n int, what string) int {
	i := flat.Number[uint32](t, slot, 0)
	if int64(i) >= int64(n) {
		t.Failf(slot, "index %d is out of range: there are %d %s", i, n, what)
		return 0
	}
	return int(i)
}

// indices reads a field that is a list of indices into a list of n items. `what` names the items in error
// messages.
func indices(t *flat.Table, slot, n int, what string) []int {
	list := flat.Numbers[int32](t, slot)
	if len(list) == 0 {
		return nil
	}
	out := make([]int, len(list))
	for i, id := range list {
		if id < 0 || int(id) >= n {
			t.Failf(slot, "list element %d is the index %d, which is out of range: there are %d %s",
				i, id, n, what)
			return nil
		}
		out[i] = int(id)
	}
	return out
}

func (r *reader) method(t *flat.Table) *Method {
	m := &Method{Name: t.Text(planName), Arenas: flat.Numbers[int64](t, planArenas)}
	for i, n := range m.Arenas {
		if n < 0 {
			t.Failf(planArenas, "element %d has a negative size: %d bytes", i, n)
		}
	}
	if tree := t.Table(planContainer, containerKind); tree != nil {
		m.InputTree, m.OutputTree = tree.Text(containerInputs), tree.Text(containerOutputs)
	}
	m.Values = tables(t, planValues, valueKind, func(t *flat.Table) Value {
		return r.value(t,
			len(m.Arenas))
	})
	n := len(m.Values)
	m.Inputs, m.Outputs = indices(t, planInputs, n, "values"), indices(t, planOutputs, n, "values")
	m.Operators = tables(t, planOperators, operatorKind, func(t *flat.Table) Operator {
		return Operator{t.Text(operatorName), t.Text(operatorOverload)}
	})
	m.Delegates = tables(t, planDelegates, delegateKind, r.delegate)
	m.Chains = tables(t, planChains, chainKind, m.chain)
	m.checkLists(t)
	return m
}

// checkLists checks that the elements of integer lists and tensor lists refer to values of the right type.
func (m *Method) checkLists(t *flat.Table) {
	n := len(m.Values)
	for i, v := range m.Values {
		switch list := v.(type) {
		case IntList:
			for _, id := range list {
				if id < 0 || id >= n || !is[int64](m.Values[id]) {
					t.Failf(planValues, "value %d is an integer list, but value %d, to which the list refers, is not an integer",
						i, id)
				}
			}
		case TensorList:
			for _, id := range list {
				if id < -1 || id >= n || id >= 0 && !is[*Tensor](m.Values[id]) {
					t.Failf(planValues, "value %d is a tensor list, but value %d, to which the list refers, is not a tensor", i,
						id)
				}
			}
		}
	}
}

func is[T any](v Value) bool {
	_, ok := v.(T)
	return ok
}

func (r *reader) delegate(t *flat.Table) *Delegate {
	d := &Delegate{Backend: t.Text(delegateID)}
	d.Options = tables(t, delegateOptions, optionKind, func(t *flat.Table) Option {
		value, err := r.blob(t, optionValue).Bytes()
		if err != nil {
			t.Failf(optionValue, "%v", err)
		}
		return Option{t.Text(optionKey), value}
	})
	ref := t.Table(delegateProcessed, referenceKind)
	if ref == nil {
		t.Failf(delegateProcessed, "missing")
		return d
	}
	from, what := r.f.Segments, "segments"
	switch location := flat.Number[int8](ref, referenceLocation, 0); location {
	case 0:
		d.Inline, from, what = true, r.inlineDelegates, "inline delegates"
	case 1:
	default:
		ref.Failf(referenceLocation, "the value is %d; it must be 0 (inline) or 1 (segment)", location)
	}
	if i := index(ref, referenceIndex, len(from), what); !ref.Failed() {
		d.Data = from[i]
	}
	return d
}

func (m *Method) chain(t *flat.Table) Chain {
	n, count := len(m.Values), t.Len(chainInstructions)
	return Chain{
		Inputs:  indices(t, chainInputs, n, "values"),
		Outputs: indices(t, chainOutputs, n, "values"),
		Instructions: tables(t, chainInstructions, instructionKind, func(t *flat.Table) Instruction {
			return m.instruction(t, count)
		}),
	}
}

func (m *Method) instruction(t *flat.Table, count int) Instruction {
	number, args := t.Union(instructionUnion, instructionKinds...)
	if number == 0 {
		t.Failf(instructionUnion, "missing")
		return Instruction{}
	}
	in, n := Instruction{Op: Op(number)}, len(m.Values)
	value := func(slot int) int { return index(args, slot, n, "values") }
	switch in.Op {
	case KernelCall:
		in.Target = index(args, callTarget, len(m.Operators), "operators")
		in.Args = indices(args, callArgs, n, "values")
	case DelegateCall:
		in.Target = index(args, callTarget, len(m.Delegates), "delegates")
		in.Args = indices(args, callArgs, n, "values")
	case MoveCall:
		in.Args = []int{value(moveFrom), value(moveTo)}
	case JumpFalseCall:
		// The target of a jump may also be `count`: the end of the chain.
		in.Target = index(args, jumpDestination, count+1, "possible jump targets (the instructions and the end of the chain)")
		in.Args = []int{value(jumpCondition)}
	case FreeCall:
		in.Args = []int{value(freeValue)}
	}
	return in
}

func (r *reader) value(t *flat.Table, arenas int) Value {
	number, v := t.Union(valueUnion, valueKinds...)
	switch number {
	case typeInt:
		return flat.Number[int64](v, valueItem, 0)
	case typeBool:
		return v.Bool(valueItem)
	case typeDouble:
		return flat.Number(v, valueItem, 0.0)
	case typeTensor:
		return r.tensor(v, arenas)
	case typeString:
		return v.Text(valueItem)
	case typeIntList:
		return IntList(narrow(v, flat.Numbers[int64](v, valueItem)))
	case typeDoubleList:
		return flat.Numbers[float64](v, valueItem)
	case typeBoolList:
		list := flat.Numbers[uint8](v, valueItem)
		bools := make([]bool, len(list))
		for i, b := range list {
			bools[i] = b != 0
		}
		return bools
	case typeTensorList, typeOptionalTensorList:
		list := flat.Numbers[int32](v, valueItem)
		ids := make(TensorList, len(list))
		for i, id := range list {
			if ids[i] = int(id); number == typeTensorList && id < 0 {
				v.Failf(valueItem, "list element %d is %d; only a list of optional tensors may contain -1",
					i, id)
			}
		}
		return ids
	}
	return nil
}

// narrow converts a list of value ids to ints. It does not check the ids: checkLists does this after all
// values have been read.
func narrow(t *flat.Table, list []int64) []int {
	ids := make([]int, len(list))
	for i, id := range list {
		if id != int64(int32(id)) {
			t.Failf(valueItem, "list element %d refers to value %d, a number that does not fit into 32 bits",
				i, id)
		}
		ids[i] = int(id)
	}
	return ids
}

func typeOf(t *flat.Table, slot int) Type {
	n := Type(flat.Number[int8](t, slot, 0))
	if !n.known() {
		t.Failf(slot, "unknown element type %d", int8(n))
		return 0
	}
	return n
}

// maxDims is the maximum number of dims of a tensor. It is larger than the limit of ExecuTorch.
const maxDims = 64

func sizes(t *flat.Table, slot int) []int {
	list := flat.Numbers[int32](t, slot)
	if len(list) > maxDims {
		t.Failf(slot, "the tensor has %d dims, but the maximum is %d", len(list), maxDims)
	}
	out := make([]int, len(list))
	for i, n := range list {
		if out[i] = int(n); n < 0 {
			t.Failf(slot, "dim %d has the negative size %d", i, n)
		}
	}
	return out
}

// dimOrder reads a permutation of n dims. It returns the identity if the field is missing or empty.
func dimOrder(t *flat.Table, slot, n int) []int {
	list := flat.Numbers[uint8](t, slot)
	out, seen := make([]int, n), make([]bool, n)
	if len(list) == 0 {
		for i := range out {
			out[i] = i
		}
		return out
	}
	if len(list) != n {
		t.Failf(slot, "%d dims do not match %d sizes", len(list), n)
		return out
	}
	for i, d := range list {
		if int(d) >= n || seen[d] {
			t.Failf(slot, "element %d of the dim order is dim %d; each of the %d dims must occur once",
				i, d, n)
			return out
		}
		out[i], seen[d] = int(d), true
	}
	return out
}

func (r *reader) tensor(t *flat.Table, arenas int) *Tensor {
	v := &Tensor{
		Type: typeOf(t, tensorType), Sizes: sizes(t, tensorSizes),
		Offset:   int(flat.Number[int32](t, tensorOffset, 0)),
		Dynamism: Dynamism(flat.Number[int8](t, tensorDynamism, 0)),
		Strided:  flat.Number[int8](t, tensorLayout, 0) == 0,
	}
	v.DimOrder = dimOrder(t, tensorDimOrder, len(v.Sizes))
	if v.Offset < 0 {
		t.Failf(tensorOffset, "the offset %d is negative", v.Offset)
	}
	if v.Dynamism < Static || v.Dynamism > Unbounded {
		t.Failf(tensorDynamism, "the value is %d; it must be in the range 0 to %d", v.Dynamism, Unbounded)
	}
	n, ok := v.Type.Bytes(v.Sizes)
	if !ok {
		t.Failf(tensorSizes, "a tensor of shape %v and type %v is larger than any file can be",
			v.Sizes, v.Type)
	}
	extra := t.Table(tensorExtra, extraKind)
	v.Name = extra.Text(extraName)
	v.Device = int(flat.Number[int8](extra, extraDevice, 0))
	v.DeviceIndex = int(flat.Number[int8](extra, extraDeviceIndex, 0))
	external := flat.Number[int8](extra, extraLocation, 0)
	buffer := flat.Number[uint32](t, tensorBuffer, 0)
	if external != 0 && external != 1 {
		extra.Failf(extraLocation, "the value is %d; it must be 0 (segment) or 1 (external)", external)
	}

	allocation := t.Table(tensorAllocation, allocationKind)
	if allocation != nil {
		v.Memory = Planned
		v.Arena = index(allocation, allocationMemory, max(arenas, 1), "arenas")
		v.ArenaOffset = uint64(flat.Number[uint32](allocation, allocationLow, 0)) |
			uint64(flat.Number[uint32](allocation, allocationHigh, 0))<<32
	}
	var err error
	switch {
	case t.Failed():
	case external == 1:
		if v.Memory = External; v.Name == "" {
			extra.Failf(extraName, "the tensor is in a data file and needs a name, but the name is missing")
		}
	case buffer == 0:
	case allocation != nil:
		v.Memory = Mutable
		i := flat.Number[uint64](extra, extraMutable, 0)
		if i >= uint64(len(r.mutable)) {
			err = fmt.Errorf("segment index %d is out of range: there are only %d segments of mutable data",
				i, len(r.mutable))
			break
		}
		v.Data, err = r.mutable[i].tensor(int(buffer), n)
	case r.packed.offsets != nil:
		v.Memory = Constant
		v.Data, err = r.packed.tensor(int(buffer), n)
	default:
		v.Memory = Constant
		if int64(buffer) >= int64(len(r.constants)) {
			err = fmt.Errorf("buffer index %d is out of range: there are only %d buffers",
				buffer, len(r.constants))
			break
		}
		v.Data, err = r.constants[buffer].Slice(0, uint64(n))
	}
	if err != nil {
		t.Failf(tensorBuffer, "%v", err)
	}
	return v
}

func (r *reader) suite(t *flat.Table) Suite {
	return Suite{t.Text(suiteMethod), tables(t, suiteCases, caseKind, func(t *flat.Table) Case {
		return Case{
			tables(t, caseInputs, testValueKind, r.testValue),
			tables(t, caseOutputs, testValueKind, r.testValue),
		}
	})}
}

func (r *reader) testValue(t *flat.Table) any {
	number, v := t.Union(0, testValueKinds...)
	switch number {
	case 1:
		tensor := &TestTensor{Type: typeOf(v, testType), Sizes: sizes(v, testSizes), Data: r.blob(v,
			testData)}
		tensor.DimOrder = dimOrder(v, testDimOrder, len(tensor.Sizes))
		if n, ok := tensor.Type.Bytes(tensor.Sizes); !ok || n != tensor.Data.Size() {
			v.Failf(testData, "the data has %d bytes, but a tensor of shape %v and type %v needs %d",
				tensor.Data.Size(), tensor.Sizes,
				tensor.Type, n)
		}
		return tensor
	case 2:
		return flat.Number[int64](v, valueItem, 0)
	case 3:
		return v.Bool(valueItem)
	case 4:
		return flat.Number(v, valueItem, 0.0)
	}
	t.Failf(0, "missing")
	return nil
}
