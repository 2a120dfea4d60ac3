package program_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/network"
	"gpuscope/model/program"
	"gpuscope/ops"
)

// sharedPrograms is the folder with ExecuTorch's own programs.
func sharedPrograms(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "pte")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	return dir
}

// An error about a position names the input, not the operator that reads it.
func TestPositionsThatDoNotFitAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	f, err := pte.Open(filepath.Join(sharedPrograms(t), "llama-demo-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run := load(t, fake.New(fake.Options{NoLog: true}), f)
	for name, position := range map[string]int64{"past the cache": 256, "negative": -1, "last": 253} {
		tokens := integers([]int{1, 3}, 1, 2, 3)
		_, err := run.Run(t.Context(), []*npy.Array{tokens, integers([]int{1}, position)})
		if (position < 0 || position > 253) != errors.Is(err, program.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			golden.Error(name, err)
		}
	}
}

// goldenCase is a prompt, the lengths of its steps, and the expected logits.
type goldenCase struct {
	Prompt []int64 `json:"prompt_tokens"`
	Chunks []int   `json:"chunks"`
	New    []int64 `json:"new_tokens"`
	Steps  []struct {
		Live, Pos int
		Top       [][2]float64
	} `json:"steps"`
}

func readGolden(t *testing.T, path string) []goldenCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &golden); err != nil || len(golden.Cases) == 0 {
		t.Fatalf("%s: %d cases, %v", path, len(golden.Cases), err)
	}
	return golden.Cases
}

func integers(dims []int, v ...int64) *npy.Array {
	a := &npy.Array{Type: npy.Int64, Dims: dims}
	for _, n := range v {
		a.Data = binary.LittleEndian.AppendUint64(a.Data, uint64(n))
	}
	return a
}

// follow steps a program through a case and compares the five highest logits of each step. logits are close
// if they differ by at most off. The highest must be the same where the golden logits differ by more than
// margin.
func follow(t *testing.T, run *program.Program, c *goldenCase, off, margin float64) {
	t.Helper()
	text := slices.Concat(c.Prompt, c.New)
	at := 0
	for i, s := range c.Steps {
		tokens := text[at:min(at+s.Live, len(text))]
		if at != s.Pos || len(tokens) != s.Live {
			t.Fatalf("step %d: position %d and %d tokens, want %d and %d", i, at, len(tokens), s.Pos, s.Live)
		}
		out, err := run.Run(t.Context(), []*npy.Array{
			integers([]int{1, s.Live}, tokens...),
			integers([]int{1}, int64(s.Pos)),
		})
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		logits := floats(out[0])
		for _, top := range s.Top {
			if got := float64(logits[int(top[0])]); !(math.Abs(got-top[1]) <= off) {
				t.Errorf("step %d, token %v: logit %v, want %v", i, top[0], got, top[1])
			}
		}
		best := slices.Index(logits, slices.Max(logits))
		if best != int(s.Top[0][0]) && s.Top[0][1]-s.Top[1][1] > margin {
			t.Errorf("step %d: token %d, want %v", i, best, s.Top[0][0])
		}
		if at += s.Live; t.Failed() {
			return
		}
	}
}

func TestLanguageModelsGiveTheGoldenLogits(t *testing.T) {
	dir := sharedPrograms(t)
	dev := gputest.Open(t)
	for _, m := range []struct {
		name        string
		off, margin float64
	}{{"qwen3-tiny-4w", 0.01, 0.02}, {"llama-demo-4w", 0.01, 0.02}, {"llama-demo-8da4w", 0.35, 0.7}} {
		for _, o := range []program.Options{
			{}, {Fuse: "off", Check: true, Live: graph.LiveOptions{Order: graph.Fixpoint}},
		} {
			if o.Check && testing.Short() {
				continue
			}
			t.Run(m.name+" fuse "+o.Fuse, func(t *testing.T) {
				cases := readGolden(t, filepath.Join(dir, m.name+".golden.json"))
				if testing.Short() {
					cases = cases[:1]
				}
				f, err := pte.Open(filepath.Join(dir, m.name+".pte"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				method, err := program.Build(f, "forward", dev.Info().Limits, o)
				if err != nil {
					t.Fatal(err)
				}
				run, err := program.Load(dev, method)
				if err != nil {
					t.Fatal(err)
				}
				defer run.Release()
				for i := range cases {
					follow(t, run, &cases[i], m.off, m.margin)
				}
			})
		}
	}
}

// buildLanguage builds a language model with all fusion rules.
func buildLanguage(t *testing.T, f *pte.File, limits gpu.Limits, o program.Step) *network.Network {
	t.Helper()
	l, err := program.OpenLanguage(f, "")
	if err != nil {
		t.Fatal(err)
	}
	b := graph.NewBuilder(limits)
	b.Fuse(ops.Fusions...)
	n, err := l.Build(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// logitsOf runs a step of a language model and returns its logits.
func logitsOf(t *testing.T, exec *engine.Executor, n *network.Network, position int,
	tokens ...int,
) []float32 {
	t.Helper()
	in := n.Input(position, tokens)
	in.Read = []graph.ValueID{n.Logits}
	if err := exec.Step(t.Context(), in, engine.TimingOff); err != nil {
		t.Fatal(err)
	}
	a := &npy.Array{Data: make([]byte, 4*n.Vocab)}
	if _, err := exec.Output(n.Logits, a.Data); err != nil {
		t.Fatal(err)
	}
	return floats(a)
}

// The embedding and the head are larger than a binding. They are split by rows.
func TestConstantsLargerThanABindingAreSplit(t *testing.T) {
	dir := sharedPrograms(t)
	dev := gputest.Open(t)
	f, err := pte.Open(filepath.Join(dir, "llama-demo-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	limits := dev.Info().Limits
	limits.MaxStorageBinding = 400 << 10
	n := buildLanguage(t, f, limits, program.Step{Context: 256, MaxChunk: 8})
	parts := 0
	for s := range ops.StoredMatrices(n.Graph) {
		parts++
		for _, v := range s.Arrays {
			info := n.Graph.Value(v)
			if n := info.DType.Bytes(graph.Numel(info.MaxDims)); n > int64(limits.MaxStorageBinding) {
				t.Errorf("%s has %d bytes, the limit is %d", info.Name, n, limits.MaxStorageBinding)
			}
		}
	}
	whole := buildLanguage(t, f, dev.Info().Limits, program.Step{Context: 256, MaxChunk: 8})
	for range ops.StoredMatrices(whole.Graph) {
		parts--
	}
	if parts < 2 { // further parts of the embedding and of the head
		t.Errorf("splitting adds %d parts, want at least 2", parts)
	}
	exec, err := engine.Load(dev, n.Graph, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Release()
	c := readGolden(t, filepath.Join(dir, "llama-demo-4w.golden.json"))[0]
	want := c.Steps[len(c.Chunks)-1]
	for at := 0; at < len(c.Prompt); {
		var tokens []int
		for _, id := range c.Prompt[at:min(at+8, len(c.Prompt))] {
			tokens = append(tokens, int(id))
		}
		logits := logitsOf(t, exec, n, at, tokens...)
		if at += len(tokens); at < len(c.Prompt) {
			continue
		}
		for _, top := range want.Top {
			if got := float64(logits[int(top[0])]); !(math.Abs(got-top[1]) <= 0.01) {
				t.Errorf("token %v: logit %v, want %v", top[0], got, top[1])
			}
		}
	}
}

func TestPositionPastTheCacheIsRefused(t *testing.T) {
	dev := gputest.Open(t)
	f, err := pte.Open(filepath.Join(sharedPrograms(t), "qwen3-tiny-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run := load(t, dev, f)
	for _, c := range []struct{ tokens, position int }{{1, 128}, {2, 127}, {1, -1}} {
		_, err := run.Run(t.Context(), []*npy.Array{
			integers([]int{1, c.tokens}, make([]int64, c.tokens)...), integers([]int{1}, int64(c.position)),
		})
		// The operator refuses only what depends on both inputs.
		_, together := errors.AsType[*graph.OpError](err)
		if !errors.Is(err, program.ErrInput) && !(c.tokens == 2 && together) {
			t.Errorf("%d tokens at position %d: %v, want it refused", c.tokens, c.position, err)
		}
	}
}
