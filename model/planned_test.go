package model

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

// withoutADevice runs commands on the plan of a model file, without a device. It returns the trace and the
// error of the last command.
func withoutADevice(t testing.TB, path string, list ...session.Command) (*trace.Trace, error) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, Device: trace.NoDevice}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m session.Mirror
	done := make(chan error)
	go func() {
		var err error
		for e := range s.Events() {
			err = errors.Join(err, m.Apply(e))
		}
		done <- err
	}()
	var last error
	for i, c := range list {
		if _, last = s.Do(t.Context(), c); last != nil && i < len(list)-1 {
			t.Fatalf("%s: %v", c.Kind, last)
		}
	}
	if err := errors.Join(s.Close(), <-done, m.Trace.Check()); err != nil {
		t.Fatal(err)
	}
	return m.Trace, last
}

// Steps planned without a device are the same as those that run on a device with the same limits.
func TestPlannedStepsAreThoseThatRun(t *testing.T) {
	commands := []session.Command{
		promptOf(9),
		{Kind: session.Next},
		{Kind: session.Chunk, N: 4},
		promptOf(6),
		{Kind: session.Run, N: 3},
		{Kind: session.Previous},
		{Kind: session.Next},
	}
	r := newRigOn(t, Options{}, tiny(), fake.Options{
		NoLog: true, Info: gpu.AdapterInfo{Limits: gpu.DefaultLimits()},
	})
	for _, c := range commands {
		r.do(c)
	}
	ran := r.mirror.Trace
	plan, err := withoutADevice(t, write(t, tiny().Bytes()), commands...)
	if err != nil {
		t.Fatal(err)
	}
	what := func(s *trace.Step) trace.Step { // the fields that follow from the plan
		return trace.Step{
			Phase: s.Phase, Position: s.Position, SymInts: s.SymInts, Dims: s.Dims, Levels: s.Levels,
			Waits: s.Waits, Resize: s.Resize, Dispatches: s.Dispatches, Memory: s.Memory,
		}
	}
	if len(plan.Steps) != len(ran.Steps) {
		t.Fatalf("%d steps planned, %d ran", len(plan.Steps), len(ran.Steps))
	}
	for i := range ran.Steps {
		ignored := cmpopts.IgnoreFields(trace.StepDispatch{}, "StartNS", "GPUNS", "Raw", "Samples")
		d := cmp.Diff(what(&ran.Steps[i]), what(&plan.Steps[i]), ignored,
			cmpopts.IgnoreTypes(trace.Time{}), cmpopts.IgnoreFields(trace.Memory{}, "AllocatedBytes"))
		if d != "" {
			t.Errorf("step %d, -ran +planned:\n%s", i, d)
		}
		if s := &plan.Steps[i]; s.Token != nil || s.GPU != nil || s.CPU.TotalNS != (trace.Time{}) {
			t.Errorf("step %d has a token or a time: %+v", i, s)
		}
	}
	if d := cmp.Diff(ran.Plans, plan.Plans); d != "" {
		t.Errorf("plans, -ran +planned:\n%s", d)
	}
	if !plan.Device.None() || plan.Device.Limits["max_storage_buffer_binding_size"] != 128<<20 {
		t.Errorf("the device is %+v", plan.Device)
	}
}

// Command Plan plans a step of any shape as Model.At does, and the next step follows it.
func TestAStepOfAnyShapeIsPlanned(t *testing.T) {
	golden := wordingtest.New(t)
	path := write(t, tiny().Bytes())
	m, err := Read(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, at := range []struct{ tokens, position int }{{1, 0}, {7, 0}, {5, 20}, {1, 33}} {
		want, err := m.At(gpu.DefaultLimits(), at.tokens, at.position)
		if err != nil {
			t.Fatal(err)
		}
		got, err := withoutADevice(t, path, promptOf(3),
			session.Command{Kind: session.Plan, N: at.tokens, Until: at.position},
			session.Command{Kind: session.Next})
		if err != nil {
			t.Fatal(err)
		}
		step, next := &got.Steps[1], &got.Steps[2]
		n := len(step.Tokens)
		if step.Position != at.position || n != at.tokens || next.Position != at.position+n {
			t.Errorf("%v: step of %d tokens at %d, the next at %d", at, n, step.Position, next.Position)
		}
		var plans []trace.Plan
		for _, d := range step.Dispatches {
			plans = append(plans, got.Plans[d.Plan])
		}
		same := cmpopts.IgnoreFields(trace.Plan{}, "ID")
		if d := cmp.Diff(want.Plans, plans, same); d != "" {
			t.Errorf("%v: -At +planned:\n%s", at, d)
		}
	}
	for _, c := range []session.Command{
		{Kind: session.Plan},
		{Kind: session.Plan, N: m.maxChunk + 1},
		{Kind: session.Plan, N: 1, Until: m.context},
		{Kind: session.Plan, N: 1, Until: -1},
	} {
		if _, err := withoutADevice(t, path, c); !errors.Is(err, session.ErrUsage) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	plan := session.Command{Kind: session.Plan, N: 1}
	golden.Error("with a device", newRig(t, Options{}).try(t.Context(), plan))
}

// Commands that need a device are refused without one, and the text continues.
func TestWithoutADeviceNothingIsMeasured(t *testing.T) {
	path := write(t, tiny().Bytes())
	for _, row := range allCommands() {
		trace, err := withoutADevice(t, path, promptOf(3), session.Command{Kind: row.Kind})
		if can := !errors.Is(err, stepping.ErrNothingRuns); can != row.Planned {
			t.Errorf("%s: %v", row.Kind, err)
		}
		if len(trace.Steps) < 1 {
			t.Errorf("%s: the trace has lost its steps", row.Kind)
		}
	}
	for _, on := range []string{"nan", "time 3"} {
		b, err := session.ParseBreak(on)
		if err != nil {
			t.Fatal(err)
		}
		_, err = withoutADevice(t, path, promptOf(3),
			session.Command{Kind: session.Run, N: 1, Breaks: []session.Break{b}})
		if !errors.Is(err, stepping.ErrNothingRuns) {
			t.Errorf("breakpoint %s: %v", on, err)
		}
	}
}

// The weights of this 39 GB file are a hole in a sparse file, and planning does not read them.
func TestALargeModelIsPlannedFromItsHeader(t *testing.T) {
	got, err := withoutADevice(t, hollow(t, gguftest.Llama70B), session.Command{Kind: session.Plan, N: 512},
		session.Command{Kind: session.Next})
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Steps[0].Memory.AllocatedBytes; n < 40e9 || len(got.Steps[1].Resize.Passes) == 0 {
		t.Errorf("%d bytes; %+v", n, got.Steps[1].Resize)
	}
}

// BenchmarkOpenPlanned measures the time from opening the file of a 70B model to its first planned steps.
func BenchmarkOpenPlanned(b *testing.B) {
	path := hollow(b, gguftest.Llama70B)
	for b.Loop() {
		_, err := withoutADevice(b, path, session.Command{Kind: session.Plan, N: 512},
			session.Command{Kind: session.Next})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/model")
}
