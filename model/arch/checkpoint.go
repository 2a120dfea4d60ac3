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

// Checkpoint is what the files of a model hold, whatever their form is and whether or not this version can
// run them. Its methods may be called from any goroutine, Close excepted.
type Checkpoint struct {
	form
	All    []*Tensor
	ByName map[string]*Tensor
}

// form is a form of a model's files. Errors name the file.
type form interface {
	// Name is the path or name that the files were opened by.
	Name() string
	// Title is what the files call the model; "" where they do not.
	Title() string
	// Metadata are the pairs that they hold beside tensors, for people.
	Metadata() []Pair
	// Close gives mappings and files back. Bytes of tensors must not be used after it.
	Close() error
	// Config is the decoder that they describe, checked; its Vocab is not set yet.
	Config() (Config, error)
	// Tokenizer is their vocabulary, with the errors of tokenizer.New.
	Tokenizer() (*tokenizer.Tokenizer, error)
}

// Pair is a key with its value, as a person reads it: long values are cut.
type Pair struct{ Key, Type, Value string }

// Tensor is a tensor of a checkpoint.
type Tensor struct {
	Name string
	Type string // how elements are stored, as ggml and safetensors name it: "Q4_0", "BF16"
	Dims []int  // row-major, outermost first: a matrix is [rows, cols]
	Size int    // bytes
	// Bytes are the elements in the file's own layout. They may lie in a mapping: they must not be changed,
	// nor used after Close. To ask for them after it is an error.
	Bytes func() ([]byte, error)
}

// Elements is the number of elements.
func (t *Tensor) Elements() int { return Numel(t.Dims) }

// Equal says whether two tensors are stored alike.
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

// NewCheckpoint has the tensors in the order of the files. No two have one name.
func NewCheckpoint(f form, tensors []*Tensor) *Checkpoint {
	c := &Checkpoint{form: f, All: tensors, ByName: make(map[string]*Tensor, len(tensors))}
	for _, t := range tensors {
		c.ByName[t.Name] = t
	}
	return c
}

// Tensors are all tensors in the order of the files. The slice must not be changed.
func (c *Checkpoint) Tensors() []*Tensor { return c.All }

// Tensor finds a tensor by its name.
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	if t := c.ByName[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: tensor %q is missing (there are %d tensors)", c.Name(), name, len(c.All))
}

// OpenFile opens the files of a model, a GGUF file or a folder of Hugging Face, without a look at whether
// this version can run them: of the embedded one where path is empty.
func OpenFile(path string) (*Checkpoint, error) {
	if path == "" {
		return ParseGGUF(demo.File, demo.Name)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openHF(path)
	}
	c, err := openGGUF(path)
	if err != nil && trace.HasSchema(path) {
		err = fmt.Errorf("%s: a trace, not a model: gpuscope FILE opens it, gpuscope trace show FILE prints it", path)
	}
	return c, err
}
