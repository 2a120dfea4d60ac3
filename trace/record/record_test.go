package record

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestRangesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Range{
		"": {}, "10:50": {10, 51}, "10:": {10, 0}, ":50": {0, 51}, "7": {7, 8}, "0": {0, 1}, ":0": {0, 1},
		"0:": {},
	} {
		if got, err := ParseRange(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "5:3", "-1:3", "1:2:3", "1-3", "99999999999999999999", "9223372036854775807"} {
		if _, err := ParseRange(text); !errors.Is(err, ErrRange) {
			t.Errorf("%q: %v, want ErrRange", text, err)
		}
	}
}

func TestSizesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"64MB": 64e6, "64MiB": 64 << 20, "2g": 2 << 30, "1.5 GB": 15e8, "1048576": 1 << 20, "2000kb": 2e6,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "MB", "5", "1e30GB", "NaN", "-5MB", "64TBB", "64MBMB"} {
		if _, err := ParseSize(text); !errors.Is(err, ErrSize) {
			t.Errorf("%q: %v, want ErrSize", text, err)
		}
	}
}

// play records the plans and steps of a trace as a session sends them: each plan before its first step.
func play(t interface{ Fatal(...any) }, path string, o Options, run *trace.Trace) error {
	f, err := Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	head := *run
	head.Plans, head.Steps = nil, nil
	if err := f.Begin(&head); err != nil {
		t.Fatal(err)
	}
	plan := 0
	for i := range run.Steps {
		for _, d := range run.Steps[i].Dispatches {
			for ; plan <= int(d.Plan); plan++ {
				if err := f.Write(trace.Record{Plan: &run.Plans[plan]}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := f.Write(trace.Record{Step: &run.Steps[i]}); err != nil {
			t.Fatal(err)
		}
		none := make([][]int64, len(run.Steps[i].Dispatches))
		samples := trace.Samples{Step: run.Steps[i].Index, Samples: none}
		if err := f.Write(trace.Record{Samples: &samples}); err != nil {
			t.Fatal(err)
		}
	}
	return f.Close()
}

// A recorded range has the steps of the range, and their shapes are those of a recording of the whole run.
func TestARangeHasItsStepsAndTheirShapes(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(2, 12)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 11).Draw(t, "from")
		end := rapid.IntRange(from+1, 15).Draw(t, "end")
		limit := rapid.SampledFrom([]int64{0, 1 << 30}).Draw(t, "limit")
		path := filepath.Join(dir, rapid.SampledFrom([]string{"x.jsonl", "x.json", "x.json.zst"}).Draw(t, "name"))
		if err := play(t, path, Options{Steps: Range{from, end}, Limit: limit}, run); err != nil {
			t.Fatal(err)
		}
		got, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := run.Steps[from:min(end, len(run.Steps))]
		if len(got.Steps) != len(want) || got.DroppedSteps != from {
			t.Fatalf("%d steps after %d others, want %d after %d", len(got.Steps), got.DroppedSteps,
				len(want), from)
		}
		for i := range got.Steps {
			if !reflect.DeepEqual(got.Steps[i].GPU, want[i].GPU) || got.Steps[i].Index != want[i].Index {
				t.Fatalf("step %d differs", want[i].Index)
			}
		}
		used := map[trace.PlanID]bool{}
		for i := range got.Steps {
			tracetest.Renumber(got.Steps[i], func(id trace.PlanID) trace.PlanID {
				used[id] = true
				return id
			})
			for j, d := range got.Steps[i].Dispatches {
				p, q := got.Plans[d.Plan], run.Plans[want[i].Dispatches[j].Plan]
				if p.Dispatch != q.Dispatch || !p.Same(&q) {
					t.Fatalf("step %d, dispatch %d: plan %v, want %v", want[i].Index, j, p, q)
				}
			}
		}
		if len(used) != len(got.Plans) {
			t.Fatalf("%d of %d plans are used", len(used), len(got.Plans))
		}
		dims, levels, waits := trace.Inherited(run.Steps[:from+1])
		if s := got.Steps[0]; !reflect.DeepEqual(s.Dims, dims) || !reflect.DeepEqual(s.Levels, levels) ||
			!reflect.DeepEqual(s.Waits, waits) {
			t.Fatalf("the first step has the dims %v, want %v", s.Dims, dims)
		}
	})
}

func TestTheNewestStepsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(15, 300)
	path := filepath.Join(t.TempDir(), "x.json")
	const limit = 4 << 20
	if err := play(t, path, Options{Limit: limit}, run); err != nil {
		t.Fatal(err)
	}
	got, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	n, size := len(got.Steps), info.Size() // the JSON of a step is about as large as the step in memory
	if got.DroppedSteps == 0 || got.DroppedSteps+n != 300 || size > 2*limit || size < limit/8 ||
		got.Steps[n-1].Index != run.Steps[299].Index {
		t.Errorf("%d steps of %d bytes, %d dropped", n, size, got.DroppedSteps)
	}
}

func TestARangeWithoutStepsLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, limit := range []int64{0, 1 << 30} {
		o := Options{Steps: Range{100, 201}, Limit: limit}
		err := play(t, filepath.Join(dir, "x.json"), o, tracetest.Llama(1, 3))
		if !errors.Is(err, ErrNoStep) {
			t.Errorf("limit %d: %v, want ErrNoStep", limit, err)
		}
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			t.Errorf("limit %d: the file %s is left", limit, files[0].Name())
		}
	}
}
