package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
)

// mapOp is a funcOp from x to a new tensor, one thread an element, with what breaks it.
func mapOp(b *Builder, x ValueID, plan func(p *Planner, out ValueID) error) ValueID {
	out := b.Tensor("y", U32)
	b.Add("y", &funcOp{
		spec: Spec{
			Kind: "map", Inputs: []ValueID{x}, Outputs: []ValueID{out}, Routes: []string{"a", "b"},
			Slots: []Slot{
				{Uses: []Use{on(unaryKernel, x, out)}},
				{Label: "more", Uses: []Use{on(unaryKernel, x, out), {}}},
				{Label: "either", Uses: []Use{on(unaryKernel, x, out), on(copyKernel, x, out)}},
			},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan:    func(p *Planner) error { return plan(p, out) },
	})
	return out
}

func TestBuildRefusesOperatorsThatPlanWrongly(t *testing.T) {
	var x, other ValueID
	tests := map[string]struct {
		plan func(p *Planner, out ValueID) error
		want string
	}{
		"reads what is not its argument": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(other)...)
			return nil
		}, "build: y (map) [x[512 16]]: reads value 1, which is not an argument of it"},
		"gives no shape": {
			func(p *Planner, out ValueID) error { return nil },
			"gives no shape for its output y",
		},
		"zero dim": {func(p *Planner, out ValueID) error {
			p.SetDims(out, 0)
			return nil
		}, "y: dim 0 is 0 to 0: dims must be positive"},
		"too few params": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64))
			return nil
		}, "kernel unary takes 1 params, got 0"},
		"a param of another type": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64)).Params.F32("p0", 1)
			return nil
		}, "param p0 of kernel unary is u32, the plan writes f"},
		"a param under another's name": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64)).Params.U32("p1", 1)
			return nil
		}, "param 0 of kernel unary is p0, the plan writes p1"},
		"a param too many": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64)).Params.U32("p0", 1).U32("p1", 1)
			return nil
		}, "kernel unary takes 1 params, got 2"},
		"a grid before the route is chosen": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(2, threads(p, 4, 64)).Params.U32("p0", 1)
			p.Choose(1, reasonMany, 0b11)
			return nil
		}, `slot "either" is put to use before the route is chosen`},
		"a param that overflows": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64)).Params.U32("p0", -1)
			return nil
		}, "param p0 of kernel unary does not fit 32 bits"},
		"zero grid": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 0, 64)).Params.U32("p0", 1)
			return nil
		}, "a grid of 0 x 1 x 1 workgroups"},
		"a slot that the route leaves alone": {func(p *Planner, out ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Choose(1, reasonMany, 0b10)
			p.Dispatch(1, threads(p, 4, 64)).Params.U32("p0", 1)
			return nil
		}, `slot "more" has no kernel on route 1`},
		"writes an input": {func(p *Planner, out ValueID) error {
			p.SetDims(x, 1)
			return nil
		}, "sets the dims of value 0, which is not an output of it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(gpu.DefaultLimits())
			x, other = rowsInput(b, "x"), rowsInput(b, "other")
			mapOp(b, x, test.plan)
			if _, err := b.Finish(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A corner list that forgets the largest shape: the plan that exceeds it must be refused, not run.
func TestPlanThatExceedsItsCornersIsRefused(t *testing.T) {
	for want, plan := range map[string]func(p *Planner, x, out, n, scratch ValueID){
		"y would be [512 16], allocated are [8 16]": func(p *Planner, x, out, n, scratch ValueID) {
			p.SetDims(out, p.Dims(x)...)
			p.SetInt(n, 8)
		},
		"s would need 2048 bytes, allocated are 32": func(p *Planner, x, out, n, scratch ValueID) {
			p.SetDims(out, 1)
			p.SetInt(n, 8)
			p.SetDims(scratch, p.Dim(x, 0))
		},
		"n would be 512, its range is 8 to 8": func(p *Planner, x, out, n, scratch ValueID) {
			p.SetDims(out, 1)
			p.SetInt(n, int64(p.Dim(x, 0)))
		},
	} {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		out, n, scratch := b.Tensor("y", F32), b.SymIntOut("n"), b.Scratch("s", F32)
		b.Add("y", &funcOp{
			spec: Spec{
				Kind: "map", Inputs: []ValueID{x}, Outputs: []ValueID{out, n}, Scratch: []ValueID{scratch},
				Slots: []Slot{{Uses: []Use{on(unaryKernel, x, out)}}},
			},
			corners: func(r *Ranges) []Corner { return []Corner{{{Value: x, Dims: []int{8, width}}}} },
			plan: func(p *Planner) error {
				plan(p, x, out, n, scratch)
				p.Dispatch(0, threads(p, 1, 64)).Params.U32("p0", 1)
				return nil
			},
		})
		_, err := NewLive(finish(t, b), LiveOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestFaultAtEveryPlanLeavesTheGraphUsable(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	n := b.SymInt("n", 1, rows, rows)
	y := x
	for i := range 4 {
		y = residual(b, fmt.Sprint("layer", i),
			cut(b, fmt.Sprint("cut", i), routed(b, fmt.Sprint("r", i), y), n), 2)
	}
	g := finish(t, b, y)
	fault := errors.New("injected")
	for _, order := range []Order{Topological, Fixpoint} {
		for i := range g.ops {
			l := newLive(t, g, LiveOptions{Order: order})
			before := state(l)
			sound := g.Replace(OpID(i), &funcOp{plan: func(*Planner) error { return fault }})
			err := resize(l, x, 7, width)
			g.Replace(OpID(i), sound)
			var refused *OpError
			if !errors.As(err, &refused) || refused.Op != g.ops[i].name || !errors.Is(err, fault) {
				t.Fatalf("%v: a fault in %s gave %v", order, g.ops[i].name, err)
			}
			if d := cmp.Diff(before, state(l)); d != "" {
				t.Fatalf("%v: a fault in %s moved the state:\n%s", order, g.ops[i].name, d)
			}
			fresh := newLive(t, g, LiveOptions{})
			for _, retry := range []*Live{l, fresh} {
				if err := resize(retry, x, 7, width); err != nil {
					t.Fatalf("%v: after a fault in %s: %v", order, g.ops[i].name, err)
				}
			}
			if d := cmp.Diff(state(fresh), state(l)); d != "" {
				t.Fatalf("%v: a retry after a fault in %s (-fresh +retried):\n%s", order, g.ops[i].name, d)
			}
		}
	}
}

func TestBuildLeavesTheStateOfAResizeToTheMaximum(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	g := finish(t, b, residual(b, "a", routed(b, "r", x), 2))
	built, resized := newLive(t, g, LiveOptions{}), newLive(t, g, LiveOptions{})
	for _, n := range []int{1, rows} {
		if err := resize(resized, x, n, width); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(state(built), state(resized)); d != "" {
		t.Error(d)
	}
}

// pickOp gives host integer 0 of its input as a SymInt, within 0 to 99.
type pickOp struct{ in, out ValueID }

func (o *pickOp) Spec() Spec {
	return Spec{Kind: "pick", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}}
}

func (o *pickOp) Corners(*Ranges) []Corner {
	return []Corner{{{Value: o.in, Host: []int64{0}}}, {{Value: o.in, Host: []int64{99}}}}
}

func (o *pickOp) Plan(p *Planner) error {
	n := p.HostInts(o.in)[0]
	if n < 0 || n > 99 {
		return p.Errorf("host integer %d, want 0 to 99", n)
	}
	p.SetInt(o.out, n)
	return nil
}

func TestNewHostIntegersWakeTheirReadersOnly(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	where := b.Input("where", I32, []int{1}, []int{1})
	pos := b.SymIntOut("pos")
	b.Add("pick", &pickOp{where, pos})
	g := finish(t, b, cut(b, "cut", x, plus(b, "end", pos, size(b, "s", x))), unary(b, "other", where))
	l := newLive(t, g, LiveOptions{})
	set := func(n int64) error {
		if err := l.SetHost(where, []int64{n}); err != nil {
			return err
		}
		if err := l.Propagate(); err != nil {
			return err
		}
		l.Commit()
		return nil
	}
	if err := set(40); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"pick", "end", "cut"}, runs(l)); d != "" {
		t.Error(d)
	}
	if err := set(40); err != nil || len(runs(l)) != 0 {
		t.Errorf("the same integers ran %v, %v", runs(l), err)
	}
	if err := set(100); err == nil || l.Int(pos) != 40 {
		t.Errorf("an integer out of range: %v, pos is %d, want an error and 40", err, l.Int(pos))
	}
	if err := l.SetHost(where, []int64{1, 2}); err == nil ||
		!strings.Contains(err.Error(), "2 integers for dims [1]") {
		t.Errorf("too many integers: %v", err)
	}
}

// viewOp gives its input's elements as one row.
type viewOp struct{ in, out ValueID }

func view(b *Builder, name string, in ValueID) ValueID {
	out := b.Tensor(name, U32)
	b.Add(name, &viewOp{in, out})
	return out
}

func (o *viewOp) Spec() Spec {
	return Spec{
		Kind: "view", Inputs: []ValueID{o.in}, Outputs: []ValueID{o.out}, Alias: true,
		Slots: []Slot{{Uses: []Use{on(copyKernel, o.in, o.out)}}},
	}
}
func (o *viewOp) Corners(r *Ranges) []Corner { return r.Ends(o.in) }
func (o *viewOp) Plan(p *Planner) error {
	n := p.Numel(o.in)
	p.SetDims(o.out, 1, n)
	if !p.Aliased() {
		p.Dispatch(0, threads(p, n, 64)).Params.U32("p0", n)
	}
	return nil
}

func TestViewIsAnAliasWhereNothingNeedsACopy(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	ofInput := view(b, "of input", x)
	inner := view(b, "inner", unary(b, "f", ofInput))
	out := view(b, "out", unary(b, "g", view(b, "again", inner)))
	g := finish(t, b, out)
	l := newLive(t, g, LiveOptions{})
	var copies []string
	for _, id := range l.Active() {
		if o := &g.ops[g.dispatches[id].op]; o.spec.Kind == "view" {
			copies = append(copies, o.name)
		}
	}
	if d := cmp.Diff([]string{"of input", "out"}, copies); d != "" {
		t.Errorf("views that are copied: %s", d)
	}
	if !g.SharesMemory(inner) {
		t.Error("inner does not live in its source's memory")
	}
	if err := resize(l, x, 7, width); err != nil {
		t.Fatal(err)
	}
	if got := l.Dims(out); got[1] != 7*width {
		t.Errorf("out is %v after a resize through aliases", got)
	}
}

func TestLevelsOfAChainAndOfARow(t *testing.T) {
	build := func(chain bool) *Live {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		y := x
		for i := range 6 {
			in := x
			if chain {
				in = y
			}
			y = unary(b, fmt.Sprint("f", i), in)
		}
		return newLive(t, finish(t, b), LiveOptions{})
	}
	if n := len(build(true).Levels()); n != 6 {
		t.Errorf("a chain of 6 has %d levels", n)
	}
	if n := len(build(false).Levels()); n != 1 {
		t.Errorf("a row of 6 has %d levels", n)
	}
}

func TestIndependentDispatchesStandSideBySide(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	// Two branches, written one after the other, run in turns.
	left := unary(b, "l1", unary(b, "l0", x))
	right := unary(b, "r1", unary(b, "r0", x))
	g := finish(t, b, addOp(b, "join", left, right))
	var names []string
	for i := range g.dispatches {
		names = append(names, g.ops[g.dispatches[i].op].name)
	}
	if d := cmp.Diff([]string{"l0", "r0", "l1", "r1", "join"}, names); d != "" {
		t.Error(d)
	}
	// l1 and r1 are each the first to read what a dispatch wrote, and join pays for both of its operands at
	// once.
	if n := len(newLive(t, g, LiveOptions{}).Levels()); n != 4 {
		t.Errorf("%d levels, want 4", n)
	}
}

// The store could run first if only writes were ordered.
func TestStateIsWrittenAfterItWasRead(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x, state := b.Input("x", U32, []int{4}, []int{4}), b.State("state", U32, []int{4})
	late := addOp(b, "read", unary(b, "u1", unary(b, "u0", x)), state)
	storeOp(b, x, state)
	g := finish(t, b, late)
	var names []string
	for i := range g.dispatches {
		names = append(names, g.ops[g.dispatches[i].op].name)
	}
	if read, store := slices.Index(names, "read"), slices.Index(names, "store"); read < 0 || store < read {
		t.Errorf("submitted in the order %v, want read before store", names)
	}
}

func TestChainOfAnyLengthTakesTwoSlots(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	y := rowsInput(b, "x")
	for i := range 50 {
		y = unary(b, fmt.Sprint("f", i), y)
	}
	if g := finish(t, b); g.Slots() != 2 {
		t.Errorf("%d slots", g.Slots())
	}
}

func TestTensorOverTheBindingLimitIsNamed(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxStorageBinding = 1 << 10
	b := NewBuilder(limits)
	unary(b, "f", rowsInput(b, "x"))
	_, err := b.Finish()
	want := "input x [512 16] u32 needs 32768 bytes, the device's largest storage binding is 1024"
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAConstantIsSharedByItsName(t *testing.T) {
	load := func() ([]byte, error) { return make([]byte, 16), nil }
	b := NewBuilder(gpu.DefaultLimits())
	w := b.Constant("w", F32, []int{4}, load)
	if again := b.Constant("w", F32, []int{4}, load); again != w {
		t.Errorf("declared again it is value %d, not %d", again, w)
	}
	if other := b.Constant("v", F32, []int{4}, load); other == w {
		t.Error("a constant of another name is the same")
	}
	if v := b.Constant("w", F32, []int{2, 2}, load); v != None {
		t.Errorf("with other dims it is value %d", v)
	}
	if err := b.Err(); err == nil || err.Error() != "constant w is declared as f32 [4] and as f32 [2 2]" {
		t.Errorf("got %v", err)
	}
}

func TestSlotThatNoCornerUsesIsRefused(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	out := b.Tensor("y", U32)
	b.Add("y", &funcOp{
		spec: Spec{Kind: "map", Inputs: []ValueID{x}, Outputs: []ValueID{out}, Slots: []Slot{
			{Label: "always", Uses: []Use{on(unaryKernel, x, out)}},
			{Label: "at seven", Uses: []Use{on(unaryKernel, x, out)}},
		}},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, threads(p, 4, 64)).Params.U32("p0", 4)
			if p.Dim(x, 0) == 7 {
				p.Dispatch(1, threads(p, 4, 64)).Params.U32("p0", 4)
			}
			return nil
		},
	})
	l := newLive(t, finish(t, b, out), LiveOptions{})
	if err := resize(l, x, 7, width); err == nil ||
		!strings.Contains(err.Error(), `slot "at seven" has no compiled kernel`) {
		t.Errorf("error %v", err)
	}
}

func TestHostIntegersOfOtherDimsAreRefused(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	where := b.Input("where", I32, []int{1}, []int{4})
	out := b.SymIntOut("last")
	b.Add("pick", &funcOp{
		spec: Spec{Kind: "pick", Inputs: []ValueID{where}, Outputs: []ValueID{out}},
		corners: func(r *Ranges) []Corner {
			return []Corner{
				{{Value: where, Host: []int64{0, 0, 0, 0}}},
				{{Value: where, Host: []int64{0, 0, 0, 9}}},
			}
		},
		plan: func(p *Planner) error {
			n := p.Dim(where, 0)
			if host := p.HostInts(where); host != nil {
				p.SetInt(out, host[n-1])
			}
			return nil
		},
	})
	l := newLive(t,
		finish(t, b, cut(b, "cut", rowsInput(b, "x"), plus(b, "n", out, b.SymInt("one", 1, 1, 1)))),
		LiveOptions{})
	if err := resize(l, where, 2); err == nil ||
		!strings.Contains(err.Error(), "where has 4 host integers for dims [2]") {
		t.Errorf("dims without their integers: %v", err)
	}
	if err := errors.Join(l.SetDims(where, 2), l.SetHost(where, []int64{3, 5}), l.Propagate()); err != nil {
		t.Fatal(err)
	}
	l.Commit()
	if got := l.Int(out); got != 5 {
		t.Errorf("last is %d", got)
	}
}

func TestShapesThatOverflowAreRefused(t *testing.T) {
	huge := []int{1 << 40, 1 << 20}
	tests := map[string]func(b *Builder){
		"more bits than an int64": func(b *Builder) { b.Input("x", F32, []int{1, 1}, huge) },
		"corners that overflow together": func(b *Builder) {
			x := b.Input("x", F32, []int{1, 1}, []int{2, 2})
			out := b.Tensor("y", F32)
			b.Add("y", &funcOp{
				spec:    Spec{Kind: "map", Inputs: []ValueID{x}, Outputs: []ValueID{out}},
				corners: func(r *Ranges) []Corner { return r.Ends(x) },
				plan: func(p *Planner) error {
					if p.Dim(x, 0) == 2 {
						p.SetDims(out, 1<<40, 1)
					} else {
						p.SetDims(out, 1, 1<<40)
					}
					return nil
				},
			})
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(gpu.DefaultLimits())
			build(b)
			if _, err := b.Finish(); err == nil || !strings.Contains(err.Error(), "more elements than") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("scratch at run time", func(t *testing.T) {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		out, scratch := b.Tensor("y", U32), b.Scratch("s", U32)
		b.Add("y", &funcOp{
			spec: Spec{
				Kind: "map", Inputs: []ValueID{x}, Outputs: []ValueID{out},
				Scratch: []ValueID{scratch},
			},
			corners: func(r *Ranges) []Corner { return r.Ends(x) },
			plan: func(p *Planner) error {
				p.SetDims(out, p.Dims(x)...)
				p.SetDims(scratch, 1, 1)
				if p.Dim(x, 0) == 7 {
					p.SetDims(scratch, 1<<40, 1<<40)
				}
				return nil
			},
		})
		l := newLive(t, finish(t, b, out), LiveOptions{})
		if err := resize(l, x, 7, width); err == nil || !strings.Contains(err.Error(), "s would") {
			t.Errorf("error %v", err)
		}
	})
}

// What an operator without outputs gives is None: who asks for it is told, and nothing goes wrong.
func TestBuilderTakesNoneForNoValue(t *testing.T) {
	for _, v := range []ValueID{None, 99} {
		b := NewBuilder(gpu.DefaultLimits())
		rowsInput(b, "x")
		if b.MaxDims(v) != nil || b.MinDims(v) != nil || b.DType(v) != F32 || b.Producer(v) != nil {
			t.Errorf("%d has dims %v, type %s", v, b.MaxDims(v), b.DType(v))
		}
		if b.Err() != nil {
			t.Error(b.Err())
		}
		b.Output(v)
		want := fmt.Sprintf("output: %d is not a value of this graph", v)
		if _, err := b.Finish(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
