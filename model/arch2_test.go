//go:build !race

package model

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/session"
	"gpuscope/trace"
)

// arch2 lists the tiny models of shared/models/arch2 that this version runs, and whether there are GGUF files
// beside the folder.
var arch2 = []struct {
	name string
	gguf bool
}{
	{"granite", true},
	{"smollm3", true},
	{"olmo2", true},
	{"olmo3", true},
	{"exaone4", false},
	{"exaone4_full", true},
	{"gemma2", true},
	{"ministral3", true},
	{"cohere2", true},
	{"glm4", true},
	{"seed_oss", true},
	{"ernie4_5", true},
	{"hunyuan", true},
	{"llama_yarn", true},
	{"qwen3_moe", true},
	{"granitemoe", true},
	{"olmoe", true},
	{"gemma4_e2b", true},
	{"gemma4_12b", true},
	{"gemma4_moe", true},
	{"gpt_oss", true},
	{"gpt_oss_mxfp4", false},
	{"lfm2", true},
	{"qwen3_5", true},
	{"qwen3_5_moe", true},
}

// arch2Files returns the paths of a model of shared/models/arch2, and its float64 logits from another
// implementation.
func arch2Files(t *testing.T, name string, gguf bool) ([]string, golden) {
	t.Helper()
	folder := filepath.Join("..", "..", "shared", "models", "arch2", name)
	var g golden
	readJSON(t, filepath.Join(folder, "golden.json"), &g)
	if !gguf {
		return []string{folder}, g
	}
	files, err := filepath.Glob(folder + "-*.gguf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no GGUF files of %s: %v", name, err)
	}
	return append([]string{folder}, files...), g
}

// The test runs the graphs without a GPU. A failure here is in the wiring of a model, not in a kernel.
func TestArch2GivesTheGoldenLogitsInFloat64(t *testing.T) {
	for _, m := range arch2 {
		paths, g := arch2Files(t, m.name, m.gguf)
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				worst := 0.0
				for _, c := range g.Cases {
					r, tokens := newReference(t, path), c.PromptTokens
					for i, step := range c.Steps {
						logits := r.step(t, tokens...)
						for _, w := range step.Top {
							worst = max(worst, math.Abs(logits[int(w[0])]-w[1]))
						}
						tokens = c.NewTokens[i : i+1]
					}
				}
				if t.Logf("the largest logit error is %.2g", worst); !(worst < 1e-3) {
					t.Errorf("a logit is off by %v", worst)
				}
			})
		}
	}
}

// The models of shared/models/arch2 also have factors, soft caps, windows and queries that grow. The
// steps are longer than the windows.
func TestAnyRulesKeepWhatArch2Computes(t *testing.T) {
	var files []string
	for _, m := range arch2 {
		paths, _ := arch2Files(t, m.name, m.gguf)
		files = append(files, paths...)
	}
	anyRulesKeep(t, files, []ruleStep{{20, 0}, {1, 20}, {20, 21}, {1, 41}})
}

// GGUF files store the weights as f16, so their logits may differ more from those of the folder.
const (
	folderTolerance = 0.02
	ggufTolerance   = 0.05
	arch2Margin     = 0.05 // if the two highest logits differ by more, the token must be the same
)

// Prompts in chunks of any size give the golden logits and tokens, fused and not fused, in both orders of
// propagation, and checked.
func TestArch2GivesTheGoldenLogits(t *testing.T) {
	dev := gputest.Open(t)
	whole := os.Getenv("GPUSCOPE_LARGE") != "" // all files in all modes and chunks take minutes
	for i, m := range arch2 {
		paths, g := arch2Files(t, m.name, m.gguf)
		for j, path := range paths {
			// Both have the same graph, except for the pairs that RoPE rotates.
			if !whole && j != i%len(paths) {
				continue
			}
			tolerance := folderTolerance
			if j > 0 {
				tolerance = ggufTolerance
			}
			for _, mode := range []struct {
				name   string
				o      Options
				chunks []int // 0 for the whole prompt
			}{
				{"fused", Options{}, []int{0, 1, 17, 2, 7, 16, 64}},
				{"off", Options{Fuse: "off"}, []int{17, 0, 1, 2, 7, 16, 64}},
				{"fixpoint", Options{Live: graph.LiveOptions{Order: graph.Fixpoint}}, []int{17, 0}},
				{"checked", Options{Check: true}, []int{7, 0}},
			} {
				mode.o.Path = path
				switch {
				case whole:
				case testing.Short() && mode.name == "off":
					continue
				case mode.name == "fused":
					mode.chunks = mode.chunks[:3]
				default:
					mode.chunks = mode.chunks[:1]
				}
				t.Run(filepath.Base(path)+"/"+mode.name, func(t *testing.T) {
					holdChunks(t, dev, mode.o, g.Cases, mode.chunks, tolerance)
				})
			}
		}
	}
}

// The reference of a layer that reads the KV cache of another layer sees what that layer has appended in the
// same step.
func TestLayersOnSharedCachesAreVerified(t *testing.T) {
	paths, _ := arch2Files(t, "gemma4_e2b", false)
	s, end := deviceSession(t, Options{Path: paths[0], IgnoreEOS: true, HalfKV: true})
	for _, c := range []session.Command{
		{Kind: session.Prompt, Tokens: ids(20)},
		{Kind: session.Verify},
		{Kind: session.Run, N: 1},
		{Kind: session.Verify},
	} {
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	tr := end()
	for i := range tr.Steps {
		shared := 0
		for name, g := range gapsOf(s, tr, i) {
			if strings.HasPrefix(name, "layers.5.attn.") || strings.HasPrefix(name, "layers.4.attn.") {
				shared++
			}
			if !(g.Share <= 1) || g.NotFinite > 0 {
				t.Errorf("step %d: %s has error %+v", i, name, *g)
			}
		}
		if shared < 6 {
			t.Errorf("step %d: %d dispatches of the attention of layers 4 and 5 were compared", i, shared)
		}
	}
}

// holdChunks runs all cases in one session, with prompts in chunks of each size.
func holdChunks(t *testing.T, dev gpu.Device, o Options, cases []goldenCase, chunks []int,
	tolerance float64,
) {
	t.Helper()
	o.TopLogits, o.IgnoreEOS = 5, true
	r := openOn(t, dev, o)
	for _, size := range chunks {
		for i := range cases {
			c := cases[i].given()
			if c.N = len(cases[i].NewTokens); size > 0 {
				c.Chunks = []int{size}
			}
			r.do(c)
			r.do(session.Command{Kind: session.Run, N: len(cases[i].NewTokens) - 1})
		}
	}
	var steps []trace.Step
	for _, s := range r.end().Steps {
		if s.Token != nil {
			steps = append(steps, s)
		}
	}
	worst := 0.0
	for _, size := range chunks {
		for i := range cases {
			own := steps[:len(cases[i].NewTokens)]
			steps = steps[len(own):]
			off, err := cases[i].worst(own)
			if worst = max(worst, off); err != nil {
				t.Errorf("case %d in chunks of %d: %v", i, size, err)
			}
		}
	}
	if t.Logf("the largest logit error is %.2g", worst); !(worst <= tolerance) {
		t.Errorf("a logit is off by %v, at most %v", worst, tolerance)
	}
}

// worst returns the largest error of a logit among steps that each gave a token. It returns an error if a
// token is wrong although the margin is clear.
func (c *goldenCase) worst(steps []trace.Step) (worst float64, err error) {
	for i, want := range c.Steps {
		got := map[int]float64{}
		for _, candidate := range steps[i].Top {
			got[candidate.ID] = candidate.Logit
		}
		least := steps[i].Top[len(steps[i].Top)-1].Logit
		for _, w := range want.Top {
			logit, ok := got[int(w[0])]
			if !ok { // close to another candidate: it is at most the least of the five
				logit = least
			}
			worst = max(worst, math.Abs(logit-w[1]))
		}
		if *steps[i].Token == c.NewTokens[i] {
			continue
		}
		if want.Top[0][1]-want.Top[1][1] > arch2Margin {
			err = fmt.Errorf("step %d: token %d, want %d", i, *steps[i].Token, c.NewTokens[i])
		}
		return worst, err // the texts diverge here
	}
	return worst, nil
}
