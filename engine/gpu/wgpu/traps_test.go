//go:build cgo

package wgpu

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	binding "github.com/cogentcore/webgpu/wgpu"

	"gpuscope/engine/gpu"
)

// openAny opens the first adapter. engine/gpu/gputest cannot be used here because it imports this package.
func openAny(t *testing.T) *device {
	t.Helper()
	if os.Getenv("GPUSCOPE_TEST_GPU") == "off" {
		t.Skip("GPU tests are off (GPUSCOPE_TEST_GPU=off)")
	}
	dev, err := New().Open(0)
	if err != nil {
		if errors.Is(err, gpu.ErrNoAdapter) && os.Getenv("CI") != "true" {
			t.Skipf("needs a GPU or a software Vulkan driver: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(dev.Release)
	return dev.(*device)
}

const tinySource = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() { x[0] = x[0] + 1u; }`

func tiny(t *testing.T, dev *device) (gpu.Buffer, gpu.Pipeline, gpu.BindGroup) {
	t.Helper()
	b, err := dev.NewBuffer("x", 16, gpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dev.NewPipeline(gpu.PipelineDesc{
		Label: "tiny", Source: tinySource,
		Bindings: []gpu.Access{gpu.ReadWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := dev.NewBindGroup("g", p, []gpu.Binding{{Buffer: b}})
	if err != nil {
		t.Fatal(err)
	}
	return b, p, g
}

// ref and ownedRef read the handles in the binding's structs. They require the layout that is checked here.
func TestHandlesLieWhereTheBindingHasThem(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		binding.Device{},
		binding.BindGroup{},
		binding.ComputePipeline{},
		binding.QuerySet{},
		binding.Instance{},
	} {
		typ := reflect.TypeOf(v)
		if f, ok := typ.FieldByName("ref"); !ok || f.Offset != 0 || typ.Size() != unsafe.Sizeof(handle(nil)) {
			t.Errorf("%s is not one handle", typ)
		}
	}
	for _, v := range []any{binding.Buffer{}, binding.Queue{}} {
		typ := reflect.TypeOf(v)
		if f, ok := typ.FieldByName("ref"); !ok || f.Offset != unsafe.Offsetof(owned{}.ref) ||
			typ.Size() != unsafe.Sizeof(owned{}) {
			t.Errorf("%s is not a device and a handle", typ)
		}
	}
}

func TestAdapterInfo(t *testing.T) {
	dev := openAny(t)
	info := dev.Info()
	list, err := New().Adapters()
	if err != nil || len(list) == 0 || list[0] != info {
		t.Fatalf("adapters %+v, %v; the first was opened as %+v", list, err, info)
	}
	if info.Name == "" || strings.HasPrefix(info.Name, "0x") || info.Vendor == "" ||
		!slices.Contains([]string{"vulkan", "metal", "dx12"}, info.Backend) {
		t.Errorf("adapter %+v", info)
	}
	if !slices.IsSortedFunc(list, func(a, b gpu.AdapterInfo) int { return int(a.Type) - int(b.Type) }) {
		t.Errorf("not in the order of preference: %+v", list)
	}
	// The limits are those of the device, not those that the binding computes from them.
	granted, least := dev.raw.GetLimits().Limits, gpu.DefaultLimits()
	l := info.Limits
	if l.MaxBufferSize != granted.MaxBufferSize ||
		l.MaxStorageBinding != granted.MaxStorageBufferBindingSize ||
		l.MaxWorkgroups != granted.MaxComputeWorkgroupsPerDimension ||
		l.UniformAlignment != granted.MinUniformBufferOffsetAlignment ||
		l.MaxInvocations != granted.MaxComputeInvocationsPerWorkgroup {
		t.Errorf("limits %+v, the device has %+v", l, granted)
	}
	if l.MaxStorageBinding < least.MaxStorageBinding || l.MaxBufferSize < least.MaxBufferSize ||
		l.MaxWorkgroups < least.MaxWorkgroups {
		t.Errorf("limits %+v are below WebGPU's defaults", l)
	}
	if _, err := New().Open(len(list)); !errors.Is(err, gpu.ErrNoAdapter) {
		t.Errorf("open past the end: %v", err)
	}
	if _, err := New().Open(-1); !errors.Is(err, gpu.ErrNoAdapter) {
		t.Errorf("open of -1: %v", err)
	}
}

func TestCompileErrorsHoldTheCompilersText(t *testing.T) {
	dev := openAny(t)
	for _, tt := range []struct {
		name, source, entry string
		bindings            []gpu.Access
		want                []string
	}{
		{
			"syntax", "// one\nfn main( {", "", nil,
			[]string{"pipeline broken: Shader 'broken' parsing error: expected identifier, found '{'\n  ┌─ wgsl:2:10\n  │\n2 │ fn main( {\n  │          ^ expected identifier"},
		},
		{"type", "@compute @workgroup_size(1) fn main() { let x: u32 = 1.5f; }", "", nil, []string{"u32"}},
		{"unknown name", "@compute @workgroup_size(1) fn main() { let x = yy; }", "", nil, []string{"yy"}},
		{"no such entry point", tinySource, "other", []gpu.Access{gpu.ReadWrite}, []string{"other"}},
		{
			"binding missing", tinySource, "", nil,
			[]string{"group: 0, binding: 0", "missing from the pipeline layout"},
		},
		{
			"binding of another access", tinySource, "",
			[]gpu.Access{gpu.Read},
			[]string{"StorageAccess(LOAD | STORE)"},
		},
		{
			"workgroup too large", "@compute @workgroup_size(65536) fn main() {}", "", nil,
			[]string{"pipeline broken: Shader validation error", "Workgroup size is out of range"},
		},
		{"f16", "enable f16; @compute @workgroup_size(1) fn main() {}", "", nil, []string{"enable"}},
	} {
		_, err := dev.NewPipeline(gpu.PipelineDesc{
			Label: "broken", Source: tt.source, Entry: tt.entry,
			Bindings: tt.bindings,
		})
		if err == nil {
			t.Errorf("%s: compiled", tt.name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not contain %q", tt.name, err, want)
			}
		}
	}
	if live := dev.Live(); live.Total() != 0 {
		t.Errorf("live objects after failed compiles: %+v", live)
	}
	tiny(t, dev)
}

// Only the compiler knows how large the params must be, so the library finds this error in Submit. The
// recording does not run, and the device stays usable.
func TestTooSmallParamsBlockIsAnError(t *testing.T) {
	dev := openAny(t)
	p, err := dev.NewPipeline(gpu.PipelineDesc{Label: "params", Bindings: []gpu.Access{gpu.Params, gpu.ReadWrite}, Source: `
struct Params { a: vec4<u32>, b: vec4<u32> }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() { x[0] = params.b.x; }`})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := dev.NewBuffer("u", 16, gpu.Uniform)
	x, inc, incGroup := tiny(t, dev)
	g, err := dev.NewBindGroup("g", p, []gpu.Binding{{Buffer: u}, {Buffer: x}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := dev.NewReadback("r", 16)
	for range 2 {
		enc, _ := dev.Begin("small")
		_ = enc.BeginPass("pass")
		enc.Dispatch(inc, incGroup, 1, 1, 1)
		enc.Dispatch(p, g, 1, 1, 1)
		_ = enc.EndPass()
		err := enc.Submit()
		want := "encoder small: not submitted: note: encoder = `small`\nIn a dispatch command, indirect:false\nnote: compute pipeline = `params`\nBuffer is bound with size 16 where the shader expects 32"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("submit: %v", err)
		}
	}
	enc, _ := dev.Begin("after")
	_ = enc.BeginPass("pass")
	enc.Dispatch(inc, incGroup, 1, 1, 1)
	if err := errors.Join(enc.EndPass(), enc.CopyOut(x, 0, r, 0, 4), enc.Submit(), dev.Wait()); err != nil {
		t.Fatal(err)
	}
	var got [4]byte
	if err := r.Read(got[:], 0); err != nil || got[0] != 1 {
		t.Errorf("after the refused recordings: % x, %v; want one increment", got, err)
	}
}

// A garbage collection between a map and its callback must be harmless. The binding's own MapAsync gives the
// library a pointer to memory that Go may free.
func TestGarbageCollectionDuringReadback(t *testing.T) {
	dev := openAny(t)
	x, p, g := tiny(t, dev)
	r, err := dev.NewReadback("r", 16)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var keep [64]*uintptr
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				v := uintptr(i)
				keep[i%64] = &v
				if i%1000 == 0 {
					runtime.GC()
				}
			}
		}
	}()
	for range 300 {
		enc, _ := dev.Begin("")
		_ = enc.BeginPass("")
		enc.Dispatch(p, g, 1, 1, 1)
		if err := errors.Join(enc.EndPass(), enc.CopyOut(x, 0, r, 0, 4), enc.Submit(),
			dev.Wait()); err != nil {
			t.Fatal(err)
		}
		if err := r.Read(make([]byte, 4), 0); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
}

// Waiting for a recording releases the staging memory of the writes before it, but not that of later writes.
func TestStagingKeepsWritesOfUnfinishedRecordings(t *testing.T) {
	dev := openAny(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := dev.NewBuffer("b", 64, gpu.Storage)
	must(err)
	write := func(n int) { must(dev.Write(b, 0, make([]byte, n))) }
	record := func() gpu.Recording {
		r, err := dev.NewReadback("r", 16)
		must(err)
		enc, err := dev.Begin("copy")
		must(err)
		must(enc.CopyOut(b, 0, r, 0, 16))
		rec, err := enc.Finish()
		must(err)
		must(rec.Submit())
		return rec
	}
	staged := func(want uint64) {
		t.Helper()
		if n := dev.written - dev.taken; n != want {
			t.Errorf("%d bytes are staged, want %d", n, want)
		}
	}
	write(4)
	first := record()
	write(8)
	second := record()
	staged(12)
	must(first.Wait())
	staged(8)
	write(16)
	must(second.Wait())
	staged(16)
	must(dev.Wait())
	staged(0)
}

// Labels that the caller numbers must not make memory grow.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	l := labels{}
	defer l.free()
	first := l.get("a")
	if again := l.get("a"); first == nil || again != first || l.get("") != nil ||
		l.get("nul\x00byte") == nil {
		t.Error("labels are not kept")
	}
	for i := range 2 * maxLabels {
		l.get("step " + strings.Repeat("x", i%100) + string(rune(i)))
	}
	if len(l) > maxLabels {
		t.Errorf("%d labels kept, want at most %d", len(l), maxLabels)
	}
}

// childTest runs this test in a separate process, with variable set to 1, and returns the process's output.
func childTest(t *testing.T, variable string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestNativeCodeIsQuiet(t *testing.T) {
	const child = "GPUSCOPE_TEST_QUIET"
	if os.Getenv(child) == "" {
		openAny(t) // skips the test if there is no adapter
		out := childTest(t, child)
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(strings.TrimSpace(line), "---") && !strings.HasPrefix(line, "===") &&
				line != "PASS\n" && !strings.HasPrefix(line, "ok") {
				t.Errorf("native code wrote %q", line)
			}
		}
		return
	}
	os.Unsetenv("XDG_RUNTIME_DIR")
	dev := openAny(t)
	tiny(t, dev)
	_, err := dev.NewPipeline(gpu.PipelineDesc{Label: "broken", Source: "fn"})
	if err == nil {
		t.Error("compiled")
	}
}
