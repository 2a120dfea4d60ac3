package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"gpuscope/model"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

func benchCommand() *command {
	return &command{
		name: "bench", operand: "[MODEL]",
		doc: "measure tokens a second, and how far from the device's limits they are",
		more: `Tests have the names of llama-bench: pp512 takes 512 tokens in, tg128 makes 128, "@ d4096" says how many positions were
filled before. Each runs once to warm up, then -r times: the median, the least and the largest are told, and where the
host's time of a step went. Decode is held to the time in which the device could read all weights once a step, prefill to
that of its FLOPs, both by ceilings that are measured in the same run. Steps run at timing level off, tokens are made in both
modes, in turns: stepped, each is read back before the next step begins; pipelined, the next step begins before. Token ids
are drawn: no vocabulary is needed. docs/guide/bench.md has the format of --format json.`,
		examples: []example{
			{"gpuscope bench", "pp512 and tg128 of the embedded model"},
			{
				"gpuscope bench model.gguf --pp 128,512,2048 --tg 128 --depth 0,4096 -r 5",
				"lengths of prompts, and all of it again after 4,096 positions",
			},
			{"gpuscope bench model.gguf --pp 0 --depth 0,1024,8192 --format csv", "decode, for a curve"},
			{
				"gpuscope bench model.gguf --kernels --pp 512 --depth 4096",
				"GB/s and TFLOP/s of each kernel on each route, and which is the fastest at which length",
			},
			{"gpuscope bench model.gguf --format json", "all that was measured, for a program"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			b := benchmark{p: p}
			flags.IntSliceVar(&b.Prompts, "pp", []int{512}, "take prompts of `128,512` tokens in; 0 for none")
			flags.IntSliceVar(&b.Decodes, "tg", []int{128}, "make `128,256` tokens, one a step; 0 for none")
			flags.IntSliceVar(&b.Depths, "depth", []int{0}, "from a cache that holds `0,4096` positions")
			flags.IntVarP(&b.Repetitions, "repetitions", "r", 5, "measure each test `N` times, after a warm-up")
			flags.BoolVar(&b.Kernels, "kernels", false,
				"measure operators alone instead of steps: each route at lengths up to the longest of --pp")
			flags.Uint64Var(&b.Seed, "seed", 1, "draw token ids as `N` says")
			b.mode = choiceFlag(flags, "mode", "make tokens in a `MODE`", "both", bench.Stepped,
				bench.Pipelined)
			flags.BoolVar(&b.Tracing, "tracing", false,
				"make tokens at each timing level too, in turns: what timing costs")
			b.format = formatFlag(flags, bench.Formats...)
			b.model = declareModelFlags(flags, "off", "step", "block", "dispatch")
			flags.Lookup("context").Usage = "make the KV cache hold `N` positions (default as many as the tests need)"
			return func(ctx context.Context, operands []string) error {
				why, idle := b.idle()
				for _, name := range idle {
					if flags.Changed(name) {
						return usagef("%s: --%s would change nothing", why, name)
					}
				}
				if err := b.validate(operands); err != nil {
					return err
				}
				return b.run(ctx)
			}
		},
	}
}

// benchmark is one call of the bench command.
type benchmark struct {
	model.Benchmark
	p      *program
	format *choice
	mode   *choice
	model  *modelOptions
}

// idle are the flags that change nothing of what is measured, and why.
func (b *benchmark) idle() (why string, flags []string) {
	switch {
	case b.Kernels:
		return "--kernels measures no steps", []string{
			"tg", "mode", "tracing", "timing", "seed", "static", "check", "propagation", "ignore-eos",
		}
	case !slices.ContainsFunc(b.Decodes, func(n int) bool { return n != 0 }):
		return "--tg 0 makes no tokens", []string{"mode", "tracing"}
	}
	return "", nil
}

func (b *benchmark) validate(operands []string) error {
	if b.model.device == trace.NoDevice {
		return usagef("--device none: there is nothing to measure where nothing runs")
	}
	b.Modes = []string{b.mode.value}
	if b.mode.value == "both" {
		b.Modes = []string{bench.Stepped, bench.Pipelined}
	}
	return cmp.Or(b.format.check(), b.mode.check(), asUsage(b.Check()), b.model.validate(operands))
}

// run measures and prints. What is stopped on its way prints what it has.
func (b *benchmark) run(ctx context.Context) error {
	options, err := b.p.forModel(b.model)
	if err != nil {
		return err
	}
	progress := newProgress(b.p)
	result, err := model.Bench(ctx, options, b.Benchmark, progress.opening)
	progress.done()
	if result == nil {
		return asUsage(err)
	}
	return errors.Join(err, result.Print(context.WithoutCancel(ctx), b.p.stdout, b.format.value))
}
