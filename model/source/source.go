// Package source opens model files. A Source provides what depends on the kind of file: the sizes of the
// model, its vocabulary and its graph. A checkpoint contains only weights, so gpuscope builds the graph from
// the architecture. An ExecuTorch program contains weights and a graph.
package source

import (
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/network"
	"gpuscope/model/quantize"
	"gpuscope/model/sample"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Options selects a model file, and how its weights are stored on the device. The zero value of each field
// means its default.
type Options struct {
	Path string // empty for the embedded model
	// Method is the method of an ExecuTorch program. If it is "", the method called "forward" is used. If
	// there is none, the only method that reads tokens is used.
	Method string
	Data   []string // files with further constants of an ExecuTorch program
	// Quantize is "q4" to quantize float matrices to q4gsw. GroupSize is the number of columns that share a
	// scale.
	Quantize  string
	GroupSize int
}

// Sizes contains the sizes of a model, and warnings about its files.
type Sizes struct {
	Vocab    int // token ids are less than Vocab
	Context  int // largest number of positions
	Warnings []string
}

// Step states how the graph of a model is built.
type Step struct {
	Context  int // number of positions
	MaxChunk int // largest number of tokens in a step
	HalfKV   bool
	Told     int // number of candidate tokens that each step reports; 0 to report only the next token
	// ToldIfAny lets a model without logits ignore Told. If ToldIfAny is false, a Told above 0 is an error
	// for such a model.
	ToldIfAny bool
	Sampling  sample.Sampling
}

// Source is an open model file.
type Source interface {
	// Name returns the path with which the file was opened, for errors.
	Name() string
	// Title returns the name of the model as stated in the file, or "".
	Title() string
	// Close closes the file. Data that was loaded from the file stays valid.
	Close() error
	// Sizes checks the configuration of the model and returns the sizes.
	Sizes() (Sizes, error)
	// Ignored returns the configuration keys in the file that have no effect (see arch.Ignored).
	Ignored() []arch.Ignored
	// Bounds returns the number of positions and the largest number of tokens in a step. It checks the
	// requested numbers, and replaces 0 by the default. The error wraps session.ErrUsage.
	Bounds(context, maxChunk int) (positions, tokens int, err error)
	// Tokenizer returns the vocabulary of the file, with the errors of tokenizer.New.
	Tokenizer() (*tokenizer.Tokenizer, error)
	// Operators returns the operators of the model before fusion, in order. gpuscope matches them with the
	// operators in the profile of another engine. For a checkpoint, Operators also returns the values. For a
	// program, it returns the operators in the file, without values.
	Operators() ([]trace.Op, []trace.Value, error)
	// Build builds the graph. If the step needs logits but the model computes none, the error wraps
	// session.ErrUsage.
	Build(b *graph.Builder, o Step) (*network.Network, error)
	// Loaded releases memory that is needed only during loading.
	Loaded()
	// Changed describes how weights were changed while they were loaded, or "".
	Changed() string
	// Describe sets the fields of `info` that depend on the file. The name is the title.
	Describe(info *trace.Model)
}

// bounded shortens a string from a file if it is too long for a line on the screen.
func bounded(s string) string {
	if len(s) > 1<<10 {
		return printable.Short(s, 1<<8)
	}
	return s
}

// Open opens a model file. It does not check whether this version can run the model: Sizes and Build do.
func Open(o Options) (Source, error) {
	q, err := quantize.New(o.Quantize, o.GroupSize)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Path != "" && pte.IsProgram(o.Path):
		return openProgram(o)
	case o.Path != "" && pte.IsDataFile(o.Path):
		return nil, session.Refusef("%s is a data file of an ExecuTorch program. Open the program, and give the data "+
			"file with --data", o.Path)
	}
	return openCheckpoint(o, q)
}
