package importer

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/analyze/workclass"
)

const vulkanDecode = `Vulkan Timings:
ADD: 3 x 2 us = 6 us
FLASH_ATTN_EXT dst(16,4,1,1),  q(16,1,4,1),  k(16,256,2,1),  v(16,256,2,1),  m(256,1,1,1): 2 x 10 us = 20 us
GET_ROWS: 2 x 1.5 us = 3 us
GLU: 2 x 4 us = 8 us
MUL_MAT_ADD MUL_MAT_VEC q4_0 m=64 n=1 k=64: 1 x 7 us = 7 us
MUL_MAT_VEC q4_0 m=64 n=1 k=64: 3 x 6 us = 18 us (3 GFLOPS/s)
MUL_MAT_VEC q4_0 m=32 n=1 k=64: 4 x 5 us = 20 us
MUL_MAT_VEC q4_0 m=64 n=1 k=128: 2 x 11 us = 22 us
MUL_MAT_VEC q4_0 m=128 n=1 k=64: 3 x 12 us = 36 us
MUL_MAT_VEC q4_0 m=1000 n=1 k=64: 1 x 90 us = 90 us
MUL_MAT_VEC f16 m=256 n=1 k=16: 2 x 8 us = 16 us
RMS_NORM_MUL RMS_NORM(64,1,1,1): 5 x 3 us = 15 us
ROPE: 2 x 4 us = 8 us
ROPE_VIEW_SET_ROWS ROPE: 2 x 5 us = 10 us
SET_ROWS: 2 x 1 us = 2 us
Total time: 281 us.
----------------
`

func TestVulkanLogIsJoinedByOperationAndShape(t *testing.T) {
	prefill := "Vulkan Timings:\nMUL_MAT q4_0 m=64 n=7 k=64: 4 x 6 us = 24 us\nTotal time: 24 us.\n"
	got, err := Read(strings.NewReader("loading\n"+vulkanDecode+prefill), decoder(2))
	if err != nil {
		t.Fatal(err)
	}
	if got.Engine != "llama.cpp" || len(got.Steps) != 2 || got.Steps[0].Phase != trace.Decode ||
		got.Steps[1].Phase != trace.Prefill || got.Steps[1].SymInts["seq"] != 7 {
		t.Errorf("engine %q, steps %+v", got.Engine, got.Steps)
	}
	const by = " operation and shape"
	have := rows(got, 0)
	for _, want := range []string{
		"layers.0.attn.sdpa.flash_attn_ext 10" + by,
		"layers.1.attn.sdpa.set_rows 1" + by,
		"layers.0.attn.o 7" + by, // with the addition
		"layers.0.attn.q 6" + by,
		"layers.1.attn.o 6" + by,
		"layers.1.attn.v 5" + by,
		"layers.1.mlp.down 11" + by,
		"layers.1.mlp.silu_mul 4" + by,
		"layers.1.mlp.norm 3" + by,
		"layers.0.attn.rope.rope 4" + by,
		"layers.0.attn.rope.rope_view_set_rows 5" + by,
		"lm_head 90" + by,
		"ADD 2 none", // 3 rows for 4 operators
		"ADD.2 2 none",
		"MUL_MAT_VEC q4_0 m=128 n=1 k=64 12 none", // 3 rows for 4 matrices
	} {
		if !slices.Contains(have, want) {
			t.Errorf("no row %q", want)
		}
	}
	if len(have) != 36 {
		t.Errorf("%d rows, want 36: %q", len(have), have)
	}
	classes := workclass.Of(&got.Graph)
	for name, want := range map[string]workclass.Class{
		"MUL_MAT_VEC q4_0 m=128 n=1 k=64": workclass.GateUp,    // both candidates are of this class
		"MUL_MAT_VEC f16 m=256 n=1 k=16":  workclass.Attention, // 16 is the size of a head
		"GET_ROWS":                        workclass.Embedding,
		"ADD":                             workclass.Other,
	} {
		i := slices.IndexFunc(got.Graph.Ops, func(o trace.Op) bool { return o.Name == name })
		if i < 0 || classes[i] != want {
			t.Errorf("%s: operator %d, want class %s", name, i, want)
		}
	}
}

func TestVulkanLogNeedsNoModel(t *testing.T) {
	got, err := Read(strings.NewReader(vulkanDecode), Run{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Graph.Dispatches {
		if d.Joined != trace.JoinedNot {
			t.Errorf("dispatch %d is joined by %s", d.ID, d.Joined)
		}
	}
	if ns, _ := got.Steps[0].GPU.BusyNS.NS(); ns != 281_000 || len(got.Steps[0].Dispatches) != 36 {
		t.Errorf("%d ns in %d rows", ns, len(got.Steps[0].Dispatches))
	}
}

func TestDamagedVulkanLogsAreRefusedByLine(t *testing.T) {
	golden := wordingtest.New(t)
	for name, line := range map[string]string{
		"not a row":     "hello",
		"no count":      "ADD: x 2 us = 6 us",
		"count of 0":    "ADD: 0 x 2 us = 6 us",
		"NaN":           "ADD: 1 x nan us = 6 us",
		"negative time": "ADD: 1 x -2 us = 6 us",
		"huge time":     "ADD: 1 x 1e99 us = 6 us",
		"huge dim":      "MUL_MAT q4_0 m=99999999999 n=1 k=64: 1 x 2 us",
		"long line":     strings.Repeat("k", maxLine) + ": 1 x 2 us",
	} {
		_, err := Read(strings.NewReader(vulkanMark+"\n"+line+"\n"), decoder(1))
		var at *LineError
		if !errors.As(err, &at) || at.Line != 2 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden.Error(name, err)
	}
	_, err := Read(strings.NewReader(vulkanMark+"\nADD: 999999999999 x 2 us\n"), decoder(1))
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge count: %v", err)
	}
	var many strings.Builder // each row is within the limit, but not their sum
	for i := range 40 {
		fmt.Fprintf(&many, "OP%d: %d x 2 us\n", i, maxRows/2)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Read(strings.NewReader(vulkanMark+"\n"+many.String()), Run{})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrTooLarge) || used > 64<<20 {
		t.Errorf("many counts: %v, after %d bytes were allocated", err, used)
	}
	if _, err := Read(strings.NewReader(vulkanMark+"\n"), decoder(1)); !errors.Is(err, ErrFormat) {
		t.Errorf("no rows: %v", err)
	}
}

func FuzzVulkanLog(f *testing.F) {
	fewRows(f)
	f.Add(vulkanDecode)
	f.Add(vulkanMark + "\nMUL_MAT q4_0 m=64 n=7 k=64: 4 x 6 us = 24 us\n" + vulkanMark + "\nADD: 3 x 2 us\n")
	f.Fuzz(func(t *testing.T, text string) { checkImport(t, vulkanMark+"\n"+text) })
}

// fewRows lowers the limit of rows during a fuzz test. With the usual limit, an input can take seconds.
func fewRows(f *testing.F) {
	most := maxRows
	maxRows = 1 << 12
	f.Cleanup(func() { maxRows = most })
}

// checkImport imports a profile with and without a model. It must fail or give a valid trace.
func checkImport(t *testing.T, text string) {
	t.Helper()
	for _, run := range []Run{decoder(2), {}} {
		got, err := Read(strings.NewReader(text), run)
		if err != nil {
			continue
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A log that was cut loses its last step, and the trace says so. A log in which lines are missing is refused.
func TestIncompleteVulkanLogs(t *testing.T) {
	step := "Vulkan Timings:\nADD: 2 x 1.5 us = 3 us\nROPE: 4 x 10 us = 40 us\nTotal time: 43 us.\n"
	whole := step + step
	end := len(whole) - len("l time: 43 us.\n")
	for at := len(step) + len("Vulkan Timings:\nADD: 2 x 1"); at < end; at += 3 {
		got, err := Read(strings.NewReader(whole[:at]), Run{})
		if err != nil || len(got.Steps) != 1 || len(got.Events) != 1 || got.Events[0].Kind != trace.EventCut {
			t.Errorf("cut after %q: %v", whole[len(step):at], err)
		}
	}
	only, err := Read(strings.NewReader(step[:len(step)-len("Total time: 43 us.\n")]), Run{})
	if err != nil || len(only.Steps) != 1 || len(only.Events) != 1 || only.Events[0].Kind != trace.EventCut {
		t.Errorf("without any total: %v", err)
	}
	for _, text := range []string{
		strings.Replace(whole, "ROPE: 4 x 10 us = 40 us\n", "", 1),
		step + strings.Replace(step, "Total time: 43 us.\n", "", 1) + step,
	} {
		var line *LineError
		if _, err := Read(strings.NewReader(text), Run{}); !errors.As(err, &line) {
			t.Errorf("%q: %v, want a line", text, err)
		}
	}
}
