// Package model turns a model file into a graph and runs the graph. It reads the file, builds the graph
// that serves both prefill and decode, and implements session.Session, which steps through a text token by
// token.
//
//	s, err := model.Open(ctx, model.Options{Driver: wgpu.New()}, progress)
//	_, err = s.Do(ctx, session.Command{Kind: session.Prompt, Text: "Once upon a time"})
//	_, err = s.Do(ctx, session.Command{Kind: session.Run, N: 47})
//
// Read does the part of Open that needs no device. The Model that it returns has a configuration and a
// tokenizer, and its method Plan builds the graph.
//
// An error message names the file, and says what is wrong and what the user can do. An error that wraps
// session.ErrUsage means that a request is invalid. For example, a prompt is longer than the context, or a
// token id is not in the vocabulary. If such an error is returned, no step has run.
package model

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"gpuscope/model/demo"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/network"
	"gpuscope/model/sample"
	"gpuscope/model/source"
	"gpuscope/ops"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Options selects the model and the device, and how to run the model. The zero value of each field means
// its default.
type Options struct {
	Path string // path of the model file; empty for the embedded model
	// Method and Data are for ExecuTorch programs: see source.Options.
	Method string
	Data   []string
	// Tokenizer is the path of a vocabulary that replaces the model's own vocabulary; empty to use the
	// model's own.
	Tokenizer string
	Driver    gpu.Driver // lists and opens devices
	Device    string     // index of the device, or a part of its name; empty for the best device
	// Limits are the limits for which steps are planned in a session without a device. If it is empty,
	// gpu.LimitSets[0] is used.
	Limits gpu.LimitSet
	// Context is the number of positions of the KV cache. If it is 0, the trained context of the model is
	// used, but at most DefaultContext.
	Context  int
	MaxChunk int // maximum number of tokens in a step; 0 for 512, or for Context if that is smaller
	Timing   engine.Timing
	Live     graph.LiveOptions
	Check    bool // before each step, plan the step again from scratch and compare the plans
	HalfKV   bool // store the KV cache in f16
	// If Quantize is "q4", float matrices are quantized to q4gsw while they are loaded. If it is "", all
	// matrices stay as stored. GroupSize is the number of adjacent columns that have a common scale: 32, 64
	// or 128. A GroupSize of 0 means 32.
	Quantize  string
	GroupSize int
	// Routes maps operators to the routes that the user requests for them: see graph.Builder.AskRoutes.
	Routes map[string]string
	// Fuse selects the rules of ops.Fusions: "on" or "" for all, "off" for none, or a comma-separated list
	// of names.
	Fuse string
	// Shaders is a folder with files called NAME.wgsl. Each file replaces the source of the kernel NAME. If
	// Shaders is "", no source is replaced.
	Shaders string
	// DumpPass is the name of a planning pass. The report of this pass then contains the graph before and
	// after it. If DumpPass is "", no report contains the graph.
	DumpPass string
	// passBytes is passed to graph.Builder.PassBytes. Tests set it so that small models are treated like
	// large models.
	passBytes int64
	// IgnoreEOS lets a text continue after the model's end-of-sequence token.
	IgnoreEOS bool
	// TopLogits is the number of candidates for the next token that each step reports. Up to ops.MaxTopK
	// candidates are found on the GPU. For more candidates, each step reads all logits back, and the host
	// finds them.
	TopLogits    int
	TopLogitsAny bool // if the model computes no logits, report no candidates instead of an error
	Sampling     sample.Sampling
	// Pipelined lets the next decode step start before the host has read the token of the previous step.
	// This requires that the token is picked on the device.
	Pipelined bool
	// System is the system message of conversations, rendered by the model's chat template; "" for no
	// system message.
	System string
	// Cache is the folder in which measured ceilings of devices are stored. If it is "", they are not stored.
	Cache string
	// Producer and Command are written to the trace's header.
	Producer trace.Producer
	Command  []string
}

// Model is a model file that has been read and checked. A Model needs no device.
type Model struct {
	options  Options
	file     source.Source
	sizes    source.Sizes
	context  int
	maxChunk int
	tokens   *tokenizer.Tokenizer // nil if the file has no vocabulary
	noText   error                // why the model accepts only token ids and no text; nil if it accepts text
	sampling map[string]any       // the sampling options, in the format of trace steps; never modified
	opening  []trace.Opening      // the finished phases of opening the model, with their durations
	warnings []string
}

// Warnings returns what a user should know before trusting the results of this model. For example, a warning
// says that a file is defective and how gpuscope worked around the defect. Each warning is one line. The list
// is complete once Read has returned.
func (m *Model) Warnings() []string { return m.warnings }

// Ignored returns the configuration keys in the model's files that have no effect, because the model's class
// does not define them.
func (m *Model) Ignored() []arch.Ignored { return m.file.Ignored() }

func (m *Model) warnf(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// Read opens a model file and checks that this version of gpuscope can run it. Call Close to release the
// file.
func Read(o Options) (*Model, error) {
	if o.TopLogits < 0 {
		return nil, session.Refusef("--top-logits %d: want 0 or more", o.TopLogits)
	}
	if err := o.Sampling.Check(); err != nil {
		return nil, err
	}
	file, err := source.Open(source.Options{
		Path: o.Path, Method: o.Method, Data: o.Data, Quantize: o.Quantize, GroupSize: o.GroupSize,
	})
	if err != nil {
		return nil, err
	}
	m := &Model{options: o, file: file, sampling: o.Sampling.Record()}
	if err := m.read(); err != nil {
		return nil, errors.Join(unplannable(err), file.Close())
	}
	return m, nil
}

// Unplannable is the error for a model whose files can be read and listed, but for which no graph can be
// built.
type Unplannable struct{ error }

// Unwrap returns the reason.
func (e Unplannable) Unwrap() error { return e.error }

// unplannable wraps err in Unplannable if the cause of the error is in the model's files. If the cause is the
// request or the device, it returns err unchanged.
func unplannable(err error) error {
	if err == nil || errors.Is(err, session.ErrUsage) || errors.Is(err, gpu.ErrUnsupported) {
		return err
	}
	return Unplannable{err}
}

func (m *Model) read() error {
	var err error
	if m.sizes, err = m.file.Sizes(); err != nil {
		return err
	}
	m.warnings = slices.Clone(m.sizes.Warnings)
	if m.context, m.maxChunk, err = m.file.Bounds(m.options.Context, m.options.MaxChunk); err != nil {
		return err
	}
	return m.readTokenizer()
}

// Close closes the model file. Data that was loaded from the file stays valid.
func (m *Model) Close() error { return m.file.Close() }

// Plan builds the model's graph for a device with these limits. It allocates no device memory and does not
// read the weights.
func (m *Model) Plan(limits gpu.Limits) (*graph.Graph, error) {
	n, err := m.build(limits)
	if err != nil {
		return nil, err
	}
	return n.Graph, nil
}

func (m *Model) build(limits gpu.Limits) (*network.Network, error) {
	b := graph.NewBuilder(limits)
	b.AskRoutes(m.options.Routes)
	rules, err := graph.SelectFusions(ops.Fusions, m.options.Fuse)
	if err != nil {
		return nil, session.Refusef("--fuse: %w", err)
	}
	b.Fuse(rules...)
	if name := m.options.DumpPass; name != "" {
		if err := b.DumpPass(name); err != nil {
			return nil, session.Refusef("--%w", err) // the text of err begins with the name of the flag
		}
	}
	if m.options.passBytes > 0 {
		b.PassBytes(m.options.passBytes)
	}
	n, err := m.file.Build(b, source.Step{
		Context: m.context, MaxChunk: m.maxChunk, HalfKV: m.options.HalfKV, Told: m.options.TopLogits,
		ToldIfAny: m.options.TopLogitsAny, Sampling: m.options.Sampling,
	})
	limit, limited := errors.AsType[*graph.RouteLimit](err)
	switch {
	case limited:
		err = session.Refusef("--%w; give --max-chunk %d", err, limit.Most)
	case errors.Is(err, graph.ErrRoute):
		err = session.Refusef("--%w", err) // the text of err begins with the name of the flag
	case errors.Is(err, gpu.ErrUnsupported):
		err = fmt.Errorf("%w. Use a smaller --context (now %d) or --max-chunk (now %d)", err,
			m.context, m.maxChunk)
	}
	return n, unplannable(err)
}

// Info describes the model for a trace.
func (m *Model) Info() trace.Model {
	var info trace.Model
	m.file.Describe(&info)
	info.Name, info.Source = cmp.Or(info.Name, m.source()), m.source()
	info.Dims["context"], info.Dims["max_chunk"] = m.context, m.maxChunk
	return info
}

// source returns the name of the model's file for the trace. It omits the folders, which the user may not
// want to share with the trace.
func (m *Model) source() string {
	if m.options.Path == "" {
		return demo.Name
	}
	return filepath.Base(m.options.Path)
}
