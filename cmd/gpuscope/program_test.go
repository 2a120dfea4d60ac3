package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte/describe"
	"gpuscope/model/checkpoint/pte/ptetest"
)

// showGraph runs gpuscope graph and returns its exit status and output.
func showGraph(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = testProgram(&out, &errs).main(t.Context(), append([]string{"graph"}, args...))
	return status, out.String(), errs.String()
}

func TestGraphShowsExecuTorchPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program := write("one.pte", ptetest.Example(true).Bytes())
	elsewhere := t.TempDir()
	data := filepath.Join(elsewhere, "weights.ptd")
	weights := ptetest.DataFile(ptetest.Named{Key: "weight", Data: make([]byte, 128)})
	if err := os.WriteFile(data, weights, 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := write("two.bpte", ptetest.Bundle(ptetest.Example(false).Bytes(), ptetest.Suite("forward")))
	gguf := write("x.gguf", []byte("GGUF"))
	broken := write("broken.pte", ptetest.Example(true).Bytes()[:100])

	status, text, stderr := showGraph(t, program)
	if status != exitDone || stderr != "" || !strings.Contains(text, "et_vk.select_as_symint.default") {
		t.Errorf("exit %d: %s%s", status, stderr, text)
	}
	status, text, _ = showGraph(t, "--format", "json", "--data", data, program, bundle)
	var all struct{ Programs []*describe.Info }
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != exitDone || len(all.Programs) != 2 {
		t.Fatalf("exit %d: %d programs, %v", status, len(all.Programs), err)
	}
	for i, want := range []string{program, data} { // the program's own weights come first
		if got := all.Programs[i].Methods[0].Delegates[0].Graph.Constants[0].File; got != want {
			t.Errorf("program %d has its weights in %q, want %q", i, got, want)
		}
	}
	if status, text, _ = showGraph(t, "--format", "dot", program); status != exitDone ||
		!strings.HasPrefix(text, "digraph") {
		t.Errorf("--format dot: exit %d: %.100s", status, text)
	}
	for _, args := range [][]string{
		{program, gguf},
		{gguf, gguf},
		{"--passes", program, bundle},
		{"--method", "forward", program},
		{"--at", "1,0", program, bundle},
		{"--data", data},
		{"--data", data, gguf},
	} {
		if status, text, _ = showGraph(t, args...); status != exitUsage || text != "" {
			t.Errorf("%q: exit %d", args, status)
		}
	}
	// The fixture's delegate has an operator that no kernel computes, so it cannot be planned.
	if status, text, stderr = showGraph(t, "--passes", program); status != exitFailed || text != "" ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("--passes: exit %d: %q", status, stderr)
	}
	if status, text, stderr = showGraph(t, broken); status != exitFailed || text != "" ||
		strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, broken) {
		t.Errorf("a broken program: exit %d: %q", status, stderr)
	}
}

// constantsOf returns where the constants of the first method of each program are.
func constantsOf(t *testing.T, text string) (files []string) {
	t.Helper()
	var all struct{ Programs []*describe.Info }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, p := range all.Programs {
		for _, c := range p.Methods[0].Delegates[0].Graph.Constants {
			files = append(files, filepath.Base(c.File))
		}
	}
	return files
}

func TestGraphSaysWhichDataFileHasAConstant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	graph := ptetest.ExampleGraph()
	graph.Constants[1] = ptetest.ByKey("bias", 32)
	example := ptetest.Example(false)
	example.Segments[0] = graph.Bytes()
	program := write("model.pte", example.Bytes())
	weight := ptetest.Named{Key: "weight", Data: make([]byte, 128)}
	first := write("0.ptd", ptetest.DataFile(weight))
	second := write("1.ptd", ptetest.DataFile(ptetest.Named{Key: "bias", Data: make([]byte, 32)}))
	third := write("2.ptd", ptetest.DataFile(ptetest.Named{Key: "other"}, weight))

	status, text, stderr := showGraph(t, "--format", "json", "--data", first, "--data", second, program)
	if want := []string{"0.ptd", "1.ptd", "model.pte"}; status != exitDone ||
		!slices.Equal(constantsOf(t, text), want) {
		t.Errorf("exit %d: %s: %s", status, stderr, text)
	}
	// The key is in two files, given or in the folder.
	for _, args := range [][]string{
		{"--data", first, "--data", third, program},
		{"--data", third, "--data", second, "--data", first, program},
	} {
		status, text, stderr := showGraph(t, args...)
		if status != exitFailed || text != "" || !strings.Contains(stderr, first) ||
			!strings.Contains(stderr, third) {
			t.Errorf("%v: exit %d: %s", args, status, stderr)
		}
	}
	// A data file is an operand of its own.
	status, text, stderr = showGraph(t, "--format", "json", third, second)
	var all struct {
		DataFiles []*describe.DataInfo `json:"data_files"`
	}
	err := json.Unmarshal([]byte(text), &all)
	if err != nil || status != exitDone || len(all.DataFiles) != 2 ||
		all.DataFiles[0].Named[1].Key != "weight" || all.DataFiles[0].Named[1].Bytes != 128 {
		t.Errorf("exit %d: %s: %v: %s", status, stderr, err, text)
	}
	status, text, _ = showGraph(t, second, program, "--data", first, "--data", second)
	if status != exitDone || !strings.Contains(text, "ExecuTorch data file") {
		t.Errorf("exit %d: %s", status, text)
	}
	for _, args := range [][]string{
		{"--format", "dot", second},
		{"--passes", second},
		{"--data", first, second},
		{second, "README.md"},
	} {
		if status, text, _ = showGraph(t, args...); status != exitUsage || text != "" {
			t.Errorf("%v: exit %d: %s", args, status, text)
		}
	}
}

func TestDataFilesAreNoModels(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weights.ptd")
	if err := os.WriteFile(path, ptetest.DataFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.open = p.openModel
	if status := p.main(t.Context(), []string{"run", path}); status != exitUsage ||
		!strings.Contains(stderr.String(), "--data") {
		t.Errorf("exit %d: %s", status, &stderr)
	}
}

// The exporter's memory plan is shown next to gpuscope's, or the reason why gpuscope has none.
func TestGraphPlansProgramsWithoutADevice(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "shared", "pte", "qwen3-tiny-4w.pte")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	example := writeExample(t)
	status, text, stderr := showGraph(t, "--format", "json", path, example)
	var all struct{ Programs []*describe.Info }
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != exitDone {
		t.Fatalf("exit %d: %s: %v", status, stderr, err)
	}
	m := &all.Programs[0].Methods[0]
	if m.Plan == nil || m.Plan.Refused != "" || len(m.Plan.Layouts) == 0 {
		t.Fatalf("%+v", m.Plan)
	}
	var total int64
	var stored []int
	for _, l := range m.Plan.Layouts {
		for _, s := range l.Slots {
			total += s.Bytes
			stored = append(stored, s.Values...)
		}
	}
	if total != m.Plan.Bytes["shared"] || total == 0 {
		t.Errorf("slots of %d bytes, want %d", total, m.Plan.Bytes["shared"])
	}
	// Each intermediate of the file is in a slot, or fused away, or has other memory than a slot.
	inSlots := 0
	for _, v := range m.Delegates[0].Graph.Values {
		if slices.Contains(stored, v.ID) || slices.Contains(m.Plan.Fused, v.ID) {
			inSlots++
			if v.Role == describe.Weight || v.Role == describe.State || v.Role == describe.Input {
				t.Errorf("value %d is %s", v.ID, v.Role)
			}
		}
	}
	if inSlots < 50 {
		t.Errorf("%d tensors in slots or fused away", inSlots)
	}
	if plan := all.Programs[1].Methods[0].Plan; plan == nil || plan.Refused == "" || plan.Layouts != nil {
		t.Errorf("a program with unknown operators: %+v", plan)
	}
	if plan := all.Programs[1].Methods[2].Plan; plan != nil {
		t.Errorf("a constant method: %+v", plan)
	}
}

// writeExample writes ptetest.Example to a file and returns its path.
func writeExample(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example.pte")
	if err := os.WriteFile(path, ptetest.Example(true).Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
