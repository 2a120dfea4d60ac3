package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// playBack returns a program whose models all replay the same recording: a prefill of 42 tokens and five
// decode steps.
func playBack(t *testing.T, script tuitest.Script) (p *program, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	p = testProgram(stdout, stderr)
	p.open = func(context.Context, *modelOptions, func(session.Event)) (session.Session, error) {
		return tuitest.Play(tracetest.Llama(2, 6), script), nil
	}
	return p, stdout, stderr
}

func TestRunPrintsTheTextAndThenTheProfile(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	if status := p.main(t.Context(), strings.Fields("run -n 4 --timing step")); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	want := tracetest.Llama(2, 4)
	var text strings.Builder
	for _, s := range want.Steps {
		text.WriteString(s.Text)
	}
	head, profile, ok := strings.Cut(stdout.String(), "\n\n")
	if !ok || head != text.String() {
		t.Errorf("text %q, want %q", head, text.String())
	}
	for _, line := range []string{
		"Llama-3.2-1B-Q4_0.gguf on NVIDIA H200 (vulkan, discrete",
		"decode step s5 takes 7.70 ms untimed and 9.05 ms timed", "rms_norm",
	} {
		if !strings.Contains(profile, line) {
			t.Errorf("the profile does not contain %q:\n%s", line, profile)
		}
	}
	if got := speedRows(profile); !slices.Equal(got, []speedRow{{"prefill", 1, 42}, {"decode", 3, 3}}) {
		t.Errorf("the speeds are %v:\n%s", got, profile)
	}
	if stderr.Len() > 0 || strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("stderr %q, stdout %q", stderr, stdout)
	}
}

func TestRunAsJSONHoldsPromptAndSteps(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	if status := p.main(t.Context(),
		strings.Fields("run -n 3 --format json --timing off")); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var got struct {
		PromptTokens []int `json:"prompt_tokens"`
		Tokens       []int
		Text         string
		Steps        []struct {
			Position, Live int
			Token          *int
			Top            []map[string]float64
		}
		Timings map[string]any
	}
	dec := json.NewDecoder(stdout)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := tracetest.Llama(2, 6)
	if len(got.PromptTokens) != tracetest.PromptTokens || len(got.Tokens) != 3 || len(got.Steps) != 3 {
		t.Fatalf("%d prompt tokens, %d tokens, %d steps", len(got.PromptTokens), len(got.Tokens),
			len(got.Steps))
	}
	text := ""
	for i, s := range got.Steps {
		w := want.Steps[i]
		text += w.Text
		if s.Position != w.Position || s.Live != len(w.Tokens) || *s.Token != *w.Token ||
			got.Tokens[i] != *w.Token || len(s.Top) != len(w.Top) {
			t.Errorf("step %d is %+v, want that of %+v", i, s, w)
		}
		for k, top := range s.Top {
			if len(top) != 2 || top["id"] != float64(w.Top[k].ID) || top["logit"] != w.Top[k].Logit {
				t.Errorf("step %d, candidate %d is %v", i, k, top)
			}
		}
	}
	if got.Text != text {
		t.Errorf("text %q, want %q", got.Text, text)
	}
	if got.Timings["decode_tokens_per_s"].(float64) <= 0 ||
		got.Timings["prefill_tokens_per_s"].(float64) <= 0 || got.Timings["timing"] == "" ||
		got.Timings["decode_mode"] != "stepped" {
		t.Errorf("timings: %v", got.Timings)
	}
}

func TestRunOfNoTokensHasNone(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	if status := p.main(t.Context(),
		strings.Fields("run -n 0 --format json --timing off")); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var got result
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tokens) != 0 || got.Text != "" || len(got.Steps) != 1 || got.Steps[0].Token != nil ||
		got.Timings.DecodeTokensPerS != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRecordedRunOpensAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run.json", "run.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), name)
		p, _, stderr := playBack(t, tuitest.Script{})
		if status := p.main(t.Context(),
			[]string{"run", "-n", "5", "--timing", "off", "--trace", path}); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		got, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Steps) != 5 || len(got.Plans) == 0 || got.Observer == nil {
			t.Errorf("%s has %d steps, %d plans, observer %v", name, len(got.Steps), len(got.Plans),
				got.Observer)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
			t.Errorf("files left: %q", left)
		}
	}
}

func TestUnwritableTraceIsRefusedBeforeRunning(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	p.open = func(context.Context, *modelOptions, func(session.Event)) (session.Session, error) {
		t.Error("a model was opened")
		return nil, errors.New("no")
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "no", "such", "folder.json")} {
		stderr.Reset()
		if status := p.main(t.Context(), []string{"run", "--trace", path}); status != exitFailed ||
			strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), path) {
			t.Errorf("--trace %s: exit %d, %q", path, status, stderr)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout: %q", stdout)
	}
}

func TestRunEndsAtABreakpointAndNamesIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	p, stdout, stderr := playBack(t, tuitest.Script{})
	args := []string{"run", "--break", "position 99", "--break", "position 44", "--trace", path}
	if status := p.main(t.Context(), args); status != exitDone || stderr.Len() > 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	if line := "\nended after step 2: breakpoint position 44\n"; !strings.Contains(stdout.String(), line) {
		t.Errorf("the output does not contain %q:\n%s", line, stdout)
	}
	if got := speedRows(stdout.String()); !slices.Contains(got, speedRow{"decode", 2, 2}) {
		t.Errorf("the speeds are %v:\n%s", got, stdout)
	}
	got, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	met := func(e trace.Event) bool { return e.Kind == "breakpoint" && e.Step == 2 }
	if !slices.ContainsFunc(got.Events, met) {
		t.Errorf("the trace has events %+v", got.Events)
	}
}

func TestRunStopsAtABreakpointInThePrompt(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	if status := p.main(t.Context(),
		[]string{"run", "--break", "position 3", "--format", "json"}); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var got result
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 1 || got.Hit == nil || got.Hit.Text != "breakpoint position 3" {
		t.Errorf("%d steps, hit %+v", len(got.Steps), got.Hit)
	}
}

func TestRunWithoutTheBreakpointSaysSo(t *testing.T) {
	t.Parallel()
	printed := func(args ...string) []string {
		p, stdout, stderr := playBack(t, tuitest.Script{})
		if status := p.main(t.Context(), append([]string{"run", "-n", "3"}, args...)); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		return slices.Collect(strings.Lines(stdout.String()))
	}
	without := printed()
	added := slices.DeleteFunc(printed("--break", "position 99"), func(line string) bool {
		return slices.Contains(without, line)
	})
	wordingtest.New(t).Text("added lines", strings.Join(added, ""))
}

func TestUnreachableBreakpointIsRefused(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		"position 100000": "want", "grid zzz": "no such operator",
	} {
		path := filepath.Join(t.TempDir(), "run.json")
		p, stdout, stderr := playBack(t, tuitest.Script{})
		status := p.main(t.Context(), []string{"run", "--break", condition, "--trace", path})
		if said := "--break: breakpoint " + condition + ": " + want; status != exitUsage ||
			stdout.Len() > 0 || !strings.Contains(stderr.String(), said) {
			t.Errorf("exit %d, %q, %s", status, stdout, stderr)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a trace was written", condition)
		}
	}
}

// A run that fails midway keeps its text, profile and trace.
func TestFailedRunKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	steps := 0
	p, stdout, stderr := playBack(t, tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if steps++; steps == 4 { // after the prompt and two tokens
			return errors.New("device lost")
		}
		return nil
	}})
	path := filepath.Join(t.TempDir(), "run.json")
	status := p.main(t.Context(),
		[]string{"run", "-n", "5", "--timing", "off", "--trace", path, "--break", "position 99"})
	if strings.Contains(stdout.String(), "no breakpoint") { // a later step might have reached it
		t.Errorf("the output of a failed run is:\n%s", stdout)
	}
	if status != exitFailed || stderr.String() != "gpuscope run: device lost\n" ||
		!slices.Contains(speedRows(stdout.String()), speedRow{"decode", 2, 2}) {
		t.Errorf("exit %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	if got, err := trace.ReadFile(path); err != nil || len(got.Steps) != 3 {
		t.Errorf("trace: %v", err)
	}
}

func TestRunStopsWhenItsOutputIsClosed(t *testing.T) {
	t.Parallel()
	steps := 0
	p, _, stderr := playBack(t, tuitest.Script{Before: func(ctx context.Context, _ session.Command) error {
		if steps++; steps > 1 {
			<-ctx.Done() // the text of the first step could not be written
			return ctx.Err()
		}
		return nil
	}})
	p.Stdout = brokenPipe{}
	if status := p.main(t.Context(), strings.Fields("run -n 5 --timing off")); status != exitDone ||
		stderr.Len() > 0 || steps > 2 {
		t.Errorf("exit %d, stderr %q, %d steps", status, stderr, steps)
	}
}

func TestRunSaysThatItsTextCannotBeWritten(t *testing.T) {
	t.Parallel()
	p, _, stderr := playBack(t, tuitest.Script{})
	p.Stdout = fullDisk{}
	if status := p.main(t.Context(), strings.Fields("run -n 5 --timing off")); status != exitFailed ||
		stderr.String() != "gpuscope run: no space left on device\n" {
		t.Errorf("exit %d, stderr %q", status, stderr)
	}
}

func TestRefusedPromptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "verify"} {
		p, stdout, stderr := playBack(t, tuitest.Script{Before: func(context.Context, session.Command) error {
			return session.Refusef("the prompt has 2000 tokens, the context holds 1024")
		}})
		path := filepath.Join(t.TempDir(), "run.json")
		if status := p.main(t.Context(), []string{command, "--trace", path}); status != exitUsage ||
			stdout.Len() > 0 {
			t.Errorf("%s: exit %d, stdout %q", command, status, stdout)
		}
		want := fmt.Sprintf("gpuscope %s: the prompt has 2000 tokens, the context holds 1024 "+
			"(gpuscope %[1]s -h shows how)\n", command)
		if stderr.String() != want {
			t.Errorf("%s: stderr %q", command, stderr)
		}
		if files, _ := os.ReadDir(filepath.Dir(path)); len(files) > 0 {
			t.Errorf("%s: files left: %v", command, files)
		}
		if name := p.unfinished.Load(); name != nil {
			t.Errorf("%s: a second signal would say that %s can be opened", command, *name)
		}
	}
}

// patched is a session whose events are changed by a test before they arrive.
type patched struct {
	session.Session
	events chan session.Event
}

func (p patched) Events() <-chan session.Event { return p.events }

// patch lets a test change every event of the program's sessions.
func patch(p *program, change func(*session.Event)) {
	open := p.open
	p.open = func(ctx context.Context, o *modelOptions, emit func(session.Event)) (session.Session, error) {
		s, err := open(ctx, o, emit)
		if err != nil {
			return nil, err
		}
		events := make(chan session.Event)
		go func() {
			defer close(events)
			for e := range s.Events() {
				if e.State != nil { // the session keeps its own copy
					e.State = new(*e.State)
				}
				e.Records = slices.Clone(e.Records)
				for i := range e.Records {
					if step := e.Records[i].Step; step != nil {
						e.Records[i].Step = new(*step)
					}
				}
				change(&e)
				events <- e
			}
		}()
		return patched{s, events}, nil
	}
}

func TestRunGivesTheBytesOfAnUnfinishedCharacter(t *testing.T) {
	t.Parallel()
	const first = "\xf0\x9f"
	unfinished := func(e *session.Event) {
		if e.State != nil {
			e.State.Unfinished = first
		}
	}
	for format, want := range map[string]string{"text": first + "\n\n", "json": `\ufffd\ufffd",`} {
		p, stdout, stderr := playBack(t, tuitest.Script{})
		patch(p, unfinished)
		if status := p.main(t.Context(),
			strings.Fields("run -n 3 --timing off --format "+format)); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: no %q in\n%s", format, want, stdout)
		}
		p, stdout, _ = playBack(t, tuitest.Script{})
		patch(p, unfinished)
		if p.main(t.Context(), strings.Fields("run -n 0 --timing off --format "+format)); strings.Contains(
			stdout.String(), want) {
			t.Errorf("%s: a run without tokens has text", format)
		}
	}
}

// If the logits become NaN, the output so far is kept, the JSON is valid, and the exit status reports the
// failure.
func TestRunWithNaNLogitsKeepsItsOutput(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		made, asked := 0, 0
		p, stdout, stderr := playBack(t, tuitest.Script{
			Before: func(context.Context, session.Command) error {
				if asked++; asked == 3 { // the first command is the prompt
					return errors.New("step 2 gives no token: NaN")
				}
				return nil
			},
		})
		patch(p, func(e *session.Event) {
			if e.State != nil {
				e.State.Given = min(e.State.Given, 1)
			}
			for _, r := range e.Records {
				if s := r.Step; s != nil {
					if made++; made == 2 {
						s.Token, s.Text = nil, ""
						s.Top = []trace.Candidate{{ID: 7, Logit: math.NaN(), P: math.NaN()}}
					}
				}
			}
		})
		status := p.main(t.Context(), strings.Fields("run -n 4 --timing off --format "+format))
		if status != exitFailed || !strings.Contains(stderr.String(), "step 2 gives no token: NaN") {
			t.Errorf("%s: exit %d: %s", format, status, stderr)
		}
		if format == "text" {
			if !slices.Contains(speedRows(stdout.String()), speedRow{"prefill", 1, 42}) {
				t.Errorf("no profile in %s", stdout)
			}
			continue
		}
		var got result
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
			t.Fatalf("%v in %s", err, stdout)
		}
		if len(got.Tokens) != 1 || len(got.Steps) != 2 || !math.IsNaN(got.Steps[1].Top[0].Logit) {
			t.Errorf("got %+v", got)
		}
	}
}

// However a run ends, --format json prints one complete object or nothing, and the exit status says how the
// run ended.
func TestJSONOfARunIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	after := func(n int, err error) tuitest.Script {
		return tuitest.Script{Before: func(context.Context, session.Command) error {
			if n--; n < 0 {
				return err
			}
			return nil
		}}
	}
	for _, c := range []struct {
		name   string
		script tuitest.Script
		status int
		steps  int // -1: no output
	}{
		{"done", tuitest.Script{}, exitDone, 5},
		{"failed midway", after(3, errors.New("device lost")), exitFailed, 3},
		{"failed at its first step", after(0, errors.New("device lost")), exitFailed, 0},
		{"refused", after(0, session.Refusef("the context holds 8")), exitUsage, -1},
		{"stopped", after(2, context.Canceled), exitFailed, 2},
	} {
		p, stdout, stderr := playBack(t, c.script)
		status := p.main(t.Context(), strings.Fields("run -n 5 --timing off --format json"))
		if status != c.status {
			t.Errorf("%s: exit %d, want %d: %s", c.name, status, c.status, stderr)
		}
		if c.steps < 0 {
			if stdout.Len() > 0 {
				t.Errorf("%s: printed %.80q", c.name, stdout)
			}
			continue
		}
		var got struct{ Steps []any }
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || len(got.Steps) != c.steps {
			t.Errorf("%s: %d steps, want %d: %v", c.name, len(got.Steps), c.steps, err)
		}
	}
}

// A run that streams its text keeps a bounded number of steps, but its profile covers all steps.
func TestLongRunTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	const steps = 4000
	p, stdout, _ := playBack(t, tuitest.Script{})
	recorded := tracetest.Llama(16, 3)
	head := *recorded
	head.Plans, head.Steps = nil, nil
	r := &run{tokens: 1, format: &cli.Choice{Value: "text"}, model: &modelOptions{}}
	o := &output{p: p, run: r, stop: func() {}, mirror: session.Mirror{Budget: keptBytes}}
	o.take(session.Event{Opened: &head})
	var records []trace.Record
	for i := range recorded.Plans {
		records = append(records, trace.Record{Plan: &recorded.Plans[i]})
	}
	o.take(session.Event{Records: append(records, trace.Record{Step: &recorded.Steps[0]})})
	for i := range steps {
		step := recorded.Steps[1]
		step.Index, step.Position, step.Dispatches = 1+i, 42+i, slices.Clone(step.Dispatches)
		o.take(session.Event{Records: []trace.Record{{Step: &step}}})
	}
	if err := o.finish(); err != nil {
		t.Fatal(err)
	}
	if kept := len(o.mirror.Trace.Steps); kept >= steps/2 {
		t.Errorf("%d of %d steps are kept", kept, steps)
	}
	if got := speedRows(stdout.String()); !slices.Equal(got, []speedRow{
		{"prefill", 1, 42}, {"decode", 4000, 4000},
	}) {
		t.Errorf("the speeds are %v", got)
	}
}

func TestTopLogitsAreATableForPeople(t *testing.T) {
	t.Parallel()
	for args, there := range map[string]bool{"run -n 2 --top-logits 3": true, "run -n 2": false} {
		p, stdout, stderr := playBack(t, tuitest.Script{})
		if status := p.main(t.Context(), strings.Fields(args)); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		for _, c := range tracetest.Llama(2, 2).Steps[1].Top {
			line := fmt.Sprintf("%q", c.Text)
			if strings.Contains(stdout.String(), line) != there {
				t.Errorf("%s: %s is shown: %v, want %v:\n%s", args, line, !there, there, stdout)
			}
		}
	}
}

// The quantization error is shown to people and to programs.
func TestRunSaysWhatQuantizingCost(t *testing.T) {
	t.Parallel()
	cost := &trace.Quantized{Format: "q4gsw", GroupSize: 32, From: []string{"BF16"}, Matrices: 9, SNRdB: 21.5}
	for _, format := range []string{"json", "text"} {
		p, stdout, stderr := playBack(t, tuitest.Script{})
		patch(p, func(e *session.Event) {
			if e.Opened != nil {
				e.Opened = new(*e.Opened)
				e.Opened.Model.Quantization, e.Opened.Model.Quantized = "q4gsw: SNR 21.5 dB", cost
			}
		})
		args := "run -n 1 --quantize q4 --format " + format
		if status := p.main(t.Context(), strings.Fields(args)); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		var got result
		if format == "text" {
			if !strings.Contains(stdout.String(), "SNR 21.5 dB") {
				t.Errorf("the output does not show the quantization error:\n%s", stdout)
			}
			continue
		}
		err := json.Unmarshal(stdout.Bytes(), &got)
		if err != nil || !reflect.DeepEqual(got.Quantized, cost) {
			t.Errorf("%v, quantized %+v, want %+v", err, got.Quantized, cost)
		}
	}
}

// A run submits steps before it has read the results of earlier ones, and reports that it is pipelined.
// Options that need more from each step turn this off.
func TestRunSaysWhetherItIsPipelined(t *testing.T) {
	t.Parallel()
	for args, pipelined := range map[string]bool{
		"":                  true,
		"--timing off":      true,
		"--timing dispatch": false,
		"--top-logits 3":    false,
		"--break nan":       false,
		"--temp 1":          false,
		"--check":           false,
	} {
		run := "run -n 8 --ignore-eos --profile off " + args
		p, stdout, stderr := onFake(t, nil)
		if status := p.main(t.Context(), strings.Fields(run)); status != exitDone {
			t.Fatalf("%s: exit %d: %s", run, status, stderr)
		}
		if got := strings.Contains(stdout.String(), "\ndecode   pipelined "); got != pipelined {
			t.Errorf("%s: pipelined %t: %s", run, got, stdout)
		}
		p, stdout, stderr = onFake(t, nil)
		if status := p.main(t.Context(), strings.Fields(run+" --format json")); status != exitDone {
			t.Fatalf("%s: exit %d: %s", run, status, stderr)
		}
		var got result
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		mode := (&trace.Step{Pipelined: pipelined}).Mode()
		if got.Timings.DecodeMode != mode || len(got.Tokens) != 8 {
			t.Errorf("%s: %+v", run, got)
		}
	}
}

// The warnings of opening a model are printed in every output format.
func TestRunAndVerifyPrintTheModelsWarnings(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"run", "--format", "json"}, {"verify"}} {
		p, _, stderr := playBack(t, tuitest.Script{})
		open := p.open
		p.open = func(ctx context.Context, o *modelOptions, emit func(session.Event)) (s session.Session,
			err error,
		) {
			emit(session.Event{Log: &session.Log{Level: "warn", Text: "the head differs"}})
			emit(session.Event{Log: &session.Log{Level: "info", Text: "loaded"}})
			return open(ctx, o, emit)
		}
		p.main(t.Context(), args)
		if got := stderr.String(); !strings.HasPrefix(got, "warn: the head differs\n") ||
			strings.Contains(got, "loaded") {
			t.Errorf("%v: stderr %q", args, got)
		}
	}
}
