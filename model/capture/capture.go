// Package capture stores one dispatch of a step in a folder, and runs such a folder on any device. A folder
// contains everything that the dispatch depends on, and what the dispatch wrote. A bug in a driver or a
// kernel can therefore be reproduced without the model. docs/reference/capture-format.md describes the
// format.
//
//	c, err := capture.Read("capture-layers.0.attn.q", capture.DefaultMaxBytes)
//	r, err := c.Replay(ctx, dev, capture.ReplayOptions{Runs: 30, Tolerance: capture.DefaultTolerance})
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
)

// Schema is the name and version of the format.
const Schema = "gpuscope.capture/1"

// DefaultMaxBytes is the default for the total size of the arrays of a capture, in bytes.
const DefaultMaxBytes = 1 << 30

// The files of a capture besides its arrays.
const (
	jsonFile   = "capture.json"
	kernelFile = "kernel.wgsl"
)

// ErrFormat is wrapped by the errors for folders that are not valid captures.
var ErrFormat = errors.New("not a valid capture")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
}

// Origin describes the run in which a dispatch was captured.
type Origin struct {
	Producer trace.Producer `json:"producer"`
	Created  string         `json:"created"` // RFC 3339
	Device   trace.Device   `json:"device"`
	Model    string         `json:"model,omitempty"`
	Step     Step           `json:"step"`
}

// Step is the step that ran the dispatch.
type Step struct {
	Index    int         `json:"index"` // in the run that was captured
	Phase    trace.Phase `json:"phase,omitempty"`
	Position int         `json:"position"` // position before the step
	// Tokens is the number of input tokens. It is 0 if the graph is not a language model.
	Tokens int `json:"tokens,omitempty"`
}

// Capture is one dispatch: its kernel, params, grid and memory.
type Capture struct {
	Schema string `json:"schema"`
	Origin
	Dispatch   Dispatch  `json:"dispatch"`
	Kernel     Kernel    `json:"kernel"`
	Workgroups [3]uint32 `json:"workgroups"`
	Params     []Param   `json:"params,omitempty"`
	// ModelledBytes is the modelled memory traffic of the dispatch in bytes; 0 if it is unknown.
	ModelledBytes int64 `json:"modelled_bytes,omitempty"`
	// UnwrittenWord is a 32-bit word. A replay fills each binding whose Before is empty with copies of this
	// word.
	UnwrittenWord uint32    `json:"unwritten_word"`
	Bindings      []Binding `json:"bindings"`

	source string        // content of the file kernel.wgsl
	kernel *graph.Kernel // parsed from source
}

// Dispatch names the captured dispatch.
type Dispatch struct {
	ID       trace.DispatchID `json:"id"`
	Name     string           `json:"name"`
	Operator string           `json:"operator"` // kind of the operator, such as rms_norm
}

// Kernel describes the kernel. The field File names the file with its source.
type Kernel struct {
	Name          string    `json:"name"`
	Constants     string    `json:"constants,omitempty"` // constants for which the source was generated
	WorkgroupSize [3]uint32 `json:"workgroup_size"`
	File          string    `json:"file"`
}

// Param is a field of the kernel's params block. The fields are consecutive 32-bit words.
type Param struct {
	Name  string       `json:"name"`
	Type  string       `json:"type"` // u32, i32 or f32
	Value trace.Number `json:"value"`
	Word  uint32       `json:"word"` // the value as stored
}

// Binding is a storage binding of the kernel. Binding i of the list has the number i in group 0. The params
// follow the last binding.
type Binding struct {
	Name    string `json:"name"`              // of the variable in the kernel
	Value   string `json:"value,omitempty"`   // name of the tensor in the model
	Access  string `json:"access"`            // read or read_write
	Element string `json:"element,omitempty"` // scalar type in the kernel; "" if it is unknown
	DType   string `json:"dtype"`             // type of the elements of the tensor
	Dims    []int  `json:"dims"`
	Before  string `json:"before,omitempty"` // file with the content before the dispatch
	After   string `json:"after,omitempty"`  // file with the content after the dispatch

	dtype         graph.DType
	size          int64 // of the content, in bytes
	before, after []byte
}

// writes reports whether the kernel can write the binding.
func (b *Binding) writes() bool { return b.Access == gpu.ReadWrite.String() }

// beforeFile and afterFile return the names of the files of a binding.
func beforeFile(binding string) string { return "in-" + binding + ".npy" }
func afterFile(binding string) string  { return "expected-" + binding + ".npy" }

// variable matches the allowed names of bindings. WGSL permits other names too, but they might not be valid
// in file names.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// New returns the capture of a dispatch of a graph.
func New(g *trace.Graph, from *engine.Captured, o Origin) *Capture {
	d := &g.Dispatches[from.Dispatch]
	op := &g.Ops[d.Op]
	k := from.Kernel
	o.Device.Ceilings = nil
	c := &Capture{
		Schema: Schema, Origin: o, kernel: k, source: k.Source,
		Dispatch:   Dispatch{from.Dispatch, d.Named(op.Name), op.Kind},
		Kernel:     Kernel{from.Name, k.Constants, k.WorkgroupSize, kernelFile},
		Workgroups: from.Grid, ModelledBytes: from.Bytes, UnwrittenWord: engine.Unwritten,
	}
	if session.KernelOf(k.Source) == "" { // otherwise the source already has the line that KernelText adds
		c.source = session.KernelText(from.Name, k.Constants, k.Source)
	}
	for i, p := range k.Params {
		word := binary.LittleEndian.Uint32(from.Params[4*i:])
		c.Params = append(c.Params, Param{p.Name, p.Type, valueOf(p.Type, word), word})
	}
	for i := range from.Bindings {
		f := &from.Bindings[i]
		b := Binding{
			Name: f.Name, Value: g.Values[f.Value].Name, Access: f.Access.String(), Element: f.Elem,
			DType: f.DType.String(), Dims: f.Dims, dtype: f.DType, before: f.Before, after: f.After,
			size: f.DType.Bytes(graph.Numel(f.Dims)),
		}
		if b.Dims == nil {
			b.Dims = []int{}
		}
		if f.Before != nil {
			b.Before = beforeFile(b.Name)
		}
		if b.writes() {
			b.After = afterFile(b.Name)
		}
		c.Bindings = append(c.Bindings, b)
	}
	return c
}

// valueOf returns the value of a param, given its type and the 32-bit word that stores it.
func valueOf(typ string, word uint32) trace.Number {
	switch typ {
	case "f32":
		return trace.Number(math.Float32frombits(word))
	case "i32":
		return trace.Number(int32(word))
	}
	return trace.Number(word)
}

// Bytes returns the total size of the array files in bytes.
func (c *Capture) Bytes() (n int64) {
	for i := range c.Bindings {
		b := &c.Bindings[i]
		for _, file := range []string{b.Before, b.After} {
			if file != "" {
				n += b.size
			}
		}
	}
	return n
}

// BindingBytes returns the size of the bindings in bytes.
func (c *Capture) BindingBytes() (n int64) {
	for i := range c.Bindings {
		n += c.Bindings[i].size
	}
	return n
}

// shape returns the element type and the dims of a binding's .npy file. Elements of less than 32 bits are
// stored as 32-bit words.
func (b *Binding) shape() (npy.Type, []int) {
	switch b.dtype {
	case graph.F32:
		return npy.Float32, b.Dims
	case graph.I32:
		return npy.Int32, b.Dims
	case graph.U32:
		return npy.Uint32, b.Dims
	}
	return npy.Uint32, []int{int(b.size / 4)}
}

// FolderName returns the default name of the folder for a dispatch with this name.
func FolderName(dispatch string) string {
	return "capture-" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '_'
	}, printable.Short(dispatch, 100))
}
