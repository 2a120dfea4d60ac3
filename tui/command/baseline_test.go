package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
)

// Tab offers the newest trace first, and neither the shown trace nor files of other kinds.
func TestTracesAreOfferedNewestFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, name := range []string{"old.json", "new.json.gz", "shown.jsonl", "model.gguf", "no-suffix", ".hidden.json"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(name, written, written); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("runs", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("runs", "a.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := "runs" + string(filepath.Separator)
	for typed, want := range map[string]string{
		"": "new.json.gz old.json " + folder, "o": "old.json", "ru": folder, folder: folder + "a.json",
		folder + "x": "", ".h": ".hidden.json",
	} {
		got, err := Traces(t.Context(), typed, "shown.jsonl")
		if err != nil || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q %v, want %q", typed, got, err, want)
		}
	}
	if _, err := Traces(t.Context(), "none"+string(filepath.Separator), ""); err == nil {
		t.Error("a folder that does not exist is listed")
	}
}

// A prompt is compared with the prompts of a file, and a whole run with the whole file.
func TestTheBaselineHasThePhasesOfTheSelection(t *testing.T) {
	t.Parallel()
	x := analyze.NewIndex(tracetest.Run(1, 40, 40, 1, 1, 1))
	for word, want := range map[string]string{
		"prefill": "old.json prefill", "decode": "old.json decode", "all": "old.json all",
	} {
		s, err := x.ParseSelection(word)
		if err != nil {
			t.Fatal(err)
		}
		if b := SameKind(x, "runs/old.json", x, s); b == nil || !strings.HasPrefix(b.Selection.Name, want) {
			t.Errorf("%s: baseline %+v, want %q", word, b, want)
		}
	}
}

// One step stands for the steps of its phase with the same routes, also if later steps have others.
func TestAStepIsComparedAsTheStepsWithItsRoutes(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(1, 40, 1, 1, 1, 1, 1, 1, 1)
	for i := range tr.Steps {
		tr.Steps[i].Cold = false
	}
	tracetest.Reroute(tr, 1, 2, 3)
	x, other := analyze.NewIndex(tr), analyze.NewIndex(tracetest.Run(1, 40, 1, 1, 1, 1, 1, 1, 1))
	for step, want := range map[int][]int{2: {1, 2}, 3: {1, 2, 3}, 5: {4, 5, 6, 7}, 7: {4, 5, 6, 7}} {
		s := x.Step(step)
		d, err := Compare(t.Context(), x, s, SameKind(other, "old.json", x, s))
		if err != nil || !slices.Equal(d.Now.Selection.Steps, want) {
			t.Errorf("s%d: steps %v, error %v; want %v", step, d.Now.Selection.Steps, err, want)
		}
	}
}
