package speedscope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/speedscope"
	"gpuscope/trace/tracetest"
)

// file is a file of speedscope's format.
type file struct {
	Schema string `json:"$schema"`
	Shared struct {
		Frames []struct {
			Name, File string
			Line       int
		}
	}
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue int64
		Events               []struct {
			Type  string
			Frame int
			At    int64
		}
		Samples [][]int
		Weights []int64
	}
	Gpuscope struct {
		Steps []struct {
			Index      int
			Phase      string
			Dispatches []int
			Blocks     []string
			DurNS      []int64 `json:"dur_ns"`
		}
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// written returns the file of a trace. It is false if the trace has nothing to show.
func written(t fataler, tr *trace.Trace) (*file, bool) {
	t.Helper()
	var b bytes.Buffer
	if err := speedscope.Format.Write(&b, tr); errors.Is(err, speedscope.ErrEmpty) {
		return nil, false
	} else if err != nil {
		t.Fatal(err)
	}
	f := &file{}
	if err := json.Unmarshal(b.Bytes(), f); err != nil {
		t.Fatal(err)
	}
	return f, true
}

// queue reports whether a profile shows dispatches and blocks.
func queue(name string) bool { return strings.HasPrefix(name, speedscope.QueueProfile) }

// durations checks that opens and closes of frames match. It returns how long each frame was open each time.
func durations(t fataler, f *file, profile int) (lasts map[string][]int64) {
	t.Helper()
	p := &f.Profiles[profile]
	type opened struct {
		frame int
		at    int64
	}
	var stack []opened
	lasts = map[string][]int64{}
	last := p.StartValue
	for i, e := range p.Events {
		if e.At < last || e.At > p.EndValue {
			t.Fatalf("%s: event %d is at %d, after %d; the end is %d", p.Name, i, e.At, last, p.EndValue)
		}
		if last = e.At; e.Type == "O" {
			stack = append(stack, opened{e.Frame, e.At})
			continue
		}
		top := stack[len(stack)-1]
		if top.frame != e.Frame {
			t.Fatalf("%s: event %d closes frame %d, but %d is open", p.Name, i, e.Frame, top.frame)
		}
		stack = stack[:len(stack)-1]
		name := f.Shared.Frames[e.Frame].Name
		lasts[name] = append(lasts[name], e.At-top.at)
	}
	if len(stack) > 0 {
		t.Fatalf("%s: %d frames are open at the end", p.Name, len(stack))
	}
	return lasts
}

func TestAnyTraceGivesAValidFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		want := exporttest.TotalsOf(tr)
		f, ok := written(t, tr)
		if !ok {
			for step, sums := range want.Steps { // a time of 0 ns is not shown
				if sums.Workgroups.Sign() > 0 {
					t.Fatalf("step %d launched %d workgroups, but nothing is shown", step, sums.Workgroups)
				}
			}
			return
		}
		for i, p := range f.Profiles {
			if p.Type == "evented" {
				durations(t, f, i)
			}
			if len(p.Samples) != len(p.Weights) {
				t.Fatalf("%s: %d samples, %d weights", p.Name, len(p.Samples), len(p.Weights))
			}
		}
		n, sum := 0, new(big.Int)
		for _, s := range f.Gpuscope.Steps {
			for _, ns := range s.DurNS {
				n++
				sum.Add(sum, big.NewInt(ns))
			}
			if len(s.DurNS) != len(s.Dispatches)+len(s.Blocks) {
				t.Fatalf("step %d: %d times of %d dispatches and %d blocks", s.Index, len(s.DurNS),
					len(s.Dispatches), len(s.Blocks))
			}
		}
		if n != want.Timed || sum.Cmp(want.GPU) != 0 {
			t.Fatalf("%d times, %d ns; want %d times, %d ns", n, sum, want.Timed, want.GPU)
		}
	})
}

func TestFramesLastAsLongAsTheirDispatches(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 5)
	for i := range tr.Steps { // each dispatch starts when the previous one ends
		s := &tr.Steps[i]
		at, _ := s.GPU.StartNS.NS()
		for j := range s.Dispatches {
			d := &s.Dispatches[j]
			d.StartNS = trace.Measured(at)
			ns, _ := d.GPUNS.NS()
			at += ns
		}
	}
	f, _ := written(t, tr)
	if queue(f.Profiles[1].Name) {
		t.Error("the dispatches are on two tracks")
	}
	got, all := durations(t, f, 0), 0
	for kernel, list := range got {
		all += len(list)
		var want []int64
		for i := range tr.Steps {
			for _, d := range tr.Steps[i].Dispatches {
				if tr.Plans[d.Plan].Kernel == kernel {
					ns, _ := d.GPUNS.NS()
					want = append(want, ns)
				}
			}
		}
		if !slices.Equal(list, want) {
			t.Errorf("%s: times %v, want %v", kernel, list, want)
		}
	}
	if want := exporttest.TotalsOf(tr); all != want.Timed {
		t.Errorf("%d frames, want %d", all, want.Timed)
	}
	for _, frame := range f.Shared.Frames {
		if frame.Name == "rms_norm" && (frame.File != "rms_norm.wgsl" || frame.Line != 3) {
			t.Errorf("rms_norm is in %s:%d", frame.File, frame.Line)
		}
	}
}

func TestHostPhasesAreExact(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(1, 4)
	f, _ := written(t, tr)
	for i, p := range f.Profiles {
		if p.Name != speedscope.HostProfile {
			continue
		}
		got := durations(t, f, i)
		var encode, decode []int64
		for i := range tr.Steps {
			ns, _ := tr.Steps[i].CPU.EncodeNS.NS()
			encode = append(encode, ns)
			if total, _ := tr.Steps[i].CPU.TotalNS.NS(); tr.Steps[i].Phase == trace.Decode {
				decode = append(decode, total)
			}
		}
		if !slices.Equal(got["encode"], encode) || !slices.Equal(got["decode"], decode) {
			t.Errorf("encode %v, want %v; decode %v, want %v", got["encode"], encode, got["decode"], decode)
		}
		return
	}
	t.Error("no profile of the host")
}

func TestWhatWasNotMeasuredIsNotDrawn(t *testing.T) {
	t.Parallel()
	f, ok := written(t, exporttest.Untimed(tracetest.Llama(1, 3)))
	if !ok {
		t.Fatal("nothing to show")
	}
	if len(f.Profiles) != 1 || f.Profiles[0].Name != speedscope.WorkProfile {
		t.Errorf("profiles %+v", f.Profiles)
	}
	if len(f.Gpuscope.Steps) != 0 {
		t.Errorf("times %+v", f.Gpuscope.Steps)
	}
	if _, ok := written(t, &trace.Trace{}); ok {
		t.Error("an empty trace is shown")
	}
}
