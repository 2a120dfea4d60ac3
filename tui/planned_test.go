package tui

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// unrun returns a trace whose steps were planned but did not run.
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
	d.reads("header", "about")
	for _, key := range []string{"R", "T", "L", "c", "C"} {
		d.press(key).reads("bottom").press("esc")
	}
	playing(t, 200, 50, unrun()).press("5", "j").reads("list")
	d.press("5", "a", "j", "t").reads("bottom").press("esc")
	d.press("1").reads("list", "about")
	d.reads("list").misses(" allocated")
	d.sees("– │").reads("list").misses("0.00 ms", "0 │", "0 passes", "0 compiled", "0 polls").reads("list")
}

// The simulated session refuses to plan, like a session on a device. The refusal shows that the command was
// sent.
func TestAShapeIsTypedWhereStepsArePlanned(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, unrun(), &tuitest.Script{}, Options{})
	d.settle()
	d.reads("notice") // a session without a prompt begins with a full step
	d.press("P").sees("TOKENS,POSITION").reads("bottom")
}
