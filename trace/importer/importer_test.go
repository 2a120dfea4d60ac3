package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
)

// kinds are the operators of a small program, in order.
var kinds = []string{
	"prepack", "sym_size", "embedding_q4gsw", "select_as_symint", "sym_add", "slice_copy", "rms_norm",
	"linear_q4gsw", "view_copy", "apply_rotary_emb", "sdpa_with_kv_cache", "linear_q4gsw", "add", "sigmoid",
	"mul", "linear_q4gsw",
}

func run() Run {
	var r Run
	r.Model.Name = "small.pte"
	for i, kind := range kinds {
		id := 10 + i
		r.Ops = append(r.Ops, trace.Op{
			ID: trace.OpID(i), Name: fmt.Sprintf("%d.%s", id, kind), Kind: kind, SourceID: &id,
		})
	}
	return r
}

// The rows of a prefill and of a decode step of the program.
const (
	prefill = `0  embedding_q4gsw  (512,1,1)  23.616
1  dispatch  (256,1,1)  6.432
2  dispatch  (512,1,1)  11.648
3  linear_q4gsw_steel  (256,1,1)  5316.128
4  apply_rotary_emb  (8192,1,1)  10.720
5  apply_rotary_emb  (2048,1,1)  6.912
6  update_cache  (1024,1,1)  5.920
7  update_cache  (1024,1,1)  5.856
8  sdpa_compute_attn_weights  (8192,1,1)  203.520
9  sdpa_softmax  (16384,1,1)  40.032
10  sdpa_compute_out  (1024,1,1)  154.528
11  linear_q4gsw_steel  (256,1,1)  5317.088
12  add  (4096,1,1)  11.552
13  dispatch  (16384,1,1)  16.992
14  mul  (256,256,1)  45.952
15  linear_q4gsw_coop4_bicol  (2048,1,1)  13.632
`
	decode = `0  embedding_q4gsw  (1,1,1)  13.344
1  dispatch  (1,1,1)  6.080
2  dispatch  (1,1,1)  10.816
3  linear_q4gsw_coop4_bicol  (1024,1,1)  10.528
4  apply_rotary_emb  (16,1,1)  5.824
5  apply_rotary_emb  (4,1,1)  5.600
6  update_cache  (2,1,1)  4.864
7  update_cache  (2,1,1)  4.736
8  fd_split  (32,1,1)  11.136
9  fd_reduce  (32,1,1)  5.568
10  linear_q4gsw_coop4_bicol  (1024,1,1)  10.240
11  add  (8,1,1)  0.000
12  dispatch  (32,1,1)  5.824
13  mul  (128,1,1)  6.432
14  linear_q4gsw_coop4_bicol  (2048,1,1)  12.864
`
	head = "=== WebGPUQueryPool: per-dispatch GPU time ===\n"
	tail = "--- per-kernel mean / total (us) ---\nadd  mean 1.0  total 1.0 (n=1)\n"
)

func read(text string) (*trace.Trace, error) { return Read(strings.NewReader(text), run()) }

// The lines beside the tables state the time of whole steps. A number that is no time is skipped.
func TestTimesOfWholeStepsAreKept(t *testing.T) {
	prefillOf := func(ns int64) trace.Stated {
		return trace.Stated{Phase: trace.Prefill, Tokens: 512, WallNS: trace.Measured(ns)}
	}
	decodeOf := func(ns int64) trace.Stated {
		return trace.Stated{Phase: trace.Decode, Tokens: 1, WallNS: trace.Measured(ns)}
	}
	for _, c := range []struct {
		lines string
		want  []trace.Stated
	}{
		{"", nil},
		{"pp512 404.1 tok/s (median of 1)\n", []trace.Stated{prefillOf(1_267_013_116)}},
		{
			"pp512 512 tok/s\ntg2 110.8 tok/s mean, median step 9.054 ms\n",
			[]trace.Stated{prefillOf(1e9), decodeOf(9_054_000)},
		},
		{"pp512 256 tok/s\npp512 512 tok/s\n", []trace.Stated{prefillOf(1e9)}},
		{"pp512 0 tok/s\npp512 1.2.3 tok/s\ntg2 median step . ms\npp tok/s\n", nil},
		{"tg2 110.8 tok/s mean\n", nil},
	} {
		got, err := read(head + prefill + tail + c.lines + head + decode + c.lines)
		if err != nil {
			t.Fatalf("%q: %v", c.lines, err)
		}
		if !slices.Equal(got.Stated, c.want) || len(got.Steps) != 2 {
			t.Errorf("%q: %d steps, stated %v, want %v", c.lines, len(got.Steps), got.Stated, c.want)
		}
	}
}

func TestRowsAreJoinedWithOperators(t *testing.T) {
	got, err := read("load 0.72 s\n" + head + prefill + tail + head + decode + tail + head + decode +
		"pp512 404 tok/s\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.Engine != "ExecuTorch" || got.Device.Name != trace.ImportedDevice ||
		got.Model.Name != "small.pte" {
		t.Errorf("engine %q, device %q, model %q", got.Engine, got.Device.Name, got.Model.Name)
	}
	var phases []trace.Phase
	for i := range got.Steps {
		s := &got.Steps[i]
		phases = append(phases, s.Phase)
		if s.Tokens != nil || s.CPU.TotalNS != (trace.Time{}) || s.GPU.SpanNS != (trace.Time{}) {
			t.Errorf("step %d has numbers that the profile does not contain: %+v", i, s)
		}
	}
	if want := []trace.Phase{trace.Prefill, trace.Decode, trace.Decode}; !slices.Equal(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	var names []string
	for i := range got.Graph.Dispatches {
		d := &got.Graph.Dispatches[i]
		names = append(names, d.Named(got.Graph.Ops[d.Op].Name))
	}
	want := strings.Fields(`12.embedding_q4gsw 15.slice_copy 16.rms_norm 17.linear_q4gsw
		19.apply_rotary_emb.q 19.apply_rotary_emb.k 20.sdpa_with_kv_cache.update_k 20.sdpa_with_kv_cache.update_v
		20.sdpa_with_kv_cache.attn_weights 20.sdpa_with_kv_cache.softmax 20.sdpa_with_kv_cache.out
		20.sdpa_with_kv_cache.fd_split 20.sdpa_with_kv_cache.fd_reduce 21.linear_q4gsw 22.add 23.sigmoid 24.mul
		25.linear_q4gsw`)
	if !slices.Equal(names, want) {
		t.Errorf("dispatches %v, want %v", names, want)
	}
	for _, c := range []struct {
		step, row int
		name      string
		kernel    string
		grid      [3]int
		ns        int64
	}{
		{0, 3, "17.linear_q4gsw", "linear_q4gsw_steel", [3]int{256, 1, 1}, 5316128},
		{1, 8, "20.sdpa_with_kv_cache.fd_split", "fd_split", [3]int{32, 1, 1}, 11136},
		{2, 11, "22.add", "add", [3]int{8, 1, 1}, 0},
		{0, 14, "24.mul", "mul", [3]int{256, 256, 1}, 45952},
	} {
		sd := got.Steps[c.step].Dispatches[c.row]
		p := got.Plans[sd.Plan]
		ns, ok := sd.GPUNS.NS()
		if names[p.Dispatch] != c.name || p.Kernel != c.kernel || p.Workgroups != c.grid || ns != c.ns ||
			!ok {
			t.Errorf("step %d, row %d: %s, kernel %s, grid %v, %d ns (%v); want %+v", c.step, c.row,
				names[p.Dispatch], p.Kernel, p.Workgroups, ns, ok, c)
		}
	}
	// A plan for each dispatch with its kernel and grid. Only those of the last operator never change.
	if n, want := len(got.Plans), 16+15-1; n != want {
		t.Errorf("%d plans, want %d", n, want)
	}
	if ns, _ := got.Steps[1].GPU.BusyNS.NS(); ns != 113856 {
		t.Errorf("busy %d ns", ns)
	}
}

// Tables may follow each other without a line between them, and may be separated by tabs.
func TestTablesNeedNoLineBetweenThem(t *testing.T) {
	text := strings.ReplaceAll(head+decode+decode, "  ", "\t")
	got, err := read(text)
	if err != nil || len(got.Steps) != 2 {
		t.Fatalf("%d steps, %v", len(got.Steps), err)
	}
}

func TestProfileOfAnotherProgramIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	lines := strings.SplitAfter(decode, "\n")
	for _, c := range []struct {
		name, text string
		want       Mismatch
	}{
		{"wrong kernel", head + decode + strings.Replace(decode, "fd_reduce", "fd_other", 1), Mismatch{
			Line: 26, Step: 1, Row: 9, Kernel: "fd_other", Operator: "20.sdpa_with_kv_cache",
			Want: "fd_reduce",
		}},
		{"no attention", head + strings.Replace(decode, "fd_split", "gelu", 1), Mismatch{
			Line: 10, Row: 8, Kernel: "gelu", Operator: "20.sdpa_with_kv_cache",
			Want: "sdpa_compute_attn_weights, fd_split or sdpa_streaming",
		}},
		{"cut", head + strings.Join(lines[:12], ""), Mismatch{
			Line: 14, Row: 12, Operator: "23.sigmoid", Want: "sigmoid",
		}},
		{"too many rows", head + decode + "15  add  (1,1,1)  1.0\n", Mismatch{
			Line: 17, Row: 15, Kernel: "add",
		}},
		{"far too many rows", head + prefill + "16  add  (1,1,1)  1.0\n17  add  (1,1,1)  1.0\n", Mismatch{
			Line: 18, Row: 16, Kernel: "add",
		}},
	} {
		_, err := read(c.text)
		var got *Mismatch
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if *got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, *got, c.want)
		}
		golden.Error(c.name, err)
	}
}

func TestDamagedProfilesAreRefusedByLine(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct {
		name, row string
	}{
		{"missing column", "0  embedding_q4gsw  (1,1,1)"},
		{"extra column", "0  embedding_q4gsw  (1,1,1)  1.0  2.0"},
		{"NaN", "0  embedding_q4gsw  (1,1,1)  NaN"},
		{"infinite", "0  embedding_q4gsw  (1,1,1)  +Inf"},
		{"negative", "0  embedding_q4gsw  (1,1,1)  -1.0"},
		{"huge time", "0  embedding_q4gsw  (1,1,1)  1e300"},
		{"no time", "0  embedding_q4gsw  (1,1,1)  -"},
		{"huge grid", "0  embedding_q4gsw  (1,99999999999999999999,1)  1.0"},
		{"zero grid", "0  embedding_q4gsw  (1,0,1)  1.0"},
		{"two counts", "0  embedding_q4gsw  (1,1)  1.0"},
		{"skipped index", "1  embedding_q4gsw  (1,1,1)  1.0"},
		{"huge index", "99999999999999999999  embedding_q4gsw  (1,1,1)  1.0"},
		{"long kernel", "0  " + strings.Repeat("k", 300) + "  (1,1,1)  1.0"},
		{"long line", "0  " + strings.Repeat("k", maxLine) + "  (1,1,1)  1.0"},
	} {
		_, err := read(head + c.row + "\n")
		var at *LineError
		if !errors.As(err, &at) || at.Line != 2 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		golden.Error(c.name, err)
	}
}

func TestOtherFilesAreNotProfiles(t *testing.T) {
	golden := wordingtest.New(t)
	for name, text := range map[string]string{
		"empty": "", "other text": "hello\n0  embedding_q4gsw  (1,1,1)  1.0\n", "no rows": head + tail,
	} {
		_, err := read(text)
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
}

func TestNumberOfRowsIsLimited(t *testing.T) {
	r := newRecorder(&trace.Trace{})
	r.rows = maxRows
	if err := r.add(trace.Decode, make([]launch, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// A program without operators that have dispatches has no rows to join.
func TestProgramWithoutDispatchesFitsNoProfile(t *testing.T) {
	var mismatch *Mismatch
	_, err := Read(strings.NewReader(head+decode), Run{})
	if !errors.As(err, &mismatch) || mismatch.Row != 0 {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	fewRows(f)
	f.Add(head + prefill + tail + head + decode + tail)
	f.Add(head + decode + decode)
	f.Add(strings.ReplaceAll(head+decode, "  ", "\t"))
	f.Add(head + "0  embedding_q4gsw  (1,1,1)  NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := read(text)
		if err != nil {
			return
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	})
}

// The profile is what ExecuTorch's runtime printed for the program of the benchmark: two prefills and six
// decode steps.
func TestRealProfileHasAllSteps(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "bench", "profiles",
		"executorch-1b-h200.profile.txt"))
	if err != nil {
		t.Skip("the shared folder is not present")
	}
	got, err := Read(strings.NewReader(string(text)), Run{Ops: llama1B()})
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	var phases []trace.Phase
	for i := range got.Steps {
		counts = append(counts, len(got.Steps[i].Dispatches))
		phases = append(phases, got.Steps[i].Phase)
	}
	if want := []int{342, 342, 326, 326, 326, 326, 326, 326}; !slices.Equal(counts, want) {
		t.Errorf("dispatches %v, want %v", counts, want)
	}
	p, d := trace.Prefill, trace.Decode
	if want := []trace.Phase{p, p, d, d, d, d, d, d}; !slices.Equal(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	if ns, _ := got.Steps[2].GPU.BusyNS.NS(); ns != 3089088 {
		t.Errorf("busy %d ns in the first decode step", ns)
	}
}

// llama1B returns the operators of the program of the benchmark that have dispatches.
func llama1B() (ops []trace.Op) {
	add := func(kinds ...string) {
		for _, kind := range kinds {
			name := fmt.Sprintf("%d.%s", len(ops), kind)
			ops = append(ops, trace.Op{ID: trace.OpID(len(ops)), Name: name, Kind: kind})
		}
	}
	add("embedding_q4gsw", "slice_copy", "slice_copy")
	for range 16 {
		add("rms_norm", "linear_q4gsw", "linear_q4gsw", "linear_q4gsw", "apply_rotary_emb", "sdpa_with_kv_cache",
			"linear_q4gsw", "add", "rms_norm", "linear_q4gsw", "sigmoid", "mul", "linear_q4gsw", "mul",
			"linear_q4gsw", "add")
	}
	add("select_copy", "rms_norm", "linear_q4gsw")
	return ops
}
