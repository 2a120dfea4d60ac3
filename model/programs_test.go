package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/session"
)

// sharedProgram returns the path of a file in the folder of ExecuTorch programs.
func sharedProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "pte", name)
	if _, err := os.Stat(path); err != nil && os.Getenv("CI") != "true" {
		t.Skip("the test programs are missing: ", err)
	}
	return path
}

// goldenText is a prompt and what the program generates after it. Steps has the highest logits of each step.
type goldenText struct {
	Prompt []int `json:"prompt_tokens"`
	Chunks []int `json:"chunks"`
	New    []int `json:"new_tokens"`
	Steps  []struct {
		Pos int
		Top [][2]float64
	} `json:"steps"`
}

// A session steps a program through a text. The logits must equal those of the file, computed in float64, in
// every division of the prompt into chunks.
func TestProgramsGenerateTheGoldenText(t *testing.T) {
	for _, m := range []struct {
		name        string
		off, margin float64 // largest difference of a logit; difference that decides between two tokens
	}{{"llama-demo-4w", 0.01, 0.02}, {"qwen3-tiny-4w", 0.01, 0.02}, {"llama-demo-8da4w", 0.35, 0.7}} {
		data, err := os.ReadFile(sharedProgram(t, m.name+".golden.json"))
		if err != nil {
			t.Fatal(err)
		}
		var golden struct{ Cases []goldenText }
		if err := json.Unmarshal(data, &golden); err != nil || len(golden.Cases) == 0 {
			t.Fatalf("%d cases, %v", len(golden.Cases), err)
		}
		for _, o := range []Options{
			{},
			{Fuse: "off", Check: true, Live: graph.LiveOptions{Order: graph.Fixpoint}},
		} {
			if o.Check && testing.Short() {
				continue
			}
			o.Path, o.TopLogits = sharedProgram(t, m.name+".pte"), 5
			t.Run(m.name+" fuse "+o.Fuse, func(t *testing.T) {
				for i := range golden.Cases {
					if i > 0 && testing.Short() {
						break
					}
					c := &golden.Cases[i]
					divisions := [][]int{c.Chunks, {3}, {63}}
					if testing.Short() {
						divisions = divisions[:2]
					}
					for _, chunks := range divisions {
						compareText(t, o, c, chunks, m.off, m.margin)
					}
				}
			})
		}
	}
}

func compareText(t *testing.T, o Options, c *goldenText, chunks []int, off, margin float64) {
	t.Helper()
	s, end := deviceSession(t, o)
	for _, command := range []session.Command{
		{Kind: session.Prompt, Tokens: c.Prompt, Chunks: chunks, N: len(c.New)},
		{Kind: session.Run, N: len(c.New) - 1},
	} {
		if _, err := s.Do(t.Context(), command); err != nil {
			t.Error(err)
		}
	}
	want := map[int][][2]float64{} // by the position after the step
	for i := range c.Steps {
		if i+1 < len(c.Steps) {
			want[c.Steps[i+1].Pos] = c.Steps[i].Top
		}
	}
	compared := 0
	steps := end().Steps
	for i := range steps {
		step := &steps[i]
		top := want[step.Position+len(step.Tokens)]
		if step.Token == nil || top == nil {
			continue
		}
		compared++
		if *step.Token != int(top[0][0]) {
			if top[0][1]-top[1][1] > margin {
				t.Errorf("chunks %v: token %d at position %d, want %v", chunks, *step.Token, step.Position,
					top[0])
			}
			return // the texts differ from here on
		}
		for _, w := range top {
			for _, got := range step.Top {
				if got.ID == int(w[0]) && !(math.Abs(got.Logit-w[1]) <= off) {
					t.Errorf("chunks %v, position %d: token %d has logit %v, want %v", chunks, step.Position,
						got.ID, got.Logit, w[1])
				}
			}
		}
	}
	if compared == 0 {
		t.Errorf("chunks %v: no step compared", chunks)
	}
}
