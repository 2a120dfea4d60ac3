package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/program/programtest"
	"gpuscope/model/sample"
	"gpuscope/session"
)

// greedyProgram writes a program that computes only the next token, and returns its path.
func greedyProgram(t *testing.T) string {
	t.Helper()
	data, err := programtest.Greedy(sharedProgram(t, "qwen3-tiny-4w.pte"), "text_decoder")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "greedy.pte")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgramsWithoutLogitsGiveTheSameTokens(t *testing.T) {
	prompt := []int{5, 17, 400, 23, 8}
	var texts [][]int
	for _, o := range []Options{
		{Path: sharedProgram(t, "qwen3-tiny-4w.pte")},
		{Path: greedyProgram(t), TopLogits: 5, TopLogitsAny: true},
		{Path: greedyProgram(t), Pipelined: true},
	} {
		s, end := deviceSession(t, o)
		for _, c := range []session.Command{
			{Kind: session.Prompt, Tokens: prompt, Chunks: []int{3}, N: 8}, {Kind: session.Run, N: 7},
		} {
			if _, err := s.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		tr := end()
		var text []int
		for i := range tr.Steps {
			if step := &tr.Steps[i]; step.Token != nil {
				text = append(text, *step.Token)
				if step.Top != nil && o.TopLogitsAny {
					t.Errorf("step %d has candidates %v", i, step.Top)
				}
			}
		}
		if only := o.Path != sharedProgram(t, "qwen3-tiny-4w.pte"); tr.Graph.OnlyToken() != only {
			t.Errorf("%s: OnlyToken is %v", o.Path, !only)
		}
		texts = append(texts, text)
	}
	if len(texts[0]) < 5 || !slices.Equal(texts[0], texts[1]) || !slices.Equal(texts[0], texts[2]) {
		t.Errorf("texts %v", texts)
	}
}

func TestProgramsWithoutLogitsRefuseWhatNeedsThem(t *testing.T) {
	golden := wordingtest.New(t)
	path := greedyProgram(t)
	for name, o := range map[string]Options{
		"top logits":  {TopLogits: 3},
		"temperature": {Sampling: sample.Sampling{Temperature: 0.5, TopP: 1, RepeatPenalty: 1}},
		"penalty":     {Sampling: sample.Sampling{RepeatPenalty: 1.5, RepeatLastN: 8}},
	} {
		o.Path = path
		m, err := Read(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Plan(gpu.DefaultLimits())
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v, want ErrUsage", name, err)
		}
		golden.Error(name, err)
	}
	m, err := Read(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Plan(gpu.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if out := g.Outputs(); len(out) != 1 || g.Value(out[0]).DType != graph.I32 {
		t.Errorf("outputs %v", out)
	}
}
