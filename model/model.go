// Package model turns a model file into a graph and runs it: it reads the file, builds the architecture's
// graph for prefill and decode, and implements session.Session, which steps through a text token by token.
//
//	s, err := model.Open(ctx, model.Options{Driver: wgpu.New()}, progress)
//	_, err = s.Do(ctx, session.Command{Kind: session.Prompt, Text: "Once upon a time"})
//	_, err = s.Do(ctx, session.Command{Kind: session.Run, N: 47})
//
// Read does the part that needs no device: a Model knows its shape, its tokenizer and, through Plan, its
// graph.
//
// Errors name the file and the thing, and what a person can do. Those of a request that cannot be met (a
// prompt over the context, a token id outside of the vocabulary) are session.ErrUsage: nothing has run.
package model

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"gpuscope/model/demo"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/arch"
	"gpuscope/model/sample"
	"gpuscope/ops"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Options say what to open, on which device, and how to run it. The zero value of a field is its default.
type Options struct {
	Path string // of the model; empty for the embedded one
	// Tokenizer is the path of a vocabulary that is taken instead of the model's own; empty for that.
	Tokenizer string
	Driver    gpu.Driver   // finds the device
	Device    string       // its number or a part of its name; empty for the best there is
	Limits    gpu.LimitSet // that are planned for without a device; gpu.LimitSets[0] where empty
	Context   int          // positions of the KV cache; the model's own, at most DefaultContext, where 0
	MaxChunk  int          // tokens a step takes at most; 512 or the context where 0
	Timing    engine.Timing
	Live      graph.LiveOptions
	Check     bool // plan again and compare before each step
	HalfKV    bool // keep the KV cache in f16
	// Quantize is "q4" where matrices of floats are to become q4gsw as they are loaded, "" for all as stored.
	// GroupSize is how many columns share a scale then: 32, 64 or 128, and 32 where 0.
	Quantize  string
	GroupSize int
	// Routes asks for routes of operators: see graph.Builder.AskRoutes.
	Routes map[string]string
	// Fuse says which rules of ops.Fusions are on: "on" or "" for all, "off" for none, or names with commas
	// between them.
	Fuse string
	// Shaders is a folder whose files NAME.wgsl take the place of kernels of these names; "" for none.
	Shaders string
	// DumpPass names a pass of planning whose report lists the graph before and after it; "" for none.
	DumpPass string
	// passBytes is graph.Builder.PassBytes, where a test wants small models treated as large ones.
	passBytes int64
	// IgnoreEOS lets a text go on after the model's end token.
	IgnoreEOS bool
	// TopLogits is how many candidates a step tells. The GPU finds them, up to ops.MaxTopK; for more each
	// step reads all logits back.
	TopLogits int
	Sampling  sample.Sampling
	// Pipelined lets a step of a text that runs on begin before the one before was read, where its token is
	// known on the device.
	Pipelined bool
	// System is what conversations are to begin with, by the model's chat template; "" for nothing.
	System string
	// Cache is the folder where ceilings of devices are kept; "" for none.
	Cache string
	// Producer and Command go into the trace's header.
	Producer trace.Producer
	Command  []string
}

// Model is a model file that has been read and checked. It needs no device.
type Model struct {
	options Options
	file    *arch.Checkpoint
	config  arch.Config
	// quantizer is nil where all weights stay as they are stored.
	quantizer *arch.Quantizer
	context   int
	maxChunk  int
	tokens    *tokenizer.Tokenizer // nil where the file has none
	noText    error                // why text is refused; nil where it is not
	sampling  map[string]any       // as steps tell it; never changed
	opening   []trace.Opening      // what was done so far, and how long it took
	warnings  []string
}

// Warnings are what a user should know before trusting what this model computes: a defect of its files that
// was worked around, and how. They are complete once Read has returned; each is one line.
func (m *Model) Warnings() []string { return m.warnings }

// Ignored are the keys that the files state and that the model's class does not know.
func (m *Model) Ignored() []arch.Ignored { return m.config.Ignored }

// warnf adds a warning.
func (m *Model) warnf(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// Read opens a model file and checks that this version can run it. Close gives the file back.
func Read(o Options) (*Model, error) {
	if o.TopLogits < 0 {
		return nil, session.Refusef("--top-logits %d: want 0 or more", o.TopLogits)
	}
	if err := o.Sampling.Check(); err != nil {
		return nil, err
	}
	q, err := arch.NewQuantizer(o.Quantize, o.GroupSize)
	if err != nil {
		return nil, err
	}
	file, err := arch.OpenFile(o.Path)
	if err != nil {
		return nil, err
	}
	m := &Model{options: o, file: file, quantizer: q, sampling: o.Sampling.Record()}
	if err := m.read(); err != nil {
		return nil, errors.Join(unplannable(err), file.Close())
	}
	return m, nil
}

// Unplannable is why there is no graph of what a model's files hold. They can be read and listed.
type Unplannable struct{ error }

// Unwrap is the reason.
func (e Unplannable) Unwrap() error { return e.error }

// unplannable is an error that is of the files, or the error itself where the request or the device is at
// fault.
func unplannable(err error) error {
	if err == nil || errors.Is(err, session.ErrUsage) || errors.Is(err, gpu.ErrUnsupported) {
		return err
	}
	return Unplannable{err}
}

func (m *Model) read() error {
	var err error
	if m.config, err = m.file.Config(); err != nil {
		return err
	}
	if err := m.settle(); err != nil {
		return err
	}
	return m.readTokenizer()
}

// settle decides what the configuration leaves to the tensors and to the options.
func (m *Model) settle() error {
	table, err := m.file.Tensor(m.config.Form.Names.Embed)
	if err != nil {
		return err
	}
	if len(table.Dims) != 2 || table.Dims[0] > arch.MaxVocab {
		return fmt.Errorf("%s: tensor %s is %s, want [vocabulary, %d]", m.file.Name(),
			table.Name, printable.Dims(table.Dims), m.config.Dim)
	}
	m.config.Vocab = table.Dims[0]
	m.warnings = append(m.warnings, m.config.Warnings...)
	if err := m.settleHead(table); err != nil {
		return err
	}
	m.warnings = append(m.warnings, m.file.OrphanWarnings()...)
	m.context, m.maxChunk, err = m.config.Bounds(m.options.Context, m.options.MaxChunk)
	return err
}

// settleHead decides which matrix gives the logits where the files contradict themselves: a stored one unless
// it is the embedding once more, and without one the embedding.
func (m *Model) settleHead(table *arch.Tensor) error {
	c := &m.config
	head := m.file.ByName[c.Form.Names.Head]
	switch {
	case head == nil && !c.Tied:
		c.Tied = true
		m.warnf("%s: no tensor %s, and %s is not true: using the embedding in its place", m.file.Name(),
			c.Form.Names.Head, c.Form.Keys.Tied)
	case head != nil && c.Tied:
		same, err := table.Equal(head)
		if err != nil || same {
			return err
		}
		c.Tied = false
		m.warnf("%s: %s is true, and tensor %s differs from the embedding: using it", m.file.Name(),
			c.Form.Keys.Tied, printable.Short(head.Name, 80))
	}
	return nil
}

// Close gives the file back. What was loaded from it stays good.
func (m *Model) Close() error { return m.file.Close() }

// Plan is the model's graph for a device with these limits. Nothing is allocated but the graph itself.
func (m *Model) Plan(limits gpu.Limits) (*graph.Graph, error) {
	n, err := m.build(limits)
	if err != nil {
		return nil, err
	}
	return n.Graph, nil
}

func (m *Model) build(limits gpu.Limits) (*arch.Network, error) {
	b := graph.NewBuilder(limits)
	b.AskRoutes(m.options.Routes)
	rules, err := graph.SelectFusions(ops.Fusions, m.options.Fuse)
	if err != nil {
		return nil, session.Refusef("--fuse: %w", err)
	}
	b.Fuse(rules...)
	if name := m.options.DumpPass; name != "" {
		if err := b.DumpPass(name); err != nil {
			return nil, session.Refusef("--%w", err)
		}
	}
	if m.options.passBytes > 0 {
		b.PassBytes(m.options.passBytes)
	}
	l := &arch.Decoder{
		Builder: b, Config: m.config, Context: m.context, KV: graph.F32,
		W: arch.NewWeights(b, m.file, m.config.Form, m.quantizer),
	}
	if m.options.HalfKV {
		l.KV = graph.F16
	}
	n, err := l.Build(m.maxChunk, m.options.TopLogits, m.options.Sampling)
	if err == nil {
		err = m.quantizer.Check(m.file.Name())
	}
	limit, limited := errors.AsType[*graph.RouteLimit](err)
	switch {
	case limited:
		err = session.Refusef("--%w; give --max-chunk %d", err, limit.Most)
	case errors.Is(err, graph.ErrRoute):
		err = session.Refusef("--%w", err)
	case errors.Is(err, gpu.ErrUnsupported):
		err = fmt.Errorf("%w; a smaller --context (it is %d) or --max-chunk (%d) takes less", err, m.context,
			m.maxChunk)
	}
	return n, unplannable(err)
}

// bounded is a text of a file, as it is unless it is longer than a trace may hold it.
func bounded(s string) string {
	if len(s) > 1<<10 {
		return printable.Short(s, 1<<8)
	}
	return s
}

// Info is the model as a trace has it.
func (m *Model) Info() trace.Model {
	c := &m.config
	info := trace.Model{
		Name:         cmp.Or(bounded(m.file.Title()), m.source()),
		Architecture: c.Arch.Name, Source: m.source(),
		Layers: c.Layers,
		Dims: map[string]int{
			"dim": c.Dim, "heads": c.Heads, "kv_heads": c.KVHeads, "head_dim": c.HeadDim, "ffn": c.FFN,
			"vocab":   c.Vocab,
			"context": m.context, "max_chunk": m.maxChunk, "trained_context": c.Context,
		},
	}
	if w := slices.Max(c.Windows); w > 0 {
		info.Dims["window"] = w
	}
	elements := map[string]int64{}
	for _, t := range m.file.Tensors() {
		elements[t.Type] += int64(t.Elements())
		info.Parameters += int64(t.Elements())
	}
	most := slices.SortedFunc(maps.Keys(elements),
		func(a, b string) int { return cmp.Or(cmp.Compare(elements[b], elements[a]), cmp.Compare(a, b)) })
	if len(most) > 0 {
		info.Quantization = most[0]
	}
	if m.quantizer != nil {
		info.Quantization, info.Quantized = m.quantizer.String(), m.quantizer.Cost()
	}
	return info
}

// source is the file as a trace names it: without the folders, which are nobody's business.
func (m *Model) source() string {
	if m.options.Path == "" {
		return demo.Name
	}
	return filepath.Base(m.options.Path)
}
