package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

func TestWhatOneOperatorLeavesAndAnotherMakesIsThereForAllBehind(t *testing.T) {
	for _, order := range []Order{Topological, Fixpoint} {
		dev := fake.New(fake.Options{})
		dev.OnDispatch = compute
		b := NewBuilder(dev.Info().Limits)
		x := rowsInput(b, "x")
		left := leftOp(b, "left", x)
		apart := x
		for _, name := range []string{"a", "b", "c"} { // what could take memory that nothing has touched yet
			apart = unary(b, name, apart)
		}
		made := makesOp(b, "made", apart, left, false)
		out := addOp(b, "out", addOp(b, "sum", left, made), apart)
		g := finish(t, b, out)
		for _, o := range g.Describe().Ops {
			if got := slices.Contains(o.Makes, left); got != slices.Contains(o.Outputs, made) {
				t.Errorf("that %s makes what is left is told: %v", o.Name, got)
			}
		}
		ex, err := Load(dev, g, LiveOptions{Order: order}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{7, 1, 7, 1} {
			in := &StepInput{
				Inputs: []InputData{{Value: x, Dims: []int{rows, width}, Data: bytesOf(pattern(rows, 0))}},
				Read:   []ValueID{out},
			}
			if err := ex.Step(context.Background(), in, TimingOff); err != nil {
				t.Fatal(err)
			}
			given := uint32(1) // left is x + 1 by the one, and x + 4 by the other
			if rows == 1 {
				given = 4
			}
			want := pattern(rows, 0)
			for i := range want {
				want[i] = 3*want[i] + given + 7
			}
			got := make([]byte, 4*rows*width)
			if _, err := ex.Output(out, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, words(got)); d != "" {
				t.Fatalf("%v, %d rows:\n%s", order, rows, d)
			}
			looks := allOutputs(ex)
			i := slices.IndexFunc(looks, func(l Look) bool { return l.Value == left })
			if i < 0 {
				t.Fatalf("%v, %d rows: nothing wrote what is left", order, rows)
			}
			if err := ex.Replay(context.Background(), looks...); err != nil {
				t.Fatal(err)
			}
			if got, want := words(looks[i].Into)[0], pattern(rows, 0)[0]+given; got != want {
				t.Errorf("%v, %d rows: what is left begins with %d, want %d", order, rows, got, want)
			}
		}
		ex.Release()
		dev.Release()
	}
}

func TestWhatIsLeftIsMadeBeforeItIsRead(t *testing.T) {
	for want, build := range map[string]func(b *Builder, x, left ValueID) ValueID{
		"does not make left, which is left to it here": func(b *Builder, x, left ValueID) ValueID {
			return addOp(b, "sum", left, makesOp(b, "made", x, left, true))
		},
		"reads (reads) [x[1 16]]: does not make left, which is left to it here": func(
			b *Builder, x, left ValueID,
		) ValueID {
			out := b.Tensor("reads", U32)
			b.Add("reads", &funcOp{
				spec: Spec{
					Kind: "reads", Inputs: []ValueID{x}, Outputs: []ValueID{out}, Makes: []ValueID{left},
					Slots: []Slot{{Uses: []Use{on(unaryKernel, left, out)}}},
				},
				corners: func(r *Ranges) []Corner { return r.Ends(x) },
				plan: func(p *Planner) error {
					p.SetDims(out, p.Dims(x)...)
					p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
					return nil
				},
			})
			return out
		},
		"kernel unary reads left, which is left to its readers": func(b *Builder, x, left ValueID) ValueID {
			early := unary(b, "early", left)
			return addOp(b, "sum", early, makesOp(b, "made", x, left, false))
		},
	} {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		l := newLive(t, finish(t, b, build(b, x, leftOp(b, "left", x))), LiveOptions{})
		if err := resize(l, x, 7, width); err != nil {
			t.Fatal(err)
		}
		if err := resize(l, x, 1, width); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at one row the error is %v, want %q", err, want)
		}
	}
}

func TestBehindWhatMakesItNothingIsLeft(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	left := leftOp(b, "left", x)
	seen := map[string]bool{} // whether it was left, by operator
	look := func(name string) ValueID {
		out := b.Tensor(name, U32)
		b.Add(name, &funcOp{
			spec: Spec{
				Kind: "looks", Inputs: []ValueID{x, left}, Outputs: []ValueID{out},
				Slots: []Slot{{Uses: []Use{on(unaryKernel, x, out)}}},
			},
			corners: func(r *Ranges) []Corner { return r.Ends(x) },
			plan: func(p *Planner) error {
				seen[name] = p.Left(left)
				p.SetDims(out, p.Dims(x)...)
				p.Dispatch(0, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
				return nil
			},
		})
		return out
	}
	early := look("early")
	made := makesOp(b, "made", x, left, false)
	l := newLive(t, finish(t, b, addOp(b, "out", addOp(b, "sum", early, made), look("late"))), LiveOptions{})
	for rows, want := range map[int]map[string]bool{
		7: {"early": false, "late": false}, 1: {"early": true, "late": false},
	} {
		if err := resize(l, x, rows, width); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("%d rows:\n%s", rows, d)
		}
	}
}

func TestOnlyWhatAnOperatorBeforeGivesCanBeMade(t *testing.T) {
	for want, build := range map[string]func(b *Builder, x ValueID){
		"makes x, which no operator before it leaves to it": func(b *Builder, x ValueID) {
			makesOp(b, "made", x, x, false)
		},
		"makes left, which no operator before it leaves to it": func(b *Builder, x ValueID) {
			left := leftOp(b, "left", x)
			makesOp(b, "made", x, left, false)
			makesOp(b, "again", x, left, false)
		},
	} {
		b := NewBuilder(gpu.DefaultLimits())
		build(b, rowsInput(b, "x"))
		if _, err := b.Finish(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
