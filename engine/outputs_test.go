package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

func TestAnyTensorThatIsThereAfterAStepCanBeAnOutput(t *testing.T) {
	dev := fake.New(fake.Options{})
	dev.OnDispatch = compute
	b := NewBuilder(dev.Info().Limits)
	load := func(n uint32) func() ([]byte, error) {
		return func() ([]byte, error) { return bytesOf([]uint32{n, n, n, n}), nil }
	}
	x := b.Input("x", U32, []int{4}, []int{4})
	b.Constant("behind", U32, []int{4}, load(1)) // so that c does not lie at the begin of its buffer
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
				t.Errorf("output %s (-want +got):\n%s", ex.Graph().values[v].name, d)
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
	got := make([]byte, 16)
	if err := ex.ReadValue(from, got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint32{5, 5, 5, 5}, words(got)); d != "" {
		t.Errorf("what was written (-want +got):\n%s", d)
	}
}

// Constants lie one behind the other, each where a binding may begin, in as few buffers as the device's limit
// allows; kernels and whoever reads or writes one meet it and no other.
func TestConstantsLieInFewBuffers(t *testing.T) {
	const most = 2048
	limits := gpu.DefaultLimits()
	limits.MaxBufferSize = most
	dev := fake.New(fake.Options{Info: gpu.AdapterInfo{Limits: limits}})
	dev.OnDispatch = compute
	b := NewBuilder(dev.Info().Limits)
	var constants, sums []ValueID
	x := b.Input("x", U32, []int{4}, []int{4})
	content := func(i, n int) []uint32 { return slices.Repeat([]uint32{uint32(10 * i)}, n) }
	for i, n := range []int{4, 64, 65, 200, most/4 - 64, 64, 4, most / 4, 4} {
		c := b.Constant(fmt.Sprint("c", i), U32, []int{n},
			func() ([]byte, error) { return bytesOf(content(i, n)), nil })
		constants = append(constants, c)
		if n == 4 {
			sums = append(sums, addOp(b, fmt.Sprint("sum", i), x, c))
		}
	}
	ex, err := Load(dev, finish(t, b, sums...), LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	var sizes []uint64
	for _, c := range dev.Log {
		if c.Kind == fake.NewBuffer && strings.HasPrefix(c.Label, "constants") {
			sizes = append(sizes, c.Size)
		}
	}
	if want := []uint64{1824, most, 16, most, 16}; !slices.Equal(sizes, want) {
		t.Errorf("buffers of %d bytes, want %d", sizes, want)
	}
	in := &StepInput{
		Inputs: []InputData{{Value: x, Dims: []int{4}, Data: bytesOf([]uint32{1, 2, 3, 4})}}, Read: sums,
	}
	if err := ex.WriteValue(constants[0], bytesOf(content(7, 4))); err != nil {
		t.Fatal(err)
	}
	if err := ex.Step(context.Background(), in, TimingOff); err != nil {
		t.Fatal(err)
	}
	for i, of := range []uint32{70, 60, 80} {
		got := make([]byte, 16)
		if _, err := ex.Output(sums[i], got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]uint32{of + 1, of + 2, of + 3, of + 4}, words(got)); d != "" {
			t.Errorf("sum %d (-want +got):\n%s", i, d)
		}
	}
	for i, c := range constants[1:] {
		n := ex.Graph().values[c].maxDims[0]
		got := make([]byte, 4*n-4)
		if err := ex.ReadPart(c, 4, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(content(i+1, n)[1:], words(got)); d != "" {
			t.Errorf("c%d (-want +got):\n%s", i+1, d)
		}
	}
}

// What one dispatch gives and only the host reads comes there by one copy. Where a kernel reads a part of it,
// or it was not asked for whole, each part has a copy of its own where it must.
func TestOutputsOfOneDispatchComeByOneCopy(t *testing.T) {
	for name, c := range map[string]struct {
		read   bool // y, by a kernel
		wanted []int
		copies int
	}{
		"all":            {false, []int{0, 1, 2}, 1},
		"but the middle": {false, []int{0, 2}, 1},
		"the last":       {false, []int{2}, 1},
		"backwards":      {false, []int{2, 1, 0}, 3},
		"one twice":      {false, []int{1, 1}, 1},
		"one is read":    {true, []int{0, 1, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dev := fake.New(fake.Options{})
			dev.OnDispatch = func(d fake.Dispatch) {
				for i, bound := range d.Bound[1 : len(d.Bound)-1] {
					if d.Pipeline == "three" {
						copy(bound.Bytes, bytesOf([]uint32{uint32(i), uint32(10 * i)}))
					}
				}
			}
			b := NewBuilder(dev.Info().Limits)
			x := b.Input("x", U32, []int{1}, []int{100})
			var outputs []ValueID
			for i := range 3 {
				outputs = append(outputs, b.Tensor(fmt.Sprint("y", i), U32))
			}
			all := append([]ValueID{x}, outputs...)
			b.Add("three", &funcOp{
				spec: Spec{
					Kind: "three", Inputs: []ValueID{x}, Outputs: outputs,
					Slots: []Slot{{Uses: []Use{on(testKernel("three", "rwww", 1, ""), all...)}}},
				},
				corners: func(r *Ranges) []Corner { return r.Ends(x) },
				plan: func(p *Planner) error {
					for _, y := range outputs {
						p.SetDims(y, p.Dims(x)...)
					}
					p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
					return nil
				},
			})
			asked := slices.Clone(outputs)
			if c.read {
				asked = append(asked, unary(b, "z", outputs[0]))
			}
			ex, err := Load(dev, finish(t, b, asked...), LiveOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ex.Release()
			in := &StepInput{Inputs: []InputData{{Value: x, Dims: []int{2}, Data: make([]byte, 8)}}}
			for _, i := range c.wanted {
				in.Read = append(in.Read, outputs[i])
			}
			dev.ResetCounts()
			if err := ex.Step(context.Background(), in, TimingOff); err != nil {
				t.Fatal(err)
			}
			if n := dev.Count(fake.CopyOut); n != c.copies {
				t.Errorf("%d copies, want %d", n, c.copies)
			}
			for _, i := range c.wanted {
				got := make([]byte, 400)
				n, err := ex.Output(outputs[i], got)
				if err != nil || n != 8 {
					t.Fatal(n, err)
				}
				if d := cmp.Diff([]uint32{uint32(i), uint32(10 * i)}, words(got[:n])); d != "" {
					t.Errorf("output %d (-want +got):\n%s", i, d)
				}
			}
		})
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
