package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

func TestStepsOfAnyShapeGiveTheRightNumbers(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.x.SetCheck(true)
	for _, s := range [][2]int{{128, 128}, {1, 1}, {32, 5}, {7, 512}, {512, 300}, {1, 9}, {7, 7}} {
		for range 3 {
			r.mustStep(t, s[0], s[1])
		}
	}
}

func TestGraphWhoseShapesKeepWritesItsInputsOnly(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 7)
	r.dev.ResetCounts()
	r.mustStep(t, 7, 7)
	if n := r.dev.Count(fake.Write); n != 1 {
		t.Errorf("%d writes, want 1 for the one input", n)
	}
	for _, c := range r.dev.Log {
		if c.Kind == fake.CopyOut && c.Size != 4*7*graphtest.Width {
			t.Errorf("read back %d bytes, live are %d", c.Size, 4*7*graphtest.Width)
		}
	}
	if r.x.last.writeBytes != 4*7*graphtest.Width {
		t.Errorf("wrote %d bytes, want the input's %d", r.x.last.writeBytes, 4*7*graphtest.Width)
	}
	if r.x.live.Log().Passes() != 0 {
		t.Error("an operator was planned")
	}
}

func TestNewSymIntWritesOneShortParamsRange(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 7)
	r.mustStep(t, 7, 6)
	// cut reads the SymInt and is first in the arena; b.f0, b.f1 and b.add depend on its dims and come later.
	var log []string
	r.dev.ResetCounts()
	r.mustStep(t, 7, 5)
	for _, c := range r.dev.Log {
		if c.Kind == fake.Write {
			log = append(log, c.Label)
		}
	}
	if d := cmp.Diff([]string{"x", "params"}, log); d != "" {
		t.Error(d)
	}
}

func TestStepAtEachTimingLevel(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 1000 }
	rec := NewRecorder(r.x)
	n := len(r.x.live.Active())
	var blocks []string // the rig has no layers, so each operator is a block
	for _, id := range r.x.live.Active() {
		if name := r.x.g.Ops[r.x.g.Dispatches[id].Op].Name; !slices.Contains(blocks, name) {
			blocks = append(blocks, name)
		}
	}
	for _, test := range []struct {
		level                Timing
		passes, busy, single int64
		span                 bool
	}{
		{TimingOff, 1, -1, -1, false},
		{TimingStep, 1, -1, -1, true},
		{TimingBlock, int64(len(blocks)), int64(1000 * n), -1, true},
		{TimingDispatch, int64(n), int64(1000 * n), 1000, true},
	} {
		if err := r.x.Step(context.Background(), r.input(7, 7), test.level); err != nil {
			t.Fatal(err)
		}
		_, s := rec.Step()
		if s.Timing != test.level.Level() || int64(s.CPU.Passes) != test.passes || s.CPU.Submits != 1 {
			t.Errorf("%v: timing %s, %d passes, %d submits", test.level, s.Timing, s.CPU.Passes,
				s.CPU.Submits)
		}
		if (s.GPU != nil) != test.span {
			t.Errorf("%v: gpu times %v", test.level, s.GPU)
		}
		var names []string
		left := n
		for _, b := range s.Blocks {
			names, left = append(names, b.Name), left-b.Dispatches
			if ns, ok := b.GPUNS.NS(); !ok || ns != int64(1000*b.Dispatches) || b.Raw[1] == 0 {
				t.Errorf("%v: block %s took %d ns, measured: %v", test.level, b.Name, ns, ok)
			}
		}
		if test.level == TimingBlock && (!slices.Equal(names, blocks) || left != 0) {
			t.Errorf("blocks %v, want %v; %d dispatches are in no block", names, blocks, left)
		} else if test.level != TimingBlock && names != nil {
			t.Errorf("%v: blocks %v", test.level, names)
		}
		for _, d := range s.Dispatches {
			if ns, ok := d.GPUNS.NS(); ok != (test.single >= 0) || ok && ns != test.single {
				t.Errorf("%v: a dispatch took %d ns, measured: %v", test.level, ns, ok)
			}
		}
		times, ok := r.x.DispatchNS()
		if ok != (test.single >= 0) || ok &&
			(len(times) != n || slices.Max(times) != test.single || slices.Min(times) != test.single) {
			t.Errorf("%v: times of dispatches %v, %v", test.level, times, ok)
		}
		if test.busy >= 0 {
			if ns, _ := s.GPU.BusyNS.NS(); ns != test.busy {
				t.Errorf("busy %d ns, want %d", ns, test.busy)
			}
		}
	}
	if c := r.x.Clock(); c.NSPerTick != 1 || c.QuantumNS != 1000 {
		t.Errorf("clock %+v", c)
	}
}

func TestDeviceWithoutTimestampsIsTimedByWallOnly(t *testing.T) {
	r := newRig(t, fake.Options{NoTimestamps: true})
	rec := NewRecorder(r.x)
	r.mustStep(t, 7, 7)
	if _, s := rec.Step(); s.Timing != trace.TimingOff || s.GPU != nil {
		t.Errorf("timing %s, gpu %v", s.Timing, s.GPU)
	}
}

// The trace's readers add the operator's name, so the label is only the slot's name.
func TestDispatchIsLabelledByItsSlotAlone(t *testing.T) {
	r := newRig(t, fake.Options{})
	d := r.x.g.Describe()
	var got []string
	for _, dispatch := range d.Dispatches {
		got = append(got, fmt.Sprintf("%s/%s", d.Ops[dispatch.Op].Name, dispatch.Label))
	}
	want := []string{"a.f0/", "a.f1/", "a.add/", "r/map", "r/reduce", "cut/", "b.f0/", "b.f1/", "b.add/"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The fake device counts barriers by the native library's rule, for the buffers that it is given.
func TestLevelsAreTheDevicesBarriers(t *testing.T) {
	graphtest.Draws(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{})
		g, inputs, _ := graphtest.RandomGraph(t, dev.Info().Limits)
		x, err := Load(dev, g, graph.LiveOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.firstPiece = math.MaxInt // one submit, because the device counts levels per submit
		for range 3 {
			n := rapid.SampledFrom([]int{1, 7}).Draw(t, "rows")
			var in graph.StepInput
			for _, v := range inputs {
				in.Inputs = append(
					in.Inputs,
					graph.InputData{
						Value: v,
						Dims:  []int{n, graphtest.Width},
						Data:  make([]byte, 4*n*graphtest.Width),
					},
				)
			}
			if err := x.Step(context.Background(), &in, TimingOff); err != nil {
				t.Skip("operands of different lengths")
			}
			if got, want := len(x.live.Levels()), dev.Levels(); got != want {
				t.Fatalf("%d rows: %d levels, the device saw %d", n, got, want)
			}
		}
	})
}

// Every level but the first has a reason that matches the reads and writes of the graph.
func TestEveryLevelSaysWhatItsBarrierWaitsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, inputs, _ := graphtest.RandomGraph(t, gpu.DefaultLimits())
		l, err := graph.NewLive(g, graph.LiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.SampledFrom([]int{1, 7}).Draw(t, "rows")
		for _, v := range inputs {
			if err := l.SetDims(v, n, graphtest.Width); err != nil {
				t.Fatal(err)
			}
		}
		if l.Propagate() != nil {
			t.Skip("operands of different lengths")
		}
		l.Commit()
		uses := func(d trace.DispatchID, memory int, access gpu.Access) bool {
			use := g.Ops[g.Dispatches[d].Op].Use(g.Dispatches[d].Slot, l.Plans[g.Dispatches[d].Op].Route)
			for i, b := range use.Bind {
				if l.Buffer(b.Value) == memory && use.Kernel.Storage[i].Access == access {
					return true
				}
			}
			return false
		}
		begins := map[trace.DispatchID]bool{}
		for _, w := range l.Waits() {
			begins[w.Dispatch] = true
			m := l.Buffer(w.Value)
			after, before := gpu.Read, gpu.ReadWrite // raw
			switch w.Kind {
			case "war":
				after, before = gpu.ReadWrite, gpu.Read
			case "waw":
				after, before = gpu.ReadWrite, gpu.ReadWrite
			}
			user := w.Dispatch
			if p := l.Pass(user); l.Pass(w.For) != p { // in another pass: the first dispatch that uses it
				for !uses(user, m, after) && l.Pass(user) == p {
					user++
				}
			}
			if w.For >= w.Dispatch || !uses(user, m, after) || !uses(w.For, m, before) {
				t.Fatalf("%+v: no such uses of %s", w, g.Values[w.Value].Name)
			}
		}
		for i, d := range l.Levels() {
			if begins[d] != (i > 0) {
				t.Fatalf("level %d begins with dispatch %d, the waits are %v", i, d, l.Waits())
			}
		}
		if len(begins) > max(0, len(l.Levels())-1) {
			t.Fatalf("waits of dispatches that begin no level: %v, levels %v", l.Waits(), l.Levels())
		}
	})
}

func TestStepAllocatesNothing(t *testing.T) {
	r := newRig(t, fake.Options{NoLog: true})
	r.dev.OnDispatch = nil
	ctx := context.Background()
	inputs := []*graph.StepInput{r.input(7, 3), r.input(7, 4)}
	i := 0
	step := func() {
		i++
		if err := r.x.Step(ctx, inputs[i%2], TimingDispatch); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestEverythingIsReleased(t *testing.T) {
	dev := fake.New(fake.Options{})
	b := graph.NewBuilder(dev.Info().Limits)
	g := graphtest.Finish(t, b, graphtest.Unary(b, "y", graphtest.RowsInput(b, "x")))
	for kind := range map[fake.Kind]bool{
		fake.NewBuffer: true, fake.NewPipeline: true,
		fake.NewBindGroup: true, fake.NewReadback: true, fake.NewTimestamps: true, fake.Submit: true,
	} {
		dev.FailNth(kind, 1, errors.New("injected"))
		if _, err := Load(dev, g, graph.LiveOptions{}, nil); err == nil {
			t.Errorf("%v failed but Load succeeded", kind)
		}
	}
	x, err := Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	if live := fmt.Sprint(dev.Live()); strings.ContainsAny(live, "123456789") {
		t.Errorf("objects left on the device: %s", live)
	}
}

func TestConstantsAreUploadedAndChecked(t *testing.T) {
	dev := fake.New(fake.Options{})
	load := func(data []byte, err error) error {
		b := graph.NewBuilder(dev.Info().Limits)
		x := b.Input("x", graph.F32, []int{1}, []int{4})
		w := b.Constant("w", graph.F32, []int{4}, func() ([]byte, error) { return data, err })
		out := b.Tensor("y", graph.F32)
		b.Add("y", &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "map", Inputs: []graph.ValueID{x, w}, Outputs: []graph.ValueID{out},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.BinaryKernel, x, w, out)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
			Plans: func(p *graph.Planner) error {
				p.SetDims(out, p.Dims(x)...)
				p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p0", 4)
				return nil
			},
		})
		ex, lerr := Load(dev, graphtest.Finish(t, b), graph.LiveOptions{}, nil)
		if lerr != nil {
			return lerr
		}
		defer ex.Release()
		got := make([]byte, 16)
		if err := ex.ReadValue(w, got); err != nil {
			return err
		}
		if !slices.Equal(got, data) {
			return fmt.Errorf("w holds % x", got)
		}
		return nil
	}
	if err := load([]byte("sixteen bytes...")[:16], nil); err != nil {
		t.Error(err)
	}
	if err := load(make([]byte, 12), nil); err == nil ||
		!strings.Contains(err.Error(), "load w: got 12 bytes") {
		t.Errorf("a short constant: %v", err)
	}
	if err := load(nil, errors.New("file cut short")); err == nil ||
		!strings.Contains(err.Error(), "load w: file cut short") {
		t.Errorf("a constant that does not load: %v", err)
	}
}

func TestUnreadOutputIsRefused(t *testing.T) {
	dev := fake.New(fake.Options{})
	dev.OnDispatch = compute
	b := graph.NewBuilder(dev.Info().Limits)
	x := graphtest.RowsInput(b, "x")
	y, z := graphtest.Unary(b, "y", x), graphtest.Unary(b, "z", x)
	ex, err := Load(dev, graphtest.Finish(t, b, y, z), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	for _, read := range [][]graph.ValueID{{y, z}, {z}} {
		in := &graph.StepInput{
			Inputs: []graph.InputData{
				{Value: x, Dims: []int{1, graphtest.Width}, Data: graphtest.BytesOf(graphtest.Pattern(1, 0))},
			},
			Read: read,
		}
		if err := ex.Step(context.Background(), in, TimingOff); err != nil {
			t.Fatal(err)
		}
	}
	dst := make([]byte, 4)
	if _, err := ex.Output(z, dst); err != nil {
		t.Error(err)
	}
	if _, err := ex.Output(y, dst); !errors.Is(err, ErrNotRead) {
		t.Errorf("Output returned what an earlier step read: %v", err)
	}
}

func TestReasonThatChangesIsRecorded(t *testing.T) {
	dev := fake.New(fake.Options{})
	b := graph.NewBuilder(dev.Info().Limits)
	x := graphtest.RowsInput(b, "x")
	out := b.Tensor("y", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, graphtest.Rows, graphtest.Width)
			why := graphtest.ReasonMany
			if p.Dim(x, 0) == 1 {
				why = graphtest.ReasonOne
			}
			p.Choose(0, why, 1)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p0", 4)
			return nil
		},
	})
	ex, err := Load(dev, graphtest.Finish(t, b, out), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	rec := NewRecorder(ex)
	for _, n := range []int{graphtest.Rows, 1} {
		in := &graph.StepInput{
			Inputs: []graph.InputData{
				{Value: x, Dims: []int{n, graphtest.Width}, Data: graphtest.BytesOf(graphtest.Pattern(n, 0))},
			},
		}
		if err := ex.Step(context.Background(), in, TimingOff); err != nil {
			t.Fatal(err)
		}
		_, s := rec.Step()
		checkPlans(t, ex, rec, s)
	}
}

func TestStepThatNeverRanLeavesTheNextCold(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	r.dev.FailNth(fake.Begin, 1, errors.New("injected"))
	if err := r.x.Step(context.Background(), r.input(7, 7), TimingOff); err == nil {
		t.Fatal("no error")
	}
	r.mustStep(t, 7, 7)
	if _, s := rec.Step(); !s.Cold {
		t.Error("the first step that ran is not cold")
	}
	r.mustStep(t, 7, 7)
	if _, s := rec.Step(); s.Cold {
		t.Error("the second step is cold")
	}
}

func TestLiveBytesAreAPartOfAllocatedBytes(t *testing.T) {
	dev := fake.New(fake.Options{})
	b := graph.NewBuilder(dev.Info().Limits)
	x := graphtest.RowsInput(b, "x")
	y := x
	for i := range 50 {
		y = graphtest.Unary(b, fmt.Sprint("f", i), y)
	}
	ex, err := Load(dev, graphtest.Finish(t, b, graphtest.Routed(b, "r", y)), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	// x, the two slots between which the chain alternates (one of them is r's scratch at the end), and r.
	for _, n := range []int{graphtest.Rows, 7} {
		if n != graphtest.Rows {
			if err := graphtest.Resize(ex.live, x, n, graphtest.Width); err != nil {
				t.Fatal(err)
			}
		}
		want := int64(4 * 4 * n * graphtest.Width)
		if got := ex.live.LiveBytes(); got != want {
			t.Errorf("%d rows: %d live bytes, want %d", n, got, want)
		}
		if n == graphtest.Rows && ex.allocated-int64(len(ex.arena.shadow)) != want {
			t.Errorf("%d bytes allocated, want the %d live bytes", ex.allocated, want)
		}
	}
}

func TestGraphOfNoDispatchesRuns(t *testing.T) {
	dev := fake.New(fake.Options{})
	b := graph.NewBuilder(dev.Info().Limits)
	n := b.SymInt("n", 1, 9, 1)
	twice := graphtest.Plus(b, "twice", n, n)
	ex, err := Load(dev, graphtest.Finish(t, b), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	rec := NewRecorder(ex)
	for _, level := range []Timing{TimingOff, TimingStep, TimingBlock, TimingDispatch} {
		if err := ex.Step(context.Background(), &graph.StepInput{SymInts: []graph.SymIntValue{{
			Value: n,
			Int:   4,
		}}},
			level); err != nil {
			t.Fatalf("%v: %v", level, err)
		}
		rec.Step()
	}
	if got := ex.live.Int(twice); got != 8 {
		t.Errorf("twice is %d", got)
	}
}

// The position changes a plan with every token. A recorder that kept all plans would grow for as long as the
// session lasts.
func TestRecorderForgetsOldPlans(t *testing.T) {
	r := newRig(t, fake.Options{NoLog: true})
	r.dev.OnDispatch = nil // thousands of steps whose results are not checked
	rec := NewRecorder(r.x)
	idAt := func(cut int) trace.PlanID {
		if err := r.x.Step(context.Background(), r.input(7, cut), TimingOff); err != nil {
			t.Fatal(err)
		}
		_, s := rec.Step()
		for i, id := range r.x.live.Active() {
			if r.x.g.Ops[r.x.g.Dispatches[id].Op].Name == "cut" {
				return s.Dispatches[i].Plan
			}
		}
		t.Fatal("cut did not run")
		return -1
	}
	first := idAt(1)
	if again := idAt(1); again != first {
		t.Errorf("the same plan has ids %d and %d", first, again)
	}
	for range trace.PlanMemory/2 - 1 {
		idAt(2)
	}
	if soon := idAt(1); soon != first {
		t.Errorf("after %d steps with other plans the recorder has forgotten plan %d", trace.PlanMemory/2-1,
			first)
	}
	for range trace.PlanMemory + trace.PlanMemory/2 {
		idAt(2)
	}
	if later := idAt(1); later == first {
		t.Errorf("after %d steps with other plans the recorder still knows plan %d", trace.PlanMemory*3/2,
			first)
	}
}

// A slot with a single kernel serves whatever route a corner chooses, not only the first.
func TestSingleUseSlotIsBoundForEveryRoute(t *testing.T) {
	dev := fake.New(fake.Options{})
	defer dev.Release()
	dev.OnDispatch = compute
	b := graph.NewBuilder(dev.Info().Limits)
	x := graphtest.RowsInput(b, "x")
	y := b.Tensor("y", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{y}, Routes: []string{"never", "always"},
			Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, y)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(y, p.Dims(x)...)
			p.Choose(1, graphtest.ReasonMany, 0b10)
			p.Dispatch(0, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			return nil
		},
	})
	run, err := Load(dev, graphtest.Finish(t, b, y), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{dev: dev, x: run, in: x, of: y}
	defer run.Release()
	in := &graph.StepInput{
		Inputs: []graph.InputData{
			{Value: x, Dims: []int{3, graphtest.Width}, Data: graphtest.BytesOf(graphtest.Pattern(3, 0))},
		},
		Read: []graph.ValueID{y},
	}
	if err := run.Step(t.Context(), in, TimingStep); err != nil {
		t.Fatal(err)
	}
	for i, got := range r.output(t) {
		if want := graphtest.Pattern(3, 0)[i] + 1; got != want {
			t.Fatalf("element %d is %d, want %d", i, got, want)
		}
	}
}
