package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
)

// randomGraph draws a graph of residual branches, routes, aliases, operators of several dispatches, what one
// leaves and another makes, and SymInt arithmetic over one or two dynamic lengths. What no operator reads is
// an output, so that nothing is computed in vain.
func randomGraph(t *rapid.T, limits gpu.Limits) (*Graph, []ValueID, ValueID) {
	b := NewBuilder(limits)
	if rapid.Bool().Draw(t, "fuse") {
		b.Fuse(sumRule, pairRule)
	}
	if rapid.Bool().Draw(t, "short passes") {
		b.passBytes = 1
	}
	inputs := []ValueID{rowsInput(b, "x")}
	if rapid.Bool().Draw(t, "second input") {
		inputs = append(inputs, rowsInput(b, "y"))
	}
	pos := b.SymInt("pos", 1, rows, rows)
	symInts := []ValueID{pos}
	same := [][]ValueID{} // by input: tensors of that input's length
	for _, v := range inputs {
		same = append(same, []ValueID{v})
	}
	pick := func(list []ValueID) ValueID { return rapid.SampledFrom(list).Draw(t, "operand") }
	for i := range rapid.IntRange(1, 24).Draw(t, "operators") {
		k := rapid.IntRange(0, len(same)-1).Draw(t, "family")
		name := fmt.Sprint("n", i)
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			same[k] = append(same[k], unary(b, name, pick(same[k])))
		case 2, 3:
			same[k] = append(same[k], addOp(b, name, pick(same[k]), pick(same[k])))
		case 4:
			same[k] = append(same[k], routed(b, name, pick(same[k])))
		case 5:
			symInts = append(symInts, size(b, name, pick(same[k])))
		case 6:
			if len(symInts) < 6 {
				symInts = append(symInts, plus(b, name, pick(symInts), pick(symInts)))
			}
			same = append(same, []ValueID{cut(b, name+"cut", pick(same[k]), pick(symInts))})
		case 7:
			near, far := fork(b, name, pick(same[k]))
			same[k] = append(same[k], near, far)
		case 8:
			same[k] = append(same[k], alias(b, name, pick(same[k])))
		case 9:
			left := leftOp(b, name+"left", pick(same[k]))
			if rapid.Bool().Draw(t, "something between") {
				same[k] = append(same[k], unary(b, name+"between", pick(same[k])))
			}
			same[k] = append(same[k], makesOp(b, name, pick(same[k]), left, false), left)
		}
	}
	last := same[len(same)-1]
	unary(b, "end", last[len(last)-1])
	for v := range b.values {
		if val := &b.values[v]; val.kind == tensor && val.role == Intermediate && len(val.consumers) == 0 {
			b.Output(ValueID(v))
		}
	}
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return g, inputs, pos
}

// randomRun is a random graph on a device, which steps with random inputs.
type randomRun struct {
	x      *Executor
	inputs []ValueID
	pos    ValueID
	drawn  uint32 // inputs so far
}

func newRandomRun(t *rapid.T, dev gpu.Device) *randomRun {
	g, inputs, pos := randomGraph(t, dev.Info().Limits)
	x, err := Load(dev, g, LiveOptions{Order: Order(rapid.IntRange(0, 1).Draw(t, "order"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &randomRun{x: x, inputs: inputs, pos: pos}
}

// input is what a step may take, which it may do in many submits, and what every value is to be behind it.
func (r *randomRun) input(t *rapid.T) (in StepInput, want func() map[ValueID][]uint32) {
	if rapid.Bool().Draw(t, "many submits") {
		r.x.rates = rates{1e12, 1e12, 1}
	}
	// Inputs of two lengths suit some graphs; one length suits all.
	n := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, rows)).Draw(t, "rows")
	at := rapid.IntRange(1, rows).Draw(t, "pos")
	in = StepInput{SymInts: []SymIntValue{{r.pos, int64(at)}}, Read: r.x.g.Outputs()}
	data := map[ValueID][]uint32{}
	for _, v := range r.inputs {
		data[v] = pattern(n, r.drawn+uint32(v)<<16)
		in.Inputs = append(in.Inputs, InputData{Value: v, Dims: []int{n, width}, Data: bytesOf(data[v])})
	}
	r.drawn++
	return in, func() map[ValueID][]uint32 { return evaluate(r.x.g, data, map[ValueID]int{r.pos: at}) }
}

// step steps. It does not go where a cut by a SymInt has left operands of two lengths.
func (r *randomRun) step(t *rapid.T, timing Timing) (want map[ValueID][]uint32, goes bool) {
	in, values := r.input(t)
	if err := r.x.Step(context.Background(), &in, timing); err != nil {
		if _, refused := err.(*OpError); refused {
			return nil, false
		}
		t.Fatal(err)
	}
	return values(), true
}

// onFake tries a property on fake devices that compute what the test operators do.
func onFake(t *testing.T, property func(*rapid.T, gpu.Device)) {
	draws(t, 100)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{NoLog: true})
		dev.OnDispatch = compute
		property(t, dev)
		if errs := dev.Misuse(); len(errs) > 0 {
			t.Fatal(errs)
		}
	})
}

// onDevice tries a property on the machine's device. Its seeds are fixed, so that a failure comes again.
func onDevice(t *testing.T, property func(*rapid.T, gpu.Device)) {
	dev := gputest.Open(t)
	for seed := range 12 {
		rapid.Custom(func(t *rapid.T) int {
			property(t, dev)
			return 0
		}).Example(seed)
	}
}

// draws makes rapid try a property n times in this test; a tenth of that with -short.
func draws(t *testing.T, n int) {
	if testing.Short() {
		n /= 10
	}
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	t.Cleanup(func() { f.Value.Set(was) })
	if err := f.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
}

// evaluate is what a graph of test operators gives, on the host: every value by its own rule, in graph order,
// each in memory of its own. Dims are taken from nowhere but the inputs and SymInts.
func evaluate(g *Graph, inputs map[ValueID][]uint32, symInts map[ValueID]int) map[ValueID][]uint32 {
	at := map[ValueID][]uint32{}
	for v, data := range inputs {
		at[v] = data
	}
	ints := map[ValueID]int{}
	for v, n := range symInts {
		ints[v] = n
	}
	each := func(x []uint32, f func(i int, x uint32) uint32) []uint32 {
		y := make([]uint32, len(x))
		for i := range x {
			y[i] = f(i, x[i])
		}
		return y
	}
	for i := range g.ops {
		switch o := g.ops[i].impl.(type) {
		case *unaryOp:
			at[o.out] = each(at[o.in], func(_ int, x uint32) uint32 { return x + 1 })
		case *pairOp:
			for _, u := range []*unaryOp{o.first, o.second} {
				at[u.out] = each(at[u.in], func(_ int, x uint32) uint32 { return x + 1 })
			}
		case *binaryOp:
			at[o.out] = each(at[o.a], func(i int, x uint32) uint32 { return x + at[o.b][i] })
		case *addOneOp:
			at[o.out] = each(at[o.a], func(i int, x uint32) uint32 { return x + at[o.b][i] + 1 })
		case *routedOp:
			at[o.out] = each(at[o.in], func(i int, _ uint32) (sum uint32) {
				for j := range width {
					sum += at[o.in][i/width*width+j]
				}
				return sum
			})
		case *forkOp:
			at[o.near] = each(at[o.in], func(_ int, x uint32) uint32 { return x + 1 })
			at[o.far] = each(at[o.in], func(_ int, x uint32) uint32 { return 2*x + 2 })
		case *cutOp:
			at[o.out] = at[o.in][:min(len(at[o.in]), ints[o.rows]*width)]
		case *aliasOp:
			at[o.out] = at[o.in]
		case *sizeOp:
			ints[o.out] = len(at[o.in]) / width
		case *plusOp:
			ints[o.out] = ints[o.a] + ints[o.b]
		case *funcOp: // leaves, or makes what is left
			x := at[o.spec.Inputs[0]]
			one := each(x, func(_ int, x uint32) uint32 { return x + 1 })
			for _, v := range o.spec.Outputs {
				at[v] = one
			}
			for _, v := range o.spec.Makes {
				if len(x) == width {
					at[v] = one
				}
			}
		default:
			panic(fmt.Sprintf("evaluate does not know %T", o))
		}
	}
	return at
}

// words is bytes as a kernel sees them.
func words(data []byte) []uint32 {
	list := make([]uint32, len(data)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return list
}

// bytesOf is words as a buffer holds them.
func bytesOf(words []uint32) []byte {
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	return data
}

// pattern is n rows of words that differ.
func pattern(n int, seed uint32) []uint32 {
	list := make([]uint32, n*width)
	for i := range list {
		list[i] = (uint32(i) + seed) * 2654435761
	}
	return list
}

// countdown is a context that is cancelled when it has been asked n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// randomSteps runs random steps of a random graph on a device, some of them refused, cancelled or failing,
// and holds every other to evaluate. fault makes some call of the device fail until it is called with false;
// nil where the device cannot.
func randomSteps(t *rapid.T, dev gpu.Device, fault func(on bool)) {
	r := newRandomRun(t, dev)
	x := r.x
	defer x.Release()
	x.SetCheck(rapid.Bool().Draw(t, "check"))
	rec := NewRecorder(x)
	for k := range rapid.IntRange(1, 5).Draw(t, "steps") {
		in, values := r.input(t)
		timing := Timing(rapid.IntRange(0, 2).Draw(t, "timing"))
		ctx := context.Background()
		broken := rapid.IntRange(0, 3).Draw(t, "broken")
		switch broken {
		case 1:
			in.SymInts = append(in.SymInts, SymIntValue{r.pos, rows + 1})
		case 2:
			ctx = &countdown{ctx, rapid.IntRange(0, 4).Draw(t, "cancelled at")}
		case 3:
			if fault != nil {
				fault(true)
			}
		}
		err := x.Step(ctx, &in, timing)
		if fault != nil {
			fault(false)
		}
		if err != nil && broken == 0 {
			if _, refused := err.(*OpError); refused {
				continue // a cut by a SymInt left operands of two lengths
			}
			t.Fatal(err)
		}
		if err == nil && broken == 1 {
			t.Fatal("a SymInt out of range was taken")
		}
		if err != nil {
			if _, err := x.Output(x.g.Outputs()[0], nil); !errors.Is(err, ErrNotRead) {
				t.Fatalf("an output of a step that did not end was handed out: %v", err)
			}
			continue
		}
		want := values()
		for _, v := range x.g.Outputs() {
			got := make([]byte, 4*len(want[v])+4)
			size, err := x.Output(v, got)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], words(got[:size])); d != "" {
				t.Fatalf("step %d, %d rows, pos %d: output %s (-want +got):\n%s", k, in.Inputs[0].Dims[0],
					in.SymInts[0].Int, x.g.values[v].name, d)
			}
		}
		_, s := rec.Step()
		checkPlans(t, x, rec, s)
	}
}

func TestStepsOfRandomGraphsGiveTheRightNumbers(t *testing.T) {
	draws(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{NoLog: true})
		dev.OnDispatch = compute
		kinds := []fake.Kind{
			fake.Write, fake.Begin, fake.BeginPass, fake.EndPass, fake.Timestamp,
			fake.Resolve, fake.CopyOut, fake.Submit, fake.Wait, fake.ReadTimestamps,
		}
		randomSteps(t, dev, func(on bool) {
			if !on {
				for _, kind := range kinds {
					dev.FailNth(kind, math.MaxInt32, nil)
				}
				return
			}
			dev.FailNth(rapid.SampledFrom(kinds).Draw(t, "call"), rapid.IntRange(1, 5).Draw(t, "nth"),
				errors.New("injected"))
		})
	})
}

func TestStepsOfRandomGraphsGiveTheRightNumbersOnTheDevice(t *testing.T) {
	onDevice(t, func(t *rapid.T, dev gpu.Device) { randomSteps(t, dev, nil) })
}

func TestSlotHoldsOneValueAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, _ := randomGraph(t, gpu.DefaultLimits())
		p := rapid.SampledFrom(g.layouts).Draw(t, "layout")
		holds, left := map[int]ValueID{}, map[ValueID]bool{}
		for i := range g.dispatches {
			d := &g.dispatches[i]
			for _, v := range slices.Concat(d.reads, d.writes) {
				root, slot := g.root(v), p.slot[v]
				if was, ok := holds[slot]; ok && was != root {
					left[was] = true
				}
				if slot >= 0 && left[root] {
					t.Fatalf("dispatch %d touches %s, whose slot %d has passed on", i, g.values[root].name,
						slot)
				}
				holds[slot] = root
			}
		}
	})
}
