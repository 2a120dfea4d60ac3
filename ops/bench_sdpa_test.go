package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// BenchmarkSDPA reports the median isolated GPU time of each dispatch slot of attention.
func BenchmarkSDPA(b *testing.B) {
	dev := benchDevice(b)
	for _, c := range []attention{
		{
			qHeads: 32, kvHeads: 8, headDim: 64, context: 4096, tokens: 512,
			live: [][2]int{{1, 127}, {1, 1023}, {1, 4095}, {128, 0}, {512, 0}, {512, 3584}},
		},
		{
			qHeads: 32, kvHeads: 8, headDim: 128, context: 4096, tokens: 512,
			live: [][2]int{{1, 127}, {1, 4095}, {512, 0}},
		},
		{
			qHeads: 32, kvHeads: 8, headDim: 128, context: 4096, tokens: 512, half: true,
			live: [][2]int{{1, 127}, {1, 4095}, {512, 0}},
		},
	} {
		for i, at := range c.live {
			b.Run(fmt.Sprintf("%sat %d and %d", strings.ReplaceAll(c.String(), ",", ""), at[0], at[1]),
				func(b *testing.B) {
					c.bench(b, dev, c.trial(), c.trial().steps[i])
				})
		}
	}
}

func (c attention) bench(b *testing.B, dev gpu.Device, t *trial, at step) {
	builder := graph.NewBuilder(dev.Info().Limits)
	builder.AskRoutes(t.Routes)
	t.build(builder)
	g, err := builder.Finish()
	if err != nil {
		b.Fatal(err)
	}
	x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Release()
	in := t.input(b, g, at)
	in.Read = nil
	run := func(level engine.Timing) {
		if err := x.Step(context.Background(), in, level); err != nil {
			b.Fatal(err)
		}
	}
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		run(engine.TimingDispatch)
	}
	times := map[string][]int64{}
	for b.Loop() {
		run(engine.TimingDispatch)
		list, ok := x.DispatchNS()
		if !ok {
			b.Fatal("no GPU times")
		}
		for i, id := range x.Live().Active() {
			_, k := x.Live().Launch(id)
			name, _, _ := strings.Cut(strings.TrimPrefix(k.Name, "sdpa_"), "_h")
			times[name] = append(times[name], list[i])
		}
	}
	for name, list := range times {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2]), name+"-ns")
	}
	b.ReportMetric(0, "ns/op")
}

// decodeChain builds layers of attention for one token, each on the result of the previous layer. As in a
// model, weights stream through the caches between the layers.
func (c attention) decodeChain(layers int, attends bool) func(b *graph.Builder) {
	width := c.qHeads * c.headDim
	stream := func(name string, rows, cols int) weight.Matrix {
		return weight.Matrix{Name: name, Rows: rows, Cols: cols, Format: weight.F32, Data: func() ([][]byte,
			error,
		) {
			return [][]byte{make([]byte, 4*rows*cols)}, nil
		}}
	}
	up, down := stream("up", 4096, width), stream("down", width, 4096)
	return func(b *graph.Builder) {
		t := graph.F32
		if c.half {
			t = graph.F16
		}
		x, k, v := c.inputs(b)
		position := c.position(b)
		for i := range layers {
			b.Scope(fmt.Sprintf("layers.%d.", i), i, "attn")
			if attends {
				dims := []int{1, c.context, c.kvHeads, c.headDim}
				x = SDPA(b, "sdpa", x, k, v, b.State(fmt.Sprintf("k_cache.%d", i), t, dims),
					b.State(fmt.Sprintf("v_cache.%d", i), t, dims), position, 0, 0, 0, graph.None)
			}
			x = basic.View(b, "join", x, kind.Fixed(1), kind.Fixed(1), kind.Fixed(width))
			x = Linear(b, "down", Linear(b, "up", x, up, graph.None), down, graph.None)
			x = basic.View(b, "split", x, kind.Fixed(1), kind.Fixed(1), kind.Fixed(c.qHeads),
				kind.Fixed(c.headDim))
		}
		b.Output(x)
	}
}

// BenchmarkDecodeAttention measures attention of one token at several positions. It subtracts the time of a
// chain of layers without attention from the time of a chain with it.
func BenchmarkDecodeAttention(b *testing.B) {
	dev := benchDevice(b)
	for _, headDim := range []int{64, 128} {
		for _, half := range []bool{false, true} {
			c := attention{qHeads: 32, kvHeads: 8, headDim: headDim, tokens: 1, context: 8192, half: half}
			b.Run(strings.ReplaceAll(c.String(), ",", ""), func(b *testing.B) {
				positions := []int{64, 256, 512, 1024, 4096, 8191}
				for b.Loop() {
					without := c.layerNS(b, dev, false, positions[:1])
					for i, ns := range c.layerNS(b, dev, true, positions) {
						b.ReportMetric((ns-without[0])/1e3, fmt.Sprintf("us@%d", positions[i]))
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// layerNS returns the median GPU time of a layer of the chain at each position.
func (c attention) layerNS(b *testing.B, dev gpu.Device, attends bool, positions []int) (medians []float64) {
	const layers = 8
	t := &trial{build: c.decodeChain(layers, attends)}
	builder := graph.NewBuilder(dev.Info().Limits)
	t.build(builder)
	g, err := builder.Finish()
	if err != nil {
		b.Fatal(err)
	}
	x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Release()
	for _, position := range positions {
		in := t.input(b, g, c.step(1, position))
		in.Read = nil
		var list []int64
		for i := range 30 {
			if err := x.Step(context.Background(), in, engine.TimingStep); err != nil {
				b.Fatal(err)
			}
			if span, _, ok := x.SpanNS(); ok && i >= 10 { // after a warm-up
				list = append(list, span)
			}
		}
		slices.Sort(list)
		medians = append(medians, float64(list[len(list)/2])/layers)
	}
	return medians
}

// BenchmarkPrefillAttention measures attention of several tokens on each route. It reports the median
// isolated GPU times of its dispatches.
func BenchmarkPrefillAttention(b *testing.B) {
	dev := benchDevice(b)
	for _, headDim := range []int{64, 128} {
		for _, tokens := range []int{2, 16, 32, 64, 128, 256, 512, 2048} {
			for _, route := range []string{"materialized", "streaming", "split_streaming"} {
				c := attention{
					qHeads: 32, kvHeads: 8, headDim: headDim, context: 6144, tokens: tokens,
					Route: route, live: [][2]int{{tokens, 0}, {tokens, 512}, {tokens, 4096}},
				}
				for i, at := range c.live {
					if route == "split_streaming" && (tokens > 128 || at[1] == 0) {
						continue
					}
					name := fmt.Sprintf("%s at %d", c.String(), at[1])
					b.Run(strings.ReplaceAll(name, ",", ""), func(b *testing.B) {
						c.bench(b, dev, c.trial(), c.trial().steps[i])
					})
				}
			}
		}
	}
}
