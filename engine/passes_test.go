package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

func TestPassesSayWhatTheyChanged(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	g := finish(t, b, unary(b, "u", alias(b, "a", unary(b, "v", x))))
	got := map[string]string{}
	for _, p := range g.Passes() {
		if p.Doc == "" {
			t.Errorf("pass %s has no doc", p.Name)
		}
		for _, c := range p.Counts {
			got[p.Name] += c.What + ","
		}
	}
	for name, want := range map[string]string{
		"types": "", "fuse": "", "alias": "aliases,", "levels": "dispatches,levels of data,", "order": "",
		"memory": "compute passes at most,layouts,slots,shared bytes,", "names": "kernels,",
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
				p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
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

// layered is a chain of layers, each of which adds what a value becomes in two ways: the second of them is
// beside, of the layer's value or of an input that is there from the start, as a mask is.
func layered(t *testing.T, layers int, passBytes int64, beside besideFunc) (*Graph, *Live) {
	b := NewBuilder(gpu.DefaultLimits())
	b.PassBytes(passBytes)
	x, mask := rowsInput(b, "x"), rowsInput(b, "mask")
	for i := range layers {
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "")
		g := unary(b, "g", x)
		x = addOp(b, "add", unary(b, "f", g), beside(b, g, mask))
	}
	g := finish(t, b, unary(b, "end", x))
	return g, newLive(t, g, LiveOptions{})
}

type besideFunc func(b *Builder, x, mask ValueID) ValueID

// resizeAll gives all inputs so many rows.
func resizeAll(t *testing.T, l *Live, n int) {
	for _, v := range l.g.Inputs() {
		if err := l.SetDims(v, n, width); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Propagate(); err != nil {
		t.Fatal(err)
	}
	l.Commit()
}

// branched is what q and k are: both of what the layer computed, side by side.
func branched(b *Builder, x, _ ValueID) ValueID { return unary(b, "h", x) }

// A layer of these has four writes and three barriers. Where all have memory that was used before, one of
// them has a barrier more: that is the cost of memory that does not grow, for large steps alone.
func TestIndependentWorkWaitsUntilItIsNeeded(t *testing.T) {
	const bytes = 4 * rows * width // of a value
	for name, test := range map[string]struct {
		values int64 // that are alive at one time
		more   int   // levels before the first layer
		beside func() besideFunc
	}{
		"a slice of an input for each layer": {3, 0, func() besideFunc {
			return func(b *Builder, _, mask ValueID) ValueID { return unary(b, "mask", mask) }
		}},
		"a slice for each layer of what is made of an input": {
			4, 1,
			func() besideFunc {
				whole := None
				return func(b *Builder, _, mask ValueID) ValueID {
					if whole == None {
						whole = unary(b, "whole", mask)
					}
					return unary(b, "mask", whole)
				}
			},
		},
	} {
		for _, layers := range []int{4, 8, 64} {
			g, l := layered(t, layers, 1, test.beside())
			var large int64
			for _, n := range g.layouts[0].slots {
				large += n
			}
			if large != test.values*bytes {
				t.Errorf("%s: %d layers share %d values' bytes, want %d", name, layers, large/bytes,
					test.values)
			}
			few := 3*layers + 1 + test.more
			for _, at := range []struct{ rows, levels int }{{rows, 4*layers + 1}, {1, few}} {
				resizeAll(t, l, at.rows)
				if n := len(l.Levels()); n != at.levels || l.Passes() != 1 {
					t.Errorf("%s: %d layers take %d levels and %d passes for %d rows, want %d and 1", name,
						layers, n, l.Passes(), at.rows, at.levels)
				}
			}
			for i := range g.ops {
				d := &g.dispatches[g.ops[i].dispatches[0]]
				if g.ops[i].name == "layers.3.mask" && d.level != 10 {
					t.Errorf("%s: layer 3 has its mask at level %d, its sum is at 11", name, d.level)
				}
			}
		}
	}
}

func TestStepHasThePassesThatMemoryAsksFor(t *testing.T) {
	g, l := layered(t, 8, 1, branched)
	dev := fake.New(fake.Options{})
	x, err := Load(dev, g, LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := StepInput{}
	for _, v := range g.Inputs() {
		in.Inputs = append(in.Inputs,
			InputData{Value: v, Dims: []int{rows, width}, Data: make([]byte, 4*rows*width)})
	}
	x.firstPiece = math.MaxInt // a piece that is submitted has a pass of its own
	if err := x.Step(context.Background(), &in, TimingOff); err != nil {
		t.Fatal(err)
	}
	if got := x.last.passes; got != l.Passes() || got < 3 {
		t.Errorf("the step had %d passes, the graph asks for %d", got, l.Passes())
	}
	if got, want := dev.Levels(), len(l.Levels()); got != want {
		t.Errorf("the device saw %d levels, the graph has %d", got, want)
	}
}

func TestSmallStepsAreNotCut(t *testing.T) {
	g, l := layered(t, 8, 1, branched)
	at := func(n int) (passes int) {
		resizeAll(t, l, n)
		return l.Passes()
	}
	for _, test := range []struct {
		rows int
		cut  bool
	}{{rows, true}, {1, false}, {4, false}, {5, true}, {rows, true}, {1, false}} { // a chunk is 4 rows
		if passes := at(test.rows); (passes > 1) != test.cut {
			t.Errorf("%d rows run in %d passes", test.rows, passes)
		}
		if n := l.LiveBytes(); n > g.AllocatedBytes()[sharedMemory]+2*4*rows*width+4*rows*width {
			t.Errorf("%d rows: %d bytes are live", test.rows, n)
		}
	}
	if n := testing.AllocsPerRun(10, func() { at(rows); at(1) }); n > 0 {
		t.Errorf("a change of layout allocates %v times", n)
	}
	var large, small int64
	for i, sum := range []*int64{&large, &small} {
		for _, n := range g.layouts[i].slots {
			*sum += n
		}
	}
	if small*10 > large {
		t.Errorf("the layout for small steps takes %d bytes, the other %d", small, large)
	}
}

func TestPassListsTheGraphBeforeAndAfter(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	if err := b.DumpPass("alias"); err != nil {
		t.Fatal(err)
	}
	x := rowsInput(b, "x")
	g := finish(t, b, unary(b, "u", alias(b, "a", unary(b, "v", x))))
	for _, p := range g.Passes() {
		got := strings.Join(p.Changes(), "\n")
		want := ""
		if p.Name == "alias" {
			want = "- value a: intermediate u32 [512 16]\n+ value a: intermediate u32 [512 16], is v"
		}
		if got != want {
			t.Errorf("pass %s changed\n%s\nwant\n%s", p.Name, got, want)
		}
	}
	if err := b.DumpPass("inline"); err == nil || !strings.Contains(err.Error(), "types, fuse, alias, levels, order") {
		t.Errorf("a pass that is not there: %v", err)
	}
}

// The small layout is made where SymInts are at their highest. An operator may need more where one is lower.
func TestScratchThatDoesNotFitTakesTheLargeLayout(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	b.PassBytes(1)
	x, n := rowsInput(b, "x"), b.SymInt("n", 1, rows, rows)
	y := x
	for i := range 8 {
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "")
		y = addOp(b, "add", unary(b, "f", y), unary(b, "mask", x))
	}
	out, scratch := b.Tensor("out", U32), b.Scratch("scratch", U32)
	b.Add("out", &funcOp{
		spec: Spec{
			Kind: "rest", Inputs: []ValueID{y, n}, Outputs: []ValueID{out}, Scratch: []ValueID{scratch},
			Slots: []Slot{
				{Label: "keep", Uses: []Use{on(copyKernel, y, scratch)}},
				{Label: "give", Uses: []Use{on(copyKernel, scratch, out)}},
			},
		},
		corners: func(r *Ranges) []Corner {
			return append(r.Ends(y), Corner{{Value: n, Int: 1}}, Corner{r.AtMin(y), {Value: n, Int: 1}})
		},
		plan: func(p *Planner) error {
			p.SetDims(out, p.Dims(y)...)
			p.SetDims(scratch, rows-p.Int(n)+p.Dim(y, 0), width)
			for slot := range 2 {
				p.Dispatch(slot, threads(p, p.Numel(y), 64)).Params.U32("p0", p.Numel(y))
			}
			return nil
		},
	})
	g := finish(t, b, out)
	l := newLive(t, g, LiveOptions{})
	for _, at := range []struct{ n, rows, layout int }{
		{rows, 1, 1},
		{1, 1, 0},
		{rows, 1, 1},
		{rows - 3, 1, 1},
		{rows - 4, 1, 0},
		{rows, rows, 0},
		{rows, 4, 1},
	} {
		if err := l.SetInt(n, int64(at.n)); err != nil {
			t.Fatal(err)
		}
		if err := resize(l, x, at.rows, width); err != nil {
			t.Fatal(err)
		}
		if l.layout != at.layout {
			t.Errorf("%d rows, n %d: layout %d, want %d", at.rows, at.n, l.layout, at.layout)
		}
	}
}
