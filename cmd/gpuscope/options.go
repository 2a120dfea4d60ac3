package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/cmd/gpuscope/traces"
	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/model/arch"
	"gpuscope/model/executions"
	"gpuscope/model/sample"
	"gpuscope/ops"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// modelOptions holds the model and the flags of every command that runs a model.
type modelOptions struct {
	path        string   // "" for the model embedded in the program
	tokenizer   string   // path of another vocabulary, or "" for the model's own
	method      string   // method of an ExecuTorch program, or "" for the default (see --method)
	dataFiles   []string // files with constants of an ExecuTorch program
	device      string
	context     int
	maxChunk    int
	topLogits   int
	topDefault  int // default of topLogits
	sampling    sample.Sampling
	chat        bool
	system      string
	fuse        string // "on", "off" or names of rules
	quantize    string // "q4", or "" to keep the stored weights
	groupSize   int    // group size of the quantization
	ignoreEOS   bool
	pipelined   bool // a step may begin before the CPU reads the token of the previous step
	static      bool
	check       bool
	routes      []string // KIND[@OP]=ROUTE
	shaders     string   // folder with kernel sources, or ""
	timing      *cli.Choice
	propagation *cli.Choice
	kv          *cli.Choice
	limits      *cli.Choice // device limits to assume without a device; nil if a device is needed
}

// declareModelFlags declares the flags of every command that runs a model. The first timing level is the
// default.
func declareModelFlags(flags *pflag.FlagSet, levels ...string) *modelOptions {
	o := &modelOptions{}
	o.declareShape(flags,
		"run on adapter `N|NAME`, its number or a part of its name (default the best adapter, see gpuscope devices)")
	o.timing = cli.ChoiceFlag(flags, "timing", "measure GPU times at timing `LEVEL`", levels...)
	o.propagation = cli.ChoiceFlag(flags, "propagation", "after a resize, re-plan operators in `ORDER`",
		graph.Topological.String(), graph.Fixpoint.String())
	flags.StringArrayVar(&o.routes, "route", nil,
		"run all operators of a kind, or only those named OP (attn.q, layers.0.attn.q), on this route or kernel: "+
			"`KIND[@OP]=ROUTE` (may be repeated)")
	flags.StringVar(&o.shaders, "shaders", "",
		"run kernel NAME from the source file `DIR`/NAME.wgsl, if that file exists (docs/guide/lab.md)")
	flags.BoolVar(&o.static, "static", false,
		"run every operator with its largest grid, to measure how much time resizing saves")
	flags.BoolVar(&o.check, "check", false,
		"re-plan every operator before each submit, and fail if a plan was out of date")
	flags.StringVar(&o.tokenizer, "tokenizer", "",
		"read the vocabulary from `FILE`: a tokenizer.json, a tokenizer.model or a GGUF file (default the model's own)")
	flags.BoolVar(&o.ignoreEOS, "ignore-eos", false, "continue after the model's end token")
	return o
}

// declareTop declares the flag for the number of logits that a step reports.
func (o *modelOptions) declareTop(flags *pflag.FlagSet, n int) {
	o.topDefault = n
	flags.IntVar(&o.topLogits, "top-logits", n,
		"report the `K` highest logits of each step; above 64 all logits are read back, which is slower")
}

// declareSampling declares the flags for sampling a token.
func (o *modelOptions) declareSampling(flags *pflag.FlagSet) {
	s := &o.sampling
	flags.Float64Var(&s.Temperature, "temp", 0,
		"sample at temperature `T`; 0 picks the highest logit and ignores --top-k, --top-p, --min-p and --seed")
	flags.IntVar(&s.TopK, "top-k", 40, "sample from the tokens with the `K` highest logits; 0 for all tokens")
	flags.Float64Var(&s.TopP, "top-p", 0.95, "sample from the most likely tokens whose probabilities add up to `P`; 1 for all tokens")
	flags.Float64Var(&s.MinP, "min-p", 0.05, "sample from tokens that are at least `P` times as likely as the most likely token; 0 for all tokens")
	flags.Uint32Var(&s.Seed, "seed", 0, "random seed `N`: the same seed gives the same text, or the same random inputs of a program")
	flags.Float64Var(&s.RepeatPenalty, "repeat-penalty", 1,
		"apply the penalty factor `F` to tokens that occur in the recent text; 1 for no penalty")
	flags.IntVar(&s.RepeatLastN, "repeat-last-n", 64, "apply --repeat-penalty to tokens that occur among the last `N` tokens, prompt included; -1 for the whole text")
}

func (o *modelOptions) declareChat(flags *pflag.FlagSet) {
	flags.BoolVar(&o.chat, "chat", false,
		"treat prompts as turns of a conversation and apply the model's chat template")
	flags.StringVar(&o.system, "system", "", "start conversations with the system message `TEXT`")
}

// declareShape declares the flags that determine the size of a graph.
func (o *modelOptions) declareShape(flags *pflag.FlagSet, device string) {
	flags.StringVar(&o.device, "device", "", device)
	flags.StringVar(&o.method, "method", "",
		"use method `NAME` of an ExecuTorch program (default: the method forward or, if there is none, the only method that reads tokens or has instructions)")
	flags.StringArrayVar(&o.dataFiles, "data", nil,
		"read weights of an ExecuTorch program from the .ptd `FILE` (may be repeated)")
	flags.Var((*cli.Positive)(&o.context), "context", "allocate `N` positions in the KV cache "+
		fmt.Sprintf("(default the context of the model, at most %s)", table.Integer(arch.DefaultContext)))
	flags.Var((*cli.Positive)(&o.maxChunk), "max-chunk",
		"split prompts into steps of at most `N` tokens (default 512 or, if that is smaller, the context)")
	o.kv = cli.ChoiceFlag(flags, "kv", "store the KV cache as `TYPE`", "f32", "f16")
	flags.StringVar(&o.quantize, "quantize", "",
		"quantize F32, F16 and BF16 matrices to `q4` (4 bits, one scale per group) when they are loaded")
	cli.SetWords(flags, "quantize", "q4")
	flags.Var((*cli.Positive)(&o.groupSize), "group-size", "with --quantize, use one scale for each group of `32|64|128` columns (default 32)")
	cli.SetWords(flags, "group-size", "32", "64", "128")
	flags.StringVar(&o.fuse, "fuse", "on", "fuse operators with `RULES`: on, off, or names separated by commas"+
		fusionNames()+"; some rules only match operators that another rule has fused (docs/internals/engine.md)")
	rules := []string{"on", "off"}
	for _, r := range ops.Fusions {
		rules = append(rules, r.Name)
	}
	cli.SetWords(flags, "fuse", rules...)
}

// declareLimits declares the flag for the device limits that are assumed without a device.
func (o *modelOptions) declareLimits(flags *pflag.FlagSet) {
	var names, docs []string
	for _, set := range gpu.LimitSets {
		names, docs = append(names, set.Name), append(docs, "those "+set.Doc)
	}
	o.limits = cli.ChoiceFlag(flags, "limits",
		"with --device none, plan for `LIMITS`, "+printable.Choice(docs), names...)
}

// limitSet returns the device limits that are assumed without a device.
func (o *modelOptions) limitSet() gpu.LimitSet {
	i := 0
	if o.limits != nil {
		i = slices.Index(o.limits.Words, o.limits.Value)
	}
	return gpu.LimitSets[i]
}

// fusionNames lists the names of the fusion rules for the help.
func fusionNames() string {
	if len(ops.Fusions) == 0 {
		return ""
	}
	names := make([]string, len(ops.Fusions))
	for i, r := range ops.Fusions {
		names[i] = r.Name
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// validate checks the flags and the operand without opening the model.
func (o *modelOptions) validate(operands []string) (err error) {
	if err := o.checkFlags(); err != nil {
		return err
	}
	o.path, err = findModel(operands)
	return err
}

// checkFlags returns an error if a flag is invalid.
func (o *modelOptions) checkFlags() error {
	if o.topLogits < 0 {
		return cli.Usagef("--top-logits %d: want 0 or more", o.topLogits)
	}
	if o.system != "" && !o.chat {
		return cli.Usagef("--system: needs --chat")
	}
	if err := o.sampling.Check(); err != nil {
		return asUsage(err)
	}
	if o.limits != nil {
		if err := o.limits.Check(); err != nil {
			return err
		}
		if set := o.limits.Value; set != gpu.LimitSets[0].Name && o.device != trace.NoDevice {
			return cli.Usagef("--limits %s: needs --device none", set)
		}
	}
	if _, err := graph.SelectFusions(ops.Fusions, o.fuse); err != nil {
		return cli.Usagef("--fuse: %v", err)
	}
	for _, r := range o.routes {
		if kind, route, ok := strings.Cut(r, "="); !ok || kind == "" || route == "" {
			return cli.Usagef("--route %q: want KIND=ROUTE or KIND@OP=ROUTE; docs/reference/operators.md lists kinds and routes", r)
		}
	}
	if o.shaders != "" && o.device == trace.NoDevice {
		return cli.Usagef("--shaders: has no effect with --device none, because no kernel runs")
	}
	if o.timing != nil { // the command runs the model
		if err := cmp.Or(o.timing.Check(), o.propagation.Check()); err != nil {
			return err
		}
	}
	return o.kv.Check()
}

// forModel converts the flags to the options of package model.
func (p *program) forModel(o *modelOptions) (model.Options, error) {
	out := model.Options{
		Path: o.path, Method: o.method, Data: o.dataFiles, Tokenizer: o.tokenizer,
		Driver: p.driver, Device: o.device, Context: o.context,
		MaxChunk:  o.maxChunk,
		Limits:    o.limitSet(),
		TopLogits: o.topLogits, TopLogitsAny: o.topLogits == o.topDefault,
		Sampling: o.sampling, System: o.system, Fuse: o.fuse,
		Quantize: o.quantize, GroupSize: o.groupSize,
		Cache:     p.cache,
		Pipelined: o.pipelined,
		IgnoreEOS: o.ignoreEOS, Check: o.check, Producer: producer(), Shaders: o.shaders,
		Command: append([]string{"gpuscope"}, p.asTyped()...),
	}
	out.Live.Static = o.static
	out.HalfKV = o.kv != nil && o.kv.Value == "f16"
	for _, r := range o.routes {
		kind, route, _ := strings.Cut(r, "=")
		if out.Routes == nil {
			out.Routes = map[string]string{}
		}
		out.Routes[kind] = route
	}
	if o.propagation != nil && o.propagation.Value == graph.Fixpoint.String() {
		out.Live.Order = graph.Fixpoint
	}
	if o.timing != nil {
		level, err := engine.ParseTiming(o.timing.Value)
		if err != nil {
			return out, err
		}
		out.Timing = level
	}
	return out, nil
}

// asTyped returns the arguments that the user typed, after the flags that settle added. In the engine
// process, it leaves out the engine command at the beginning.
func (p *program) asTyped() []string {
	if len(p.Args) > 0 && p.Args[0] == engineName {
		return p.Args[1:]
	}
	return p.Args
}

// opener opens a model on a device.
type opener func(ctx context.Context, o *modelOptions, emit func(session.Event)) (session.Session, error)

// openModel opens a model in this process.
func (p *program) openModel(ctx context.Context, o *modelOptions, emit func(session.Event)) (session.Session,
	error,
) {
	if executes, err := executesMethod(o); err != nil {
		return nil, err
	} else if executes {
		return p.openExecutions(ctx, o, executions.Options{}, emit)
	}
	options, err := p.forModel(o)
	if err != nil {
		return nil, err
	}
	return model.Open(ctx, options, emit)
}

// findModel checks the model operand before anything is started. Without an operand it returns "", which
// means the embedded model.
func findModel(operands []string) (string, error) {
	if len(operands) == 0 {
		return "", nil
	}
	path := operands[0]
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		if _, err := os.Stat(filepath.Join(path, "config.json")); err != nil {
			return "", fmt.Errorf("%s: the folder has no config.json; want a .gguf or .pte file, or the folder of a Hugging Face model", path)
		}
		return path, nil
	case err == nil:
		return path, nil
	case !os.IsNotExist(err):
		return "", err
	case strings.ContainsAny(path, `./\`):
		return "", fmt.Errorf("%s: no such file", path)
	}
	all := new(program).commands()
	names := all.Names()
	if slices.Contains(names, path) {
		return "", cli.Usagef("%q is a command, not a file: write the command before the flags", path)
	}
	if slices.Contains(all.Subcommands("trace"), path) {
		return "", cli.Usagef("%q is neither a command nor a file; did you mean trace %[1]s?", path)
	}
	return "", cli.Usagef("%q is neither a command nor a file%s", path, cmp.Or(traces.Elsewhere[path], cli.Suggest(path, names, "")))
}
