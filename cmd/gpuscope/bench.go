package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/model"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

func benchCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "bench", Operand: "[MODEL]",
		Doc: "measure tokens per second, and compare them with the device's ceilings",
		More: `Tests are named as in llama-bench: pp512 reads a prompt of 512 tokens, tg128 generates 128 tokens, and "@ d4096" means
that the test starts with 4,096 positions in the cache. Each test runs once to warm up and then -r times. The results are
the median, minimum and maximum, and how the CPU time of a step was spent. The time of a decode step is compared with the
time to read all weights once, and the time of a prefill with the time for its FLOPs. Both of these times are computed from
ceilings that are measured in the same run. Results of prefill also include the time to the first token, and results of
decode the time between two tokens, as percentiles (p50 from 2 samples on, p90 from 10, p99 from 100). Steps run at timing level "off". Decode is measured in two alternating modes:
stepped reads each token back before the next step begins; pipelined begins the next step before it reads the token back.
Token ids are random, so no vocabulary is needed. docs/guide/bench.md describes --format json.`,
		Examples: []cli.Example{
			{"gpuscope bench", "pp512 and tg128 of the embedded model"},
			{
				"gpuscope bench model.gguf --pp 128,512,2048 --tg 128 --depth 0,4096 -r 5",
				"several prompt lengths, each with an empty cache and with 4,096 positions in the cache",
			},
			{"gpuscope bench model.gguf --pp 0 --depth 0,1024,8192 --format csv", "decode at several depths, as CSV for a chart"},
			{
				"gpuscope bench model.gguf --kernels --pp 512 --depth 4096",
				"the GB/s and TFLOP/s that each kernel reaches on each route, and the fastest route for each prompt length",
			},
			{"gpuscope bench model.gguf --format json", "all measurements as JSON, for a program"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			b := benchmark{p: p}
			flags.IntSliceVar(&b.Prompts, "pp", []int{512}, "measure prefill with prompts of `128,512` tokens; 0 to skip prefill")
			flags.IntSliceVar(&b.Decodes, "tg", []int{128}, "measure decode of `128,256` tokens, one per step; 0 to skip decode")
			flags.IntSliceVar(&b.Depths, "depth", []int{0}, "run every test once for each depth: with `0,4096` positions already in the cache")
			flags.IntVarP(&b.Repetitions, "repetitions", "r", 5, "run each test `N` times, after a warm-up")
			flags.BoolVar(&b.Kernels, "kernels", false,
				"instead of whole steps, measure each operator on each of its routes, at prompt lengths up to the largest --pp")
			flags.Uint64Var(&b.Seed, "seed", 1, "generate the random token ids from seed `N`")
			b.mode = cli.ChoiceFlag(flags, "mode", "decode in `MODE`", "both", bench.Stepped,
				bench.Pipelined)
			flags.BoolVar(&b.Tracing, "tracing", false,
				"also measure how much timing slows decode down: decode at each timing level, alternating between the levels")
			b.format = cli.FormatFlag(flags, bench.Formats...)
			b.model = declareModelFlags(flags, "off", "step", "block", "dispatch")
			flags.Lookup("context").Usage = "allocate `N` positions in the KV cache (default: as many as the tests need)"
			return func(ctx context.Context, operands []string) error {
				why, idle := b.idle()
				for _, name := range idle {
					if flags.Changed(name) {
						return cli.Usagef("%s: --%s has no effect", why, name)
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

// benchmark holds the arguments of one bench command.
type benchmark struct {
	model.Benchmark
	p      *program
	format *cli.Choice
	mode   *cli.Choice
	model  *modelOptions
}

// idle returns why some flags have no effect on the requested measurements, and the names of these flags.
func (b *benchmark) idle() (why string, flags []string) {
	switch {
	case b.Kernels:
		return "--kernels measures operators, not steps", []string{
			"tg", "mode", "tracing", "timing", "seed", "static", "check", "propagation", "ignore-eos",
		}
	case !slices.ContainsFunc(b.Decodes, func(n int) bool { return n != 0 }):
		return "--tg 0 skips decode", []string{"mode", "tracing"}
	}
	return "", nil
}

func (b *benchmark) validate(operands []string) error {
	if b.model.device == trace.NoDevice {
		return cli.Usagef("--device none: bench needs a device; gpuscope devices lists them")
	}
	b.Modes = []string{b.mode.Value}
	if b.mode.Value == "both" {
		b.Modes = []string{bench.Stepped, bench.Pipelined}
	}
	return cmp.Or(b.format.Check(), b.mode.Check(), asUsage(b.Check()), b.model.validate(operands))
}

// run measures and prints the results. A benchmark that is stopped still prints the results so far.
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
	return errors.Join(err, result.Print(context.WithoutCancel(ctx), b.p.Stdout, b.format.Value))
}
