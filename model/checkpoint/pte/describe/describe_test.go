package describe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/internal/printable"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/describe"
	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/checkpoint/pte/vulkan"
)

func example(t testing.TB) *describe.Info {
	t.Helper()
	f, err := pte.Parse(ptetest.Example(true).Bytes(), "example.pte")
	if err != nil {
		t.Fatal(err)
	}
	info := describe.Of(f)
	info.Methods[0].Plan = &describe.Plan{
		Device: "a device", Operators: 5, Dispatches: 4,
		Bytes: map[string]int64{"shared": 1536, "state": 1024},
		Layouts: []describe.Layout{
			{Slots: []describe.Slot{{Bytes: 512, Values: []int{4}}, {Bytes: 1024, Others: 2}}},
			{Slots: []describe.Slot{{Bytes: 256, Values: []int{4}, Others: 2}}},
		},
		Fused: []int{19}, Own: []int{0, 1, 5, 6},
	}
	info.Methods[1].Plan = &describe.Plan{Device: "a device", Refused: "the method calls no Vulkan delegate"}
	return info
}

// The expected output is in the files of testdata only.
func TestTextAndDrawingOfAProgram(t *testing.T) {
	t.Parallel()
	info := example(t)
	var text, dot bytes.Buffer
	if err := describe.Text(t.Context(), &text, info, info); err != nil {
		t.Fatal(err)
	}
	if err := describe.DOT(&dot, info); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"example.txt": text.Bytes(), "example.dot": dot.Bytes()} {
		path := filepath.Join("testdata", name)
		if wordingtest.Updating() {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: -want +got (go test -update rewrites the file):\n%s", name, diff)
		}
	}
}

func TestGraphSaysWhoUsesWhat(t *testing.T) {
	t.Parallel()
	g := example(t).Methods[0].Delegates[0].Graph
	roles := map[int]describe.Role{}
	for _, v := range g.Values {
		roles[v.ID] = v.Role
	}
	want := map[int]describe.Role{
		0: describe.Input, 1: describe.Input, 2: describe.Weight, 3: describe.Weight,
		4: describe.Intermediate,
		5: describe.State, 6: describe.Output, 19: describe.Intermediate,
	}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Error(diff)
	}
	for i, want := range [][]int{{1}, {0}, {1, 0}} { // position, length, end
		if s := g.SymInts[i]; !cmp.Equal(s.Inputs, want) || s.Writer != i {
			t.Errorf("SymInt %d: inputs %v, written by %d", s.ID, s.Inputs, s.Writer)
		}
	}
	if c := g.Constants[0]; c.Key != "weight" || c.File != "example.pte" || !cmp.Equal(c.Readers, []int{3}) {
		t.Errorf("%+v", c)
	}
}

func TestDimsThatChangeAreFound(t *testing.T) {
	t.Parallel()
	m := example(t).Methods[0]
	want := []describe.Dim{{Size: 16, Change: vulkan.Dynamic}, {Size: 4, Change: vulkan.Fixed}}
	if diff := cmp.Diff(want, m.Inputs[0].Dims); diff != "" {
		t.Error(diff)
	}
	for _, d := range m.Inputs[1].Dims {
		if d.Change != vulkan.Fixed {
			t.Errorf("a static input has %+v", d)
		}
	}
}

func TestDimsOfRealProgramsThatChange(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "pte")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	const f, d, u = vulkan.Fixed, vulkan.Dynamic, vulkan.Unknown
	for name, want := range map[string][]vulkan.Change{
		"llama-demo-4w": {f, d}, "llama-demo-8da4w": {f, d}, "qwen3-tiny-4w": {f, d},
		"dynamic/dyn_linear": {d, f}, "dynamic/dyn_residual": {f, f, d, f}, "dynamic/sdpa_dyn": {f, d, f, f},
		"dynamic/rope_dyn": {f, d, f, f}, "dynamic/static_rms": {f, f, f, f}, "dynamic/emb_dyn_linear": {d},
		"ops/conv1d__dynamic_length_10_to_7": {f, f, d},    // the weights have 4 channels
		"dynamic/dyn_sigmoid":                {f, f, u, u}, // the program does not say which dims are dynamic
	} {
		file, err := pte.Open(filepath.Join(dir, name+".pte"))
		if err != nil {
			t.Error(err)
			continue
		}
		var got []vulkan.Change
		for _, d := range describe.Of(file).Methods[0].Inputs[0].Dims {
			got = append(got, d.Change)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		file.Close()
	}
}

func TestMissingWeightsAreStillShown(t *testing.T) {
	t.Parallel()
	f, err := pte.Parse(ptetest.Example(false).Bytes(), "example.pte")
	if err != nil {
		t.Fatal(err)
	}
	g := describe.Of(f).Methods[0].Delegates[0].Graph
	if g == nil || g.Constants[0].File != "" || g.Constants[1].File != "example.pte" {
		t.Errorf("%+v", g)
	}
}

// A delegate for another backend is shown up to the parts in its header.
func TestPartsOfOtherBackendsAreShown(t *testing.T) {
	t.Parallel()
	graph := ptetest.ExampleGraph()
	xnnpack := graph.Bytes()
	copy(xnnpack[4:], "XH00")
	p := ptetest.Program{Segments: [][]byte{xnnpack, []byte("a model for Core ML"), xnnpack[:20]}}
	m := ptetest.Method("forward", nil, nil, nil)
	m[7] = []ptetest.Table{
		ptetest.Delegate("XnnpackBackend", 0), ptetest.Delegate("CoreMLBackend", 1),
		ptetest.Delegate("Any", 2),
	}
	p.Methods = []ptetest.Table{m}
	f, err := pte.Parse(p.Bytes(), "example.pte")
	if err != nil {
		t.Fatal(err)
	}
	d := describe.Of(f).Methods[0].Delegates
	parts := d[0].Parts
	if parts == nil || parts.Header != "XH00" || parts.ConstantBytes != int64(len(graph.Data)) ||
		parts.GraphBytes == 0 || d[0].Graph != nil || d[0].Unread != "" {
		t.Errorf("XNNPACK: %+v, parts %+v", d[0], parts)
	}
	if d[1].Parts != nil || d[1].Bytes != 19 || d[2].Parts != nil {
		t.Errorf("other backends: %+v", d[1:])
	}
}

func TestDataFilesAreDescribed(t *testing.T) {
	t.Parallel()
	f, err := pte.ParseData(ptetest.DataFile(
		ptetest.Named{
			Key: "a", Data: make([]byte, 24),
			Layout: ptetest.Table{0: int8(6), 1: []int32{2, 3}, 2: []byte{1, 0}},
		},
		ptetest.Named{Key: "b", Data: make([]byte, 5)},
	), "weights.ptd")
	if err != nil {
		t.Fatal(err)
	}
	info := describe.OfData(f)
	at := info.Named[0].Offset
	want := &describe.DataInfo{
		DataFile: describe.DataFile{File: "weights.ptd", Keys: 2, Bytes: 29},
		Named: []describe.NamedData{
			{Key: "a", Offset: at, Bytes: 24, Type: "f32", Dims: []int{2, 3}, DimOrder: []int{1, 0}},
			{Key: "b", Offset: at + 32, Bytes: 5},
		},
	}
	if diff := cmp.Diff(want, info); diff != "" || at == 0 {
		t.Error(diff)
	}
	var text bytes.Buffer
	if err := describe.DataText(t.Context(), &text, info); err != nil || !bytes.Contains(text.Bytes(), []byte("f32 [2, 3]")) {
		t.Errorf("%v: %s", err, &text)
	}
}

// Delegates with the same bytes are described only once.
func TestEqualDelegatesAreDescribedOnce(t *testing.T) {
	t.Parallel()
	p := ptetest.Example(true)
	again := ptetest.Table{}
	for slot, v := range p.Methods[0] {
		again[slot] = v
	}
	again[0] = "again"
	p.Methods = append(p.Methods, again)
	f, err := pte.Parse(p.Bytes(), "example.pte")
	if err != nil {
		t.Fatal(err)
	}
	info := describe.Of(f)
	if d := info.Methods[3].Delegates[0]; d.Graph != nil || d.Same != "forward/0" {
		t.Errorf("%+v", d)
	}
	if !cmp.Equal(info.Methods[3].Inputs, info.Methods[0].Inputs) {
		t.Errorf("inputs %+v", info.Methods[3].Inputs)
	}
}

// A damaged program that still opens is described, and the output has no terminal control characters.
func TestDamagedProgramsAreDescribed(t *testing.T) {
	t.Parallel()
	original := ptetest.Example(true).Bytes()
	rapid.Check(t, func(t *rapid.T) {
		data := append([]byte{}, original...)
		for range rapid.IntRange(1, 6).Draw(t, "flips") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		f, err := pte.Parse(data, "damaged.pte")
		if err != nil {
			return
		}
		info := describe.Of(f)
		var text, dot bytes.Buffer
		if err := describe.Text(t.Context(), &text, info); err != nil {
			t.Fatal(err)
		}
		if err := describe.DOT(&dot, info); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(info); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text.Bytes()) {
			line := string(bytes.TrimSuffix(line, []byte("\n")))
			if printable.Clean(line) != line {
				t.Fatal(fmt.Sprintf("a line with terminal control characters: %q", line))
			}
		}
	})
}
