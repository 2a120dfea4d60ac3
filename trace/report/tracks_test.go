package report

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/tracetest"
)

func TestTracksStandOnOneAxis(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(2, 6)
	x := analyze.NewIndex(run)
	for step := range run.Steps {
		s := &run.Steps[step]
		r := tracks.Of(x, step)
		at := int64(0)
		for _, p := range r.CPU {
			if p.From != at || p.To <= p.From {
				t.Errorf("step %d: %s from %d to %d, the previous ends at %d", step, p.Name, p.From, p.To,
					at)
			}
			at = p.To
		}
		n, busy := 0, int64(0)
		for i := range r.GPU {
			p := &r.GPU[i]
			if i > 0 && p.From < r.GPU[i-1].From {
				t.Errorf("step %d: %s begins before %s", step, p.Name, r.GPU[i-1].Name)
			}
			for _, b := range p.Busy {
				busy += b.NS()
				if b.From < p.From || b.To > p.To {
					t.Errorf("step %d: a busy part of %s is outside its range", step, p.Name)
				}
			}
			if inside := tracks.Inside(x, step, p); len(inside) != p.Dispatches {
				t.Errorf("step %d: %s reports %d dispatches but contains %d", step, p.Name, p.Dispatches,
					len(inside))
			}
			n += p.Dispatches
		}
		want, _ := s.GPU.BusyNS.NS()
		if n != len(s.Dispatches) || busy != want {
			t.Errorf("step %d: %d of %d dispatches, busy %d of %d ns", step, n, len(s.Dispatches), busy, want)
		}
		last := r.GPU[len(r.GPU)-1]
		if span, _ := s.GPU.SpanNS.NS(); last.To-r.GPU[0].From != span || last.To > r.End {
			t.Errorf("step %d: the GPU track has %d of %d ns, axis ends at %d", step, last.To-r.GPU[0].From,
				span, r.End)
		}
	}
}

// With timing level step, only the span of the GPU is measured. The track shows it as one part.
func TestASpanAloneIsATrack(t *testing.T) {
	t.Parallel()
	run := &trace.Trace{Steps: []trace.Step{{Timing: trace.TimingStep, CPU: trace.CPU{
		EncodeNS: trace.Measured(500), SubmitNS: trace.Measured(100), WaitNS: trace.Measured(1400),
		TotalNS: trace.Measured(2000), StartNS: trace.Measured(10_000), SubmittedNS: trace.Measured(10_550),
	}, GPU: &trace.GPU{StartNS: trace.Measured(10_700), SpanNS: trace.Measured(1200)}}, {
		Timing: trace.TimingOff, CPU: trace.CPU{TotalNS: trace.Measured(2000)},
	}}}
	x := analyze.NewIndex(run)
	r := tracks.Of(x, 0)
	if len(r.GPU) != 1 || r.GPU[0].From != 700 || r.GPU[0].To != 1900 || !r.Placed || r.End != 2000 {
		t.Errorf("%+v", r)
	}
	if r := tracks.Of(x, 1); len(r.GPU) != 0 || len(r.CPU) != 0 || r.End != 2000 {
		t.Errorf("without timing: %+v", r)
	}
}

func TestColdStartEndsWithTheFirstStep(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(2, 3)
	run.Opening = []trace.Opening{{Phase: "load", NS: trace.Measured(5)}, {Phase: "compile"}}
	list := tracks.ColdStart(analyze.NewIndex(run))
	if len(list) != 3 || list[2].Phase != "first step" || list[2].NS != run.Steps[0].CPU.TotalNS {
		t.Errorf("%+v", list)
	}
	run.Steps = run.Steps[1:] // drop the first step
	if list := tracks.ColdStart(analyze.NewIndex(run)); len(list) != 2 {
		t.Errorf("without the first step: %+v", list)
	}
}
