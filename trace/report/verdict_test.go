package report_test

import (
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// ranUntimed returns a prefill and ten decode steps, of which only the whole step was timed. The first nine
// decode steps are pipelined. The last one is stepped and slower.
func ranUntimed() *trace.Trace {
	tr := tracetest.Run(1, 40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	tr.Device.Ceilings, tr.Observer = nil, nil
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing, s.Cold, s.Pipelined = trace.TimingStep, s.Phase == trace.Prefill, i < 10
		s.CPU = trace.CPU{TotalNS: us(int64(1800 + i)), EncodeNS: us(100)}
		s.GPU = &trace.GPU{SpanNS: us(1750)}
		for k := range s.Dispatches {
			s.Dispatches[k].GPUNS, s.Dispatches[k].StartNS = trace.Time{}, trace.Time{}
		}
	}
	tr.Steps[10].CPU.TotalNS = us(4000)
	return tr
}

// The verdict on several steps is about the median of the untimed ones, not about the last step.
func TestVerdictOnAPhaseIsOfItsMedianStep(t *testing.T) {
	x := analyze.NewIndex(ranUntimed())
	if last := report.Verdict(x.Summary(10)); !strings.Contains(last, "1 untimed sample") {
		t.Fatalf("the last step: %s", last)
	}
	got := report.VerdictOn(x, x.Phase(trace.Decode))
	if !hasAll(got, "1.75 ± 0.01 of 1.80 ms") || strings.Contains(got, "sample") {
		t.Error(got)
	}
	for i := range x.Trace.Steps[1:] { // the GPU waits, and the median of the CPU's own work is 0.50 ms
		c := &x.Trace.Steps[1+i].CPU
		c.TotalNS, c.EncodeNS = us(2000), us(int64(100+100*(4*i%9)))
		x.Trace.Steps[1+i].GPU.SpanNS = us(1000)
	}
	x = analyze.NewIndex(x.Trace)
	if got := report.VerdictOn(x, x.Phase(trace.Decode)); !hasAll(got, "50 ± 0 % 1.00 of 2.00 ms 500 667 tok/s 0.50 ms") {
		t.Error(got)
	}
}

// If no step is warm or only repeats of a step ran untimed, the verdict is that of this step.
func TestVerdictOnAPhaseCanBeThatOfOneStep(t *testing.T) {
	tr := ranUntimed()
	for i := range tr.Steps {
		tr.Steps[i].Cold = true
	}
	x := analyze.NewIndex(tr)
	of := "of step s10: " + report.Verdict(x.Summary(10))
	if got := report.VerdictOn(x, x.Phase(trace.Decode)); got != of {
		t.Errorf("%q, want %q", got, of)
	}
	tr = tracetest.Run(1, 40, 1, 1, 1)
	step := 2
	tr.Observer = &trace.Observer{
		Step: &step, UntimedNS: us(700), SpanNS: us(500), TimedNS: us(900), N: 8,
		UntimedOff: us(1), SpanOff: us(1),
	}
	x = analyze.NewIndex(tr)
	if got, want := report.VerdictOn(x, x.Phase(trace.Decode)), report.Verdict(x.Summary(2)); got != want ||
		!strings.Contains(got, "0.70") {
		t.Errorf("%q, want the verdict of s2, %q", got, want)
	}
}
