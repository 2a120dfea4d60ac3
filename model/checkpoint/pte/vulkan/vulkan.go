// Package vulkan reads the graph of a delegate written by ExecuTorch's Vulkan partitioner. ExecuTorch's
// Vulkan and WebGPU runtimes read the same graphs. The backend name of these delegates is Backend.
//
//	g, err := vulkan.Parse(delegate.Data, file.Lookup)
//	for i := range g.Operators {
//		op := &g.Operators[i]
//		for k, name := range op.Arguments() { // "x", "weight", "eps", "out"
//			value := g.Values[op.Args[k]]
//		}
//	}
//
// A graph is a list of values and a list of operators, which read and write the values. All shapes in a graph
// are maximum shapes. The package does not trust the graph. The error for a damaged graph is a *pte.Error.
package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/internal/flat"
)

// Backend is the backend name of the delegates that this package reads.
const Backend = "VulkanBackend"

// Graph is the graph of operators that a delegate computes.
type Graph struct {
	Version         string
	Values          []Value
	Operators       []Operator // in execution order
	Inputs, Outputs []int      // indices into Values, in the order of the arguments of a delegate call
	Constants       []Constant
}

// Value is a value of a graph. It is one of
//
//	nil        None
//	int64      an operator may use it as a float argument, because equal scalars are stored only once
//	float64    an operator may use it as an integer argument, for the same reason
//	bool
//	string
//	*Tensor
//	SymInt
//	[]int64
//	[]float64
//	[]bool
//	ValueList
type Value any

// SymInt is an integer that an operator computes, such as a position or the current size of a dim.
type SymInt struct{}

// ValueList is a list of indices into Graph.Values.
type ValueList []int

// Tensor is a tensor in device memory.
type Tensor struct {
	Type     pte.Type
	Dims     []int    // maximum shape
	Staging  pte.Type // element type of the copy that the caller passes or receives
	Constant int      // index into Graph.Constants, or -1
	// Object is the number of a memory object. Tensors that share memory have the same Object. Object is -1
	// if the tensor does not share memory.
	Object int
	// Storage and Layout are the numbers in the file that tell a texture-based runtime how to store the
	// tensor. The default is 255.
	Storage, Layout uint8
}

// Bytes returns the size of the tensor in bytes. Parse has checked that the size does not overflow.
func (t *Tensor) Bytes() int64 {
	n, _ := t.Type.Bytes(t.Dims)
	return n
}

// Constant holds the bytes of a weight.
type Constant struct {
	Key  string // key of the named data; "" if the bytes are stored in the delegate
	Data pte.Data
	// Missing is nil if the bytes were found. If no file contains the key, it is an error that wraps
	// pte.ErrNoData. A graph with missing constants can be inspected but not run.
	Missing error
}

// Operator is an operator of a graph.
type Operator struct {
	ID   uint32 // number of the operator in the exporter's graph
	Name string // name with namespace and overload, such as "et_vk.linear_q4gsw.default"
	Args []int  // indices into Graph.Values: all arguments of the schema including defaults, then the output
}

// Parse reads the graph of a delegate. It calls `lookup` to find the constants that are stored under a key.
// Use pte.File.Lookup as `lookup`.
func Parse(d pte.Data, lookup func(key string) (pte.Data, error)) (*Graph, error) {
	g, err := parse(d, lookup)
	if err != nil {
		var damage *pte.Error
		if errors.As(err, &damage) && damage.File == "" {
			damage.File, _ = d.Place()
		}
		return nil, err
	}
	return g, nil
}

func parse(d pte.Data, lookup func(key string) (pte.Data, error)) (*Graph, error) {
	h, err := OpenContainer(d)
	if err != nil {
		return nil, err
	}
	if h.Header != headerID {
		return nil, unidentified(h.Header)
	}
	data, err := h.Graph.Bytes()
	if err != nil {
		return nil, err
	}
	if id := flat.Identifier(data); id != graphID {
		return nil, &pte.Error{
			Table: "VkGraph", Field: "identifier",
			Problem: fmt.Sprintf("the identifier is %q; the identifier of a Vulkan graph is %q", id, graphID),
			Err:     pte.ErrFormat,
		}
	}
	b := flat.New(data)
	r := &reader{g: &Graph{}, constants: h.Constants, lookup: lookup, size: len(data)}
	if r.graph(b.Root(graphKind)); r.err != nil {
		return nil, r.err
	}
	return r.g, b.Err()
}

const (
	headerID   = "VH00"
	graphID    = "VK00"
	headerSize = 30 // size of the header in bytes; its fields are not aligned
)

// Container states where the parts of a delegate are.
type Container struct {
	Header           string // identifier of the header: "VH00" for Vulkan
	Graph, Constants pte.Data
}

// OpenContainer reads the header of a delegate. Delegates of XNNPACK ("XH00") and of Apple's MPS ("MP00")
// have headers of the same structure. For a delegate without a header, the error wraps pte.ErrFormat.
func OpenContainer(d pte.Data) (*Container, error) {
	head, err := d.Slice(0, uint64(min(d.Size(), headerSize)))
	if err != nil {
		return nil, err
	}
	b, err := head.Bytes()
	if err != nil {
		return nil, err
	}
	id := string(b[min(len(b), 4):min(len(b), 8)])
	if !slices.Contains([]string{headerID, "XH00", "MP00"}, id) {
		return nil, unidentified(id)
	}
	wrong := func(field, format string, args ...any) (*Container, error) {
		return nil, &pte.Error{Table: id + " header", Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if len(b) < headerSize {
		return wrong("size", "the delegate has %d bytes; the minimum is %d", len(b), headerSize)
	}
	u32 := binary.LittleEndian.Uint32
	size := binary.LittleEndian.Uint16(b[8:])
	at, n, constants := uint64(u32(b[10:])), uint64(u32(b[14:])), uint64(u32(b[18:]))
	length := binary.LittleEndian.Uint64(b[22:])
	switch {
	case size < headerSize:
		return wrong("size", "the header size is %d bytes, but the minimum is %d", size, headerSize)
	case at < uint64(size):
		return wrong("FlatBuffer", "the FlatBuffer starts at byte %d, but the header before it has %d bytes",
			at, size)
	case n == 0:
		return wrong("FlatBuffer", "the FlatBuffer is empty")
	case constants < at+n:
		return wrong("constants", "the constants start at byte %d, but the FlatBuffer before them ends at byte %d",
			constants, at+n)
	}
	c := &Container{Header: id}
	if c.Graph, err = d.Slice(at, n); err != nil {
		return wrong("FlatBuffer", "%v", err)
	}
	if length == 0 && constants <= uint64(d.Size()) {
		length = uint64(d.Size()) - constants
	}
	if c.Constants, err = d.Slice(constants, length); err != nil {
		return wrong("constants", "%v", err)
	}
	return c, nil
}

func unidentified(id string) error {
	return &pte.Error{
		Table: "Vulkan delegate", Field: "identifier", Err: pte.ErrFormat,
		Problem: fmt.Sprintf("the identifier at byte 4 is %q; the identifier of a Vulkan delegate is %q", id,
			headerID),
	}
}

// The constants below are the slot numbers in the schema of the graph. A slot number identifies a field of a
// table.
const (
	graphVersion = iota
	graphChain
	graphValues
	graphInputs
	graphOutputs
	graphConstants
)

const (
	callNode = iota
	callName
	callArgs
)

const (
	bytesOffset = iota
	bytesLength
	bytesKey
)

const (
	tensorType = iota
	tensorDims
	tensorConstant
	tensorObject
	tensorStorage
	tensorLayout
	tensorStaging
)

// The type numbers of the union of values.
const (
	_ = iota // number 0 means that the union is absent
	typeNull
	typeInt
	typeDouble
	typeBool
	typeTensor
	typeIntList
	typeDoubleList
	typeBoolList
	typeValueList
	typeString
	typeSymInt
)

var (
	graphKind = &flat.Kind{
		Name: "VkGraph",
		Fields: "version chain values input_ids output_ids constants shaders storage_type_override " +
			"memory_layout_override",
	}
	callKind   = &flat.Kind{Name: "OperatorCall", Fields: "node_id name args"}
	bytesKind  = &flat.Kind{Name: "VkBytes", Fields: "offset length named_key"}
	valueKind  = &flat.Kind{Name: "VkValue", Fields: "value_type value"}
	tensorKind = &flat.Kind{
		Name:   "VkTensor",
		Fields: "datatype dims constant_id mem_obj_id storage_type memory_layout staging_datatype",
	}
	valueKinds = []*flat.Kind{
		{Name: "Null"},
		item("Int", "int_val"), item("Double", "double_val"), item("Bool", "bool_val"),
		tensorKind, item("IntList", "items"), item("DoubleList", "items"), item("BoolList", "items"),
		item("ValueList", "items"), item("String", "string_val"), item("SymInt", "value"),
	}
)

// item returns the Kind of a table that has a single field, in the slot valueItem.
func item(name, field string) *flat.Kind { return &flat.Kind{Name: name, Fields: field} }

const valueItem = 0

type reader struct {
	g         *Graph
	constants pte.Data
	lookup    func(string) (pte.Data, error)
	err       error // first error that lookup returned
	size      int   // size of the FlatBuffer in bytes
}

func (r *reader) graph(t *flat.Table) {
	g := r.g
	g.Version = t.Text(graphVersion)
	g.Constants = list(t, graphConstants, bytesKind, r.constant)
	g.Values = list(t, graphValues, valueKind, r.value)
	n := len(g.Values)
	for i, v := range g.Values {
		ids, _ := v.(ValueList)
		for _, id := range ids {
			if id < 0 || id >= n {
				t.Failf(graphValues, "value %d is a list that refers to value %d, but there are only %d values",
					i, id, n)
			}
		}
	}
	g.Operators = list(t, graphChain, callKind, func(t *flat.Table) Operator {
		return Operator{
			ID: flat.Number[uint32](t, callNode, 0), Name: t.Text(callName),
			Args: ids(t, callArgs, flat.Numbers[int32](t, callArgs), n),
		}
	})
	// Operators may share lists, so a small file could describe a huge number of arguments. The total number
	// of arguments is therefore limited by the size of the file.
	references := 0
	for i := range g.Operators {
		for _, id := range g.Operators[i].Args {
			list, _ := g.Values[id].(ValueList)
			if references += 1 + len(list); references > r.size {
				t.Failf(graphChain, "the operators 0 to %d have more than %d arguments in total, counting each element of a list argument",
					i, r.size)
				return
			}
		}
	}
	g.Inputs = r.tensors(t, graphInputs)
	g.Outputs = r.tensors(t, graphOutputs)
}

// list reads a field that is a list of tables. It calls `read` for each table and returns the results, or nil
// if the buffer has an error.
func list[T any](t *flat.Table, slot int, kind *flat.Kind, read func(*flat.Table) T) []T {
	all := make([]T, 0, t.Len(slot))
	for _, item := range t.Tables(slot, kind) {
		all = append(all, read(item))
		if item.Failed() {
			return nil
		}
	}
	return slices.Clip(all)
}

// ids converts indices of values to ints and checks that each is less than n, the number of values. Errors
// name the field with the given slot.
func ids[T int32 | uint32](t *flat.Table, slot int, from []T, n int) []int {
	if len(from) == 0 {
		return nil
	}
	out := make([]int, len(from))
	for i, id := range from {
		if id < 0 || int64(id) >= int64(n) {
			t.Failf(slot, "list element %d is the index %d, which is out of range: there are %d values",
				i, id, n)
			return nil
		}
		out[i] = int(id)
	}
	return out
}

// tensors reads the inputs or the outputs of the graph, which must be tensors.
func (r *reader) tensors(t *flat.Table, slot int) []int {
	list := ids(t, slot, flat.Numbers[uint32](t, slot), len(r.g.Values))
	for i, id := range list {
		if _, ok := r.g.Values[id].(*Tensor); !ok {
			t.Failf(slot, "list element %d refers to value %d, which is not a tensor", i, id)
		}
	}
	return list
}

func (r *reader) constant(t *flat.Table) Constant {
	at, n := flat.Number[uint64](t, bytesOffset, 0), flat.Number[uint64](t, bytesLength, 0)
	c := Constant{Key: t.Text(bytesKey)}
	if at != math.MaxUint64 { // the offset math.MaxUint64 means that the constant has a key
		var err error
		if c.Key = ""; r.err == nil {
			if c.Data, err = r.constants.Slice(at, n); err != nil {
				t.Failf(bytesOffset, "outside the constants: %v", err)
			}
		}
		return c
	}
	if c.Key == "" {
		t.Failf(bytesKey, "the constant has neither an offset nor a key, so its bytes cannot be found")
	}
	if t.Failed() || r.err != nil {
		return c
	}
	data, err := r.lookup(c.Key)
	switch {
	case err == nil:
		c.Data = data
	case errors.Is(err, pte.ErrNoData):
		c.Missing = err
	default:
		r.err = err
	}
	return c
}

func (r *reader) value(t *flat.Table) Value {
	number, v := t.Union(0, valueKinds...)
	switch number {
	case typeInt:
		return flat.Number[int64](v, valueItem, 0)
	case typeDouble:
		return flat.Number(v, valueItem, 0.0)
	case typeBool:
		return v.Bool(valueItem)
	case typeTensor:
		return r.tensor(v)
	case typeIntList:
		return flat.Numbers[int64](v, valueItem)
	case typeDoubleList:
		return flat.Numbers[float64](v, valueItem)
	case typeBoolList:
		bytes := flat.Numbers[uint8](v, valueItem)
		bools := make([]bool, len(bytes))
		for i, b := range bytes {
			bools[i] = b != 0
		}
		return bools
	case typeValueList:
		numbers := flat.Numbers[int32](v, valueItem)
		list := make(ValueList, len(numbers))
		for i, id := range numbers {
			list[i] = int(id)
		}
		return list
	case typeString:
		return v.Text(valueItem)
	case typeSymInt:
		return SymInt{}
	}
	return nil
}

// types lists the element types, indexed by their number in the graph.
var types = []pte.Type{
	pte.Bool, pte.Uint8, pte.Int8, pte.Int32, pte.Float16, pte.Float32, pte.Float64, pte.Int64,
}

// noType is the type number that means no type.
const noType = 127

func typeOf(t *flat.Table, slot int, n int8) pte.Type {
	if n < 0 || int(n) >= len(types) {
		t.Failf(slot, "the element type number %d is unknown; known type numbers are 0 to %d",
			n, len(types)-1)
		return 0
	}
	return types[n]
}

// maxDims is the maximum number of dims of a tensor. It is larger than the limits of ExecuTorch's runtimes.
const maxDims = 64

func (r *reader) tensor(t *flat.Table) *Tensor {
	v := &Tensor{
		Type:     typeOf(t, tensorType, flat.Number[int8](t, tensorType, 0)),
		Constant: int(flat.Number[int32](t, tensorConstant, 0)),
		Object:   int(flat.Number[int32](t, tensorObject, 0)),
		Storage:  flat.Number[uint8](t, tensorStorage, 255),
		Layout:   flat.Number[uint8](t, tensorLayout, 255),
	}
	v.Staging = v.Type
	if n := flat.Number[int8](t, tensorStaging, noType); n != noType {
		v.Staging = typeOf(t, tensorStaging, n)
	}
	dims := flat.Numbers[uint32](t, tensorDims)
	if len(dims) > maxDims {
		t.Failf(tensorDims, "the tensor has %d dims, but the maximum is %d", len(dims), maxDims)
	}
	for i, d := range dims {
		if d > math.MaxInt32 {
			t.Failf(tensorDims, "dim %d has size %d, which does not fit into a signed 32-bit integer", i, d)
			return v
		}
		v.Dims = append(v.Dims, int(d))
	}
	n, ok := v.Type.Bytes(v.Dims)
	switch {
	case t.Failed():
		return v
	case !ok:
		t.Failf(tensorDims, "a tensor of shape %v and type %v is larger than any memory can be",
			v.Dims, v.Type)
	case v.Object < -1:
		t.Failf(tensorObject, "the object id is %d; the minimum is -1", v.Object)
	case v.Constant < -1 || v.Constant >= len(r.g.Constants):
		t.Failf(tensorConstant, "index %d is out of range: there are %d constants", v.Constant,
			len(r.g.Constants))
	case v.Constant >= 0:
		c := &r.g.Constants[v.Constant]
		if c.Missing == nil && c.Data.Size() < n && r.err == nil {
			t.Failf(tensorConstant, "constant %d has %d bytes, but a tensor of shape %v and type %v needs %d",
				v.Constant, c.Data.Size(),
				v.Dims, v.Type, n)
		}
	}
	return v
}
