package engine

import (
	"strings"
	"testing"

	"gpuscope/engine/gpu"
)

func TestPassesStandBehindWhatTheyNeed(t *testing.T) {
	if err := passOrder(passes); err != nil {
		t.Error(err)
	}
	if err := passOrder([]pass{{name: "a"}, {name: "b", needs: []string{"c"}}, {name: "c"}}); err == nil {
		t.Error("a pass before what it needs was taken")
	}
}

func TestPassesSayWhatTheyChanged(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	g := finish(t, b, unary(b, "u", alias(b, "a", unary(b, "v", x))))
	got := map[string]string{}
	for i, p := range g.Passes() {
		if p.Name != passes[i].name || p.Doc == "" {
			t.Errorf("pass %d is %s (%s), the table has %s", i, p.Name, p.Doc, passes[i].name)
		}
		for _, c := range p.Counts {
			got[p.Name] += c.What + ","
		}
	}
	for name, want := range map[string]string{
		"types": "", "fuse": "", "alias": "aliases,", "order": "dispatches,levels of data,",
		"memory": "slots,shared bytes,", "names": "kernels,",
	} {
		if got[name] != want {
			t.Errorf("pass %s changed %q, want %q", name, got[name], want)
		}
	}
}

func TestValueOfAnotherTypeThanItsKernelReadsIsRefused(t *testing.T) {
	typed := *unaryKernel
	typed.Storage = []Storage{
		{Name: "x", Elem: "f32", Access: gpu.Read}, {Name: "y", Elem: "f32", Access: gpu.ReadWrite},
	}
	for _, test := range []struct{ in, out DType }{{I32, F32}, {F16, F32}, {F32, I32}, {F32, F32}} {
		b := NewBuilder(gpu.DefaultLimits())
		x := b.Input("x", test.in, []int{1}, []int{8})
		y := b.Tensor("y", test.out)
		b.Add("y", &funcOp{
			spec: Spec{
				Kind: "add", Inputs: []ValueID{x}, Outputs: []ValueID{y},
				Slots: []Slot{{Uses: []Use{on(&typed, x, y)}}},
			},
			corners: func(r *Ranges) []Corner { return r.Ends(x) },
			plan: func(p *Planner) error {
				p.SetDims(y, p.Dims(x)...)
				p.Dispatch(0, p.Threads(p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
				return nil
			},
		})
		b.Output(y)
		_, err := b.Finish()
		if test.in == F32 && test.out == F32 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		name, wrong, binding := "x", test.in, "x"
		if test.in == F32 {
			name, wrong, binding = "y", test.out, "y"
		}
		want := "y (add): " + name + " is " + wrong.String() + ", kernel unary takes f32 as its " + binding
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v to %v: error %v, want %q", test.in, test.out, err, want)
		}
	}
}
