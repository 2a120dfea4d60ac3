package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/trace"
	"gpuscope/trace/importer"
)

const tinyProfile = "testdata/executorch-qwen3-tiny.profile"

// tinyProgram returns the path of the program of tinyProfile.
func tinyProgram(t *testing.T) string {
	t.Helper()
	return shared(t, "pte", "qwen3-tiny-4w.pte")
}

// shared returns the path of a file in the shared folder. It skips the test if the file is not present.
func shared(t *testing.T, elements ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "..", "shared"}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the shared folder is missing: %v", err)
		}
		t.Skipf("the shared folder is missing: %v", err)
	}
	return path
}

// called runs gpuscope and returns its exit status and output.
func called(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p, out, errs := onFake(t, func(*fake.Device) {})
	status = p.main(t.Context(), args)
	return status, out.String(), errs.String()
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	status, stdout, stderr := called(t, args...)
	if status != exitDone {
		t.Fatalf("%q: exit %d: %s", args, status, stderr)
	}
	return stdout
}

// totals adds up two columns of a table of dispatches, over the rows that are in no other row.
func totals(t *testing.T, table, first, second string) (a, b float64) {
	t.Helper()
	var of struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(table), &of); err != nil {
		t.Fatal(err)
	}
	for _, row := range of.Rows {
		if row["depth"] != 0.0 {
			continue
		}
		x, _ := row[first].(float64)
		y, _ := row[second].(float64)
		a, b = a+x, b+y
	}
	return a, b
}

// Each time of the other engine is beside exactly one row, whatever was fused.
func TestTimesOfAnotherEngineAreBesideOurs(t *testing.T) {
	t.Parallel()
	program, dir := tinyProgram(t), t.TempDir()
	theirs := filepath.Join(dir, "theirs.json.gz")
	must(t, "trace", "import", tinyProfile, "--model", program, "-o", theirs)
	if said := must(t, "trace", "check", theirs); !strings.Contains(said, "4 steps") {
		t.Errorf("trace check: %s", said)
	}
	show := func(args ...string) string {
		t.Helper()
		return must(t, append([]string{
			"trace", "show", "--table", "dispatches", "--steps", "decode", "--format",
			"json",
		}, args...)...)
	}
	want, _ := totals(t, show(theirs), "sum_us", "base_us")
	if want < 500 || want > 700 {
		t.Errorf("a decode step of the profile takes %g µs", want)
	}
	for _, fuse := range []string{"on", "off"} {
		ours := filepath.Join(dir, fuse+".json")
		must(t, "run", program, "--ids", "1,2,3", "-n", "4", "--fuse", fuse, "--timing", "dispatch", "--profile",
			"off", "--trace", ours)
		for _, fold := range []string{"layer", "op", "none"} {
			_, got := totals(t, show(ours, "--base", theirs, "--fold", fold), "sum_us", "base_us")
			if math.Abs(got-want) > 0.1 {
				t.Errorf("--fuse %s, --fold %s: the other engine's times add up to %g µs, want %g", fuse,
					fold, got, want)
			}
		}
	}
}

func TestImportWritesToStandardOutput(t *testing.T) {
	t.Parallel()
	text := must(t, "trace", "import", tinyProfile, "--model", tinyProgram(t))
	got, err := trace.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got.Engine != "ExecuTorch" || got.Model.Name != "qwen3-tiny-4w.pte" ||
		got.Producer.Name != "gpuscope" || got.Created == "" {
		t.Errorf("engine %q, model %q, producer %q", got.Engine, got.Model.Name, got.Producer.Name)
	}
	op := got.Graph.Ops[8]
	if op.Name != "8.linear_q4gsw" || *op.SourceID != 8 || *op.Layer != 0 || op.Block != "attn" {
		t.Errorf("operator 8: %+v", op)
	}
}

func TestImportIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	program, other := tinyProgram(t), shared(t, "pte", "llama-demo-4w.pte")
	weights := shared(t, "models", "demo.gguf")
	out := filepath.Join(t.TempDir(), "out.json")
	for _, c := range []struct {
		name   string
		args   []string
		status int
	}{
		{"no profile", []string{"--model", program}, exitUsage},
		{"no model", []string{tinyProfile}, exitUsage},
		{"another program", []string{tinyProfile, "--model", other, "-o", out}, exitFailed},
		{"weights only", []string{tinyProfile, "--model", weights, "-o", out}, exitFailed},
		{"not a profile", []string{"testdata/run.txt", "--model", program, "-o", out}, exitFailed},
		{"no such file", []string{"testdata/none.txt", "--model", program, "-o", out}, exitFailed},
		{"unknown suffix", []string{tinyProfile, "--model", program, "-o", "out.xyz"}, exitUsage},
	} {
		status, _, stderr := called(t, append([]string{"trace", "import"}, c.args...)...)
		if status != c.status {
			t.Errorf("%s: exit %d, want %d", c.name, status, c.status)
		}
		golden.Text(c.name, stderr)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a file was written", c.name)
		}
	}
}

// The error for a file in an unknown format names every known one, however long the file's path is.
func TestUnknownProfileNamesEveryFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	if err := os.WriteFile(path, []byte("no profile"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := called(t, "trace", "import", path)
	if status != exitFailed || len(stderr) > cli.MaxErrorLine+len("gpuscope trace import: \n") {
		t.Errorf("exit %d, %d bytes", status, len(stderr))
	}
	for _, f := range importer.Formats() {
		if !strings.Contains(stderr, f[0]) {
			t.Errorf("%s is not in %q", f[0], stderr)
		}
	}
}

// The log is of llama.cpp on a GGUF file of this shape: two prefills of 512 tokens and four decode steps. In
// a decode step, all matrices and norms have as many rows as operators.
func TestLlamaCppLogIsJoinedWithAGGUFModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, theirs := filepath.Join(dir, "1b.gguf"), filepath.Join(dir, "theirs.json")
	if err := gguftest.HollowLlama(gguftest.Llama1B).WriteSparse(path); err != nil {
		t.Fatal(err)
	}
	must(t, "trace", "import", shared(t, "bench", "profiles", "llama-vulkan-perf-1b.txt"), "--model", path,
		"-o", theirs)
	got, err := trace.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if got.Model.Name != "hollow" {
		t.Errorf("model %q, want the name in the file, as in a run", got.Model.Name)
	}
	var of struct {
		Rows []struct {
			Class  string  `json:"class"`
			US     float64 `json:"us"`
			Rows   int     `json:"rows"`
			Joined string  `json:"joined"`
		}
	}
	text := must(t, "trace", "show", theirs, "--table", "classes", "--steps", "s2", "--format", "json")
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		us   float64
		rows int
	}{
		"q and o": {202.8, 32}, "k and v": {179.8, 32}, "gate and up": {454.4, 48}, "down": {189.9, 16},
		"head": {94.8, 1}, "norms": {197.7, 33}, "attention": {375.5, 64},
	}
	for _, row := range of.Rows {
		w, ok := want[row.Class]
		if !ok {
			continue
		}
		delete(want, row.Class)
		if math.Abs(row.US-w.us) > 0.2 || row.Rows != w.rows || row.Joined != string(trace.JoinedByShape) {
			t.Errorf("%+v, want %+v", row, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("classes without a row: %v", want)
	}
}

// llamaRecords returns a profile of llama.cpp with a decode step of a model with this number of layers. With
// names, each record has the name of the tensor that it computes.
func llamaRecords(layers, hidden, kv, ffn, vocabulary int, names bool) []byte {
	var list []map[string]any
	add := func(op, tensor string, rows, cols int) {
		r := map[string]any{
			"type": 0, "name": op, "split_id": 0, "duration_ns": 1000 * (len(list) + 1),
			"ne_src0": []int{cols, rows}, "ne_src1": []int{cols, 1},
		}
		if names {
			r["tensor_name"] = tensor
		}
		list = append(list, r)
	}
	for l := range layers {
		at := func(tensor string) string { return fmt.Sprintf("%s-%d", tensor, l) }
		add("RMS_NORM", at("norm"), 1, hidden)
		add("MUL_MAT", at("Qcur"), hidden, hidden)
		add("MUL_MAT", at("Kcur"), kv, hidden)
		add("MUL_MAT", at("Vcur"), kv, hidden)
		add("FLASH_ATTN_EXT", at("__fattn__"), 1, hidden)
		add("MUL_MAT", at("attn_out"), hidden, hidden)
		add("RMS_NORM", at("norm"), 1, hidden)
		add("MUL_MAT", at("ffn_gate"), ffn, hidden)
		add("MUL_MAT", at("ffn_up"), ffn, hidden)
		add("MUL_MAT", at("ffn_out"), hidden, ffn)
	}
	add("RMS_NORM", "result_norm", 1, hidden)
	add("MUL_MAT", "result_output", vocabulary, hidden)
	text, err := json.Marshal(map[string]any{"version": 2, "backends": []int{}, "records": list})
	if err != nil {
		panic(err)
	}
	return text
}

// The rows are joined with the operators of a folder as with those of a GGUF file with the same tensors.
func TestProfilesAreJoinedWithAHuggingFaceFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, file := shared(t, "models", "arch", "llama3"), shared(t, "models", "arch", "llama3-f16.gguf")
	for _, names := range []bool{true, false} {
		profile, by := filepath.Join(dir, "llama.json"), trace.JoinedByShape
		if names {
			by = trace.JoinedByTensor
		}
		if err := os.WriteFile(profile, llamaRecords(3, 192, 64, 416, 3000, names), 0o600); err != nil {
			t.Fatal(err)
		}
		var rows [2][]string
		titles := []string{"llama3", "tiny llama3"} // of the folder, and of the file's metadata
		for i, model := range []string{folder, file} {
			out := filepath.Join(dir, "theirs.json")
			must(t, "trace", "import", profile, "--model", model, "-o", out)
			got, err := trace.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if got.Model.Name != titles[i] || got.Model.Source != filepath.Base(model) ||
				len(got.Steps) != 1 {
				t.Fatalf("%d steps of %s", len(got.Steps), got.Model.Name)
			}
			for _, s := range got.Steps[0].Dispatches {
				d := &got.Graph.Dispatches[got.Plans[s.Plan].Dispatch]
				name := got.Graph.Ops[d.Op].Name
				ns, _ := s.GPUNS.NS()
				rows[i] = append(rows[i], fmt.Sprint(name, " ", ns))
				if d.Joined != by {
					t.Errorf("%s in %s is joined by %q, want %q", name, model, d.Joined, by)
				}
			}
		}
		if !slices.Equal(rows[0], rows[1]) || len(rows[0]) != 32 ||
			!slices.Contains(rows[0], "layers.2.mlp.down 30000") {
			t.Errorf("rows of the folder: %q, of the file: %q", rows[0], rows[1])
		}
	}
}
