package chrome_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/chrome"
	"gpuscope/trace/export/chromecheck"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/tracetest"
)

// event is an event of a file.
type event struct {
	Ph, Cat, Name string
	PID, TID, ID  int
	TS, Dur       json.Number
	Args          struct {
		DurNS       *json.Number `json:"dur_ns"`
		Step        int
		Seq         int
		Op          string
		Grid, Block []int
		Name        string
		Stream      *int
		Correlation *int
		Text        string
	}
}

type file struct {
	TraceEvents []event
	Metadata    map[string]any
}

type tester interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// written writes a trace with the given writer, checks the file, and returns its content.
func written(t tester, write func(*bytes.Buffer) error) (f file, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	text = b.String()
	if !chromecheck.Sniff(b.Bytes()[:min(4096, b.Len())]) {
		t.Errorf("the file is not recognized as Chrome JSON")
	}
	_, err := chromecheck.Check(strings.NewReader(text), func(v chromecheck.Violation) { t.Errorf("%v", v) })
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	return f, text
}

func asChrome(t tester, tr *trace.Trace) (file, string) {
	t.Helper()
	return written(t, func(b *bytes.Buffer) error { return chrome.Format.Write(b, tr) })
}

// sum returns the number of events of some categories and the sum of their dur_ns.
func (f *file) sum(cats ...string) (n int, ns *big.Int) {
	ns = new(big.Int)
	for i := range f.TraceEvents {
		e := &f.TraceEvents[i]
		if e.Args.DurNS == nil || !slices.Contains(cats, e.Cat) {
			continue
		}
		d, _ := new(big.Int).SetString(e.Args.DurNS.String(), 10)
		n, ns = n+1, ns.Add(ns, d)
	}
	return n, ns
}

// hostTotals returns the number and the sum of the wall times of steps, and of the phases that are not 0.
func hostTotals(tr *trace.Trace) (steps, phases int, stepNS, phaseNS *big.Int) {
	stepNS, phaseNS = new(big.Int), new(big.Int)
	for i := range tr.Steps {
		c := &tr.Steps[i].CPU
		if ns, ok := c.TotalNS.NS(); ok {
			steps, stepNS = steps+1, stepNS.Add(stepNS, big.NewInt(ns))
		}
		for _, p := range []trace.Time{c.ResizeNS, c.UploadNS, c.EncodeNS, c.SubmitNS, c.WaitNS, c.SampleNS} {
			if ns, _ := p.NS(); ns > 0 {
				phases, phaseNS = phases+1, phaseNS.Add(phaseNS, big.NewInt(ns))
			}
		}
	}
	return steps, phases, stepNS, phaseNS
}

func TestTotalsAreThoseOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		f, _ := asChrome(r, tr)
		want := exporttest.TotalsOf(tr)
		if n, ns := f.sum("kernel", "block"); n != want.Timed || ns.Cmp(want.GPU) != 0 {
			r.Fatalf("%d dispatches of %v ns, want %d of %v ns", n, ns, want.Timed, want.GPU)
		}
		steps, phases, stepNS, phaseNS := hostTotals(tr)
		if n, ns := f.sum("step"); n != steps || ns.Cmp(stepNS) != 0 {
			r.Fatalf("%d steps of %v ns, want %d of %v ns", n, ns, steps, stepNS)
		}
		if n, ns := f.sum("host"); n != phases || ns.Cmp(phaseNS) != 0 {
			r.Fatalf("%d phases of %v ns, want %d of %v ns", n, ns, phases, phaseNS)
		}
	})
}

func TestUntimedStepsHaveNoSlices(t *testing.T) {
	t.Parallel()
	f, _ := asChrome(t, exporttest.Untimed(tracetest.Llama(2, 3)))
	for _, e := range f.TraceEvents {
		if e.Ph == "X" || e.Ph == "i" {
			t.Errorf("an untimed trace has the event %+v", e)
		}
	}
}

// wild returns the tiny trace with a kernel name of special characters, and a step with dispatches at the
// given starts and durations in ns.
func wild(dispatches ...[2]int64) *trace.Trace {
	tr := tracetest.Tiny()
	tr.Graph.Kernels[0].Name = wildName
	for i := range tr.Plans {
		tr.Plans[i].Kernel = wildName
	}
	tr.Graph.Dispatches[0].Kernels[0] = wildName
	for i := range tr.Steps {
		tr.Steps[i].Dispatches, tr.Steps[i].GPU = nil, nil
	}
	s := &tr.Steps[0]
	for _, d := range dispatches {
		s.Dispatches = append(s.Dispatches, trace.StepDispatch{
			StartNS: trace.Measured(d[0]), GPUNS: trace.Measured(d[1]),
		})
	}
	return tr
}

const wildName = "a\"b\\c\nd</script>🚀\x00"

func TestDifficultDispatches(t *testing.T) {
	t.Parallel()
	ticks := func(n int, period float64) (list [][2]int64) {
		for i := range n { // each dispatch takes 3 ticks, and the next one starts at the same tick
			begin, end := float64(3*i)*period, float64(3*i+3)*period
			list = append(list, [2]int64{int64(math.Round(begin)), int64(math.Round(end - begin))})
		}
		return list
	}
	for name, c := range map[string]struct {
		dispatches  [][2]int64
		marks, tids int
	}{
		"none":              {nil, 0, 0},
		"0 ns":              {[][2]int64{{100, 0}, {100, 10}, {110, 0}}, 2, 1},
		"abutting":          {[][2]int64{{100, 50}, {150, 50}, {200, 50}}, 0, 1},
		"overlapping":       {[][2]int64{{100, 50}, {120, 50}, {180, 10}}, 0, 2},
		"equal":             {[][2]int64{{100, 50}, {100, 50}}, 0, 2},
		"5,000":             {ticks(5000, 1), 0, 1},
		"period of 52.083":  {ticks(500, 52.0833333), 0, 1},
		"earlier than step": {[][2]int64{{-100, 50}}, 0, 1},
	} {
		f, _ := asChrome(t, wild(c.dispatches...))
		marks, tids, n := 0, map[int]bool{}, 0
		for _, e := range f.TraceEvents {
			if e.Cat != "kernel" {
				continue
			}
			n++
			if e.Name != wildName {
				t.Errorf("%s: a kernel is named %q", name, e.Name)
			}
			if e.Ph == "i" {
				marks++
			} else {
				tids[e.TID] = true
			}
		}
		if n != len(c.dispatches) || marks != c.marks || len(tids) != c.tids {
			t.Errorf("%s: %d dispatches, %d marks, threads %v", name, n, marks, tids)
		}
	}
}

func TestEventsNameWhatRan(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	tr.Events = []trace.Event{{Step: 1, Kind: "note", Text: "look \"here\""}}
	f, text := asChrome(t, tr)
	threads := map[[2]int]string{}
	arrows, notes, launched := 0, 0, 0
	for _, e := range f.TraceEvents {
		switch {
		case e.Ph == "M" && e.Name == "thread_name":
			threads[[2]int{e.PID, e.TID}] = e.Args.Name
		case e.Ph == "f":
			arrows++
		case e.Cat == "event":
			if notes++; e.Args.Text != tr.Events[0].Text || e.Name != "note" {
				t.Errorf("the event is %+v", e)
			}
		case e.Cat == "kernel":
			launched++
			d := tr.Steps[e.Args.Step].Dispatches[e.Args.Seq]
			p := &tr.Plans[d.Plan]
			op := &tr.Graph.Ops[tr.Graph.Dispatches[p.Dispatch].Op]
			if e.Name != p.Kernel || e.Args.Op != tr.Graph.Dispatches[p.Dispatch].Named(op.Name) ||
				!slices.Equal(e.Args.Grid, p.Workgroups[:]) || len(e.Args.Block) != 3 {
				t.Fatalf("dispatch %d of step %d is the event %+v", e.Args.Seq, e.Args.Step, e)
			}
		}
		if _, known := threads[[2]int{e.PID, e.TID}]; e.TID != 0 && e.Ph != "M" && !known {
			t.Fatalf("the thread of event %+v has no name", e)
		}
	}
	if arrows != len(tr.Steps) || notes != 1 || launched == 0 {
		t.Errorf("%d arrows, %d events, %d dispatches", arrows, notes, launched)
	}
	if f.Metadata["clock.uncertainty_ns"] != 900.0 || f.Metadata["steps_placed"] != false {
		t.Errorf("metadata %v", f.Metadata)
	}
	if !strings.HasPrefix(text, `{"`) {
		t.Errorf("the file starts with %.10q, which Perfetto does not recognize", text)
	}
}

func BenchmarkWrite(b *testing.B) {
	tr := tracetest.Llama(14, 500)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := chrome.Format.Write(&out, tr); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out.Len()))
}
