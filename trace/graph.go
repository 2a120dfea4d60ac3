package trace

import (
	"strconv"
	"strings"
)

// Graph is the graph of the model, in which shapes are dynamic. It is the same in every step.
type Graph struct {
	Values     []Value    `json:"values,omitempty"`
	SymInts    []SymInt   `json:"symints,omitempty"`
	Ops        []Op       `json:"ops,omitempty"`
	Kernels    []Kernel   `json:"kernels,omitempty"`
	Dispatches []Dispatch `json:"dispatches,omitempty"`
}

// OnlyToken reports whether the graph outputs token ids only, and no logits.
func (g *Graph) OnlyToken() bool {
	outputs := 0
	for i := range g.Values {
		if v := &g.Values[i]; v.Role == RoleOutput {
			if outputs++; v.DType != "i32" {
				return false
			}
		}
	}
	return outputs > 0
}

// Value is a tensor, a SymInt or a scratch buffer of the graph.
type Value struct {
	ID      ValueID `json:"id"`
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`            // tensor or symint
	DType   string  `json:"dtype,omitempty"` // f32, i32, u32 or q4
	MaxDims []int   `json:"max_dims,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
	Role    Role    `json:"role"`
	// Recurrent is set for state of fixed size that each step computes from the previous state, such as the
	// state of a convolution. Its first dim is the number of slots. Each slot holds the state at one
	// position. A step reads one slot and writes another.
	Recurrent bool     `json:"recurrent,omitempty"`
	Slot      *int     `json:"slot,omitempty"`
	AliasOf   *ValueID `json:"alias_of,omitempty"`
	// Matrix is set for a constant in a weight format. It holds the logical shape of the weights.
	Matrix   *Matrix `json:"matrix,omitempty"`
	SourceID *int    `json:"source_id,omitempty"`
}

// Matrix is the format and the logical shape of the weight matrix that is stored in a constant.
type Matrix struct {
	Format string `json:"format"` // such as q4_k; also the end of the kinds of operators for it
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
}

// SymInt is an integer of which the graph knows only the range. Its value is known at run time.
type SymInt struct {
	ID    SymIntID `json:"id"`
	Value ValueID  `json:"value"`
	Name  string   `json:"name"`
	Min   int64    `json:"min"`
	Max   int64    `json:"max"`
}

// Op is an operator of the graph.
type Op struct {
	ID      OpID      `json:"id"`
	Name    string    `json:"name"` // name in the model: "attn.q"
	Kind    string    `json:"kind"` // what the operator computes: "linear_q4gsw"
	Inputs  []ValueID `json:"inputs,omitempty"`
	Outputs []ValueID `json:"outputs,omitempty"`
	// Makes holds values that this operator computes itself if their producers, which are earlier operators,
	// defer them. A producer that defers a value does not compute it and leaves this to the readers of the
	// value.
	Makes    []ValueID      `json:"makes,omitempty"`
	State    []ValueID      `json:"state,omitempty"`
	Attrs    map[string]any `json:"attrs,omitempty"`
	Layer    *int           `json:"layer,omitempty"`
	Block    string         `json:"block,omitempty"` // such as attn or mlp
	Parts    []string       `json:"parts,omitempty"` // names of the operators that were fused into this one
	SourceID *int           `json:"source_id,omitempty"`
	// Class is the class of work (package trace/analyze/workclass). It is set only for an operator of another
	// engine, and only if the name of the operator does not show the class.
	Class string `json:"class,omitempty"`
}

// ShortName returns the name of the operator without its layer and its block, such as "q" for
// "layers.3.attn.q". Operators that do the same work in different layers have the same short name.
func (o *Op) ShortName() string {
	parts := strings.Split(o.Name, ".")
	from := 0
	for i := range parts[:len(parts)-1] {
		if parts[i] == o.Block || o.Layer != nil && parts[i] == strconv.Itoa(*o.Layer) {
			from = i + 1
		}
	}
	return strings.Join(parts[from:], ".")
}

// Place returns the name of the operator without its layer, such as "attn.q". If the operator is in no layer,
// this is the whole name.
func (o *Op) Place() string {
	switch {
	case o.Layer == nil:
		return o.Name
	case o.Block == "":
		return o.ShortName()
	}
	return o.Block + "." + o.ShortName()
}

// Named returns the name of a dispatch. `op` is the name or the short name of its operator. A dispatch of the
// operator "sdpa" can have the name "sdpa.split".
func (d *Dispatch) Named(op string) string {
	if d.Label == "" {
		return op
	}
	return op + "." + d.Label
}

// OwnKernel returns the name of a kernel as it is in the graph. The name of an edited kernel consists of the
// name of the kernel that it replaces, "+", and the first digits of the hash of its source. OwnKernel removes
// the "+" and these digits. Other names stay the same.
func OwnKernel(name string) string {
	own, _, _ := strings.Cut(name, "+")
	return own
}

// Kernel is one specialised shader.
type Kernel struct {
	Name          string `json:"name"`
	Constants     string `json:"constants,omitempty"` // constants of the specialized shader, as text
	WorkgroupSize [3]int `json:"workgroup_size"`
	SourceSHA256  string `json:"source_sha256"`
	// Of is set if the source of this kernel was edited. It is the name of the kernel of the graph that this
	// kernel replaces.
	Of     string `json:"of,omitempty"`
	Source string `json:"source,omitempty"`
	// Filled and Taken are ranges of bytes [from, to) of Source. They show where Source differs from the
	// template of the shader. Filled has the text that comes from constants. Taken has included files, and
	// branches that were chosen because of constants.
	Filled [][2]int `json:"filled,omitempty"`
	Taken  [][2]int `json:"taken,omitempty"`
	Params []Param  `json:"params,omitempty"`
}

// Param is a field of the params block of a kernel. Offset is its offset in bytes.
type Param struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // u32, i32 or f32
	Offset int    `json:"offset"`
}

// Dispatch is a named slot of an operator, in which a kernel runs. The work of a slot is the same whichever
// kernel runs in it.
type Dispatch struct {
	ID DispatchID `json:"id"`
	Op OpID       `json:"op"`
	// Label is the name of the slot in its operator, or "" if the operator has no other slot.
	Label   string   `json:"label"`
	Kernels []string `json:"kernels,omitempty"` // one kernel for each route
	// Bound holds one list for each kernel: those values of Reads and Writes that are bound to this kernel.
	Bound         [][]ValueID `json:"bound,omitempty"`
	Reads         []ValueID   `json:"reads,omitempty"`
	Writes        []ValueID   `json:"writes,omitempty"`
	MaxWorkgroups [3]int      `json:"max_workgroups"`
	// Joined is set in an imported trace. It says how the rows of the profile were joined with the operator.
	Joined Joined `json:"joined,omitempty"`
}
