package pte_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/ptetest"
)

const f32, int64Type = 6, 4

func mustParse(t testing.TB, data []byte) *pte.File {
	t.Helper()
	f, err := pte.Parse(data, "test.pte")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes a file into a folder and returns its path.
func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// damage fails the test unless err is a *pte.Error with the given table and field.
func damage(t testing.TB, what string, err error, table, field string) {
	t.Helper()
	var e *pte.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: got %v, want a *pte.Error", what, err)
		return
	}
	if e.Table != table || e.Field != field || e.Problem == "" || e.File == "" {
		t.Errorf("%s: got table %q, field %q, file %q, want table %q, field %q: %v", what, e.Table, e.Field,
			e.File,
			table, field, err)
	}
	if strings.ContainsAny(e.Error(), "\n\r") {
		t.Errorf("%s: the error has several lines: %q", what, e)
	}
}

func TestMethodsAreRead(t *testing.T) {
	t.Parallel()
	f := mustParse(t, ptetest.Example(true).Bytes())
	if len(f.Methods) != 3 || !f.Extended || f.Bundled {
		t.Fatalf("%d methods, extended %v, bundled %v", len(f.Methods), f.Extended, f.Bundled)
	}
	m, err := f.Method("forward")
	if err != nil {
		t.Fatal(err)
	}
	in, out := m.Values[0].(*pte.Tensor), m.Values[2].(*pte.Tensor)
	if in.Type != pte.Float32 || in.Memory != pte.FromCaller || in.Dynamism != pte.Bounded ||
		!cmp.Equal(in.Sizes, []int{16, 4}) || !cmp.Equal(in.DimOrder, []int{0, 1}) || !in.Strided {
		t.Errorf("input %+v", in)
	}
	if out.Memory != pte.Planned || out.Arena != 1 || out.ArenaOffset != 1<<32+64 {
		t.Errorf("output %+v", out)
	}
	if d := m.Delegates[0]; d.Backend != "VulkanBackend" || d.Inline || len(d.Options) != 2 ||
		d.Options[0].Key != "require_dynamic_shapes" || !cmp.Equal(d.Options[0].Value, []byte{1}) {
		t.Errorf("delegate %+v", d)
	}
	if m.InputTree != "in" || m.OutputTree != "out" || m.Constant() {
		t.Errorf("trees %q, %q, constant %v", m.InputTree, m.OutputTree, m.Constant())
	}

	m, err = f.Method("other")
	if err != nil {
		t.Fatal(err)
	}
	want := []pte.Value{
		true, 2.5, "text", nil, int64(7),
		pte.IntList{5, 5},
		[]float64{0.5},
		[]bool{true, false},
		pte.TensorList{0},
		pte.TensorList{0, -1},
	}
	if diff := cmp.Diff(want, m.Values[1:]); diff != "" {
		t.Error(diff)
	}
	instructions := []pte.Instruction{
		{Op: pte.JumpFalseCall, Target: 4, Args: []int{1}},
		{Op: pte.KernelCall, Args: []int{0, 0, 5, 0}},
		{Op: pte.MoveCall, Args: []int{0, 0}},
		{Op: pte.DelegateCall, Args: []int{0}},
		{Op: pte.FreeCall, Args: []int{0}},
	}
	if diff := cmp.Diff(instructions, m.Chains[0].Instructions); diff != "" {
		t.Error(diff)
	}
	if m.Operators[0].String() != "aten::add.out" || m.Operators[1].String() != "aten::copy_" {
		t.Errorf("operators %v", m.Operators)
	}
	if data, err := m.Delegates[0].Data.Bytes(); string(data) != "for another backend" || err != nil {
		t.Errorf("delegate %q, %v", data, err)
	}

	m, err = f.Method("get_max_seq_len")
	if err != nil || !m.Constant() || m.Values[m.Outputs[0]] != int64(128) {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := f.Method("none"); err == nil {
		t.Error("Method found a method that does not exist")
	}
}

// An old program is a FlatBuffer without a header, and its weights and delegates are stored in the
// FlatBuffer.
func TestPlainProgramHasInlineData(t *testing.T) {
	t.Parallel()
	weight := ptetest.Tensor(f32, 2)
	weight[5] = uint32(1)
	m := ptetest.Method("forward", []ptetest.Table{ptetest.Value(weight)}, nil, []int32{0})
	m[7] = []ptetest.Table{{0: "Any", 1: ptetest.Table{0: int8(0), 1: uint32(0)}}}
	p := ptetest.Program{
		Methods: []ptetest.Table{m}, Inline: [][]byte{[]byte("inline")}, Buffers: [][]byte{nil, []byte("12345678")},
		Plain: true,
	}
	f := mustParse(t, p.Bytes())
	got := f.Methods[0].Values[0].(*pte.Tensor)
	data, err := got.Data.Bytes()
	if f.Extended || got.Memory != pte.Constant || string(data) != "12345678" || err != nil {
		t.Errorf("extended %v, weight %+v, %q, %v", f.Extended, got, data, err)
	}
	d := f.Methods[0].Delegates[0]
	if data, err = d.Data.Bytes(); !d.Inline || string(data) != "inline" || err != nil {
		t.Errorf("delegate %+v, %q, %v", d, data, err)
	}
	p.Buffers[1] = p.Buffers[1][:7]
	_, err = pte.Parse(p.Bytes(), "short.pte")
	damage(t, "a buffer that is too short", err, "Tensor", "data_buffer_idx")
}

func TestConstantsAndMutableDataAreInSegments(t *testing.T) {
	t.Parallel()
	weight, state := ptetest.Tensor(f32, 1), ptetest.Tensor(f32, 1)
	weight[5], state[5] = uint32(2), uint32(1)
	state[6] = ptetest.Table{0: uint32(1)}
	state[9] = ptetest.Table{0: uint64(0), 1: "layers.0.k_cache"}
	m := ptetest.Method("forward", []ptetest.Table{ptetest.Value(weight), ptetest.Value(state)}, nil, nil)
	p := ptetest.Program{
		Methods: []ptetest.Table{m}, Segments: [][]byte{[]byte("aaaabbbb"), []byte("stat")},
		Constants: &ptetest.Packed{Segment: 0, Offsets: []uint64{0, 0, 4}},
		Mutable:   []ptetest.Packed{{Segment: 1, Offsets: []uint64{0, 0}}},
	}
	for _, p.Short = range []bool{false, true} { // whether the header lacks the size of the segments
		f := mustParse(t, p.Bytes())
		for i, want := range []struct {
			memory pte.Memory
			data   string
			name   string
		}{{pte.Constant, "bbbb", ""}, {pte.Mutable, "stat", "layers.0.k_cache"}} {
			got := f.Methods[0].Values[i].(*pte.Tensor)
			data, err := got.Data.Bytes()
			if got.Memory != want.memory || string(data) != want.data || got.Name != want.name || err != nil {
				t.Errorf("value %d: %+v, %q, %v", i, got, data, err)
			}
		}
	}
	p.Constants.Offsets[2] = 5
	_, err := pte.Parse(p.Bytes(), "long.pte")
	damage(t, "a weight past its segment", err, "Tensor", "data_buffer_idx")
	p.Constants.Offsets = p.Constants.Offsets[:2]
	_, err = pte.Parse(p.Bytes(), "few.pte")
	damage(t, "a weight without an offset", err, "Tensor", "data_buffer_idx")
}

func TestDataIsFoundInProgramThenDataFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := write(t, dir, "model.pte", ptetest.Example(true).Bytes())
	one := write(t, dir, "one.ptd", ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("first")},
		ptetest.Named{Key: "weight", Data: []byte("not this")}))
	two := write(t, dir, "two.ptd", ptetest.DataFile(ptetest.Named{
		Key: "b", Data: []byte("second bytes"),
		Layout: ptetest.Table{0: int8(f32), 1: []int32{3}, 2: []byte{0}},
	}))
	f, err := pte.Open(program, one, two)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": one, "b": two, "weight": program} {
		d, err := f.Lookup(key)
		if file, at := d.Place(); err != nil || file != want || at == 0 {
			t.Errorf("%s is in %s at %d, %v, want %s", key, file, at, err, want)
		}
	}
	d, err := f.Lookup("b")
	data, bytesErr := d.Bytes()
	if string(data) != "second bytes" || errors.Join(err, bytesErr) != nil {
		t.Errorf("%q, %v, %v", data, err, bytesErr)
	}
	if again, _ := f.Lookup("b"); again != d {
		t.Error("a second lookup of the same key returned different data")
	}
	l := f.DataFiles()[1].Named[0].Layout
	if l == nil || l.Type != pte.Float32 || !cmp.Equal(l.Sizes, []int{3}) {
		t.Errorf("layout %+v", l)
	}
	if _, err := f.Lookup("c"); !errors.Is(err, pte.ErrNoData) {
		t.Errorf("a missing key: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Bytes(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("bytes after Close: %v", err)
	}
}

func TestKeyInTwoDataFilesIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := write(t, dir, "model.pte", ptetest.Example(true).Bytes())
	one := write(t, dir, "one.ptd", ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("1")}))
	two := write(t, dir, "two.ptd", ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("1")}))
	if _, err := pte.Open(program, one, two); !errors.Is(err, pte.ErrTwice) {
		t.Errorf("given: %v", err)
	}
	f, err := pte.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Lookup("a"); !errors.Is(err, pte.ErrTwice) {
		t.Errorf("in the folder: %v", err)
	}
	_, err = pte.ParseData(ptetest.DataFile(ptetest.Named{Key: "a"}, ptetest.Named{Key: "a"}), "x.ptd")
	if !errors.Is(err, pte.ErrTwice) {
		t.Errorf("in one file: %v", err)
	}
}

// Data files in the program's folder are searched for keys that are found nowhere else. Other files in the
// folder, including damaged ones, cause no error.
func TestDataFilesOfTheFolderAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := write(t, dir, "model.pte", ptetest.Example(true).Bytes())
	write(t, dir, "broken.ptd", []byte("no data file"))
	write(t, dir, "other.ptd", ptetest.DataFile(ptetest.Named{Key: "other", Data: []byte("1")}))
	beside := write(t, dir, "model.ptd", ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("1")}))
	f, err := pte.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := len(f.DataFiles()); n > 0 {
		t.Errorf("%d data files before any is needed", n)
	}
	for range 2 {
		d, err := f.Lookup("a")
		if file, _ := d.Place(); file != beside || err != nil {
			t.Errorf("a is in %s, %v", file, err)
		}
	}
	if n := len(f.DataFiles()); n != 1 {
		t.Errorf("%d data files are used", n)
	}
	if _, err := f.Lookup("none"); !errors.Is(err, pte.ErrNoData) || !strings.Contains(err.Error(), "broken.ptd") {
		t.Errorf("a key that the broken file may have: %v", err)
	}
}

func TestExternalTensorsAreNamed(t *testing.T) {
	t.Parallel()
	weight := ptetest.Tensor(f32, 1)
	weight[9] = ptetest.Table{1: "layers.0.weight", 2: int8(1)}
	p := ptetest.Program{Methods: []ptetest.Table{
		ptetest.Method("forward", []ptetest.Table{ptetest.Value(weight)}, nil, nil),
	}}
	got := mustParse(t, p.Bytes()).Methods[0].Values[0].(*pte.Tensor)
	if got.Memory != pte.External || got.Name != "layers.0.weight" {
		t.Errorf("%+v", got)
	}
}

func TestBundleHasProgramAndTestCases(t *testing.T) {
	t.Parallel()
	inputs := []ptetest.Table{
		ptetest.Test(f32, []int32{2}, []byte("12345678")),
		{0: ptetest.One(2, ptetest.Table{0: int64(5)})},
		{0: ptetest.One(3, ptetest.Table{0: true})},
		{0: ptetest.One(4, ptetest.Table{0: 1.5})},
	}
	outputs := []ptetest.Table{ptetest.Test(int64Type, nil, []byte("abcdefgh"))}
	data := ptetest.Bundle(ptetest.Example(true).Bytes(), ptetest.Suite("forward", ptetest.Case(inputs,
		outputs)))
	f := mustParse(t, data)
	if !f.Bundled || len(f.Methods) != 3 || len(f.Suites) != 1 || f.Suites[0].Method != "forward" {
		t.Fatalf("%+v", f)
	}
	c := f.Suites[0].Cases[0]
	tensor := c.Inputs[0].(*pte.TestTensor)
	bytes, err := tensor.Data.Bytes()
	if tensor.Type != pte.Float32 || string(bytes) != "12345678" || err != nil {
		t.Errorf("%+v, %q, %v", tensor, bytes, err)
	}
	if !cmp.Equal(c.Inputs[1:], []any{int64(5), true, 1.5}) || len(c.Outputs) != 1 {
		t.Errorf("%+v", c)
	}
	d, err := f.Methods[1].Delegates[0].Data.Bytes()
	if string(d) != "for another backend" || err != nil {
		t.Errorf("a delegate of the inner program: %q, %v", d, err)
	}
	_, err = pte.Parse(ptetest.Bundle(nil), "empty.bpte")
	damage(t, "a bundle without a program", err, "header", "identifier")
}

func TestFilesOfOtherFormatsAreRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"empty": nil, "short": []byte("ET12"), "gguf": []byte("GGUF\x03\x00\x00\x00\x00\x00\x00\x00"),
		"a later version": ptetest.Flat("ET13", ptetest.Table{}),
	} {
		_, err := pte.Parse(data, name)
		damage(t, name, err, "header", "identifier")
		if !errors.Is(err, pte.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pte.ParseData(data, name); !errors.Is(err, pte.ErrFormat) {
			t.Errorf("%s as a data file: %v", name, err)
		}
	}
	if _, err := pte.Open(filepath.Join(t.TempDir(), "none.pte")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestProgramsAreRecognizedByTheirFirstBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"a":     {ptetest.Example(true).Bytes(), true},
		"b":     {ptetest.Bundle(nil), true},
		"c.pte": {[]byte("GGUF\x03\x00\x00\x00"), false},
		"d.pte": {[]byte("\x00\x00\x00\x00ET"), false},
	} {
		if got := pte.IsProgram(write(t, dir, name, c.data)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if pte.IsProgram(dir) || pte.IsProgram(filepath.Join(dir, "none")) {
		t.Error("a folder or a missing file is recognized as a program")
	}
}
