package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/internal/wordingtest"
)

func TestPassesSayWhatTheyChanged(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Unary(b, "u", graphtest.Alias(b, "a", graphtest.Unary(b, "v", x))))
	golden := wordingtest.New(t)
	for _, p := range g.Passes() {
		if p.Doc == "" {
			t.Errorf("pass %s has no doc", p.Name)
		}
		var counts []string
		for _, c := range p.Counts {
			counts = append(counts, c.What)
		}
		golden.Text(p.Name, cmp.Or(strings.Join(counts, ", "), "nothing"))
	}
}

func TestValueOfTheWrongTypeIsRefused(t *testing.T) {
	typed := *graphtest.UnaryKernel
	typed.Storage = []graph.Storage{
		{Name: "x", Elem: "f32", Access: gpu.Read}, {Name: "y", Elem: "f32", Access: gpu.ReadWrite},
	}
	for _, test := range []struct{ in, out graph.DType }{
		{graph.I32, graph.F32},
		{graph.F16, graph.F32},
		{graph.F32, graph.I32},
		{graph.F32, graph.F32},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := b.Input("x", test.in, []int{1}, []int{8})
		y := b.Tensor("y", test.out)
		b.Add("y", &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "add", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{y},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(&typed, x, y)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
			Plans: func(p *graph.Planner) error {
				p.SetDims(y, p.Dims(x)...)
				p.Dispatch(0, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
				return nil
			},
		})
		b.Output(y)
		_, err := b.Finish()
		if test.in == graph.F32 && test.out == graph.F32 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		name, wrong, binding := "x", test.in, "x"
		if test.in == graph.F32 {
			name, wrong, binding = "y", test.out, "y"
		}
		want := "y (add): " + name + " " + wrong.String() + " unary f32 " + binding
		if !graphtest.Mentions(err, want) {
			t.Errorf("%v to %v: error %v, want %q", test.in, test.out, err, want)
		}
	}
}

// layered builds a chain of layers. Each layer adds two values that are computed from its input. The function
// beside computes the second one, from the layer's value or from an input that is available from the start,
// such as a mask.
func layered(t *testing.T, layers int, passBytes int64, beside besideFunc) (*graph.Graph, *graph.Live) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.PassBytes(passBytes)
	x, mask := graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "mask")
	for i := range layers {
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "")
		g := graphtest.Unary(b, "g", x)
		x = graphtest.AddOp(b, "add", graphtest.Unary(b, "f", g), beside(b, g, mask))
	}
	g := graphtest.Finish(t, b, graphtest.Unary(b, "end", x))
	return g, graphtest.NewLive(t, g, graph.LiveOptions{})
}

type besideFunc func(b *graph.Builder, x, mask graph.ValueID) graph.ValueID

// resizeAll sets the number of rows of all inputs.
func resizeAll(t *testing.T, l *graph.Live, n int) {
	for _, v := range l.G.Inputs() {
		if err := l.SetDims(v, n, graphtest.Width); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Propagate(); err != nil {
		t.Fatal(err)
	}
	l.Commit()
}

// branched computes a second value from the layer's value, as q and k are computed.
func branched(b *graph.Builder, x, _ graph.ValueID) graph.ValueID { return graphtest.Unary(b, "h", x) }

// A layer of these has four writes and three barriers. If all of them reuse memory, one of the writes needs
// an additional barrier. Only large steps pay it, as the price for memory that does not grow with the layers.
func TestIndependentWorkWaitsUntilItIsNeeded(t *testing.T) {
	const bytes = 4 * graphtest.Rows * graphtest.Width // of a value
	for name, test := range map[string]struct {
		values int64 // that are live at the same time
		more   int   // levels before the first layer
		beside func() besideFunc
	}{
		"a slice of an input for each layer": {3, 0, func() besideFunc {
			return func(b *graph.Builder, _, mask graph.ValueID) graph.ValueID { return graphtest.Unary(b, "mask", mask) }
		}},
		"a slice of a value computed from an input, for each layer": {
			4, 1,
			func() besideFunc {
				whole := graph.None
				return func(b *graph.Builder, _, mask graph.ValueID) graph.ValueID {
					if whole == graph.None {
						whole = graphtest.Unary(b, "whole", mask)
					}
					return graphtest.Unary(b, "mask", whole)
				}
			},
		},
	} {
		for _, layers := range []int{4, 8, 64} {
			g, l := layered(t, layers, 1, test.beside())
			var large int64
			for _, n := range g.Layouts[0].Slots {
				large += n
			}
			if large != test.values*bytes {
				t.Errorf("%s: %d layers share %d values' bytes, want %d", name, layers, large/bytes,
					test.values)
			}
			few := 3*layers + 1 + test.more
			for _, at := range []struct{ rows, levels int }{{graphtest.Rows, 4*layers + 1}, {1, few}} {
				resizeAll(t, l, at.rows)
				if n := len(l.Levels()); n != at.levels || l.Passes() != 1 {
					t.Errorf("%s: %d layers take %d levels and %d passes for %d rows, want %d and 1", name,
						layers, n, l.Passes(), at.rows, at.levels)
				}
			}
			for i := range g.Ops {
				d := &g.Dispatches[g.Ops[i].Dispatches[0]]
				if g.Ops[i].Name == "layers.3.mask" && d.Level != 10 {
					t.Errorf("%s: layer 3 has its mask at level %d, its sum is at 11", name, d.Level)
				}
			}
		}
	}
}

func TestStepHasThePassesThatMemoryAsksFor(t *testing.T) {
	g, l := layered(t, 8, 1, branched)
	dev := fake.New(fake.Options{})
	x, err := Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := graph.StepInput{}
	for _, v := range g.Inputs() {
		in.Inputs = append(
			in.Inputs,
			graph.InputData{
				Value: v,
				Dims:  []int{graphtest.Rows, graphtest.Width},
				Data:  make([]byte, 4*graphtest.Rows*graphtest.Width),
			},
		)
	}
	x.firstPiece = math.MaxInt // one submit, because each submit has its own pass
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
	}{{graphtest.Rows, true}, {1, false}, {4, false}, {5, true}, {graphtest.Rows, true}, {
		1,
		false,
	}} { // a chunk is 4 rows
		if passes := at(test.rows); (passes > 1) != test.cut {
			t.Errorf("%d rows run in %d passes", test.rows, passes)
		}
		row := int64(4 * graphtest.Rows * graphtest.Width)
		if n := l.LiveBytes(); n > g.AllocatedBytes()[graph.SharedMemory]+3*row {
			t.Errorf("%d rows: %d bytes are live", test.rows, n)
		}
	}
	if n := testing.AllocsPerRun(10, func() { at(graphtest.Rows); at(1) }); n > 0 {
		t.Errorf("a change of layout allocates %v times", n)
	}
	var large, small int64
	for i, sum := range []*int64{&large, &small} {
		for _, n := range g.Layouts[i].Slots {
			*sum += n
		}
	}
	if small*10 > large {
		t.Errorf("the layout for small steps takes %d bytes, the other %d", small, large)
	}
}

func TestPassListsTheGraphBeforeAndAfter(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	if err := b.DumpPass("alias"); err != nil {
		t.Fatal(err)
	}
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Unary(b, "u", graphtest.Alias(b, "a", graphtest.Unary(b, "v", x))))
	for _, p := range g.Passes() {
		got := strings.Join(p.Changes(), "\n")
		want := ""
		if p.Name == "alias" {
			want = "- value a: intermediate u32 [512 16]\n+ value a: intermediate u32 [512 16], alias of v"
		}
		if got != want {
			t.Errorf("pass %s changed\n%s\nwant\n%s", p.Name, got, want)
		}
	}
	if err := b.DumpPass("inline"); err == nil ||
		!strings.Contains(err.Error(), "types, fuse, alias, levels, order") {
		t.Errorf("a pass that does not exist: %v", err)
	}
}

// The small layout is planned for the largest SymInts. An operator may need more memory for a smaller SymInt.
func TestOversizedScratchTakesTheLargeLayout(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.PassBytes(1)
	x, n := graphtest.RowsInput(b, "x"), b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
	y := x
	for i := range 8 {
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "")
		y = graphtest.AddOp(b, "add", graphtest.Unary(b, "f", y), graphtest.Unary(b, "mask", x))
	}
	out, scratch := b.Tensor("out", graph.U32), b.Scratch("scratch", graph.U32)
	b.Add("out", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "rest", Inputs: []graph.ValueID{
				y,
				n,
			}, Outputs: []graph.ValueID{out}, Scratch: []graph.ValueID{scratch},
			Slots: []graph.Slot{
				{Label: "keep", Uses: []graph.Use{graphtest.On(graphtest.CopyKernel, y, scratch)}},
				{Label: "give", Uses: []graph.Use{graphtest.On(graphtest.CopyKernel, scratch, out)}},
			},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner {
			return append(
				r.Ends(y),
				graph.Corner{{Value: n, Int: 1}},
				graph.Corner{r.AtMin(y), {Value: n, Int: 1}},
			)
		},
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, p.Dims(y)...)
			p.SetDims(scratch, graphtest.Rows-p.Int(n)+p.Dim(y, 0), graphtest.Width)
			for slot := range 2 {
				p.Dispatch(slot, graphtest.Threads(p, p.Numel(y), 64)).Params.U32("p0", p.Numel(y))
			}
			return nil
		},
	})
	g := graphtest.Finish(t, b, out)
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	for _, at := range []struct{ n, rows, layout int }{
		{graphtest.Rows, 1, 1},
		{1, 1, 0},
		{graphtest.Rows, 1, 1},
		{graphtest.Rows - 3, 1, 1},
		{graphtest.Rows - 4, 1, 0},
		{graphtest.Rows, graphtest.Rows, 0},
		{graphtest.Rows, 4, 1},
	} {
		if err := l.SetInt(n, int64(at.n)); err != nil {
			t.Fatal(err)
		}
		if err := graphtest.Resize(l, x, at.rows, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if l.Layout != at.layout {
			t.Errorf("%d rows, n %d: layout %d, want %d", at.rows, at.n, l.Layout, at.layout)
		}
	}
}
