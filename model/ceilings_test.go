package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

// gpuOf returns the options of a fake device that reports itself as a discrete GPU with the given driver
// version.
func gpuOf(driver string) fake.Options {
	info := gpu.AdapterInfo{Name: "Big GPU", Driver: driver, Type: gpu.Discrete}
	return fake.Options{NoLog: true, Info: info}
}

func TestCeilingsAreMeasuredOncePerDeviceAndDriver(t *testing.T) {
	cache := t.TempDir()
	open := func(driver string) *rig { return newRigOn(t, Options{Cache: cache}, tiny(), gpuOf(driver)) }
	r := open("1.0")
	if c := r.mirror.Trace.Device.Ceilings; c != nil {
		t.Fatalf("before anything was measured: %+v", c)
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Ceilings})
	want := r.mirror.Trace.Device.Ceilings
	if want == nil || len(want.CopyBytesPerS) == 0 || r.mirror.Progress.Phase != "measure ceilings" ||
		r.mirror.Progress.Done != r.mirror.Progress.Total {
		t.Fatalf("%+v, progress %+v", want, r.mirror.Progress)
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 2, position 7, "fgh"`)
	if n := r.dev.Live(); n.Buffers == 0 {
		t.Error("the session's buffers were released")
	}
	same := cmpopts.EquateComparable(trace.Time{})
	if d := cmp.Diff(want, open("1.0").mirror.Trace.Device.Ceilings, same); d != "" {
		t.Error("the next session on the same device:", d)
	}
	if c := open("2.0").mirror.Trace.Device.Ceilings; c != nil {
		t.Errorf("with another driver: %+v", c)
	}
}

// If the canary finds that the clock is slow, measuring the ceilings logs a warning.
func TestSlowClockOfCeilingsIsReported(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRigOn(t, Options{}, tiny(), gpuOf("1.0"))
	r.do(promptOf(5))
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 2000 }
	r.do(session.Command{Kind: session.Ceilings})
	said := slices.IndexFunc(r.events, func(e session.Event) bool { return e.Log != nil && e.Log.Level == "warn" })
	if said < 0 {
		t.Fatal("no warning was logged")
	}
	golden.Text("warning", r.events[said].Log.Text)
}

func TestCeilingsAreUsableWithoutACache(t *testing.T) {
	file := write(t, nil) // a file at the path of the cache folder
	r := newRigOn(t, Options{Cache: file}, tiny(), gpuOf("1.0"))
	r.do(session.Command{Kind: session.Ceilings})
	if r.mirror.Trace.Device.Ceilings == nil {
		t.Error("the ceilings are not in the trace")
	}
	if !slices.ContainsFunc(r.events, func(e session.Event) bool {
		return e.Log != nil && e.Log.Level == "warn" && strings.Contains(e.Log.Text, "Big GPU")
	}) {
		t.Error("no warning was logged")
	}
}

func TestMeasuringCeilingsCanBeCancelledAndRefused(t *testing.T) {
	r := newRigOn(t, Options{}, tiny(), gpuOf("1.0"))
	r.do(promptOf(5))
	ctx, cancel := context.WithCancel(context.Background())
	r.dev.OnDispatch = func(d fake.Dispatch) {
		if d.Pipeline == "ceiling_copy" {
			cancel()
		}
	}
	if err := r.try(ctx, session.Command{Kind: session.Ceilings}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if c := r.mirror.Trace.Device.Ceilings; c != nil {
		t.Errorf("the trace has incomplete ceilings: %+v", c)
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 1, position 6, "fg"`)
	without := newRigOn(t, Options{}, tiny(), fake.Options{NoTimestamps: true})
	if err := without.try(context.Background(), session.Command{Kind: session.Ceilings}); !errors.Is(err,
		session.ErrUsage) {
		t.Errorf("without timestamps: %v", err)
	}
}

// If the device was not warm when the reference was measured, a later canary runs faster. That canary becomes
// the new reference.
func TestCanaryThatIsFasterIsTheReference(t *testing.T) {
	r := newRigOn(t, Options{Timing: engine.TimingDispatch}, tiny(), gpuOf("1.0"))
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 200 }
	r.s.runner.Probed = time.Time{}
	r.do(promptOf(5))
	if s := r.mirror.Trace.Steps[0]; s.Canary != 1 {
		t.Errorf("canary %v at five times the clock of the reference, want 1", s.Canary)
	}
	if ns, _ := r.mirror.Trace.Clock.CanaryNS.NS(); ns != 200 {
		t.Errorf("the reference is %d ns", ns)
	}
}

// The canary runs on GPUs only. It runs after timed steps, never within one. With timing off it does not run.
func TestCanaryMeasuresTheClockSpeed(t *testing.T) {
	r := newRigOn(t, Options{Timing: engine.TimingDispatch}, tiny(), gpuOf("1.0"))
	sung, slow := 0, int64(1)
	r.dev.OnDispatch = func(d fake.Dispatch) {
		if d.Pass == "measure" {
			sung++
		}
	}
	r.dev.Duration = func(pipeline string, _, _, _ uint32) int64 { return 1000 * slow }
	if ns, ok := r.mirror.Trace.Clock.CanaryNS.NS(); !ok || ns != 1000 {
		t.Errorf("the reference is %d ns", ns)
	}
	step := func(level trace.Timing) *trace.Step {
		r.do(session.Command{Kind: session.Timing, Level: level})
		r.s.runner.Probed = r.s.runner.Probed.Add(-stepping.ProbeEvery)
		r.do(session.Command{Kind: session.Next})
		return &r.mirror.Trace.Steps[len(r.mirror.Trace.Steps)-1]
	}
	r.do(promptOf(5))
	step("dispatch") // the first step of a route is cold at any clock speed
	for _, c := range []struct {
		level  trace.Timing
		slow   int64
		canary float64
	}{{"dispatch", 1, 1}, {"step", 4, 0.25}, {"off", 1, 0}, {"block", 2, 0.5}} {
		before := sung
		slow = c.slow
		s := step(c.level)
		want := 2 // the first run only loads the code and is not timed
		if c.canary == 0 {
			want = 0
		}
		if s.Canary != c.canary || sung-before != want || s.Cold != (c.canary > 0 && c.canary < 1) {
			t.Errorf("at level %s, %d times as slow: canary %v, ran %d times, cold: %v", c.level, c.slow,
				s.Canary, sung-before, s.Cold)
		}
	}
	r.s.runner.Probed = time.Now().Add(time.Hour)
	r.do(session.Command{Kind: session.Next})
	if s := r.mirror.Trace.Steps[len(r.mirror.Trace.Steps)-1]; !s.Cold || s.Canary != 0 {
		t.Errorf("after a step at half the clock: cold %v, canary %v; want a cold step", s.Cold, s.Canary)
	}
	before := sung
	r.s.runner.Probed = time.Now().Add(time.Hour)
	r.do(session.Command{Kind: session.Timing, Level: "dispatch"})
	r.do(session.Command{Kind: session.Run, N: 20})
	if sung != before {
		t.Errorf("the canary ran %d times, although it had run recently", sung-before)
	}
	slow = 4
	r.do(session.Command{Kind: session.Repeat, N: 5})
	if s := r.mirror.Trace.Steps[len(r.mirror.Trace.Steps)-1]; s.Canary != 0.25 || sung != before+2 {
		t.Errorf("repeats at a quarter of the clock: canary %v, it ran %d times", s.Canary, sung-before)
	}
	slow = 1
	sung = 0
	r.dev.Duration = func(pipeline string, _, _, _ uint32) int64 {
		if sung > 10 { // two runs before the first round, and two after the round and after each row
			return 2000
		}
		return 1000
	}
	one := trace.Part{Name: "one", Dispatches: []trace.DispatchID{0}}
	r.do(session.Command{Kind: session.Cost, N: 31, Parts: []trace.Part{one}})
	w := r.mirror.Trace.Steps[len(r.mirror.Trace.Steps)-1].Whole
	if w == nil || w.CanaryQ1 != 0.5 || w.CanaryQ3 != 1 || sung != 16 {
		t.Errorf("clock halved while costs were measured: %+v, the canary ran %d times", w, sung)
	}
	soft := newRig(t, Options{Timing: engine.TimingDispatch})
	soft.do(promptOf(5))
	if c := soft.mirror.Trace.Steps[0].Canary; c != 0 || soft.mirror.Trace.Clock.CanaryNS != (trace.Time{}) {
		t.Errorf("on a software device: %v", c)
	}
}

// If the next step is already submitted, the canary runs after that step, and a later step reports its
// result. The session never waits for the whole device, and it submits the next step without waiting for the
// canary. If the text ends while a canary is in flight, no step reports its result.
func TestCanaryDoesNotDelayStepsInFlight(t *testing.T) {
	device := gpuOf("1.0")
	device.NoLog = false
	r := newRigOn(t, Options{Pipelined: true, Timing: engine.TimingStep}, tiny(), device)
	slow := int64(1)
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 1000 * slow }
	r.dev.OnDispatch = func(d fake.Dispatch) {
		if d.Pass != "measure" {
			r.s.runner.Probed = time.Time{} // the canary is always due
		}
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.dev.ResetCounts()
	r.do(session.Command{Kind: session.Run, N: 4})
	var speeds []float64
	for _, s := range r.mirror.Trace.Steps[2:] {
		speeds = append(speeds, s.Canary)
	}
	if want := []float64{0, 1, 0, 1}; !slices.Equal(speeds, want) {
		t.Errorf("canaries of %v, want %v", speeds, want)
	}
	var calls []string
	for _, c := range r.dev.Log {
		if (c.Kind == fake.Submit || c.Kind == fake.Wait) && c.Label != "times" && c.Label != "" {
			calls = append(calls, strings.ToLower(c.Kind.String())+" "+c.Label)
		}
	}
	const want = "submit step, submit step, wait step, submit measure, " +
		"submit step, wait step, wait measure, submit step, wait step, submit measure, wait step, wait measure"
	if got := strings.Join(calls, ", "); got != want {
		t.Errorf("device calls\n%s, want\n%s", got, want)
	}
	r.token = func(int, []int) int { return tinyEnd }
	r.do(session.Command{Kind: session.Run, N: 4})
	slow = 4
	if speed := r.s.runner.ProbeClock(); speed != 0.25 {
		t.Errorf("canary %v after the end of the text, want 0.25", speed)
	}
}
