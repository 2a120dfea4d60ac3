package suite_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/program"
	"gpuscope/model/program/suite"
)

// sharedSuite reads a suite of ExecuTorch's own test cases.
func sharedSuite(t testing.TB, name string) *suite.Suite {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "pte", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	s, err := suite.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass runs cases of ExecuTorch's own suites, which must pass. With -short it runs every eighth.
func pass(t *testing.T, name, filter string) {
	s := sharedSuite(t, name)
	cases := s.Filter(filter)
	if testing.Short() {
		all := cases
		cases = nil
		for i := 0; i < len(all); i += 8 {
			cases = append(cases, all[i])
		}
	}
	for r := range s.Run(t.Context(), gputest.Open(t), cases, program.Options{}) {
		if !r.Passed {
			t.Errorf("%s: %v, worst %+v", r.Case, r.Err, r.Worst)
		}
	}
}

func TestCasesWithDynamicShapesPass(t *testing.T) { pass(t, "dynamic", "") }

func TestCasesOfLanguageModelOperatorsPass(t *testing.T) { pass(t, "ops", "llm") }

// floats returns an array of f32.
func floats(v ...float32) *npy.Array {
	a := &npy.Array{Type: npy.Float32, Dims: []int{len(v)}}
	for _, f := range v {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(f))
	}
	return a
}

// negation writes a suite with a program that negates up to 4 numbers, and returns its folder.
func negation(t *testing.T, cases ...suite.Case) string {
	t.Helper()
	tensor := p.Tensor(6, 4)
	tensor[8] = int8(1)
	m := p.Method("forward", []p.Table{p.Value(tensor), p.Value(tensor)}, []int32{0}, []int32{1})
	m[7] = []p.Table{p.Delegate("VulkanBackend", 0)}
	m[5] = []p.Table{p.Chain(p.Instruction(2, p.Table{0: int32(0), 1: []int32{0, 1}}))}
	g := p.Graph{
		Values:    []p.Table{p.GraphTensor(5, -1, 0, 4), p.GraphTensor(5, -1, 1, 4)},
		Operators: []p.Table{p.Operator(0, "aten.neg.default", 0, 1)},
		Inputs:    []uint32{0}, Outputs: []uint32{1},
	}
	program := p.Program{Segments: [][]byte{g.Bytes()}, Methods: []p.Table{m}}
	manifest, err := json.Marshal(map[string]any{"cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		suite.Manifest: manifest, "neg.pte": program.Bytes(),
		"two.npy": floats(1, -2).Bytes(), "minus_two.npy": floats(-1, 2).Bytes(),
		"four.npy": floats(1, 2, 3, 4).Bytes(), "minus_four.npy": floats(-1, -2, -3, -4.5).Bytes(),
		"five.npy": floats(1, 2, 3, 4, 5).Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(input, output string, atol float64) suite.Run {
	return suite.Run{Inputs: []string{input}, Outputs: []suite.Output{{File: output, Atol: atol}}}
}

func TestResultsHaveTheWorstElement(t *testing.T) {
	s, err := suite.Read(negation(t,
		suite.Case{Name: "passes", PTE: "neg.pte", Tier: "a", Runs: []suite.Run{
			run("two.npy", "minus_two.npy", 0), run("four.npy", "minus_four.npy", 1),
		}},
		suite.Case{Name: "fails", PTE: "neg.pte", Runs: []suite.Run{
			run("two.npy", "minus_two.npy", 0), run("four.npy", "minus_four.npy", 0.125),
		}},
		suite.Case{Name: "shape", PTE: "neg.pte", Runs: []suite.Run{run("two.npy", "minus_four.npy", 1)}},
		suite.Case{Name: "input", PTE: "neg.pte", Runs: []suite.Run{run("five.npy", "minus_four.npy", 1)}},
		suite.Case{Name: "file", PTE: "none.pte", Runs: []suite.Run{run("two.npy", "minus_two.npy", 0)}},
	))
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]suite.Result{}
	for r := range s.Run(t.Context(), gputest.Open(t), s.Cases, program.Options{}) {
		results[r.Case] = r
	}
	if r := results["passes"]; !r.Passed || r.Runs != 4 || r.Tier != "a" || r.Worst == nil ||
		r.Worst.OfTolerance != 0.5 {
		t.Errorf("passes: %+v, worst %+v", r, r.Worst)
	}
	want := suite.Worst{Run: 1, Element: 3, Got: -4, Want: -4.5, AbsError: 0.5, OfTolerance: 4}
	if r := results["fails"]; r.Passed || r.Err != nil || r.Worst == nil || *r.Worst != want {
		t.Errorf("fails: %+v, worst %+v, want %+v", r, r.Worst, want)
	}
	if r := results["shape"]; r.Passed || !errors.Is(r.Err, suite.ErrShape) || r.Error == "" {
		t.Errorf("shape: %+v", r)
	}
	if r := results["input"]; r.Passed || r.Err == nil || r.Runs != 0 {
		t.Errorf("input: %+v", r)
	}
	if r := results["file"]; r.Passed || !errors.Is(r.Err, os.ErrNotExist) {
		t.Errorf("file: %+v", r)
	}
}

func TestFilterMatchesNameOperatorAndTier(t *testing.T) {
	s := &suite.Suite{Cases: []suite.Case{{Name: "add_2d", Op: "add", Tier: "llm"}, {Name: "x", Op: "mul", Tier: "more"}}}
	for filter, want := range map[string]int{"": 2, "2d": 1, "mul": 1, "llm": 1, "none": 0} {
		if got := len(s.Filter(filter)); got != want {
			t.Errorf("filter %q: %d cases, want %d", filter, got, want)
		}
	}
}

func TestWrongManifestsAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	for name, text := range map[string]string{
		"no JSON":            "cases",
		"no cases":           `{"cases": []}`,
		"no name":            `{"cases": [{"pte": "a.pte", "runs": [{}]}]}`,
		"no runs":            `{"cases": [{"name": "a", "pte": "a.pte"}]}`,
		"file outside":       `{"cases": [{"name": "a", "pte": "../a.pte", "runs": [{}]}]}`,
		"negative tolerance": `{"cases": [{"name": "a", "pte": "a.pte", "runs": [{"outputs": [{"file": "b", "atol": -1}]}]}]}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, suite.Manifest), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := suite.Read(dir)
		if !errors.Is(err, suite.ErrManifest) {
			t.Errorf("%s: %v, want ErrManifest", name, err)
			continue
		}
		golden.Text(name, strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	if _, err := suite.Read(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without manifest: %v", err)
	}
}

func TestNumbersThatJSONLacksAreText(t *testing.T) {
	data, err := json.Marshal([]suite.Number{1.5, suite.Number(math.Inf(1)), suite.Number(math.NaN())})
	if want := `[1.5,"+Inf","NaN"]`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
}
