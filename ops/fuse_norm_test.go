package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/weight"
)

func TestOneRowNormIsDeferredToItsReaders(t *testing.T) {
	norm := func(b *graph.Builder, k int, before string) graph.ValueID {
		var x graph.ValueID
		if before == "embed" {
			ids := b.Input("ids", graph.I32, []int{1}, []int{9})
			x = Embedding(b, before, noiseMatrix("embed.w", 50, k, weight.Q4_0), ids)
		} else {
			x = b.Input("x", graph.F32, []int{1, k}, []int{9, k})
		}
		switch before {
		case "down":
			x = Linear(b, before, x, noiseMatrix("down.w", k, k, weight.Q4_0), graph.None)
		case "sum":
			x = normWithResidual(b, before, x, x)
		}
		return RMSNorm(b, "norm", x, constant(b, "norm.w", k), 1e-5)
	}
	product := func(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", 24, b.MaxDims(x)[1], weight.F32), graph.None)
	}
	nothing := func(*graph.Builder, graph.ValueID) {}
	one, all := []string{"q", "k"}, []string{"norm", "q", "k"}
	head := func(b *graph.Builder, h graph.ValueID) {
		b.Output(Linear(b, "head", h, noiseMatrix("head.w", 32<<10, 2048, weight.Q4_0), graph.None))
	}
	for name, c := range map[string]struct {
		k      int
		before string // operator before the norm, or ""
		build  func(b *graph.Builder, h graph.ValueID)
		Routes map[string]string
		want   []string // for one row
	}{
		"large products": {k: 2048, build: head, want: append(all, "head")},
		"large products after a product": {
			k: 2048, before: "down", build: head, want: []string{"down", "q", "k", "head"},
		},
		"large products after an embedding": {
			k: 2048, before: "embed", build: head, want: []string{"embed", "q", "k", "head"},
		},
		"large products after a sum": {
			k: 2048, before: "sum", build: head, want: []string{"sum", "q", "k", "head"},
		},
		"the embedding is forced onto its route for many rows": {
			k: 2048, before: "embed", build: head, Routes: map[string]string{"embedding_q4gsw": "rows"},
			want: []string{"embed", "norm", "q", "k", "head"},
		},
		"the previous product is forced onto tiles": {
			k: 2048, before: "down", build: head, Routes: map[string]string{"linear_q4gsw@down": "tile64"},
			want: []string{"down", "norm", "q", "k", "head"},
		},
		"all readers are products": {k: 32, build: nothing, want: one},
		"another operator reads the norm": {k: 32, build: func(b *graph.Builder, h graph.ValueID) {
			b.Output(basic.Sigmoid(b, "s", h))
		}, want: append(all, "s")},
		"the norm is an output": {k: 32, build: (*graph.Builder).Output, want: all},
		"a reader adds a residual": {k: 32, build: func(b *graph.Builder, h graph.ValueID) {
			r := b.Input("r", graph.F32, []int{1, 24}, []int{9, 24})
			b.Output(basic.Add(b, "add", product(b, "o", h), r, 1))
		}, want: append(all, "o+add")},
		"the row is not made of whole chunks": {k: 28, build: nothing, want: all},
		"a reader is forced onto tiles": {
			k: 32, build: nothing,
			Routes: map[string]string{"linear@k": "tile64"}, want: all,
		},
		"the norm is forced onto its route for many rows": {
			k: 32, build: nothing, Routes: map[string]string{"rms_norm": "rows"}, want: all,
		},
		"a norm after a product is forced onto its route for many rows": {
			k: 32, before: "down", build: nothing, Routes: map[string]string{"rms_norm": "rows"},
			want: append([]string{"down"}, all...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(c.Routes)
			b.Fuse(fuseResidual, fuseNorm)
			h := norm(b, c.k, c.before)
			for _, name := range []string{"q", "k"} {
				b.Output(product(b, name, h))
			}
			c.build(b, h)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			at := func(rows int) []string {
				dims := slices.Clone(g.Value(g.Inputs()[0]).MaxDims)
				dims[0] = rows
				return runningAt(t, g, dims...)
			}
			if got := at(1); !slices.Equal(got, c.want) {
				t.Errorf("one row runs %v, want %v", got, c.want)
			}
			if got := at(9); !slices.Contains(got, "norm") {
				t.Errorf("nine rows run %v, want the norm among them", got)
			}
		})
	}
}

// normGraph draws a graph of norms and products, with weights in one format.
func normGraph(t *rapid.T) func(b *graph.Builder) {
	f := drawFormat(t)
	whole := func(k int) bool { return k%f.Pieces[0].Cols == 0 }
	k := rapid.SampledFrom([]int{256, 320, 512}).Filter(whole).Draw(t, "columns")
	outs := rapid.SliceOfN(rapid.IntRange(1, 70), 1, 3).Draw(t, "rows of weights")
	bias := rapid.Bool().Draw(t, "bias")
	before := rapid.SampledFrom([]string{"", "product", "embedding", "sum"}).Draw(t, "before")
	chain := rapid.Bool().Draw(t, "another norm behind")
	return func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, k}, []int{1, 40, k})
		switch before {
		case "product":
			x = Linear(b, "before", x, noiseMatrix("before.w", k, k, f), graph.None)
			b.Output(x)
		case "sum":
			x = normWithResidual(b, "before", x, b.Input("r", graph.F32, []int{1, 1, k}, []int{1, 40, k}))
			b.Output(x)
		case "embedding":
			ids := b.Input("ids", graph.I32, []int{1, 1}, []int{1, 40})
			x = Embedding(b, "before", noiseMatrix("before.w", 50, k, f), ids)
			b.Output(x)
		}
		h := RMSNorm(b, "norm", x, constant(b, "norm.w", k), 1e-5)
		if chain { // this product applies one norm and prepares the next
			h = Linear(b, "chain", h, noiseMatrix("chain.w", k, k, f), graph.None)
			h = RMSNorm(b, "next", h, constant(b, "next.w", k), 1e-5)
		}
		for i, n := range outs {
			name, with := string(rune('a'+i)), graph.None
			if bias {
				with = constant(b, name+".bias", n)
			}
			b.Output(Linear(b, name, h, noiseMatrix(name+".w", n, k, f), with))
		}
	}
}

func normPoints(k int) (list []step) {
	for _, rows := range []int{40, 1, 7, 1} {
		list = append(list, step{"x": {1, rows, k}, "r": {1, rows, k}, "ids": {1, rows}})
	}
	return list
}

func TestFusingNormsIntoProductsKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		build := normGraph(t)
		if referencesAgree(t, fuseNorm, build, normPoints(columnsOf(build))) == 0 {
			t.Fatal("nothing was fused")
		}
	})
}

// columnsOf returns the number of columns of a graph's input x.
func columnsOf(build func(b *graph.Builder)) int {
	b := graph.NewBuilder(gpu.DefaultLimits())
	build(b)
	return shape.Last(b.MaxDims(0))
}

func TestNormsFusedIntoProductsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(20) {
		build := rapid.Custom(normGraph).Example(seed)
		kernelsAgree(t, dev, fuseNorm, build, normPoints(columnsOf(build)))
	}
}

func TestProductInputRowIsInterleavedForItsLanes(t *testing.T) {
	for _, width := range []int{32, 96, 2048} {
		seen := make([]bool, width)
		for at := range width {
			column := spreadFrom(at, width)
			if seen[column] {
				t.Fatalf("width %d: column %d is in two places", width, column)
			}
			seen[column] = true
		}
		for chunk := range width / 32 { // adjacent lanes hold adjacent chunks
			if column := spreadFrom(4*chunk, width); column != 32*chunk {
				t.Errorf("width %d: place %d has column %d, want %d", width, 4*chunk, column, 32*chunk)
			}
		}
	}
}
