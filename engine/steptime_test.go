package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"gpuscope/engine/gpu/fake"
)

// Between steps the fake device's clock stops or advances by an hour. The instants of a step are on the
// host's time axis all the same.
func TestStepsStartOnTheHostsAxis(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	for range 3 {
		r.dev.Idle(3600e9)
		before := time.Now()
		if err := r.x.Step(context.Background(), r.input(7, 7), TimingDispatch); err != nil {
			t.Fatal(err)
		}
		after := time.Now()
		_, s := rec.Step()
		start, _ := s.GPU.StartNS.NS()
		span, _ := s.GPU.SpanNS.NS()
		from, to := r.x.clock.SinceStart(before)-span, r.x.clock.SinceStart(after)
		if start < from || start > to {
			t.Errorf("the step starts at %d, it ran between %d and %d", start, from, to)
		}
		begun, _ := s.CPU.StartNS.NS()
		submitted, _ := s.CPU.SubmittedNS.NS()
		done, _ := s.CPU.DoneNS.NS()
		if at := []int64{from + span, begun, submitted, done, to}; !slices.IsSorted(at) || submitted == done {
			t.Errorf("the step begins, is submitted and done at %v: not in order", at)
		}
	}
	if c := fmt.Sprint(r.x.Clock().NSPerTick); c != "1" {
		t.Errorf("the driver says that ticks are ns, the clock says %s", c)
	}
}

// A pause of the garbage collector is part of a step's wall time. A step reports only its own pauses, and
// reports zero if there were none.
func TestStepReportsGarbageCollectorPauses(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	pause, compute := 0, r.dev.OnDispatch
	r.dev.OnDispatch = func(d fake.Dispatch) {
		compute(d)
		for ; pause > 0; pause-- {
			runtime.GC()
		}
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the collections of the test
	for _, n := range []int{0, 3, 0} {
		pause = n
		r.mustStep(t, 7, 7)
		_, s := rec.Step()
		ns, ok := s.CPU.GCNS.NS()
		if s.CPU.GCs < n || (s.CPU.GCs > 0) != (n > 0) || !ok || (ns > 0) != (n > 0) {
			t.Errorf("%d pauses in the step: %d reported, %d ns, measured: %v", n, s.CPU.GCs, ns, ok)
		}
	}
}
