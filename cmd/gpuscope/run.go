package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/report/advice"
	"gpuscope/trace/report/costtable"
	"gpuscope/trace/report/phases"
	"gpuscope/trace/table"
)

// defaultPrompt is the prompt of a run if none was given.
const defaultPrompt = "Once upon a time"

func runCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "run", Operand: "[MODEL]",
		Doc: "run a model without a screen: print the generated text, then the profile",
		More: `MODEL is a .gguf file, a Hugging Face folder with config.json and *.safetensors (docs/guide/models.md lists the
architectures), or an ExecuTorch program (.pte, .bpte); without MODEL, the command runs the embedded demo model. A program
that is not a language model, or any program with --input, --live or --output-dir, is executed -n times (default once); its inputs and outputs are arrays
(docs/guide/programs.md).
Each token is the one with the highest logit or, with --temp, a sampled token. Sampling applies, in this order: the repeat
penalty, top-k, top-p, min-p, temperature. The GPU finds the 64 highest logits; if more are needed (--top-k 0 or above 64,
or a penalty), all logits are read back, which is slower.
At --timing step and off, steps are pipelined: a step begins before the CPU has read the previous token. This requires that each
token is the one with the highest logit, and that --top-logits, --break and --check are not used. The profile says whether
the steps were pipelined or stepped.
Text and profile go to standard output, progress and warnings to standard error. A pipe gets every byte of the text,
including an incomplete last character. A terminal gets no control characters. A terminal and JSON get U+FFFD for each
byte that is not UTF-8.`,
		Examples: []cli.Example{
			{
				`gpuscope run -p "Once upon a time" -n 48`,
				"generate 48 tokens with the embedded model, then print the cost of each part of the last step",
			},
			{
				`gpuscope run --timing dispatch --profile off`, "print the profile of all steps, with the isolated time of each dispatch",
			},
			{
				`gpuscope run --cost 'attn.q,attn.k,attn.v' --trace run.json`,
				"also measure the cost of all q, k and v projections of all layers together",
			},
			{`gpuscope run model.gguf --chat -p "Name three colors."`, "print the model's answer to one turn of a conversation"},
			{`gpuscope run --temp 0.8 --seed 7`, "sample tokens; another seed generates a different text"},
			{`gpuscope run model.gguf --timing off -n 200`, "run at full speed: measure only wall times"},
			{
				`gpuscope run --ids 0,47,11 --top-logits 5 --format json`,
				"use token ids as the prompt, and print tokens and logits as JSON, for a program",
			},
			{
				`gpuscope run --chunks 40,1,7 --trace run.json`,
				"read the prompt in steps of 40, 1, 7, 7, ... tokens, and record the run",
			},
			{
				`gpuscope run --break nan --break 'kernel gemv' --trace run.json`,
				"stop at the first of these two breakpoints, and record the steps until then",
			},
			{
				`gpuscope run program.pte --input a.npy --input b.npy --output-dir out`,
				"execute a program with two arrays, and write out/out0.npy, out/out1.npy, ...",
			},
			{
				`gpuscope run program.pte --live 0.0=7 -n 5`,
				"execute a program five times with random inputs, where dim 0 of input 0 has the size 7",
			},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			var r run
			flags.StringVarP(&r.prompt, "prompt", "p", defaultPrompt,
				"prompt `TEXT`; starts with the BOS token if the model's file requires BOS")
			flags.IntSliceVar(&r.ids, "ids", nil, "use the token ids `0,47,..` as the prompt instead of a text")
			flags.IntVarP(&r.tokens, "tokens", "n", 64, "generate `N` tokens, or execute the method of a program N times")
			flags.IntSliceVar(
				&r.chunks, "chunks", nil,
				"read the prompt in steps of `40,1,7` tokens; all further steps have the last number of tokens (default: steps as large as possible)")
			flags.StringArrayVar(&r.conditions, "break", nil,
				"stop after the first step, prefill or decode, that meets `CONDITION`: "+session.BreakWords()+
					" (may be repeated)")
			r.trace.declare(flags)
			r.format = cli.FormatFlag(flags, "text", "json")
			r.model = declareModelFlags(flags, "step", "block", "dispatch", "off")
			r.model.pipelined = true
			r.profiling = declareProfiling(flags)
			r.model.declareTop(flags, 0)
			r.model.declareSampling(flags)
			r.model.declareChat(flags)
			r.inputs = declareInputs(flags)
			return func(ctx context.Context, operands []string) error {
				if executes, err := r.executes(operands); err != nil {
					return err
				} else if executes {
					return r.execute(ctx, p, flags, operands)
				}
				r.byText = !flags.Changed("ids")
				r.profiling.asked = flags.Changed("profile") || flags.Changed("cost")
				if flags.Changed("prompt") && flags.Changed("ids") {
					return cli.Usagef("-p and --ids cannot be combined: give only one of them")
				}
				if r.model.chat && (!flags.Changed("prompt") || r.prompt == "") {
					return cli.Usagef("--chat needs a message: give it with -p TEXT")
				}
				if err := cmp.Or(r.trace.check(flags), r.validate(operands)); err != nil {
					return err
				}
				return r.run(ctx, p)
			}
		},
	}
}

// run holds the arguments of one run command.
type run struct {
	prompt      string
	byText      bool // whether the prompt is a text; otherwise ids holds its token ids
	ids, chunks []int
	tokens      int
	conditions  []string // breakpoints as typed
	breaks      []session.Break
	trace       recordingFlags
	format      *cli.Choice
	model       *modelOptions
	profiling   *profiling
	inputs      *inputOptions
	program     *programRun // nil unless a method of a program is executed
}

func (r *run) validate(operands []string) error {
	if r.tokens < 0 {
		return cli.Usagef("-n %d: want 0 or more", r.tokens)
	}
	for _, id := range r.ids {
		if id < 0 {
			return cli.Usagef("--ids %d: want token ids of 0 or more", id)
		}
	}
	if !r.byText && len(r.ids) == 0 {
		return cli.Usagef("--ids: want at least one token id")
	}
	for _, n := range r.chunks {
		if n < 1 {
			return cli.Usagef("--chunks %d: want 1 token or more", n)
		}
		if limit := r.model.maxChunk; limit > 0 && n > limit {
			return cli.Usagef("--chunks %d: want at most %d, the value of --max-chunk", n, limit)
		}
	}
	for _, text := range r.conditions {
		b, err := session.ParseBreak(text)
		if err != nil {
			return cli.Usagef("--break: %v", err)
		}
		r.breaks = append(r.breaks, b)
	}
	if err := cmp.Or(r.format.Check(), r.profiling.check()); err != nil {
		return err
	}
	if err := r.model.validate(operands); err != nil {
		return err
	}
	if r.model.device == trace.NoDevice {
		return cli.Usagef("run needs a device, so --device none cannot be used. To step through the plan, use gpuscope --device none; to print the plan at any shape, use gpuscope graph --at M,POS")
	}
	return nil
}

// run opens the model, generates the tokens and prints the results. A run that fails or is stopped still
// prints and records its results so far.
func (r *run) run(ctx context.Context, p *program) error {
	recorder, err := p.record(ctx, r.trace.path, r.trace.options)
	if err != nil {
		return err
	}
	progress := newProgress(p)
	s, err := r.open(ctx, p, progress.opening)
	progress.done()
	if err != nil {
		recorder.cancel()
		return asUsage(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := &output{
		p: p, run: r, stop: stop, recorder: recorder, mirror: session.Mirror{Budget: keptBytes},
		took: make(chan struct{}, 1), progress: newProgress(p),
	}
	var draining sync.WaitGroup
	draining.Go(func() {
		for e := range s.Events() {
			out.take(e)
		}
		close(out.took)
	})
	var reply session.Reply
	if err = cmp.Or(r.profiling.nameable(ctx, out), r.meetable(ctx, out)); err == nil {
		reply, err = r.generate(ctx, s)
	}
	out.hit, out.whole = reply.Hit, err == nil
	if err == nil && r.measures() && reply.Step >= 0 {
		var t *trace.Trace
		if t, err = out.upTo(ctx, reply.Step); err == nil {
			out.measured, err = r.profiling.measure(ctx, s, t)
		}
	}
	err = errors.Join(err, s.Close())
	draining.Wait()
	out.progress.done()
	if _, wrong := errors.AsType[cli.UsageError](err); wrong || errors.Is(err, session.ErrUsage) {
		recorder.cancel()
		return asUsage(err)
	}
	if out.err != nil {
		err = nil // out.finish returns out.err, the reason why the run stopped
	}
	return errors.Join(err, out.finish())
}

// open opens the model or the program.
func (r *run) open(ctx context.Context, p *program, emit func(session.Event)) (session.Session, error) {
	if r.program != nil {
		return r.program.open(ctx, p, emit)
	}
	return p.open(ctx, r.model, emit)
}

// meetable returns an error if there is a breakpoint that no step of the model can ever meet. It is called
// before any step runs.
func (r *run) meetable(ctx context.Context, out *output) error {
	if len(r.breaks) == 0 {
		return nil
	}
	t, err := out.await(ctx, func(*trace.Trace) bool { return true })
	if err != nil {
		return err
	}
	for _, b := range r.breaks {
		if err := b.CheckIn(t); err != nil {
			return cli.Usagef("--break: %v", err)
		}
	}
	return nil
}

// measures reports whether the run measures anything after the text. With JSON output it only measures if the
// user requested it with a flag.
func (r *run) measures() bool {
	return r.profiling.kind.Value != "off" &&
		(r.format.Value == "text" || r.trace.path != "" || r.profiling.asked)
}

// generate generates the text: it sends the prompt and then a run command to the session. It returns the
// reply to the last command that generated tokens.
func (r *run) generate(ctx context.Context, s session.Session) (session.Reply, error) {
	prompt := session.Command{Kind: session.Prompt, Chunks: r.chunks, N: r.tokens, Breaks: r.breaks}
	if r.byText {
		prompt.Text, prompt.Chat = r.prompt, r.model.chat
	} else {
		prompt.Tokens = r.ids
	}
	reply, err := s.Do(ctx, prompt)
	if err != nil {
		return reply, err
	}
	if r.tokens > 1 && reply.Hit == nil { // the prompt already generated the first token
		// The text may already have ended. The session then refuses to continue, which is not an error here.
		rest := session.Command{Kind: session.Run, N: r.tokens - 1, Breaks: r.breaks}
		if reply, err = s.Do(ctx, rest); err != nil && !errors.Is(err, session.ErrUsage) {
			return reply, err
		}
	}
	if r.model.timing.Value == string(trace.TimingDispatch) && (r.format.Value == "text" ||
		r.trace.path != "") {
		// Measure the overhead of timing. A device without timestamps refuses this command. That is no error,
		// because timing without timestamps has no overhead.
		if _, err := s.Do(ctx, session.Command{Kind: session.Observe}); err != nil &&
			!errors.Is(err, session.ErrUsage) {
			return reply, err
		}
	}
	return reply, nil
}

// asUsage converts an error about an invalid request to a cli.UsageError, so that the exit status is 2.
func asUsage(err error) error {
	if errors.Is(err, session.ErrUsage) {
		return cli.Usage(err.Error())
	}
	return err
}

// output consumes the events of a run. It prints text as it arrives, records the trace, and finally prints
// the profile or one JSON object.
type output struct {
	p    *program
	run  *run
	stop context.CancelFunc // ends the run if its output cannot be written

	mu       sync.Mutex    // protects all other fields, because events arrive in another goroutine
	took     chan struct{} // signals a new event; closed after the last event
	progress *progress     // progress of the measurements
	mirror   session.Mirror
	tally    rates.Tally  // statistics over all steps
	steps    []resultStep // all steps, for JSON output
	wrote    bool         // some text was written
	// textEnded reports that the whole text was written.
	textEnded bool
	hit       *trace.Event // event of the breakpoint that ended the text
	whole     bool         // the text was generated without an error
	measured  bool         // the last step was measured
	err       error
	recorder  *recording
	recorded  error
}

// keptBytes is the maximum size of the steps that are kept in memory. If it is exceeded, the oldest steps are
// dropped. This loses no statistics, because each step is added to them when it arrives.
const keptBytes = 16 << 20

// apply adds an event to the mirror, and the times of repeated steps to the statistics.
func (o *output) apply(e session.Event) error {
	repeated := map[int]func(*trace.Trace, *trace.Step){}
	for i := range e.Records {
		if r := e.Records[i].Samples; r != nil {
			if s := o.mirror.Trace.Step(r.Step); s != nil {
				repeated[r.Step] = o.tally.Repeating(o.mirror.Trace, s)
			}
		}
	}
	err := o.mirror.Apply(e)
	for step, add := range repeated {
		if s := o.mirror.Trace.Step(step); s != nil {
			add(o.mirror.Trace, s)
		}
	}
	return err
}

func (o *output) take(e session.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.apply(e)
	if o.textEnded {
		o.progress.show(e)
	}
	select {
	case o.took <- struct{}{}:
	default:
	}
	if err != nil && o.err == nil {
		o.err = err
		o.stop()
	}
	o.progress.log(e)
	for i := range e.Records {
		if s := e.Records[i].Step; s != nil && o.err == nil {
			t := o.mirror.Trace
			o.tally.Add(t, &t.Steps[len(t.Steps)-1]) // this is the event's step: an event has at most one
			if o.run.format.Value == "json" {
				o.steps = append(o.steps, o.run.resultStep(s))
			}
			o.write(s.Text)
		}
	}
	if o.recorded == nil {
		o.recorded = o.recorder.take(e)
	}
}

// endText ends the text with a newline, so that later output is on separate lines.
func (o *output) endText() {
	if o.textEnded {
		return
	}
	o.textEnded = true
	o.write(o.mirror.State.Unfinished)
	if o.wrote {
		o.write("\n")
	}
}

// upTo waits until the current command has finished and the trace contains the step with the given index. It
// returns the trace and ends the printed text with a newline.
func (o *output) upTo(ctx context.Context, step int) (*trace.Trace, error) {
	return o.await(ctx, func(t *trace.Trace) bool {
		there := !o.mirror.State.Running && len(t.Steps) > 0 && t.Steps[len(t.Steps)-1].Index >= step
		if there {
			o.endText()
		}
		return there
	})
}

// await waits until the trace satisfies a condition, and then returns the trace.
func (o *output) await(ctx context.Context, there func(*trace.Trace) bool) (*trace.Trace, error) {
	for more := true; ; {
		o.mu.Lock()
		t := o.mirror.Trace
		ready := t != nil && there(t)
		o.mu.Unlock()
		switch {
		case ready:
			return t, nil
		case !more:
			return nil, errors.New("the session has ended")
		}
		select {
		case _, more = <-o.took:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// write prints text as it arrives.
func (o *output) write(text string) {
	if o.run.format.Value != "text" || o.run.tokens == 0 || o.err != nil {
		return
	}
	if _, o.err = io.WriteString(o.p.Stdout, text); o.err != nil {
		o.stop()
	}
	o.wrote = o.wrote || text != ""
}

// finish prints the final output and completes the trace file.
func (o *output) finish() error {
	if o.mirror.Trace == nil {
		o.recorder.cancel()
		return nil
	}
	o.recorded = o.recorder.close()
	if o.err == nil {
		o.err = o.print()
	}
	if o.recorded != nil {
		return o.recorded
	}
	return o.err
}

func (o *output) print() error {
	if r := o.run.program; r != nil && o.whole {
		if err := r.writeOutputs(); err != nil {
			return err
		}
	}
	if o.run.format.Value == "json" {
		if why := o.run.profiling.uncosted(o.mirror.Trace); why != "" {
			fmt.Fprintf(o.p.Stderr, "warn: no costs were measured: %s\n", why)
		}
		if o.run.program != nil {
			return cli.WriteJSON(o.p.Stdout, o.run.program.result(o))
		}
		return cli.WriteJSON(o.p.Stdout, o.result())
	}
	var b strings.Builder
	if o.endText(); o.err != nil {
		return o.err
	}
	if o.wrote {
		b.WriteString("\n")
	}
	switch {
	case o.hit != nil:
		b.WriteString(printable.Clean(fmt.Sprintf("ended after step %d: %s", o.hit.Step, o.hit.Text)) + "\n")
	case len(o.run.breaks) > 0 && o.whole:
		b.WriteString("no breakpoint was reached\n")
	}
	t := o.mirror.Trace
	b.WriteString(printable.Clean(fmt.Sprintf("%s on %s (%s, %s)", t.Model.Name, t.Device.Name,
		t.Device.Backend, t.Device.AdapterType)) + "\n")
	if o.run.model.quantize != "" {
		b.WriteString(printable.Clean(t.Model.Quantization) + "\n")
	}
	x := analyze.NewIndex(t)
	if o.run.program != nil {
		o.run.program.print(&b)
	}
	if err := o.printProfile(&b, x); err != nil {
		return err
	}
	if o.run.program != nil && len(t.Steps) > 0 {
		b.WriteString("\n")
		if err := report.Print(context.Background(), x, &b, "dispatches", "text", 0,
			analyze.Options{Selection: x.Phase(trace.Execute)}); err != nil {
			return err
		}
	}
	if o.run.model.topLogits > 0 {
		b.WriteString("\n")
		if err := report.Print(context.Background(), x, &b, "candidates", "text", 0,
			analyze.Options{}); err != nil {
			return err
		}
	}
	_, err := io.WriteString(o.p.Stdout, b.String())
	return err
}

// printProfile prints what to fix first, how fast the run was, how long each kernel took (if kernels were
// timed), and what each part of the last step costs. If no costs were measured, it prints isolated times
// instead of costs. The last table shows groups of dispatches, such as layers and kinds of operators.
func (o *output) printProfile(w io.Writer, x *analyze.Index) error {
	ctx, profile := context.Background(), o.tally.Profile(x)
	if err := o.printHeadline(ctx, w, x); err != nil {
		return err
	}
	tables := []*table.Table{phases.Speed(profile)}
	if profile.Timed() {
		tables = append(tables, phases.Kernels(profile))
	}
	if o.measured {
		costs, err := costtable.Parts(ctx, x, analyze.Selection{})
		if err != nil {
			return err
		}
		more := cmp.Or(o.run.profiling.uncosted(x.Trace), fewRounds(x.Trace))
		costs.Title = append(costs.Title, table.Title(table.Say(0, "%s", more)))
		groups, err := costtable.Groups(ctx, x, analyze.Selection{})
		if err != nil {
			return err
		}
		tables = append(tables, costs, groups)
	}
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		rows, err := t.Select(ctx, table.Selection{})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.Print(ctx, w, "text", rows, 0); err != nil {
			return err
		}
	}
	return nil
}

// printHeadline prints what to fix first, how much faster this makes the model, and how the numbers were
// obtained. It prints nothing if no dispatch was timed and nothing was measured.
func (o *output) printHeadline(ctx context.Context, w io.Writer, x *analyze.Index) error {
	selection := headline.Steps(x)
	if len(selection.Steps) == 0 {
		return nil
	}
	h, err := headline.Of(ctx, x, selection)
	if err != nil || h.First == nil && !o.measured {
		return err
	}
	said := advice.Of(h)
	for _, line := range append([]string{said.First, said.Gain}, said.Basis...) {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, printable.Clean(line)); err != nil {
			return err
		}
	}
	return nil
}

// result is the JSON object that --format json prints.
type result struct {
	PromptTokens []int        `json:"prompt_tokens"` // including BOS
	Tokens       []int        `json:"tokens"`        // generated tokens
	Text         string       `json:"text"`
	Steps        []resultStep `json:"steps"`
	Timings      timings      `json:"timings"`
	// Quantized describes the effect of --quantize, as in a trace.
	Quantized *trace.Quantized `json:"quantized,omitempty"`
	// Hit is the event of the breakpoint that ended the text.
	Hit *trace.Event `json:"hit,omitempty"`
	// Costs holds the measured costs of parts of the last step, as in a trace.
	Costs *trace.Costs `json:"costs,omitempty"`
}

type resultStep struct {
	Position int  `json:"position"`
	Live     int  `json:"live"` // number of input tokens
	Token    *int `json:"token,omitempty"`
	// Top lists the tokens with the highest logits. Only the fields ID and Logit of each candidate are set.
	// A logit that is not finite is written as a word, as in a trace.
	Top []trace.Candidate `json:"top,omitempty"`

	execution executionStep // fields of a step that executes a program
}

// timings holds the measured rates of a run. They cover the warm steps or, if no step was warm, all steps. A
// rate that was not measured is omitted.
type timings struct {
	PrefillTokensPerS float64 `json:"prefill_tokens_per_s,omitempty"`
	DecodeTokensPerS  float64 `json:"decode_tokens_per_s,omitempty"`
	// PrefillWarmTokensPerS is the rate of the prompt's last chunk, measured when the chunk was run again
	// after the text.
	PrefillWarmTokensPerS float64      `json:"prefill_warm_tokens_per_s,omitempty"`
	Timing                trace.Timing `json:"timing"`
	// DecodeMode is "stepped" or "pipelined": how the decode steps of DecodeTokensPerS ran.
	DecodeMode string `json:"decode_mode,omitempty"`
}

func (r *run) resultStep(s *trace.Step) resultStep {
	step := resultStep{Position: s.Position, Live: len(s.Tokens)}
	step.execution = executionStep{WallNS: s.CPU.TotalNS, Cold: s.Cold}
	if s.GPU != nil {
		step.execution.GPUNS = s.GPU.SpanNS
	}
	if r.tokens > 0 {
		step.Token = s.Token
		for _, c := range s.Top {
			step.Top = append(step.Top, trace.Candidate{ID: c.ID, Logit: c.Logit})
		}
	}
	return step
}

// costs returns the costs of the last step whose costs were measured, or nil if there is no such step.
func (o *output) costs() (c *trace.Costs) {
	for i := range o.mirror.Trace.Steps {
		if s := &o.mirror.Trace.Steps[i]; len(s.Costs) > 0 && s.Whole != nil {
			c = &trace.Costs{Step: s.Index, Whole: *s.Whole, Costs: s.Costs}
		}
	}
	return c
}

func (o *output) result() result {
	res := result{
		PromptTokens: []int{}, Tokens: []int{}, Steps: append([]resultStep{}, o.steps...),
		Timings: timings{Timing: o.mirror.State.Timing}, Hit: o.hit,
		Quantized: o.mirror.Trace.Model.Quantized,
	}
	profile := o.tally.Profile(analyze.NewIndex(o.mirror.Trace))
	if r := profile.Rate(trace.Prefill); r != nil {
		res.Timings.PrefillTokensPerS = r.TokensPerS
	}
	if r := profile.Rate(trace.Decode); r != nil {
		res.Timings.DecodeTokensPerS, res.Timings.DecodeMode = r.TokensPerS, r.Mode
	}
	if w, ok := profile.Warm(); ok {
		res.Timings.PrefillWarmTokensPerS = w.TokensPerS()
	}
	res.Costs = o.costs()
	for _, token := range o.mirror.Text.Prompt {
		res.PromptTokens = append(res.PromptTokens, token.ID)
	}
	if o.run.tokens == 0 {
		return res
	}
	var text strings.Builder
	for _, token := range o.mirror.Text.Given {
		res.Tokens = append(res.Tokens, token.ID)
		text.WriteString(token.Text)
	}
	text.WriteString(o.mirror.State.Unfinished)
	res.Text = text.String()
	return res
}
