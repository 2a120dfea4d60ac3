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

	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
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
		if _, ok := errors.AsType[*graph.OpError](err); !ok {
			t.Errorf("%d tokens at position %d: %v, want an OpError", c.tokens, c.position, err)
		}
	}
}
