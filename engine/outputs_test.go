package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

// storeOp copies a tensor over the start of State.
func storeOp(b *Builder, x, state ValueID) {
	b.Add("store", &funcOp{
		spec: Spec{
			Kind: "store", Inputs: []ValueID{x}, State: []ValueID{state},
			Slots: []Slot{{Uses: []Use{on(copyKernel, x, state)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			p.Dispatch(0, p.Threads(p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
}

func TestAnyTensorThatIsThereAfterAStepCanBeAnOutput(t *testing.T) {
	dev := fake.New(fake.Options{})
	dev.OnDispatch = compute
	b := NewBuilder(dev.Info().Limits)
	load := func(n uint32) func() ([]byte, error) {
		return func() ([]byte, error) { return bytesOf([]uint32{n, n, n, n}), nil }
	}
	x := b.Input("x", U32, []int{4}, []int{4})
	c, from := b.Constant("c", U32, []int{4}, load(7)), b.StateFrom("from", U32, []int{4}, load(9))
	zeros := b.State("zeros", U32, []int{4})
	storeOp(b, x, zeros)
	y := unary(b, "y", x)
	z := unary(b, "z", y)
	outputs := []ValueID{y, x, c, y, from, z, zeros}
	ex, err := Load(dev, finish(t, b, outputs...), LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	in := &StepInput{
		Inputs: []InputData{{Value: x, Dims: []int{4}, Data: bytesOf([]uint32{1, 2, 3, 4})}}, Read: outputs,
	}
	read := func(want map[ValueID][]uint32) {
		t.Helper()
		for _, v := range outputs {
			got := make([]byte, 16)
			if _, err := ex.Output(v, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], words(got)); d != "" {
				t.Errorf("output %s (-want +got):\n%s", b.values[v].name, d)
			}
		}
	}
	want := map[ValueID][]uint32{
		x: {1, 2, 3, 4}, y: {2, 3, 4, 5}, z: {3, 4, 5, 6}, c: {7, 7, 7, 7}, from: {9, 9, 9, 9},
		zeros: {1, 2, 3, 4},
	}
	if err := ex.Step(context.Background(), in, TimingOff); err != nil {
		t.Fatal(err)
	}
	read(want)
	if err := ex.WriteValue(from, bytesOf([]uint32{5, 5, 5, 5})); err != nil {
		t.Fatal(err)
	}
	if err := ex.ResetState(); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[ValueID][]uint32{from: {9, 9, 9, 9}, zeros: {0, 0, 0, 0}} {
		got := make([]byte, 16)
		if err := ex.ReadValue(v, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, words(got)); d != "" {
			t.Errorf("%s after the reset (-want +got):\n%s", b.values[v].name, d)
		}
	}
}

func TestWhatIsNoTensorAfterAStepIsNoOutput(t *testing.T) {
	for want, output := range map[string]func(b *Builder) ValueID{
		"output n: it is a input symint":   func(b *Builder) ValueID { return b.SymInt("n", 0, 9, 0) },
		"output s: it is a scratch tensor": func(b *Builder) ValueID { return b.Scratch("s", U32) },
		"output t: no operator gives it":   func(b *Builder) ValueID { return b.Tensor("t", U32) },
		"y (unary): reads t before any operator gives it": func(b *Builder) ValueID {
			return unary(b, "y", b.Tensor("t", U32))
		},
		"y (plus): reads n before any operator gives it": func(b *Builder) ValueID {
			plus(b, "y", b.SymInt("m", 0, 9, 0), b.SymIntOut("n"))
			return None
		},
	} {
		b := NewBuilder(gpu.DefaultLimits())
		b.Output(output(b))
		if err := b.Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
