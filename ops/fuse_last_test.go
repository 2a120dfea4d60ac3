package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
)

// lastOf cuts the last row of a dim out.
func lastOf(b *engine.Builder, x engine.ValueID, axis int) engine.ValueID {
	return SliceRange(b, "last", x, axis, Fixed(-1), Fixed(ToEnd), 1)
}

func TestALinearOfWhichTheLastRowIsReadMakesThatAlone(t *testing.T) {
	product := func(b *engine.Builder, k, n int, dims ...int) engine.ValueID {
		lowest := append(slices.Clone(dims[:len(dims)-1]), 1, k)
		x := b.Input("x", engine.F32, lowest, append(dims, k))
		return Linear(b, "o", x, noiseMatrix("o.w", n, k, F32), engine.None)
	}
	both := []string{"o", "last"}
	for name, c := range map[string]struct {
		build  func(b *engine.Builder) engine.ValueID
		routes map[string]string
		want   []string // at seven rows
	}{
		"the last row": {build: func(b *engine.Builder) engine.ValueID {
			return lastOf(b, product(b, 32, 24, 1, 9), 1)
		}, want: []string{"o"}},
		"the last two": {build: func(b *engine.Builder) engine.ValueID {
			return SliceRange(b, "last", product(b, 32, 24, 9), 0, Fixed(-2), Fixed(ToEnd), 1)
		}, want: both},
		"the first row": {build: func(b *engine.Builder) engine.ValueID {
			return SliceRange(b, "last", product(b, 32, 24, 9), 0, Fixed(0), Fixed(1), 1)
		}, want: both},
		"the last column": {build: func(b *engine.Builder) engine.ValueID {
			return lastOf(b, product(b, 32, 24, 9), 1)
		}, want: both},
		"the last of each batch": {build: func(b *engine.Builder) engine.ValueID {
			return lastOf(b, product(b, 32, 24, 2, 9), 1)
		}, want: both},
		"somebody reads the others": {build: func(b *engine.Builder) engine.ValueID {
			y := product(b, 32, 24, 9)
			b.Output(y)
			return lastOf(b, y, 0)
		}, want: both},
		"its columns are no chunks": {build: func(b *engine.Builder) engine.ValueID {
			return lastOf(b, product(b, 28, 24, 9), 0)
		}, want: both},
		"it is made to take tiles": {build: func(b *engine.Builder) engine.ValueID {
			return lastOf(b, product(b, 32, 24, 9), 0)
		}, routes: map[string]string{"linear@o": "tile64"}, want: both},
	} {
		t.Run(name, func(t *testing.T) {
			b := engine.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(c.routes)
			b.Fuse(fuseLast)
			b.Output(c.build(b))
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			dims := slices.Clone(g.Value(g.Inputs()[0]).MaxDims)
			dims[len(dims)-2] = 7
			if got := runningAt(t, g, dims...); !slices.Equal(got, c.want) {
				t.Errorf("seven rows run %v, want %v", got, c.want)
			}
		})
	}
}

// lastGraph has the last row of a product, with a residual or without, its weights in a format, or of a norm
// with a residual.
func lastGraph(t *rapid.T) func(b *engine.Builder) {
	f := rapid.SampledFrom(Formats).Filter(func(f Format) bool { return f.Name != "qcs4w" }).Draw(t, "format")
	norm := rapid.IntRange(0, 3).Draw(t, "norm") == 0
	residual, bias := rapid.Bool().Draw(t, "residual"), rapid.Bool().Draw(t, "bias")
	return func(b *engine.Builder) {
		x := b.Input("x", engine.F32, []int{1, 1, 256}, []int{1, 40, 256})
		r := b.Input("r", engine.F32, []int{1, 1, 42}, []int{1, 40, 42})
		if norm {
			h := Linear(b, "h", x, noiseMatrix("h.w", 42, 256, f), engine.None)
			b.Output(lastOf(b, normWithResidual(b, "o", h, r), 1))
			return
		}
		o := &linear{x: x, w: noiseMatrix("o.w", 42, 256, f), bias: engine.None, residual: engine.None}
		if bias {
			o.bias = constant(b, "o.bias", 42)
		}
		if residual {
			o.residual = r
		}
		b.Output(lastOf(b, o.add(b, "o"), 1))
	}
}

// normWithResidual adds a norm as the rule norm_add makes it.
func normWithResidual(b *engine.Builder, name string, x, residual engine.ValueID) engine.ValueID {
	o := &rmsNorm{
		x: x, weight: constant(b, name+".w", last(b.MaxDims(x))), y: b.Tensor(name, engine.F32), eps: 1e-5,
		residual: residual, lanes: 64, vec: vec(b, x, -1),
	}
	o.makeKernel(b)
	b.Add(name, o)
	return o.y
}

var lastPoints = func() (list []step) {
	for _, rows := range [][2]int{{40, 40}, {1, 1}, {7, 7}, {7, 1}, {1, 7}, {1, 1}} {
		list = append(list, step{"x": {1, rows[0], 256}, "r": {1, rows[1], 42}})
	}
	return list
}()

func TestTheLastRowAloneIsWhatAGraphComputes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if referencesAgree(t, fuseLast, lastGraph(t), lastPoints) == 0 {
			t.Fatal("nothing was fused")
		}
	})
}

func TestTheLastRowAloneOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range 12 {
		kernelsAgree(t, dev, fuseLast, rapid.Custom(lastGraph).Example(seed), lastPoints)
	}
}
