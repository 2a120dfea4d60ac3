package importer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
)

// sample returns a profile of the shared folder.
func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "bench", "profiles", name))
	if err != nil {
		t.Skip("the shared folder is not present")
	}
	return string(text)
}

// The profile is of four runs of a small network: one with 7 rows and three with 1.
func TestONNXRuntimeNodesAreJoinedByName(t *testing.T) {
	text := sample(t, "onnxruntime-mlp.json")
	got, err := Read(strings.NewReader(text), decoder(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 4 || got.Steps[0].SymInts["seq"] != 7 || got.Steps[1].Phase != trace.Decode {
		t.Fatalf("steps %+v", got.Steps)
	}
	want := []string{
		"layers.0.mlp.gate 109 tensor name", "layers.0.mlp.mul/QuickGeluFusion/ 27 none",
		"layers.0.mlp.down 23 tensor name",
	}
	if have := rows(got, 0); !slices.Equal(have, want) {
		t.Errorf("rows %q, want %q", have, want)
	}
	if got, err = Read(strings.NewReader(text), Run{}); err != nil || got.Steps[0].Phase != trace.Execute {
		t.Errorf("without a model: %v", err)
	}
}

// The kernels of the WebGPU provider have the process id -1. The times of nodes are then those of the host.
func TestONNXRuntimeKernelsOfTheGPUComeFirst(t *testing.T) {
	got, err := Read(strings.NewReader(`[
{"cat":"Session","pid":5,"tid":5,"dur":100,"ts":10,"ph":"X","name":"model_run","args":{}},
{"cat":"Node","pid":5,"tid":5,"dur":9,"ts":20,"ph":"X","name":"a_kernel_time","args":{"op_name":"MatMul"}},
{"cat":"Api","pid":-1,"tid":-1,"dur":4,"ts":21,"ph":"X","name":"a","args":{"shapes":"inputs[0] = {1,64}"}}
`), Run{}) // the list ends without a bracket
	if err != nil {
		t.Fatal(err)
	}
	if have := rows(got, 0); !slices.Equal(have, []string{"a 4 none"}) {
		t.Errorf("rows %q", have)
	}
}

// The profile has three steps, each with four products and four activations, and kernels before each step.
func TestKinetoKernelsAreDividedIntoSteps(t *testing.T) {
	got, err := Read(strings.NewReader(sample(t, "torch-kineto-4-linear.json.gz")), Run{})
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for i := range got.Steps {
		counts = append(counts, len(got.Steps[i].Dispatches))
	}
	if !slices.Equal(counts, []int{8, 8, 8}) || got.Engine != "PyTorch" {
		t.Fatalf("engine %s, dispatches %v", got.Engine, counts)
	}
	p := &got.Plans[got.Steps[0].Dispatches[0].Plan]
	if p.Workgroups != [3]int{8, 8, 1} || !strings.HasPrefix(p.Kernel, "nvjet") {
		t.Errorf("plan %+v", p)
	}
	if ns, _ := got.Steps[0].Dispatches[0].GPUNS.NS(); ns != 5792 {
		t.Errorf("%d ns", ns)
	}
}

// The operator of a kernel states the shapes of its inputs, and so the matrix.
func TestKinetoProductsAreJoinedByShape(t *testing.T) {
	got, err := Read(strings.NewReader(`{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":0,"dur":50,"args":{}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":5,
 "args":{"External id":7,"Input Dims":[[1,128],[128,64],[]]}},
{"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":9}},
{"ph":"X","cat":"kernel","name":"gemv","pid":0,"tid":7,"ts":90,"dur":3.5,
 "args":{"External id":7,"correlation":9,"stream":7,"grid":[8,1,1]}},
{"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":99,"dur":3.5,"args":{"correlation":10}}
]}`), decoder(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"layers.0.mlp.down 3.5 operation and shape"}
	if have := rows(got, 0); !slices.Equal(have, want) || got.Steps[0].Phase != trace.Decode {
		t.Errorf("rows %q, want %q", have, want)
	}
}

// The products of PyTorch have their matrix at different places, and linear has it as [m, k].
func TestTorchProductsHaveTheirMatrix(t *testing.T) {
	x, bias := []int{5, 128}, []int{64}
	for _, c := range []struct {
		name string
		dims [][]int
		want kinetoOp
	}{
		{"aten::mm", [][]int{x, {128, 64}}, kinetoOp{tokens: 5, shapeRow: shapeRow{op: "MUL_MAT"}}},
		{"aten::addmm", [][]int{bias, x, {128, 64}}, kinetoOp{tokens: 5, shapeRow: shapeRow{op: "MUL_MAT"}}},
		{"aten::linear", [][]int{x, {64, 128}}, kinetoOp{tokens: 5, shapeRow: shapeRow{op: "MUL_MAT"}}},
		{"aten::mm", [][]int{x}, kinetoOp{}},
		{"aten::mm", [][]int{{2, 5, 128}, {128, 64}}, kinetoOp{}},
		{"aten::add", [][]int{x, x}, kinetoOp{}},
	} {
		want := c.want
		if want.name = c.name; want.op != "" {
			want.m, want.k = 64, 128
		}
		if got := torchOp(c.name, c.dims); got != want {
			t.Errorf("%s of %v is %+v, want %+v", c.name, c.dims, got, want)
		}
	}
}

// Launches and operators without an id say nothing about kernels without an id.
func TestKinetoEventsWithoutIDsAreNotJoined(t *testing.T) {
	got, err := Read(strings.NewReader(`{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":50},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":60,"dur":50},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":2,"dur":5},
{"ph":"X","cat":"cuda_runtime","name":"synchronize","pid":1,"tid":1,"ts":2,"dur":1},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":9,"dur":1},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":90,"dur":2}]}`), Run{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 2 {
		t.Fatalf("%d steps, want 2", len(got.Steps))
	}
	for i, want := range []string{"a 1 none", "b 2 none"} {
		if have := rows(got, i); !slices.Equal(have, []string{want}) {
			t.Errorf("step %d has the rows %q, want %q", i, have, want)
		}
	}
}

// A kernel without a duration was not measured: its time is not 0.
func TestKernelsWithoutADurationAreNotMeasured(t *testing.T) {
	got, err := Read(strings.NewReader(`{"traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":9,"dur":1},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":55}]}`), Run{})
	if err != nil {
		t.Fatal(err)
	}
	var times []trace.Time
	for _, d := range got.Steps[0].Dispatches {
		times = append(times, d.GPUNS)
	}
	if want := []trace.Time{trace.Measured(1000), {}}; !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
}

// The trace says how many steps and kernels of the profile it lacks.
func TestWhatKinetoLeavesOutIsCounted(t *testing.T) {
	got, err := Read(strings.NewReader(`{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":50},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":60,"dur":50},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":120,"dur":50},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":9,"dur":1},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":55,"dur":2},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":190,"dur":2}]}`), Run{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 1 || len(got.Events) != 1 || got.Events[0].Kind != trace.EventLeftOut ||
		strings.Count(got.Events[0].Text, "(2)") != 2 {
		t.Errorf("%d steps, events %v", len(got.Steps), got.Events)
	}
}

// A profile with events is in a known format, even if it has no kernel in a step.
func TestProfilesWithoutAKernelInAStepAreRefused(t *testing.T) {
	for name, events := range map[string]string{
		"kernels with the correlation of another launch": `
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":50},
{"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":80,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":9,"dur":1,"args":{"correlation":5}}`,
		"steps and phases of the host": `
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":50},
{"ph":"X","cat":"host","name":"submit","pid":1,"tid":2,"ts":2,"dur":1}`,
		"launches and phases of the host": `
{"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"host","name":"submit","pid":1,"tid":2,"ts":2,"dur":1}`,
		"operators only": `{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":2,"dur":5}`,
	} {
		_, err := Read(strings.NewReader(`{"traceEvents": [`+events+`]}`), Run{})
		if !errors.Is(err, ErrNoKernels) || errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want ErrNoKernels", name, err)
		}
	}
	_, err := Read(strings.NewReader(`{"traceEvents": [{"ph":"M"}]}`), Run{})
	if !errors.Is(err, ErrFormat) {
		t.Errorf("no complete event: %v, want ErrFormat", err)
	}
}

func TestChromeTracesOfOtherProgramsHaveOneStep(t *testing.T) {
	got, err := Read(strings.NewReader(`[{"ph":"X","cat":"gpu","name":"outer","pid":1,"tid":1,"ts":0,"dur":9},
{"ph":"X","cat":"gpu","name":"a","pid":1,"tid":1,"ts":1,"dur":2},
{"ph":"X","cat":"gpu","name":"a","pid":1,"tid":1,"ts":4,"dur":3},
{"ph":"B","cat":"gpu","name":"b","pid":1,"tid":1,"ts":8}]`), Run{})
	if err != nil {
		t.Fatal(err)
	}
	if have := rows(got, 0); !slices.Equal(have, []string{"a 2 none", "a.2 3 none"}) {
		t.Errorf("rows %q", have)
	}
}

func TestAttestedCommandsAreJoined(t *testing.T) {
	text := `{"executions": [{"ordinal": 0, "passes": 1, "submits": 1, "commands": [
{"op_id": 12, "kernel": "embedding_q4gsw", "grid": [1,1,1], "state": "enabled"},
{"op_id": 17, "kernel": "linear_q4gsw_coop4_bicol", "grid": [1024,1,1], "state": "enabled"},
{"op_id": 22, "kernel": "add", "grid": [0,1,1], "state": "zero_grid"},
{"op_id": 23, "kernel": "sigmoid", "grid": [8,1,1], "state": "suppressed"}], "copies": []}]}`
	got, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"12.embedding_q4gsw – operator id", "17.linear_q4gsw – operator id"}
	if have := rows(got, 0); !slices.Equal(have, want) {
		t.Errorf("rows %q, want %q", have, want)
	}
	if s := &got.Steps[0]; s.GPU != nil || s.Timing != trace.TimingOff || s.Phase != trace.Decode {
		t.Errorf("step %+v", s)
	}
	var mismatch *Mismatch
	if _, err := read(strings.ReplaceAll(text, "op_id", "number")); !errors.As(err, &mismatch) {
		t.Errorf("in order: %v", err) // an operator between the two has no command
	}
	if got, err := Read(strings.NewReader(text), Run{}); err != nil || len(got.Graph.Ops) != 2 {
		t.Errorf("without a model: %v", err)
	}
}

func TestHostileJSONProfilesAreRefused(t *testing.T) {
	x := func(fields string) string {
		return `[{"ph":"X","cat":"kernel","name":"k","pid":1,"tid":1,"ts":1,` + fields + `}]`
	}
	for name, text := range map[string]string{
		"NaN":           x(`"dur":NaN`),
		"infinite":      x(`"dur":1e999`),
		"negative":      x(`"dur":-1`),
		"huge time":     x(`"dur":1e300`),
		"text as time":  x(`"dur":"1"`),
		"huge grid":     x(`"dur":1,"args":{"grid":[1,99999999999,1]}`),
		"huge id":       x(`"dur":1,"args":{"correlation":1e300}`),
		"deep nesting":  `{"traceEvents": [` + strings.Repeat("[", 1<<16),
		"deep args":     x(`"dur":1,"args":` + strings.Repeat(`{"a":`, 1<<16)),
		"large value":   `{"traceEvents": [{"ph":"X","name":"` + strings.Repeat("k", 2*maxValue) + `"}]}`,
		"large space":   `{"traceEvents": [` + strings.Repeat(" ", 2*maxValue) + `]}`,
		"no events":     `{"traceEvents": []}`,
		"number":        `{"traceEvents": 7}`,
		"zero commands": `{"commands": [], "grid": 1}`,
		"huge attested": `{"commands": [{"kernel": "k", "grid": [1,1,99999999999]}]}`,
		"ONNX dims": `[{"cat":"Node","name":"a_kernel_time","dur":1,` +
			`"args":{"input_type_shape":[{"float":[1e99]}]}}]`,
	} {
		if _, err := Read(strings.NewReader(text), decoder(1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	large := `{"traceEvents": [{"name":"` + strings.Repeat("k", 2*maxValue) + `"}]}`
	_, err := Read(strings.NewReader(large), Run{})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("large value: %v", err)
	}
}

// The stream is small and decompresses to a document with more space than a value may have.
func TestGzipBombIsRefused(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(`{"traceEvents": [`)); err != nil {
		t.Fatal(err)
	}
	for range 2 * maxValue >> 16 {
		if _, err := z.Write(bytes.Repeat([]byte(" "), 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	if _, err := Read(&b, Run{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	l := limited{in: strings.NewReader("abc"), left: 2}
	if n, err := l.Read(make([]byte, 8)); n != 2 || err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if _, err := l.Read(make([]byte, 8)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

func FuzzONNXRuntime(f *testing.F) {
	fewRows(f)
	f.Add(`{"cat":"Node","pid":5,"dur":9,"ts":2,"name":"a_kernel_time","args":{"op_name":"MatMul"}}`)
	f.Add(`{"cat":"Api","pid":-1,"dur":4,"ts":21,"ph":"X","name":"layers.0.mlp.up"}`)
	f.Fuzz(func(t *testing.T, events string) {
		checkImport(t, `[{"cat":"Session","name":"session_initialization"},`+events)
	})
}

func FuzzKineto(f *testing.F) {
	fewRows(f)
	f.Add(`{"ph":"X","cat":"kernel","name":"k","ts":90,"dur":3.5,"args":{"External id":7,"grid":[8,1,1]}}`)
	f.Add(`{"ph":"X","cat":"cpu_op","name":"aten::mm","args":{"External id":7,"Input Dims":[[1,8],[8,64]]}}`)
	f.Add(`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","ts":0,"dur":50}`)
	f.Fuzz(func(t *testing.T, events string) { checkImport(t, `{"traceEvents": [`+events+`]}`) })
}

func FuzzAttestation(f *testing.F) {
	fewRows(f)
	f.Add(`{"op_id": 12, "kernel": "embedding_q4gsw", "grid": [1,1,1], "state": "enabled"}`)
	f.Fuzz(func(t *testing.T, commands string) {
		text := `{"executions": [{"commands": [` + commands + `], "grid": 0}]}`
		checkImport(t, text)
		if got, err := read(text); err == nil {
			if err := got.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
