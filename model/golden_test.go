//go:build !race

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/network"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// These tests are excluded from race builds. The race detector covers everything except GPU numerics. These
// tests would take ten times as long with it, and they use only one goroutine.

// golden holds the float64 logits that another implementation computed for the demo model
// (shared/models/README.md).
type golden struct {
	Cases []goldenCase `json:"cases"`
}

type goldenCase struct {
	Prompt       string `json:"prompt"`
	PromptTokens []int  `json:"prompt_tokens"`
	NewTokens    []int  `json:"new_tokens"`
	Steps        []struct {
		Top [][2]float64 `json:"top"` // [id, logit], highest logit first
	} `json:"steps"`
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	readJSON(t, filepath.Join("..", "..", "shared", "models", "demo-golden.json"), &g)
	return g
}

// readJSON reads a JSON file of the shared folder.
func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("needs the shared folder next to the clone: %v", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// logitTolerance is the largest accepted error of a logit. If the two highest logits differ by more than
// clearMargin, the token must be the same.
const (
	logitTolerance = 0.01
	clearMargin    = 0.02
)

// lent is a driver with one device, which the test owns.
type lent struct{ gpu.Device }

func (l lent) Adapters() ([]gpu.AdapterInfo, error) { return []gpu.AdapterInfo{l.Info()}, nil }
func (l lent) Open(int) (gpu.Device, error)         { return l, nil }
func (l lent) Release()                             {}

// gpuRun is a session on the GPU with a mirror of its events.
type gpuRun struct {
	t      *testing.T
	s      session.Session
	mirror session.Mirror
	done   chan struct{}
}

func openOn(t *testing.T, dev gpu.Device, o Options) *gpuRun {
	t.Helper()
	o.Driver = lent{dev}
	s, err := Open(context.Background(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &gpuRun{t: t, s: s, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for e := range s.Events() {
			if err := r.mirror.Apply(e); err != nil {
				t.Error(err)
			}
		}
	}()
	return r
}

func (r *gpuRun) do(c session.Command) {
	r.t.Helper()
	if _, err := r.s.Do(context.Background(), c); err != nil {
		r.t.Fatalf("%s: %v", c.Kind, err)
	}
}

// end closes the session and returns the trace.
func (r *gpuRun) end() *trace.Trace {
	r.t.Helper()
	if err := r.s.Close(); err != nil {
		r.t.Fatal(err)
	}
	<-r.done
	if err := r.mirror.Trace.Check(); err != nil {
		r.t.Error(err)
	}
	return r.mirror.Trace
}

func TestDemoGivesTheGoldenLogits(t *testing.T) {
	holdCases(t, gputest.Open(t), Options{}, readGolden(t).Cases, (*goldenCase).typed, logitTolerance)
}

// Only large models split their steps into compute passes. passBytes makes the small model do so too.
func TestStepsCutIntoPassesGiveTheGoldenLogits(t *testing.T) {
	o := Options{passBytes: 1, Fuse: "off"}
	cases := readGolden(t).Cases[:1]
	steps := holdCases(t, gputest.Open(t), o, cases, (*goldenCase).typed, logitTolerance)
	for i, s := range steps {
		// A busy machine splits a step into several submits, each with its own pass.
		if cut := s.CPU.Passes > s.CPU.Submits; cut != (len(s.Tokens) > 1) {
			t.Errorf("step %d, of %d tokens, has %d passes in %d submits", i, len(s.Tokens), s.CPU.Passes,
				s.CPU.Submits)
		}
	}
}

// The test uses files that llama.cpp wrote with matrices of each type.
func TestFilesOfEachTypeGiveTheGoldenLogits(t *testing.T) {
	dev := gputest.Open(t)
	models := filepath.Join("..", "..", "shared", "models")
	var quant struct {
		Cases map[string][]goldenCase `json:"cases"`
	}
	readJSON(t, filepath.Join(models, "quant", "golden.json"), &quant)
	if len(quant.Cases) < 14 {
		t.Errorf("%d files, want one of each type", len(quant.Cases))
	}
	for i, name := range slices.Sorted(maps.Keys(quant.Cases)) {
		if testing.Short() && i%7 > 0 {
			continue // package ops tests the kernels of each type
		}
		t.Run(name, func(t *testing.T) {
			o := Options{Path: filepath.Join(models, "quant", "kq-"+name+".gguf")}
			holdCases(t, dev, o, quant.Cases[name], (*goldenCase).given, 2*logitTolerance)
		})
	}
}

// architectureFiles names the tiny GGUF models, one for each architecture.
var architectureFiles = []string{"gemma3", "llama3", "phi3", "qwen2", "qwen3"}

// architectureFile returns the path of a tiny model and its float64 logits from another implementation.
func architectureFile(t *testing.T, name string) (string, golden) {
	arch := filepath.Join("..", "..", "shared", "models", "arch")
	var g golden
	readJSON(t, filepath.Join(arch, name, "golden.json"), &g)
	return filepath.Join(arch, name+"-f16.gguf"), g
}

func TestFilesOfEachArchitectureGiveTheGoldenLogits(t *testing.T) {
	dev := gputest.Open(t)
	for i, name := range architectureFiles {
		path, g := architectureFile(t, name)
		folder := strings.TrimSuffix(path, "-f16.gguf") // the same weights, as transformers saves them
		paths := []string{path, folder}
		if testing.Short() {
			paths = paths[i%2 : i%2+1] // both have the same graph
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				holdCases(t, dev, Options{Path: path}, g.Cases, (*goldenCase).given, 2*logitTolerance)
			})
		}
	}
}

// config.json states the parameters of Llama 3.1's RoPE scaling. Converters to GGUF store the divisors
// computed from them.
func TestLlama3DivisorsAreThoseOfConvertedFiles(t *testing.T) {
	path, _ := architectureFile(t, "llama3")
	file, err := arch.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tensor, err := file.Tensor("rope_freqs.weight")
	if err != nil {
		t.Fatal(err)
	}
	want, err := tensor.Floats()
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range arch.Llama3Divisors(500000, 2*len(want), 8, 1, 4, 64) {
		if math.Abs(got/float64(want[i])-1) > 1e-5 {
			t.Errorf("divisor %d is %v, want %v", i, got, want[i])
		}
	}
}

// The published model has Q4_1 matrices and a tied Q8_0 embedding. The test checks the first tokens of its
// answers.
func TestAPublishedModelGivesTheGoldenLogits(t *testing.T) {
	dev := gputest.Open(t)
	models := filepath.Join("..", "..", "shared", "models")
	var g golden
	readJSON(t, filepath.Join(models, "smollm2-golden.json"), &g)
	c := g.Cases[0]
	c.NewTokens, c.Steps = c.NewTokens[:5], c.Steps[:5]
	o := Options{Path: filepath.Join(models, "smollm2-135m-instruct-q4_1.gguf"), Context: 64}
	holdCases(t, dev, o, []goldenCase{c}, (*goldenCase).given, logitTolerance)
}

// typed returns a command with the prompt as text.
func (c *goldenCase) typed() session.Command {
	return session.Command{Kind: session.Prompt, Text: c.Prompt, N: len(c.NewTokens)}
}

func (c *goldenCase) given() session.Command {
	return session.Command{Kind: session.Prompt, Tokens: c.PromptTokens, N: len(c.NewTokens)}
}

// holdCases runs all cases in one session, because opening a session takes longer than running a case. It
// checks each case and returns all steps.
func holdCases(t *testing.T, dev gpu.Device, o Options, cases []goldenCase,
	prompt func(*goldenCase) session.Command, tolerance float64,
) []trace.Step {
	t.Helper()
	o.TopLogits, o.IgnoreEOS = 5, true
	r := openOn(t, dev, o)
	for i := range cases {
		r.do(prompt(&cases[i]))
		r.do(session.Command{Kind: session.Run, N: len(cases[i].NewTokens) - 1})
	}
	steps := r.end().Steps
	first := 0
	for i := range cases {
		c := &cases[i]
		own := steps[first:][:len(c.NewTokens)]
		first += len(own)
		t.Run(fmt.Sprint(i), func(t *testing.T) { c.hold(t, own, tolerance) })
	}
	return steps
}

// hold checks the logits and tokens of steps against a case.
func (c *goldenCase) hold(t *testing.T, steps []trace.Step, tolerance float64) {
	t.Helper()
	if d := cmp.Diff(c.PromptTokens, steps[0].Tokens); d != "" {
		t.Fatal("the prompt's tokens (-want +got)", d)
	}
	var worst float64
	for i, want := range c.Steps {
		got := map[int]float64{}
		for _, candidate := range steps[i].Top {
			got[candidate.ID] = candidate.Logit
		}
		for _, w := range want.Top {
			logit, ok := got[int(w[0])]
			if !ok {
				t.Fatalf("step %d: token %v is not among the five highest %v", i, w[0], steps[i].Top)
			}
			worst = max(worst, math.Abs(logit-w[1]))
		}
		if *steps[i].Token == c.NewTokens[i] {
			continue
		}
		if want.Top[0][1]-want.Top[1][1] > clearMargin {
			t.Fatalf("step %d: token %d, want %d", i, *steps[i].Token, c.NewTokens[i])
		}
		t.Logf("step %d: token %d, want %d: small margin; the texts diverge here", i, *steps[i].Token,
			c.NewTokens[i])
		break
	}
	t.Logf("the largest logit error is %.2g", worst)
	if worst > tolerance {
		t.Errorf("a logit is off by %v, at most %v", worst, tolerance)
	}
}

// referenceModel runs steps through the graph with the operators' float64 references.
type referenceModel struct {
	net        *network.Network
	exec       *reference.Interpreter
	pos, steps int
}

func newReference(t *testing.T, path string) *referenceModel {
	t.Helper()
	m, err := Read(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	net, err := m.build(gpu.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return &referenceModel{net: net, exec: reference.NewInterpreter(net.Graph)}
}

// step runs one step and returns the logits of the last token.
func (r *referenceModel) step(t *testing.T, tokens ...int) []float64 {
	t.Helper()
	in := r.net.Input(r.pos, tokens)
	if r.net.Recurrent != nil { // each step reads the slot that the previous one wrote
		network.SetSlots(in, r.steps%2, 1-r.steps%2)
	}
	if err := r.exec.Step(in, nil); err != nil {
		t.Fatal(err)
	}
	r.pos, r.steps = r.pos+len(tokens), r.steps+1
	return r.exec.Tensor(r.net.Logits).Data
}

// The test runs the graph without a GPU. A failure here is in the model's wiring, not in a kernel.
func TestGraphGivesTheGoldenLogitsInFloat64(t *testing.T) {
	g := readGolden(t)
	for _, c := range g.Cases {
		newReference(t, "").give(t, &c, 6)
	}
}

func TestFloat64GraphsGiveTheGoldenLogits(t *testing.T) {
	for _, name := range architectureFiles {
		t.Run(name, func(t *testing.T) {
			path, g := architectureFile(t, name)
			for _, c := range g.Cases {
				newReference(t, path).give(t, &c, len(c.NewTokens))
			}
		})
	}
}

// give runs the first steps of a case and checks their logits.
func (r *referenceModel) give(t *testing.T, c *goldenCase, steps int) {
	t.Helper()
	tokens := c.PromptTokens
	for i := range steps {
		logits := r.step(t, tokens...)
		for _, w := range c.Steps[i].Top {
			if d := math.Abs(logits[int(w[0])] - w[1]); d > 1e-4 {
				t.Fatalf("step %d: the logit of %v is off by %v", i, w[0], d)
			}
		}
		tokens = c.NewTokens[i : i+1]
	}
}

// The test runs prompts that are in no golden file, in chunks of different sizes, and compares the logits
// with the float64 references.
func TestOtherPromptsGiveTheReferencesLogits(t *testing.T) {
	dev := gputest.Open(t)
	for _, test := range []struct {
		text   string
		chunks []int
	}{
		{"The king said to the little mermaid: \"Where is my ship?\"", nil},
		{"x", nil},
		{"1, 2, 3, and then the snow fell — on façades and 屋根.", []int{1}},
		{"A tin soldier stood on one leg; he had only one, but he stood as firmly on it as the others on their two.", []int{17, 1, 5}},
	} {
		t.Run(test.text, func(t *testing.T) {
			const all, steps = 4096, 4
			r := openOn(t, dev, Options{TopLogits: all, IgnoreEOS: true})
			r.do(session.Command{Kind: session.Prompt, Text: test.text, Chunks: test.chunks})
			r.do(session.Command{Kind: session.Run, N: steps - 1})
			newReference(t, "").hold(t, r.end().Steps)
		})
	}
}

// hold runs the steps of a trace and compares their logits with those of the references.
func (r *referenceModel) hold(t *testing.T, steps []trace.Step) {
	t.Helper()
	var tokens []int
	for _, s := range steps {
		tokens = append(tokens, s.Tokens...)
		if s.Token == nil {
			continue
		}
		want := r.step(t, tokens...)
		tokens = nil
		for _, c := range s.Top {
			if d := math.Abs(c.Logit - want[c.ID]); d > logitTolerance/2 {
				t.Fatalf("position %d: the logit of %d is %v, off by %v", s.Position, c.ID, c.Logit, d)
			}
		}
	}
}

// The test runs prompts that are in no golden file, in chunks of different sizes. The prompts are longer than
// Gemma's windows.
func TestEachArchitectureGivesTheReferencesLogits(t *testing.T) {
	dev := gputest.Open(t)
	for i, name := range architectureFiles {
		t.Run(name, func(t *testing.T) {
			path, _ := architectureFile(t, name)
			r := openOn(t, dev, Options{Path: path, TopLogits: 100, IgnoreEOS: true})
			prompt := promptIDs(75, i+3)
			for j := range prompt {
				prompt[j] %= 3000
			}
			r.do(session.Command{Kind: session.Prompt, Tokens: prompt, Chunks: []int{37, 1, 5}})
			r.do(session.Command{Kind: session.Run, N: 3})
			newReference(t, path).hold(t, r.end().Steps)
		})
	}
}

// promptIDs returns n token ids from the demo model's vocabulary.
func promptIDs(n, seed int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = (i*i*31 + i*seed + 7*seed) % 4096
	}
	return list
}

func TestOneGraphServesPrefillDecodeAndAnotherPrefill(t *testing.T) {
	dev := gputest.Open(t)
	prompt := func(r *gpuRun, n int) { r.do(session.Command{Kind: session.Prompt, Tokens: promptIDs(n, n)}) }
	o := Options{TopLogits: 32, IgnoreEOS: true}
	r := openOn(t, dev, o)
	prompt(r, 40)
	r.do(session.Command{Kind: session.Run, N: 3})
	prompt(r, 7)
	r.do(session.Command{Kind: session.Run, N: 2})
	tr := r.end()
	if len(tr.Steps) != 7 {
		t.Fatalf("%d steps, want 7", len(tr.Steps))
	}

	t.Run("plans match each live shape", func(t *testing.T) {
		m, err := Read(o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, s := range tr.Steps {
			net, err := m.build(dev.Info().Limits)
			if err != nil {
				t.Fatal(err)
			}
			live := fresh(t, net, len(s.Tokens), s.Position)
			active := live.Active()
			if len(active) != len(s.Dispatches) {
				t.Fatalf("step %d has %d dispatches, a fresh graph %d", s.Index, len(s.Dispatches),
					len(active))
			}
			for i, id := range active {
				p := tr.Plans[s.Dispatches[i].Plan]
				l, k := live.Launch(id)
				want := fmt.Sprintf("%d %s [%d %d %d] %x", id, net.Graph.KernelName(k), l.Grid.X, l.Grid.Y,
					l.Grid.Z, l.Params.Bytes())
				if got := fmt.Sprintf("%d %s %v %s", p.Dispatch, p.Kernel, p.Workgroups,
					p.Params); got != want {
					t.Errorf("step %d: %s, a fresh graph gives %s", s.Index, got, want)
				}
			}
		}
	})

	t.Run("matrix products choose the route by their rows", func(t *testing.T) {
		products, want := 0, 0
		for _, s := range tr.Steps {
			want += 6*6 + 1
			joined := slices.ContainsFunc(s.Dispatches, func(d trace.StepDispatch) bool {
				return strings.HasPrefix(tr.Plans[d.Plan].Route, "tile")
			})
			if len(s.Tokens) > 1 && !joined {
				want += 5 // the dispatch that joins gate and up, in all layers except the last
			}
			for _, d := range s.Dispatches {
				p := &tr.Plans[d.Plan]
				op := &tr.Graph.Ops[tr.Graph.Dispatches[p.Dispatch].Op]
				if op.Kind != "linear_q4gsw" || tr.Graph.Dispatches[p.Dispatch].Label == "sums" {
					continue
				}
				products++
				last := op.Name == "layers.5.attn.q" || op.Name == "layers.5.attn.o+add"
				rows := len(s.Tokens)
				if op.Name == "lm_head" || strings.HasPrefix(op.Name, "layers.5.mlp.") {
					rows = 1 // it gets only the last token
				}
				if (p.Route == "gemv") != (rows == 1) || (p.Route == "last") != (last && rows > 1) {
					t.Errorf("step %d: %s of %d rows takes route %s, because %s", s.Index, op.Name, rows,
						p.Route, p.Reason)
				}
			}
		}
		if products != want {
			t.Errorf("%d matrix products, want %d", products, want)
		}
	})

	t.Run("grids match the shapes", func(t *testing.T) {
		for _, s := range tr.Steps {
			n := len(s.Tokens)
			for _, d := range s.Dispatches {
				p := &tr.Plans[d.Plan]
				op := &tr.Graph.Ops[tr.Graph.Dispatches[p.Dispatch].Op]
				want := map[string]int{
					"layers.0.attn.norm": n, // one workgroup per row
					"norm":               1,
				}[op.Name]
				if want != 0 && p.Workgroups != [3]int{want, 1, 1} {
					t.Errorf("step %d: %s runs %v workgroups, want %d", s.Index, op.Name, p.Workgroups, want)
				}
			}
		}
	})

	t.Run("logits equal those of separate runs", func(t *testing.T) {
		for _, run := range []struct{ prompt, decodes, from int }{{40, 0, 0}, {40, 3, 0}, {7, 2, 4}} {
			r := openOn(t, dev, o)
			prompt(r, run.prompt)
			for range run.decodes {
				r.do(session.Command{Kind: session.Next})
			}
			for i, s := range r.end().Steps {
				if d := cmp.Diff(s.Top, tr.Steps[run.from+i].Top); d != "" {
					t.Errorf("prompt of %d, step %d (-own run +one run):\n%s", run.prompt, i, d)
				}
			}
		}
	})
}

// The text is the same for all chunk sizes, modes and orders of propagation.
func TestTheTextIsTheSameInEveryMode(t *testing.T) {
	dev := gputest.Open(t)
	run := func(o Options, chunks ...int) []int {
		o.IgnoreEOS = true
		r := openOn(t, dev, o)
		r.do(session.Command{Kind: session.Prompt, Text: "There was once a tin soldier, who", Chunks: chunks})
		r.do(session.Command{Kind: session.Run, N: 7})
		var tokens []int
		for _, s := range r.end().Steps {
			if s.Token != nil {
				tokens = append(tokens, *s.Token)
			}
		}
		return tokens
	}
	want := run(Options{})
	t.Run("measured again midway", func(t *testing.T) {
		r := openOn(t, dev, Options{IgnoreEOS: true})
		r.do(session.Command{Kind: session.Prompt, Text: "There was once a tin soldier, who"})
		r.do(session.Command{Kind: session.Run, N: 4})
		r.do(session.Command{Kind: session.Repeat, N: 2})
		r.do(session.Command{Kind: session.Observe})
		for range 3 {
			r.do(session.Command{Kind: session.Previous})
		}
		r.do(session.Command{Kind: session.Repeat, N: 1})
		first := 0
		r.do(session.Command{Kind: session.Repeat, Step: &first})
		r.do(session.Command{Kind: session.Run, N: 6})
		tr := r.end()
		var got []int
		for _, token := range r.mirror.Text.Given {
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("gives %v, want %v", got, want)
		}
		for _, e := range tr.Events {
			if strings.Contains(e.Text, "gave token") {
				t.Errorf("repeats differ: %v", e)
			}
		}
		if d := tr.Steps[4].Dispatches[0]; len(d.Samples) != 2 || d.Samples[0] <= 0 {
			t.Errorf("samples %v", d.Samples)
		}
	})
	t.Run("edited midway", func(t *testing.T) {
		r := openOn(t, dev, Options{IgnoreEOS: true})
		r.do(session.Command{Kind: session.Prompt, Text: "There was once a tin soldier, who"})
		r.do(session.Command{Kind: session.Run, N: 3})
		keep := len(r.mirror.Text.Prompt) - 2
		r.do(session.Command{Kind: session.Edit, N: keep, Text: " and a king"})
		r.do(session.Command{Kind: session.Run, N: 3})
		r.do(session.Command{Kind: session.Upto, N: 5})
		r.do(session.Command{Kind: session.Edit, Text: "There was once a tin soldier, who"})
		r.do(session.Command{Kind: session.Run, N: 7})
		tr := r.end()
		var got []int
		for _, token := range r.mirror.Text.Given {
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("gives %v, want %v", got, want)
		}
		if s := tr.Steps[4]; s.Phase != trace.Prefill || s.Position != keep {
			t.Errorf("the edited text is processed from position %d, want %d", s.Position, keep)
		}
	})
	for name, got := range map[string][]int{
		"token by token":    run(Options{}, 1),
		"chunks of three":   run(Options{}, 3),
		"a small bound":     run(Options{MaxChunk: 5, Context: 64}),
		"static":            run(Options{Live: graph.LiveOptions{Static: true}, MaxChunk: 16, Context: 64}),
		"fixpoint":          run(Options{Live: graph.LiveOptions{Order: graph.Fixpoint}}),
		"checked":           run(Options{Check: true}),
		"nothing fused":     run(Options{Fuse: "off"}),
		"timed by dispatch": run(Options{Timing: engine.TimingDispatch}),
		"timed by step":     run(Options{Timing: engine.TimingStep}),
		"with candidates":   run(Options{TopLogits: 5}),
		"an f16 cache":      run(Options{HalfKV: true}),
		"a route asked for": run(Options{MaxChunk: 16, Context: 64, Routes: map[string]string{
			"linear_q4gsw":                          "tile64",
			"sdpa_with_kv_cache@layers.0.attn.sdpa": "materialized",
		}}),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s gives %v, want %v", name, got, want)
		}
	}
}
