package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

func TestRunMeasuresTheLastStepByItsKind(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct{ repeats, costs, parts bool }{
		"":                       {true, true, true},
		"--profile both":         {true, true, true},
		"--profile alone":        {true, true, false}, // costs: only of the warm prompt
		"--profile cost":         {false, true, true},
		"--profile off":          {},
		"--format json":          {}, // a program must request slow measurements
		"--format json --cost q": {true, true, true},
	} {
		var got struct{ repeats, costs, parts bool }
		p, stdout, stderr := playBack(t, tuitest.Script{
			Before: func(_ context.Context, c session.Command) error {
				got.repeats = got.repeats || c.Kind == session.Repeat
				got.costs = got.costs || c.Kind == session.Cost
				got.parts = got.parts || len(c.Parts) > 0
				return nil
			},
		})
		if status := p.main(t.Context(), strings.Fields("run -n 4 "+args)); status != exitDone {
			t.Fatalf("%s: exit %d: %s", args, status, stderr)
		}
		if got != want {
			t.Errorf("%s measures %+v, want %+v", args, got, want)
		}
		said := strings.Contains(stdout.String(), "the 26 rows add up to 218 ± 2.5 µs, 96.9 % of the step")
		if text := !strings.Contains(args, "json"); said != (text && want.parts) {
			t.Errorf("%s: the profile shows costs: %v\n%s", args, said, stdout)
		}
		if warm := strings.Contains(stdout.String(), "prefill repeated: 42 tokens in "); warm !=
			(want.costs && !strings.Contains(args, "json")) {
			t.Errorf("%s: the profile shows the warm prompt: %v", args, warm)
		}
	}
}

func TestRunMeasuresRowsTogetherAndRecordsThem(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json.gz")
	p, stdout, stderr := playBack(t, tuitest.Script{})
	args := strings.Fields("run -n 4 --cost attn.norm,mlp.norm --cost rope* --format json --trace " + path)
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := tr.Steps[3]
	of := map[string]int{}
	for _, c := range s.Costs {
		of[c.Name] = len(c.Dispatches)
	}
	if of["attn.norm + mlp.norm"] != 4 || of["rope*"] != 4 || of["attn.norm"] != 2 || s.Whole == nil {
		t.Errorf("dispatches of the parts: %v", of)
	}
	if n := len(s.Dispatches[0].Samples); n == 0 {
		t.Error("no isolated times")
	}
	prompt := &tr.Steps[0]
	if prompt.Whole == nil || len(prompt.Costs) < 10 || len(prompt.Dispatches[0].Samples) < 4 {
		t.Errorf("the repeated prompt: %+v, %d costs, %d isolated times", prompt.Whole, len(prompt.Costs),
			len(prompt.Dispatches[0].Samples))
	}
	var got result
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Costs == nil || got.Costs.Step != 3 || len(got.Costs.Costs) != len(s.Costs) ||
		got.Timings.PrefillWarmTokensPerS <= 0 {
		t.Errorf("costs %+v, timings %+v", got.Costs, got.Timings)
	}
}

func TestUnknownRowInRunListsTheKnownOnes(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := playBack(t, tuitest.Script{})
	path := filepath.Join(t.TempDir(), "run.json")
	status := p.main(t.Context(), strings.Fields("run -n 4 --cost norms --trace "+path))
	if status != exitUsage || stdout.Len() > 0 ||
		!strings.Contains(stderr.String(), `--cost: "norms": `) {
		t.Errorf("exit %d: %s%s", status, stdout, stderr)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a trace was written although nothing ran")
	}
	// Whether the last step has a row is known only after the step ran. The profile must be printed even if
	// the row is missing.
	p, stdout, stderr = playBack(t, tuitest.Script{})
	status = p.main(t.Context(), strings.Fields("run -n 4 --cost sdpa.softmax"))
	if status != exitFailed ||
		!strings.Contains(stderr.String(), `--cost: "sdpa.softmax": `) {
		t.Errorf("exit %d: %s", status, stderr)
	}
	if !slices.Contains(speedRows(stdout.String()), speedRow{"decode", 3, 3}) {
		t.Errorf("the profile is missing: %s", stdout)
	}
	for args, want := range map[string]string{
		"--profile all":                   `--profile "all": want both, cost, alone or off`,
		"--cost norm --profile alone":     "--profile alone ",
		"--cost norm, --profile cost":     `--cost "norm,"`,
		"--cost  norm,,q --profile cost":  `--cost "norm,,q"`,
		"--format json --profile nothing": `--profile "nothing"`,
	} {
		p, _, stderr := playBack(t, tuitest.Script{})
		if status := p.main(t.Context(), strings.Fields("run "+args)); status != exitUsage ||
			!strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d: %s", args, status, stderr)
		}
	}
}

// When the time for measurements runs out, the costs measured so far are shown and the others are omitted.
func TestRunMeasuresForAWhileOnly(t *testing.T) {
	t.Parallel()
	parts := 0
	p, stdout, stderr := playBack(t, tuitest.Script{
		Before: func(ctx context.Context, c session.Command) error {
			if len(c.Parts) > 0 {
				if parts++; parts > 2 { // after layers and attention
					<-ctx.Done()
					return ctx.Err()
				}
			}
			return nil
		},
	})
	begin := time.Now()
	if status := p.main(t.Context(), strings.Fields("run -n 4")); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	if took := time.Since(begin); took < profileFor/2 {
		t.Errorf("the run ended after %v", took)
	}
	if got := stdout.String(); !strings.Contains(got, "costs measured only for groups\n") ||
		!strings.Contains(got, "block   attn ") || strings.Contains(got, "block   mlp ") {
		t.Errorf("the profile:\n%s", got)
	}
}

// Rows named with --cost are measured before the rest, which may use up the remaining time. This also holds
// for a slow step, which gets only five rounds.
func TestRunMeasuresFirstWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(2, 5, 1, 1)
	step := &tr.Steps[len(tr.Steps)-1]
	for ms, rounds := range map[int64]int{1: 30, 50: 10, 1000: 5} {
		step.CPU.TotalNS = trace.Measured(ms * 1e6)
		o := declareProfiling(pflag.NewFlagSet("", pflag.ContinueOnError))
		o.together = []string{"attn", "mlp.norm", "attn,attn.norm"} // the last repeats the first
		commands, err := o.commands(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range commands {
			var names []string
			for _, part := range c.Parts {
				names = append(names, part.Name)
			}
			switch {
			case i == 0:
				if !slices.Equal(names, o.together[:2]) || c.N != rounds || c.until != itsEnd {
					t.Errorf("steps of %d ms: first %d rounds of %v, want %d", ms, c.N, names, rounds)
				}
			case c.until > profileFor:
				t.Errorf("%s has no time limit", c.Kind)
			case c.Step == nil && slices.Contains(names, "attn"):
				t.Error("a requested row is measured again")
			}
		}
	}
}

// If too few rounds ran to know a cost's error, the output says how to run more rounds.
func TestRunSaysWhatAddsRounds(t *testing.T) {
	t.Parallel()
	const adds = "--cost NAME" // the option that runs enough rounds
	for rounds, want := range map[int]bool{3: true, 5: false} {
		p, stdout, stderr := playBack(t, tuitest.Script{Rounds: rounds})
		if status := p.main(t.Context(), strings.Fields("run -n 4")); status != exitDone {
			t.Fatalf("exit %d: %s", status, stderr)
		}
		if strings.Contains(stdout.String(), adds) != want {
			t.Errorf("%d rounds, want %v%q:\n%s", rounds, want, adds, stdout)
		}
	}
}

// If a step is too slow to measure even one cost in the available time, the output says so and suggests an
// option.
func TestRunSaysWhyThereAreNoCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"-n 4", "1.46 ms"},
		{"-n 1", "-n 2"},
		{"-n 1 --profile cost --format json", "-n 2"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			p, stdout, stderr := playBack(t, tuitest.Script{
				Before: func(ctx context.Context, c session.Command) error {
					if c.Kind != session.Repeat && c.Kind != session.Cost {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				},
			})
			if status := p.main(t.Context(), strings.Fields("run "+c.args)); status != exitDone {
				t.Fatalf("exit %d: %s", status, stderr)
			}
			got := stdout.String() + stderr.String()
			if strings.Contains(c.args, "json") {
				got = stderr.String() // standard output holds only the JSON
				if !strings.HasPrefix(got, "warn: ") {
					t.Errorf("not a warning: %s", got)
				}
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("want %s:\n%s", c.want, got)
			}
		})
	}
}

// Measuring the last step must leave time for the prompt. There the largest contributors are measured first,
// and rows before the groups that contain them.
func TestRunLeavesTimeForThePrompt(t *testing.T) {
	t.Parallel()
	var kinds []string
	var first trace.Part
	p, stdout, stderr := playBack(t, tuitest.Script{
		Before: func(ctx context.Context, c session.Command) error {
			kind := string(c.Kind)
			if c.Step != nil {
				kind += " of the prompt"
			}
			if c.Kind != session.Cost && c.Kind != session.Repeat || slices.Contains(kinds, kind) {
				return nil
			}
			kinds = append(kinds, kind)
			if c.Kind == session.Cost && c.Step == nil {
				<-ctx.Done()
				return ctx.Err()
			}
			if len(c.Parts) > 0 {
				first = c.Parts[0]
			}
			return nil
		},
	})
	if status := p.main(t.Context(), strings.Fields("run -n 4")); status != exitDone {
		t.Fatalf("exit %d: %s\n%s", status, stderr, stdout)
	}
	if got := strings.Join(kinds, ", "); got != "repeat, cost, repeat of the prompt, cost of the prompt" {
		t.Errorf("measured %s", got)
	}
	if first.Name == "" || strings.HasPrefix(first.Name, "layers") || len(first.Dispatches) > 2 {
		t.Errorf("the first part of the prompt is %q, of %d dispatches", first.Name, len(first.Dispatches))
	}
}

// scriptedDriver opens fake devices and lets the test configure each of them.
type scriptedDriver struct {
	fake.Driver
	of func(*fake.Device)
}

func (d *scriptedDriver) Open(index int) (gpu.Device, error) {
	dev, err := d.Driver.Open(index)
	if err == nil && d.of != nil {
		d.of(dev.(*fake.Device))
	}
	return dev, err
}

// onFake returns a program that runs models on a fake GPU.
func onFake(t *testing.T, of func(*fake.Device)) (p *program, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	p = testProgram(stdout, stderr)
	p.open = p.openModel
	gpus := []fake.Options{{Info: gpu.AdapterInfo{Name: "GPU", Type: gpu.Discrete}, NoLog: true}}
	p.driver = &scriptedDriver{fake.Driver{All: gpus}, of}
	return p, stdout, stderr
}

// With a real session on a device with scripted durations, the costs equal these durations exactly.
func TestRunMeasuresTheDemoOnAFakeDevice(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := onFake(t, func(d *fake.Device) {
		d.Duration = func(kernel string, x, y, z uint32) int64 {
			if kernel == "ceiling_empty" { // only keeps a barrier, and overlaps the next dispatch
				return 0
			}
			return 1000 * int64(len(kernel))
		}
	})
	path := filepath.Join(t.TempDir(), "run.json")
	if status := p.main(t.Context(), strings.Fields("run -n 3 --trace "+path)); status != exitDone {
		t.Fatalf("exit %d: %s\n%s", status, stderr, stdout)
	}
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := tr.Steps[len(tr.Steps)-1]
	took := map[trace.DispatchID]int64{}
	whole := int64(0)
	for _, d := range s.Dispatches {
		plan := &tr.Plans[d.Plan]
		took[plan.Dispatch] = 1000 * int64(len(plan.Kernel))
		whole += took[plan.Dispatch]
		if len(d.Samples) == 0 || d.Samples[0] != took[plan.Dispatch] {
			t.Errorf("dispatch %d isolated: %v", plan.Dispatch, d.Samples)
		}
	}
	if len(s.Costs) < 20 || s.Whole == nil || s.Whole.NS != whole {
		t.Fatalf("%d costs, whole %+v, want %d", len(s.Costs), s.Whole, whole)
	}
	for _, c := range s.Costs {
		want := int64(0)
		for _, id := range c.Dispatches {
			want += took[id]
		}
		if c.NS != want || c.Q1NS != want || c.Q3NS != want {
			t.Errorf("%s costs %d (%d to %d), want %d", c.Name, c.NS, c.Q1NS, c.Q3NS, want)
		}
	}
}

// On a terminal the progress of the measurement is shown on a separate line after the text.
func TestRunShowsHowFarItsMeasuringHasCome(t *testing.T) {
	t.Parallel()
	p, stdout, _ := playBack(t, tuitest.Script{})
	var status bytes.Buffer
	p.Status = &status
	if code := p.main(t.Context(), strings.Fields("run -n 4")); code != exitDone {
		t.Fatal(stdout)
	}
	got := status.String()
	begun := regexp.MustCompile(`measure costs [1-9]\d? %`).MatchString(got)
	if !begun || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("status %q", got)
	}
	if text, _, _ := strings.Cut(stdout.String(), "\n\n"); strings.HasSuffix(text, "\n") {
		t.Errorf("text %q", text)
	}
}

// The kernels that run prints have the times of the recorded trace, which include the repeats of its steps.
func TestRunPrintsTheTimesOfItsTrace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	p, stdout, stderr := playBack(t, tuitest.Script{Warmer: 2000})
	args := []string{"run", "-n", "4", "--profile", "alone", "--trace", path}
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	tr, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !analyze.Repeated(&tr.Steps[len(tr.Steps)-1]) {
		t.Fatal("the last step was not repeated")
	}
	kernels := func(text string) (rows []string) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(line, "  ") && f[0] != "kernel" {
				rows = append(rows, strings.Join(f[:4], " "))
			}
		}
		return rows
	}
	printed := kernels(stdout.String())
	shown := kernels(must(t, "trace", "show", path, "--table", "profile"))
	if len(shown) == 0 || !slices.Equal(printed[:min(len(printed), len(shown))], shown) {
		t.Errorf("run prints\n%s\nthe trace has\n%s", strings.Join(printed, "\n"), strings.Join(shown, "\n"))
	}
}
