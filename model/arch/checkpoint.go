package arch

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"gpuscope/model/demo"

	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Checkpoint gives access to the files of a model in any format, whether or not this version can run the
// model. Its methods except Close may be called from any goroutine.
type Checkpoint struct {
	form
	All    []*Tensor
	ByName map[string]*Tensor
}

// form gives access to the files of one model. Each file format has its own implementation. Errors name the
// file.
type form interface {
	// Name returns the path or name with which the files were opened.
	Name() string
	// Title returns the model's name as stated in the files, or "".
	Title() string
	// Metadata returns the key-value pairs of the files for display.
	Metadata() []Pair
	// Close closes the files and their mappings. The bytes of tensors must not be used afterwards.
	Close() error
	// Config returns the checked configuration of the decoder. Its Vocab is not set yet.
	Config() (Config, error)
	// Tokenizer returns the tokenizer of the model. It returns the same errors as tokenizer.New.
	Tokenizer() (*tokenizer.Tokenizer, error)
}

// Pair is a key, the type of its value, and the value formatted for display. Long values are shortened.
type Pair struct{ Key, Type, Value string }

// Tensor is a tensor of a checkpoint.
type Tensor struct {
	Name string
	Type string // storage type as named by ggml and safetensors: "Q4_0", "BF16"
	Dims []int  // row-major, outermost first: a matrix is [rows, cols]
	Size int    // bytes
	// Bytes returns the elements in the file's layout. The bytes may be in a file mapping, so they must not
	// be modified, and must not be used after Close. A call after Close returns an error.
	Bytes func() ([]byte, error)
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int { return Numel(t.Dims) }

// Equal reports whether two tensors have the same type, dims and bytes.
func (t *Tensor) Equal(other *Tensor) (bool, error) {
	if t.Type != other.Type || !slices.Equal(t.Dims, other.Dims) {
		return false, nil
	}
	a, err := t.Bytes()
	if err != nil {
		return false, err
	}
	b, err := other.Bytes()
	return bytes.Equal(a, b), err
}

func Numel(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// NewCheckpoint returns a checkpoint of tensors in file order. The names of the tensors must be unique.
func NewCheckpoint(f form, tensors []*Tensor) *Checkpoint {
	c := &Checkpoint{form: f, All: tensors, ByName: make(map[string]*Tensor, len(tensors))}
	for _, t := range tensors {
		c.ByName[t.Name] = t
	}
	return c
}

// Tensors returns all tensors in file order. The caller must not modify the slice.
func (c *Checkpoint) Tensors() []*Tensor { return c.All }

// Tensor returns the tensor with a name.
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	if t := c.ByName[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: tensor %q is missing (the model has %d tensors)", c.Name(), name, len(c.All))
}

// OpenFile opens a GGUF file or a Hugging Face folder, or the embedded model if `path` is empty. It does not
// check whether this version can run the model.
func OpenFile(path string) (*Checkpoint, error) {
	if path == "" {
		return ParseGGUF(demo.File, demo.Name)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openHF(path)
	}
	c, err := openGGUF(path)
	if err != nil && trace.HasSchema(path) {
		err = fmt.Errorf("%s: this is a trace, not a model. Use gpuscope FILE to open it, or gpuscope trace show FILE to print it", path)
	}
	return c, err
}
