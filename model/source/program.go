package source

import (
	"fmt"
	"path/filepath"

	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/network"
	"gpuscope/model/program"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// executorch is a method of an ExecuTorch program that runs as a language model. The exporter has fixed its
// sizes.
type executorch struct {
	file     *pte.File
	language *program.Language
}

func openProgram(o Options) (Source, error) {
	if o.Quantize != "" {
		return nil, session.Refusef("--quantize %s: the weights of an ExecuTorch program cannot be quantized. Omit --quantize",
			o.Quantize)
	}
	f, err := pte.Open(o.Path, o.Data...)
	if err != nil {
		return nil, err
	}
	l, err := program.OpenLanguage(f, o.Method)
	if err != nil {
		_ = f.Close() // return only the first error, which tells the user more
		return nil, err
	}
	return &executorch{f, l}, nil
}

func (e *executorch) Name() string            { return e.file.Name() }
func (e *executorch) Title() string           { return filepath.Base(e.file.Name()) }
func (e *executorch) Close() error            { return e.file.Close() }
func (e *executorch) Ignored() []arch.Ignored { return nil }
func (e *executorch) Loaded()                 {}
func (e *executorch) Changed() string         { return "" }

func (e *executorch) Sizes() (Sizes, error) {
	l := e.language
	return Sizes{Vocab: l.Vocab, Context: l.Context, Warnings: l.Warnings}, nil
}

func (e *executorch) Bounds(context, maxChunk int) (positions, tokens int, err error) {
	l := e.language
	switch {
	case context < 0 || context > l.Context:
		return 0, 0, session.Refusef("--context %d: the caches of the program hold at most %d positions",
			context, l.Context)
	case maxChunk < 0 || maxChunk > l.MaxChunk:
		return 0, 0, session.Refusef("--max-chunk %d: the program reads at most %d tokens in a step",
			maxChunk, l.MaxChunk)
	}
	if context == 0 {
		context = l.Context
	}
	if maxChunk == 0 {
		maxChunk = min(l.MaxChunk, context)
	}
	if maxChunk > context {
		return 0, 0, session.Refusef("--max-chunk %d is above the context of %d", maxChunk, context)
	}
	return context, maxChunk, nil
}

// Tokenizer implements Source. A program has no vocabulary.
func (e *executorch) Tokenizer() (*tokenizer.Tokenizer, error) {
	return nil, fmt.Errorf("%s: %w", e.file.Name(), tokenizer.ErrNoVocabulary)
}

func (e *executorch) Operators() ([]trace.Op, []trace.Value, error) {
	ops, err := program.Operators(e.file, e.language.Method)
	return ops, nil, err
}

func (e *executorch) Build(b *graph.Builder, o Step) (*network.Network, error) {
	if by := o.Sampling; e.language.OnlyToken {
		without := fmt.Sprintf("method %s of %s computes only the most likely token, not the logits of all "+
			"tokens", e.language.Method, e.Title())
		switch {
		case by.Temperature > 0:
			return nil, session.Refusef("--temp %v: %s. Use --temp 0", by.Temperature, without)
		case !by.Greedy():
			return nil, session.Refusef("--repeat-penalty %v: %s. Use --repeat-penalty 1", by.RepeatPenalty,
				without)
		case o.Told > 0 && !o.ToldIfAny:
			return nil, session.Refusef("--top-logits %d: %s", o.Told, without)
		}
	}
	return e.language.Build(b, program.Step{
		Context: o.Context, MaxChunk: o.MaxChunk, HalfKV: o.HalfKV, Told: o.Told, Sampling: o.Sampling,
	})
}

func (e *executorch) Describe(info *trace.Model) {
	l := e.language
	info.Name, info.Architecture, info.Layers = bounded(e.Title()), "ExecuTorch program", l.Layers
	info.Dims = map[string]int{"vocab": l.Vocab, "trained_context": l.Context}
	for name, n := range map[string]int{"heads": l.Heads, "kv_heads": l.KVHeads, "head_dim": l.HeadDim} {
		if n > 0 {
			info.Dims[name] = n
		}
	}
	info.Parameters, info.Quantization = l.Parameters()
}
