package tui

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// unrun is a trace whose steps were planned and did not run.
func unrun() *trace.Trace {
	t := tracetest.Llama(2, 4)
	t.Device = trace.Device{Name: trace.NoDevice}
	for i := range t.Steps {
		s := &t.Steps[i]
		s.Timing, s.GPU, s.CPU, s.Token, s.Text, s.Top = "off", nil, trace.CPU{}, nil, "", nil
		for k := range s.Dispatches {
			s.Dispatches[k] = trace.StepDispatch{Plan: s.Dispatches[k].Plan}
		}
	}
	return t
}

func TestWithoutDeviceMeasuringKeysExplain(t *testing.T) {
	t.Parallel()
	d := playing(t, 120, 40, unrun())
	d.sees("no device: planned, not run", "planned without a device: no times")
	for _, key := range []string{"R", "T", "L", "c", "C"} {
		d.press(key).sees("no device: steps are planned, not run").press("esc")
	}
	playing(t, 200, 50, unrun()).press("5", "j").sees("not timed: there is no device")
	d.press("5", "a", "j", "t").sees("no device: steps are planned").press("esc")
	d.press("1").sees("no token: the step was planned, not run", "GPU – not measured", "decode steps planned")
	d.sees(" to allocate").misses(" allocated")
	d.sees("step planned, not run", "– │").misses("as timed", "0.00 ms", "0 │", "0 passes", "0 compiled", "0 polls")
}

// The session that is played back refuses to plan, as one with a device does: so one sees that it was asked.
func TestAShapeIsTypedWhereStepsArePlanned(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, unrun(), &tuitest.Script{}, Options{})
	d.settle()
	d.sees(`plan: unknown command "plan"`) // a session without a prompt begins with a full step
	d.press("P").sees("plan to:", "TOKENS,POSITION")
}
