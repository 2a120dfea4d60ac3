// Package describe shows the contents of ExecuTorch programs as a structure that encodes to JSON, as text
// tables and as a Graphviz graph. The package needs no GPU and does not read weights.
//
//	info := describe.Of(file)
//	err := describe.Text(ctx, w, info)
package describe

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// Info describes a program.
type Info struct {
	File           string   `json:"file"`             // path of the program
	Format         string   `json:"format"`           // "pte", or "bpte" for a program with test cases
	Bytes          int64    `json:"bytes"`            // size of the program file
	Methods        []Method `json:"methods"`          // in the order of the file
	NamedData      int      `json:"named_data"`       // number of blobs that have a key
	NamedDataBytes int64    `json:"named_data_bytes"` // total size of these blobs
	// DataFiles lists the .ptd files that contain constants of the program.
	DataFiles []DataFile `json:"data_files,omitempty"`
	Suites    []Suite    `json:"test_suites,omitempty"` // test cases by method
}

// DataFile describes a .ptd file.
type DataFile struct {
	File  string `json:"file"`  // path of the file
	Keys  int    `json:"keys"`  // number of keys
	Bytes int64  `json:"bytes"` // size of all segments together
}

// Suite describes the test cases of a method.
type Suite struct {
	Method string `json:"method"` // name of the method
	Cases  int    `json:"cases"`  // number of test cases
}

// Method describes the inputs, the outputs and the instructions of a method.
type Method struct {
	Name         string        `json:"name"`         // such as "forward"
	Inputs       []Port        `json:"inputs"`       // in the order of the arguments
	Outputs      []Port        `json:"outputs"`      // in the order of the results
	Instructions []Instruction `json:"instructions"` // empty for a method that only returns constants
	// Portable lists the operators that ExecuTorch runs on the CPU.
	Portable  []Portable `json:"portable_operators"`
	Delegates []Delegate `json:"delegates"` // parts that were compiled for a backend
	// Plan is how gpuscope runs the method. The function Of sets no Plan, because a plan needs the engine.
	Plan *Plan `json:"gpuscope_plan,omitempty"`
	// ArenaBytes holds the size of each memory arena that the exporter planned outside of delegates.
	ArenaBytes []int64 `json:"arena_bytes"`
}

// Port is an input or an output of a method.
type Port struct {
	Value int `json:"value"` // index of the value in the method
	// Type is the element type of a tensor, or the kind of a value that is not a tensor.
	Type   string `json:"type"`
	Dims   []Dim  `json:"dims,omitempty"`   // shape of a tensor
	Memory string `json:"memory,omitempty"` // memory kind of a tensor
	// Literal is the value that the file contains, as text. It is empty for tensors. It is also empty if the
	// method has instructions, because its values are then computed or come from the caller.
	Literal string `json:"literal,omitempty"`
}

// Dim is a dim of a tensor.
type Dim struct {
	Size int `json:"size"` // maximum size
	// Change is "fixed", "dynamic", or "unknown" if the file does not say whether the dim changes.
	Change vulkan.Change `json:"change"`
}

// Instruction is a step of a method.
type Instruction struct {
	Op     string `json:"op"`               // kind of the instruction, such as "DelegateCall"
	Target string `json:"target,omitempty"` // the called operator or delegate, or the instruction to jump to
	Args   []int  `json:"args"`             // indices of values in the method
}

// Portable is a portable operator, with the number of instructions that call it.
type Portable struct {
	Name  string `json:"name"`  // such as "aten::copy_"
	Calls int    `json:"calls"` // number of instructions
}

// Delegate is a part of a method that was compiled for a backend.
type Delegate struct {
	Backend string   `json:"backend"` // such as "VulkanBackend"
	Bytes   int64    `json:"bytes"`   // size of the compiled part
	Inline  bool     `json:"inline"`  // the compiled part is stored in the FlatBuffer, not in a segment
	Options []Option `json:"options"` // compile options
	// Parts describes a delegate for a backend other than Vulkan, if the format of its header is known.
	Parts *Parts `json:"parts,omitempty"`
	// Graph is the graph of a Vulkan delegate. If several delegates have the same bytes, only the first one
	// has a graph.
	Graph *Graph `json:"graph,omitempty"`
	// Same identifies the first delegate with the same bytes, as METHOD/DELEGATE.
	Same   string `json:"same_as,omitempty"`
	Unread string `json:"unread,omitempty"` // why the graph could not be read
}

// Parts describes the parts of a delegate for a backend other than Vulkan.
type Parts struct {
	Header        string `json:"header"`         // identifier of the header, such as "XH00" for XNNPACK
	GraphBytes    int64  `json:"graph_bytes"`    // size of the FlatBuffer with the graph
	ConstantBytes int64  `json:"constant_bytes"` // size of the weights
}

// Option is a compile option of a delegate.
type Option struct {
	Key   string `json:"key"`   // name of the option
	Value string `json:"value"` // a number, text, or bytes in hexadecimal; long values are truncated
}

// Graph describes the graph of a Vulkan delegate.
type Graph struct {
	Inputs    []int      `json:"inputs"`      // ids of values
	Outputs   []int      `json:"outputs"`     // ids of values
	Operators []Operator `json:"operators"`   // in execution order
	Values    []Value    `json:"values"`      // only the tensors
	SymInts   []SymInt   `json:"symints"`     // integers that change from run to run
	Constants []Constant `json:"constants"`   // stored bytes of weights and of initial contents
	Objects   []Object   `json:"memory_plan"` // the exporter's plan: which tensors share memory
}

// Operator is an operator of a graph.
type Operator struct {
	ID   uint32 `json:"id"`   // number of the operator in the exporter's graph
	Name string `json:"name"` // with namespace and overload
	Args []Arg  `json:"args"` // all arguments, the output last
}

// Arg is an argument of an operator.
type Arg struct {
	Name  string `json:"name"`  // "arg0", "arg1", ... if the operator is not known
	Value int    `json:"value"` // id of the value
	Text  string `json:"text"`  // the value of a scalar or a list, or %ID for a tensor or a SymInt
}

// Role is the purpose of a tensor in a graph.
type Role string

// The roles of tensors.
const (
	Input        Role = "input"
	Output       Role = "output"
	Weight       Role = "constant"
	State        Role = "mutable" // a constant sets its first contents, and operators overwrite them
	Intermediate Role = "intermediate"
)

// Value is a tensor of a graph.
type Value struct {
	ID int `json:"id"` // id of the value in the delegate
	// Role is "input", "output", "constant", "mutable" or "intermediate".
	Role     Role   `json:"role"`
	Type     string `json:"type"`                    // element type
	Dims     []int  `json:"dims"`                    // maximum shape
	Bytes    int64  `json:"bytes"`                   // at the maximum shape
	Constant *int   `json:"constant,omitempty"`      // id of the constant with the tensor's bytes
	Object   *int   `json:"memory_object,omitempty"` // id of the memory object that the tensor shares
	Writers  []int  `json:"written_by"`              // indices of operators
	Readers  []int  `json:"read_by"`                 // indices of operators
}

// SymInt is an integer that an operator computes.
type SymInt struct {
	ID      int    `json:"id"`         // id of the value in the delegate
	Source  string `json:"source"`     // call that computes the integer: an operator and its arguments
	Writer  int    `json:"written_by"` // index of an operator, or -1 if no operator writes the integer
	Readers []int  `json:"read_by"`    // indices of operators
	// Inputs lists the inputs on which the integer depends, as indices into the inputs of the graph.
	Inputs []int `json:"inputs"`
}

// Constant describes the stored bytes of a weight.
type Constant struct {
	ID      int    `json:"id"`             // number of the constant in the delegate
	Key     string `json:"key,omitempty"`  // empty if the bytes are stored in the delegate
	File    string `json:"file,omitempty"` // empty if no file contains the bytes for the key
	Offset  int64  `json:"offset"`         // offset in the file
	Bytes   int64  `json:"bytes"`          // size of the stored bytes, which may end in padding
	Values  []int  `json:"values"`         // ids of the tensors that use the constant
	Readers []int  `json:"read_by"`        // indices of operators
	// Shared lists other constants with the same bytes. A constant of the same graph is listed by its number.
	// A constant of another graph is listed as METHOD/DELEGATE/NUMBER.
	Shared []string `json:"shared_with,omitempty"`
}

// Object is a piece of memory that the exporter planned. It is shared by tensors whose lifetimes do not
// overlap.
type Object struct {
	ID     int   `json:"id"`     // number of the object in the delegate
	Bytes  int64 `json:"bytes"`  // size of the largest tensor
	Values []int `json:"values"` // ids of the tensors
}

// Of describes a program.
func Of(f *pte.File) *Info {
	info := &Info{
		File: f.Name(), Format: "pte", Bytes: f.Size(), NamedData: len(f.Named), Methods: []Method{},
	}
	if f.Bundled {
		info.Format = "bpte"
	}
	for i := range f.Named {
		info.NamedDataBytes += f.Named[i].Data.Size()
	}
	d := describer{file: f, graphs: map[pte.Data]parsed{}, shared: sharing{}}
	for i := range f.Methods {
		info.Methods = append(info.Methods, d.method(i))
	}
	d.shared.mark(info)
	for _, d := range f.DataFiles() {
		info.DataFiles = append(info.DataFiles, dataFile(d))
	}
	for _, s := range f.Suites {
		info.Suites = append(info.Suites, Suite{s.Method, len(s.Cases)})
	}
	return info
}

// sharing lists constants with equal bytes. It maps bytes to the places of all constants that consist of
// these bytes.
type sharing map[pte.Data][]place

// place identifies a constant of a program by three indices: of the method, of the delegate in the method,
// and of the constant.
type place struct{ method, delegate, constant int }

// `from` returns the text that stands for constant p in the Shared list of the constant `other`.
func (p place) from(other place, info *Info) string {
	if p.method == other.method && p.delegate == other.delegate {
		return strconv.Itoa(p.constant)
	}
	return fmt.Sprintf("%s/%d/%d", info.Methods[p.method].Name, p.delegate, p.constant)
}

// mark fills the field Shared of each constant in `info`.
func (s sharing) mark(info *Info) {
	for _, places := range s {
		for i, p := range places {
			c := &info.Methods[p.method].Delegates[p.delegate].Graph.Constants[p.constant]
			for j, other := range places[:min(len(places), mostShared)] {
				if i != j {
					c.Shared = append(c.Shared, other.from(p, info))
				}
			}
		}
	}
}

// mostShared limits the number of entries in Constant.Shared.
const mostShared = 100

// describer describes the methods of a program.
type describer struct {
	file   *pte.File
	graphs map[pte.Data]parsed // maps the bytes of a delegate to its graph
	shared sharing
}

// parsed is the result of parsing the graph of a delegate.
type parsed struct {
	graph *vulkan.Graph
	first string // first delegate with this graph, as METHOD/DELEGATE
	err   error
}

// graph sets one of the fields Graph, Same and Unread of `out`, the description of a Vulkan delegate. It
// returns the graph of the delegate, or nil if the graph could not be read.
func (d *describer) graph(method, delegate int, out *Delegate) *vulkan.Graph {
	m := d.file.Methods[method]
	data := m.Delegates[delegate].Data
	p, ok := d.graphs[data]
	if !ok {
		p.first = fmt.Sprintf("%s/%d", printable.Short(m.Name, longest), delegate)
		p.graph, p.err = vulkan.Parse(data, d.file.Lookup)
		d.graphs[data] = p
	}
	switch {
	case p.err != nil:
		out.Unread = printable.Short(p.err.Error(), 400)
		return nil
	case ok:
		out.Same = p.first
		return p.graph
	}
	out.Graph = describeGraph(p.graph)
	for i := range p.graph.Constants {
		if bytes := p.graph.Constants[i].Data; bytes.Size() > 0 {
			d.shared[bytes] = append(d.shared[bytes], place{method, delegate, i})
		}
	}
	return p.graph
}

// longest is the maximum length of a name that is part of a longer text. A longer name is truncated.
const longest = 120

func (d *describer) method(number int) Method {
	m := d.file.Methods[number]
	out := Method{
		Name: m.Name, Inputs: []Port{}, Outputs: []Port{}, Instructions: []Instruction{},
		Portable:  []Portable{},
		Delegates: []Delegate{}, ArenaBytes: []int64{},
	}
	if len(m.Arenas) > 0 {
		out.ArenaBytes = append(out.ArenaBytes, m.Arenas[1:]...) // the first arena is unused
	}
	graphs := make([]*vulkan.Graph, len(m.Delegates))
	for i, from := range m.Delegates {
		delegate := Delegate{
			Backend: from.Backend, Bytes: from.Data.Size(), Inline: from.Inline, Options: options(from),
		}
		if from.Backend == vulkan.Backend {
			graphs[i] = d.graph(number, i, &delegate)
		} else if c, err := vulkan.OpenContainer(from.Data); err == nil {
			delegate.Parts = &Parts{c.Header, c.Graph.Size(), c.Constants.Size()}
		}
		out.Delegates = append(out.Delegates, delegate)
	}
	changes := vulkan.ChangesOf(m, graphs)
	calls := make([]int, len(m.Operators))
	for _, c := range m.Chains {
		for i := range c.Instructions {
			in := &c.Instructions[i]
			if in.Op == pte.KernelCall {
				calls[in.Target]++
			}
			out.Instructions = append(out.Instructions,
				Instruction{in.Op.String(), target(m, in), append([]int{}, in.Args...)})
		}
	}
	for i, op := range m.Operators {
		out.Portable = append(out.Portable, Portable{op.String(), calls[i]})
	}
	for _, id := range m.Inputs {
		out.Inputs = append(out.Inputs, port(m, changes, id))
	}
	for _, id := range m.Outputs {
		out.Outputs = append(out.Outputs, port(m, changes, id))
	}
	return out
}

// target returns the text for Instruction.Target.
func target(m *pte.Method, in *pte.Instruction) string {
	switch in.Op {
	case pte.KernelCall:
		return printable.Short(m.Operators[in.Target].String(), longest)
	case pte.DelegateCall:
		backend := printable.Short(m.Delegates[in.Target].Backend, longest)
		return fmt.Sprintf("delegate %d (%s)", in.Target, backend)
	case pte.JumpFalseCall:
		return fmt.Sprintf("instruction %d", in.Target)
	}
	return ""
}

// options returns the compile options of a delegate in readable form.
func options(d *pte.Delegate) []Option {
	out := []Option{}
	for _, o := range d.Options {
		out = append(out, Option{o.Key, optionText(o.Value)})
	}
	return out
}

// optionText formats the value of a compile option as a number, text or hexadecimal bytes. It guesses the
// type of the value, because the file does not state the type.
func optionText(value []byte) string {
	const longest = 64
	text := string(value[:min(len(value), 8*longest)])
	switch n := len(value); {
	case n == 1:
		return strconv.Itoa(int(value[0]))
	case n > 0 && strings.Trim(text, " ~") == text && printable.Clean(text) == text && isASCII(text):
		return printable.Short(text, longest)
	case n == 4:
		return strconv.Itoa(int(int32(binary.LittleEndian.Uint32(value))))
	case n == 8:
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(value)), 10)
	}
	return printable.Short(fmt.Sprintf("%x", value[:min(len(value), longest)]), longest)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func describeGraph(g *vulkan.Graph) *Graph {
	out := &Graph{
		Inputs: append([]int{}, g.Inputs...), Outputs: append([]int{}, g.Outputs...), Operators: []Operator{},
		Values: []Value{}, SymInts: []SymInt{}, Constants: []Constant{}, Objects: []Object{},
	}
	readers, writers := make([][]int, len(g.Values)), make([][]int, len(g.Values))
	for i := range g.Operators {
		op := &g.Operators[i]
		d := Operator{ID: op.ID, Name: op.Name, Args: []Arg{}}
		names := op.Arguments()
		for k, id := range op.Args {
			d.Args = append(d.Args, Arg{names[k], id, text(g, id)})
		}
		out.Operators = append(out.Operators, d)
		for _, id := range g.Reads(op) {
			readers[id] = appendNew(readers[id], i)
		}
		for _, id := range g.Writes(op) {
			writers[id] = appendNew(writers[id], i)
		}
	}
	for i := range g.Constants {
		c := &g.Constants[i]
		d := Constant{ID: i, Key: c.Key, Bytes: c.Data.Size(), Values: []int{}, Readers: []int{}}
		if c.Missing == nil {
			d.File, d.Offset = c.Data.Place()
		}
		out.Constants = append(out.Constants, d)
	}
	roles := map[int]Role{}
	for _, id := range g.Outputs {
		roles[id] = Output
	}
	for _, id := range g.Inputs {
		roles[id] = Input
	}
	for _, id := range g.Mutable() {
		roles[id] = State
	}
	for id, v := range g.Values {
		readers, writers := append([]int{}, readers[id]...), append([]int{}, writers[id]...)
		switch v := v.(type) {
		case *vulkan.Tensor:
			d := Value{
				ID: id, Role: roles[id], Type: v.Type.String(), Dims: append([]int{}, v.Dims...),
				Bytes:   v.Bytes(),
				Readers: readers, Writers: writers,
			}
			if v.Object >= 0 && v.Constant < 0 {
				d.Object = &v.Object
			}
			if v.Constant >= 0 {
				d.Constant = &v.Constant
				c := &out.Constants[v.Constant]
				c.Values, c.Readers = append(c.Values, id), append(c.Readers, readers...)
				d.Role = cmp.Or(d.Role, Weight)
			}
			d.Role = cmp.Or(d.Role, Intermediate)
			out.Values = append(out.Values, d)
		case vulkan.SymInt:
			s := SymInt{ID: id, Writer: -1, Readers: readers, Source: "no operator", Inputs: []int{}}
			if len(writers) > 0 {
				s.Writer = writers[0]
				s.Source = call(&out.Operators[s.Writer])
			}
			out.SymInts = append(out.SymInts, s)
		}
	}
	for i := range out.Constants {
		slices.Sort(out.Constants[i].Readers)
		out.Constants[i].Readers = slices.Compact(out.Constants[i].Readers)
	}
	originsOfSymInts(g, out)
	for _, o := range g.Objects() {
		out.Objects = append(out.Objects, Object(o))
	}
	return out
}

// originsOfSymInts sets SymInt.Inputs: the inputs of the graph on which each SymInt depends.
func originsOfSymInts(g *vulkan.Graph, out *Graph) {
	const most = 64 // maximum length of SymInt.Inputs
	depends := map[int][]int{}
	for i, id := range g.Inputs {
		depends[id] = []int{i}
	}
	at := map[int]*SymInt{}
	for i := range out.SymInts {
		at[out.SymInts[i].ID] = &out.SymInts[i]
	}
	for i := range g.Operators { // in execution order, so that SymInts are computed before they are read
		op := &g.Operators[i]
		for _, id := range g.Writes(op) {
			s := at[id]
			if s == nil {
				continue
			}
			for _, from := range g.Reads(op) {
				for _, input := range depends[from] {
					if len(s.Inputs) < most && !slices.Contains(s.Inputs, input) {
						s.Inputs = append(s.Inputs, input)
					}
				}
			}
			depends[id] = s.Inputs
		}
	}
}

// appendNew appends the operator index i to a sorted list, unless i is already its last element.
func appendNew(list []int, i int) []int {
	if n := len(list); n > 0 && list[n-1] == i {
		return list
	}
	return append(list, i)
}

// call formats an operator as a call with its first arguments. It omits the output.
func call(op *Operator) string {
	const most = 4 // no operator that writes a SymInt has more arguments
	args := []string{}
	for _, a := range op.Args[:min(max(len(op.Args)-1, 0), most)] {
		args = append(args, a.Name+"="+a.Text)
	}
	return printable.Short(op.Name, longest) + "(" + strings.Join(args, ", ") + ")"
}

// text formats a value as an argument: a scalar or a list as text, a tensor or a SymInt as %ID.
func text(g *vulkan.Graph, id int) string {
	switch v := g.Values[id].(type) {
	case vulkan.ValueList:
		return listText(v, func(id int) string {
			if _, inner := g.Values[id].(vulkan.ValueList); inner {
				return "[…]"
			}
			return text(g, id)
		})
	case nil:
		return "None"
	case int64:
		if v == math.MaxInt64 { // a slice with this end extends to the end of the dim
			return "max"
		}
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case bool:
		return strconv.FormatBool(v)
	case string:
		return strconv.Quote(printable.Short(v, 40))
	case []int64:
		return listText(v, func(n int64) string { return strconv.FormatInt(n, 10) })
	case []float64:
		return listText(v, floatText)
	case []bool:
		return listText(v, strconv.FormatBool)
	}
	return "%" + strconv.Itoa(id)
}

func floatText(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if f := float64(float32(v)); f == v { // most values come from float32 numbers, which need fewer digits
		s = strconv.FormatFloat(v, 'g', -1, 32)
	}
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0" // shows that the number is a float and not an integer
	}
	return s
}

// listText formats a list, each element with the given function. It formats only the first elements of a long
// list, followed by the length of the list.
func listText[T any](list []T, one func(T) string) string {
	const most = 16
	var parts []string
	for i, v := range list {
		if i == most-1 && len(list) > most {
			parts = append(parts, fmt.Sprintf("… (%d)", len(list)))
			break
		}
		parts = append(parts, one(v))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
