package capture

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/folder"
	"gpuscope/session"
	"gpuscope/trace"
)

// doubling is a kernel that writes x * factor to y, and adds it to sum, which it also reads.
const doubling = `struct Params { n: u32, factor: f32, }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;
@compute @workgroup_size(64, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.n) {
        y[id.x] = x[id.x] * params.factor + f32(packed[0] & 0u);
        sum[id.x] = sum[id.x] + y[id.x];
    }
}
`

// doubled returns a capture of doubling. Its last element of y is not written.
func doubled(t testing.TB) *Capture {
	t.Helper()
	k, err := parseKernel("doubling", doubling)
	if err != nil {
		t.Fatal(err)
	}
	g := &trace.Graph{
		Ops:        []trace.Op{{Name: "layers.0.double", Kind: "double"}},
		Dispatches: []trace.Dispatch{{}},
		Values:     []trace.Value{{Name: "x"}, {Name: "scales"}, {Name: "sum"}, {Name: "y"}},
	}
	from := &engine.Captured{
		Kernel: k, Name: "doubling", Grid: [3]uint32{1, 1, 1}, Bytes: 40,
		Params: words(2, math.Float32bits(2), 0, 0),
	}
	x := words(math.Float32bits(3), math.Float32bits(4), 0)
	sum := words(math.Float32bits(1), math.Float32bits(1), math.Float32bits(1))
	for i, content := range []struct {
		dtype         graph.DType
		dims          []int
		before, after []byte
	}{
		{graph.F32, []int{1, 3}, x, nil},
		{graph.F16, []int{3}, words(1, 2), nil},
		{graph.F32, []int{3}, sum, words(math.Float32bits(7), math.Float32bits(9), math.Float32bits(1))},
		{graph.F32, []int{3}, nil, words(math.Float32bits(6), math.Float32bits(8), engine.Unwritten)},
	} {
		from.Bindings = append(from.Bindings, engine.CapturedBinding{
			Storage: k.Storage[i], Value: graph.ValueID(i), DType: content.dtype, Dims: content.dims,
			Before: content.before, After: content.after,
		})
	}
	c := New(g, from, Origin{
		Producer: trace.Producer{Name: "gpuscope", Version: "1"}, Created: "2026-01-02T03:04:05Z",
		Device: trace.Device{Name: "fake", Backend: "fake", AdapterType: "cpu"}, Model: "m",
		Step: Step{1, trace.Decode, 32, 1},
	})
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	return c
}

func words(list ...uint32) (data []byte) {
	for _, w := range list {
		data = append(data, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return data
}

var all = cmp.Options{
	cmp.AllowUnexported(Capture{}, Binding{}), cmpopts.IgnoreFields(Capture{}, "kernel"),
}

func TestCaptureIsReadAsWritten(t *testing.T) {
	c := doubled(t)
	dir := filepath.Join(t.TempDir(), FolderName("layers.0.attn/q"))
	for range 2 { // the second time, the folder exists
		if err := c.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(dir, c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, got, all); d != "" {
		t.Error(d)
	}
	if c.Bytes() != 12+8+24+12 || c.BindingBytes() != 44 || filepath.Base(dir) != "capture-layers.0.attn_q" {
		t.Errorf("%d bytes, bindings %d, %s", c.Bytes(), c.BindingBytes(), dir)
	}
	if _, err := Read(dir, c.Bytes()-1); err == nil || errors.Is(err, ErrFormat) {
		t.Errorf("with a limit below its size: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(dir); !errors.Is(err, folder.ErrForeign) {
		t.Errorf("over a folder with another file: %v", err)
	}
}

// filesOf returns the files of a capture.
func filesOf(t testing.TB, c *Capture) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := c.files(func(name string, data []byte) error {
		files[name] = &fstest.MapFile{Data: data}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestHostileFoldersAreRefused(t *testing.T) {
	good := filesOf(t, doubled(t))
	text := string(good[jsonFile].Data)
	if _, err := read(good, 1<<20); err != nil {
		t.Fatal(err)
	}
	replaced := func(from, to string) func(fstest.MapFS) {
		if !strings.Contains(text, from) {
			t.Fatalf("no %q in %s", from, text)
		}
		return func(f fstest.MapFS) {
			f[jsonFile] = &fstest.MapFile{Data: []byte(strings.Replace(text, from, to, 1))}
		}
	}
	file := func(name string, f *fstest.MapFile) func(fstest.MapFS) {
		return func(all fstest.MapFS) { all[name] = f }
	}
	for name, change := range map[string]func(fstest.MapFS){
		"no description":   func(f fstest.MapFS) { delete(f, jsonFile) },
		"no JSON":          file(jsonFile, &fstest.MapFile{Data: []byte("{")}),
		"large text":       file(jsonFile, &fstest.MapFile{Data: make([]byte, maxText+1)}),
		"folder as file":   file("in-x.npy", &fstest.MapFile{Mode: fs.ModeDir}),
		"no array":         file("in-x.npy", &fstest.MapFile{Data: []byte("\x93NUMPY")}),
		"large array":      file("in-x.npy", &fstest.MapFile{Data: make([]byte, 12+maxHeader+1)}),
		"other shape":      file("in-x.npy", good["in-sum.npy"]),
		"other schema":     replaced(Schema, "gpuscope.capture/9"),
		"kernel elsewhere": replaced(kernelFile, "../kernel.wgsl"),
		"array elsewhere":  replaced("in-x.npy", "../in-x.npy"),
		"absolute path":    replaced("in-x.npy", "/etc/passwd"),
		"no input":         replaced(`"before": "in-x.npy"`, `"before": ""`),
		"no output":        replaced(`"after": "expected-y.npy"`, `"after": ""`),
		"name is a path":   replaced(`"name": "packed"`, `"name": "../packed"`),
		"name twice":       replaced(`"name": "packed"`, `"name": "X"`),
		"other access":     replaced(`"access": "read_write"`, `"access": "write"`),
		"other type":       replaced(`"dtype": "f16"`, `"dtype": "f8"`),
		"other element":    replaced(`"element": "u32"`, `"element": "f32"`),
		"other param":      replaced(`"name": "factor"`, `"name": "n"`),
		"other workgroup":  replaced("64,", "32,"),
		"no workgroups":    replaced("\"workgroups\": [\n    1", "\"workgroups\": [\n    0"),
		"negative dim":     replaced("\"dims\": [\n        1,", "\"dims\": [\n        -1,"),
		"huge dims": replaced("\"dims\": [\n        1,",
			"\"dims\": [\n        4294967296,\n        4294967296,\n        4294967296,"),
		"many dims": replaced("\"dims\": [\n        1,", "\"dims\": ["+strings.Repeat("1,", maxDims)),
		"no WGSL":   file(kernelFile, &fstest.MapFile{Data: []byte("hello")}),
		"other kernel": file(kernelFile, &fstest.MapFile{
			Data: []byte(strings.Replace(doubling, "x:", "z:", 1)),
		}),
		"few bindings": func(f fstest.MapFS) {
			var d map[string]any
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
			d["bindings"] = d["bindings"].([]any)[:2]
			data, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			f[jsonFile] = &fstest.MapFile{Data: data}
		},
	} {
		files := maps.Clone(good)
		change(files)
		if _, err := read(files, 1<<20); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Links out of the folder are not followed.
func TestMissingFilesAreNamed(t *testing.T) {
	for name := range filesOf(t, doubled(t)) {
		files := filesOf(t, doubled(t))
		delete(files, name)
		_, err := read(files, DefaultMaxBytes)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), " "+name+",") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinksOutOfTheFolderAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	if err := doubled(t).Write(dir); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(dir), "outside.npy")
	if err := os.Rename(filepath.Join(dir, "in-x.npy"), outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "in-x.npy")); err != nil {
		t.Skip(err)
	}
	if _, err := Read(dir, 1<<20); err == nil {
		t.Error("a link to a file outside the folder was read")
	}
}

func FuzzRead(f *testing.F) {
	files := filesOf(f, doubled(f))
	f.Add(files[jsonFile].Data, []byte(doubling), files["in-x.npy"].Data)
	f.Fuzz(func(t *testing.T, text, kernel, array []byte) {
		all := maps.Clone(files)
		all[jsonFile], all[kernelFile] = &fstest.MapFile{Data: text}, &fstest.MapFile{Data: kernel}
		all["in-x.npy"] = &fstest.MapFile{Data: array}
		c, err := read(all, 1<<20)
		if err != nil {
			return
		}
		again, err := read(filesOf(t, c), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Bindings {
			if d := cmp.Diff(c.Bindings[i], again.Bindings[i], sameBinding); d != "" {
				t.Error(d)
			}
		}
	})
}

// sameNumbers makes NaN equal to NaN.
var sameNumbers = cmp.Comparer(func(a, b trace.Number) bool {
	return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b))
})

var sameBinding = cmp.Options{cmp.AllowUnexported(Binding{}), cmpopts.EquateEmpty()}

// onFake returns a fake device that computes doubling with a wrong result added to element at of y.
func onFake(t *testing.T, o fake.Options, wrong float32, at int) *fake.Device {
	t.Helper()
	dev := fake.New(o)
	t.Cleanup(func() {
		dev.Release()
		if errs := dev.Misuse(); len(errs) > 0 {
			t.Error(errs)
		}
	})
	dev.OnDispatch = func(d fake.Dispatch) {
		get := func(b, i int) float32 {
			w := d.Bound[b].Bytes[4*i:]
			return math.Float32frombits(uint32(w[0]) | uint32(w[1])<<8 | uint32(w[2])<<16 | uint32(w[3])<<24)
		}
		for i := range int(d.Bound[4].Bytes[0]) {
			y := get(0, i) * get(4, 1)
			copy(d.Bound[2].Bytes[4*i:], words(math.Float32bits(get(2, i)+y)))
			if i == at {
				y += wrong
			}
			copy(d.Bound[3].Bytes[4*i:], words(math.Float32bits(y)))
		}
	}
	dev.Duration = func(string, uint32, uint32, uint32) int64 { return 700 }
	return dev
}

func TestReplayComparesEveryOutput(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		wrong float32
		want  Output
	}{
		"equal": {0, Output{Largest: 8}},
		"close": {0.001, Output{Differ: 1, MaxAbs: trace.Number(float32(6.001) - 6), Largest: 8}},
		"wrong": {-1, Output{Differ: 1, Exceed: 1, MaxAbs: 1, Largest: 8}},
		"NaN": {nan, Output{
			Differ: 1, Exceed: 1, NaN: 1, MaxAbs: trace.Number(math.NaN()), Largest: 8,
		}},
		"infinite": {inf, Output{Differ: 1, Exceed: 1, MaxAbs: trace.Number(math.Inf(1)), Largest: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			dev := onFake(t, fake.Options{}, c.wrong, 0)
			r, err := doubled(t).Replay(t.Context(), dev, ReplayOptions{Runs: 3, Tolerance: DefaultTolerance})
			if err != nil {
				t.Fatal(err)
			}
			sum := Output{Binding: "sum", Value: "sum", Elements: 3, Largest: 9}
			c.want.Binding, c.want.Value, c.want.Elements = "y", "y", 3
			if d := cmp.Diff([]Output{sum, c.want}, r.Outputs, sameNumbers); d != "" {
				t.Error(d)
			}
			if r.Wrong() != (c.want.Exceed > 0) || r.Differ() != c.want.Differ || r.Runs != 3 ||
				r.Times == nil || r.Times.NS != 700 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The first NaN is the largest difference, whatever comes before and after it.
func TestFirstNaNIsTheLargestDifference(t *testing.T) {
	nan, inf := math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(1)))
	one := math.Float32bits(1)
	for name, c := range map[string]struct {
		got, want []byte
		out       Output
	}{
		"after a number": {words(0, nan, nan), words(one, one, one), Output{
			Differ: 3, Exceed: 3, NaN: 2, MaxAbs: trace.Number(math.NaN()), Element: 1, Largest: 1,
		}},
		"before infinity": {words(one, nan, inf), words(one, one, one), Output{
			Differ: 2, Exceed: 2, NaN: 1, MaxAbs: trace.Number(math.NaN()), Element: 1, Largest: 1,
		}},
		"expected": {words(nan, one, one), words(nan, nan, one), Output{
			Differ: 1, Exceed: 1, MaxAbs: trace.Number(math.NaN()), Element: 1, Largest: 1,
		}},
		"none": {words(inf, one, nan), words(inf, one, nan), Output{Largest: 1}},
		"nothing finite is expected": {words(0, nan, nan), words(nan, nan, nan), Output{
			Differ: 1, Exceed: 1, MaxAbs: trace.Number(math.NaN()),
		}},
	} {
		b := doubled(t).Bindings[3]
		b.after = c.want
		got, err := b.compare(c.got, DefaultTolerance)
		if err != nil {
			t.Fatal(err)
		}
		c.out.Binding, c.out.Value, c.out.Elements = b.Name, b.Value, 3
		if d := cmp.Diff(c.out, got, sameNumbers); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestReplayWithoutTimestampsHasNoTimes(t *testing.T) {
	dev := onFake(t, fake.Options{NoTimestamps: true}, 0, 0)
	r, err := doubled(t).Replay(t.Context(), dev, ReplayOptions{Runs: 3})
	if err != nil || r.Times != nil || r.Runs != 0 || r.Differ() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReplayRefusesKernelsThatDoNotFit(t *testing.T) {
	for name, from := range map[string]string{
		"bindings": "packed:", "params": "factor: f32", "workgroup size": "64",
	} {
		dev := onFake(t, fake.Options{}, 0, 0)
		to := strings.Replace(doubling, from, "n"+from, 1)
		if from == "64" {
			to = strings.Replace(doubling, from, "32", 1)
		}
		_, err := doubled(t).Replay(t.Context(), dev, ReplayOptions{Source: to, File: "f.wgsl"})
		source, ok := errors.AsType[*session.SourceError](err)
		if !ok || source.File != "f.wgsl" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// The message says which kernel is which.
		given, own, both := strings.Cut(source.Text, ", but ")
		if !both || !strings.Contains(given, "f.wgsl") || !strings.Contains(own, "doubling of the capture") {
			t.Errorf("%s: %s", name, source.Text)
		}
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := doubled(t).Replay(ctx, onFake(t, fake.Options{}, 0, 0), ReplayOptions{}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

// Whatever call fails, the objects on the device are released.
func TestFailedReplayReleasesItsObjects(t *testing.T) {
	for _, call := range []fake.Kind{fake.NewBuffer, fake.NewPipeline, fake.NewBindGroup, fake.Submit} {
		dev := onFake(t, fake.Options{}, 0, 0)
		dev.FailNth(call, 1, gpu.ErrOutOfMemory)
		if _, err := doubled(t).Replay(t.Context(), dev, ReplayOptions{Runs: 1}); err == nil {
			t.Errorf("%v fails, but the replay does not", call)
		}
		if n := dev.Live().Total(); n != 0 {
			t.Errorf("%v fails: %d objects are left", call, n)
		}
	}
}
