package tui

import (
	"context"
	"slices"
	"testing"

	"gpuscope/session"
	"gpuscope/tui/tuitest"
)

// When a run pauses, the program measures the overhead of timing. From then on it shows the speed of the
// untimed step. A key stops the measurement and also does what it always does.
func TestAfterARunWhatTimingCostsIsMeasured(t *testing.T) {
	t.Parallel()
	bare := *llama
	bare.Observer = nil
	observed, waits := 0, false
	began := make(chan struct{}, 1)
	d := drive(t, 120, 40, &bare, &tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
		if c.Kind != session.Observe {
			return nil
		}
		if observed++; waits {
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}, Options{Prompt: "once"})
	d.settle()
	d.press("s", "s").misses("GPU 1.28")
	if observed != 0 {
		t.Errorf("observed %d times without a run", observed)
	}
	waits = true
	d.touch("space")
	for waiting := true; waiting; {
		select {
		case m := <-d.messages:
			d.events()
			d.update(m)
		case <-began:
			waiting = false
		}
	}
	d.sees("[MEASURING")
	waits = false
	d.press("S").misses("GPU 1.28").sees("[PAUSED]")
	if observed != 1 || d.app.mirror.Trace.Observer != nil {
		t.Errorf("observed %d times, %+v", observed, d.app.mirror.Trace.Observer)
	}
	d.press("space").sees("step 1.80 ms (s24) │ GPU 1.28 ms, idle 0.52 ms │ timing adds 161 %").reads("about")
	d.press("1").sees("untimed 1.80 ms").reads("list")
	d.press("S", "space") // too close to the measured step to measure again
	if observed != 2 {
		t.Errorf("observed %d times, want 2", observed)
	}
}

// After a cancelled run no measurement starts by itself. Otherwise a second cancel would stop something that
// the user did not start.
func TestCancelledRunMeasuresNothing(t *testing.T) {
	t.Parallel()
	bare := *llama
	bare.Observer = nil
	observed := 0
	d := drive(t, 120, 40, &bare, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Observe {
			observed++
		}
		return nil
	}}, Options{Prompt: "once"})
	d.settle()
	d.press("s", "s")
	for cancelled := range 2 {
		d.press("S").touch("space")
		for d.app.job != nil {
			m := <-d.messages
			d.events()
			if _, is := m.(doneMsg); is && cancelled == 0 {
				d.touch("ctrl+c")
				d.reads("bottom")
			}
			d.update(m)
		}
		if d.settle(); observed != cancelled {
			t.Errorf("observed %d times, want %d", observed, cancelled)
		}
	}
}

// A key measures the ceilings of the device. From then on dispatches are compared with them.
func TestCeilingsAreMeasuredFromTheScreen(t *testing.T) {
	t.Parallel()
	bare := *llama
	bare.Device.Ceilings = nil
	d := drive(t, 200, 40, &bare, &tuitest.Script{}, Options{Prompt: "once"})
	d.settle()
	d.press("s", "2").misses("mem 1", "≈floor")
	d.press("L").sees("≈floor", "mem ").reads("notice")
	d.press("0").reads("list")
}

// A time from one sample is labelled "1 sample", with the key that takes more. After repeats it is not.
func TestOneSampleSaysHowToGetMore(t *testing.T) {
	t.Parallel()
	once := *llama
	once.Steps = slices.Clone(llama.Steps)
	for i := range once.Steps {
		s := &once.Steps[i]
		s.Dispatches = slices.Clone(s.Dispatches)
		for k := range s.Dispatches {
			s.Dispatches[k].Samples = nil
		}
	}
	d := drive(t, 200, 60, &once, &tuitest.Script{}, Options{Prompt: "once"})
	d.settle()
	d.press("s", "2", "down").reads("detail", "title", "bottom")
	d.press("G", "down").reads("title", "bottom")
	d.press("g", "down", "R").misses("1 sample")
}
