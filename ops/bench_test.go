package ops

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// benchDevice opens the device for a benchmark with the shapes of a real model. On a software device it skips
// the benchmark, unless GPUSCOPE_LARGE is set.
func benchDevice(b *testing.B) gpu.Device {
	dev := gputest.Open(b)
	if dev.Info().Type == gpu.CPU && os.Getenv("GPUSCOPE_LARGE") == "" {
		b.Skip("needs GPUSCOPE_LARGE on a software device, because the shapes are those of a real model")
	}
	b.Cleanup(emptyStock)
	return dev
}

// stock holds the buffers that no bench is using. A bench reuses these buffers instead of creating new ones.
// When each bench released its buffers and created new ones on an H200, each was slower than the one before,
// the fifth by half.
var stock = map[stockKind][]gpu.Buffer{}

// filling holds the data that fills the buffers of a bench, by data type. It is repeated to fill a buffer.
var filling = map[graph.DType][]byte{}

type stockKind struct {
	size  int
	usage gpu.Usage
}

func emptyStock() {
	for kind, list := range stock {
		for _, buffer := range list {
			buffer.Release()
		}
		delete(stock, kind)
	}
}

// TestABenchRuns runs benches as a test, because CI runs no benchmarks. Kernels without params once broke all
// of them.
func TestABenchRuns(t *testing.T) {
	dev := gputest.Open(t)
	t.Cleanup(emptyStock)
	for _, m := range []int{1, 4, 20} {
		for _, apart := range []bool{false, true} {
			x := newBench(t, dev, modelsLinear(64, 64, m, weight.Q4_0), apart)
			if took := x.once(t); took == 0 || len(x.runs) < x.copies {
				t.Errorf("M %d, %s: %d dispatches in %d copies, %d ticks", m, placed(apart), len(x.runs),
					x.copies, took)
			}
			x.release()
		}
	}
}

// TestRoutesByTilesAreTaken checks that no benchmark asks for a route that is refused. CI would not notice
// that either.
func TestRoutesByTilesAreTaken(t *testing.T) {
	for m, want := range map[int][]string{
		32:  {"split64", "tile64", "split128", "tile128"},
		512: {"tile64", "split128", "tile128"},
	} {
		names := routesByTiles(large, 2048, 512, m)
		if !slices.Equal(names, want) {
			t.Errorf("%d rows can use the routes %v, want %v", m, names, want)
		}
		for _, route := range names {
			planned(t, large, byRoute(2048, 512, m, route))
		}
	}
}

// bench runs one operator repeatedly. Each run uses another copy of the weights, so that no cache holds them.
type bench struct {
	dev     gpu.Device
	runs    []benchRun // dispatches of the operator, for each copy of the weights
	copies  int
	stamps  gpu.Timestamps
	bytes   int64
	flops   int64
	owned   []interface{ Release() }
	buffers map[stockKind][]gpu.Buffer
}

type benchRun struct {
	pipeline gpu.Pipeline
	group    gpu.BindGroup
	grid     grid.Grid
}

// planned returns a graph and a Live of it at its maximum shapes.
func planned(b testing.TB, limits gpu.Limits, build func(b *graph.Builder)) (*graph.Graph, *graph.Live) {
	b.Helper()
	builder := graph.NewBuilder(limits)
	build(builder)
	g, err := builder.Finish()
	if err != nil {
		b.Fatal(err)
	}
	live, err := graph.NewLive(g, graph.LiveOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return g, live
}

// newBench prepares a bench of the last operator of a graph. If apart is true, each copy has its own output.
// Otherwise the copies share an output, so a barrier separates them.
func newBench(b testing.TB, dev gpu.Device, build func(b *graph.Builder), apart bool) *bench {
	return newBenchOf(b, dev, build, apart, nil)
}

// newBenchOf is newBench with the content of some inputs of the operator, by name. Other inputs have random
// bits.
func newBenchOf(b testing.TB, dev gpu.Device, build func(b *graph.Builder), apart bool,
	content map[string][]byte,
) *bench {
	g, live := planned(b, dev.Info().Limits, build)
	x := &bench{dev: dev}
	x.readyStamps(b)
	type dispatch struct {
		benchRun
		k      *graph.Kernel
		params []gpu.Binding
	}
	var dispatches []dispatch
	active, of := live.Active(), g.Describe().Dispatches
	for _, id := range active {
		if of[id].Op != of[active[len(active)-1]].Op {
			continue
		}
		launch, k := live.Launch(id)
		x.bytes, x.flops = x.bytes+launch.Bytes, x.flops+launch.FLOPs
		d := dispatch{benchRun{pipeline: x.compile(b, k), grid: launch.Grid}, k, nil}
		if data := launch.Params.Bytes(); len(data) > 0 {
			params := x.buffer(b, 16*shape.DivUp(len(data), 16), gpu.Uniform)
			if err := dev.Write(params, 0, data); err != nil {
				b.Fatal(err)
			}
			d.params = []gpu.Binding{{Buffer: params}}
		}
		dispatches = append(dispatches, d)
	}
	shared := map[graph.ValueID]gpu.Buffer{}
	x.copies = max(2, min(256, int(300e6/x.bytes)+1))
	for range x.copies {
		for _, d := range dispatches {
			var list []gpu.Binding
			for i, bound := range use(g, d.k).Bind {
				v := bound.Value
				info := g.Value(v)
				buffer, read := shared[v], d.k.Storage[i].Access == gpu.Read
				if buffer == nil {
					buffer = x.buffer(b, int(info.DType.Bytes(shape.Product(info.MaxDims))), gpu.Storage)
					if data := content[info.Name]; data != nil {
						if err := dev.Write(buffer, 0, data); err != nil {
							b.Fatal(err)
						}
					} else if read {
						x.fill(b, buffer, info.DType)
					}
					if read && info.Role != graph.Constant || !read && !apart {
						shared[v] = buffer
					}
				}
				list = append(list, gpu.Binding{Buffer: buffer})
			}
			x.bind(b, d.benchRun, d.k, append(list, d.params...)...)
		}
	}
	return x
}

// readyStamps creates the timestamps of the bench.
func (x *bench) readyStamps(b testing.TB) {
	var err error
	if x.stamps, err = x.dev.NewTimestamps(2); err != nil {
		b.Fatal(err)
	}
	x.owned = append(x.owned, x.stamps)
}

// compile creates the pipeline of a kernel.
func (x *bench) compile(b testing.TB, k *graph.Kernel) gpu.Pipeline {
	pipeline, err := x.dev.NewPipeline(gpu.PipelineDesc{
		Label: k.Name, Source: k.Source, Bindings: k.Bindings(),
	})
	if err != nil {
		b.Fatal(err)
	}
	x.owned = append(x.owned, pipeline)
	return pipeline
}

// bind adds a dispatch with its bindings to the bench.
func (x *bench) bind(b testing.TB, run benchRun, k *graph.Kernel, bindings ...gpu.Binding) {
	var err error
	if run.group, err = x.dev.NewBindGroup(k.Name, run.pipeline, bindings); err != nil {
		b.Fatal(err)
	}
	x.owned = append(x.owned, run.group)
	x.runs = append(x.runs, run)
}

// use returns the bindings of a kernel in a graph.
func use(g *graph.Graph, k *graph.Kernel) (found graph.Use) {
	g.Operators(func(_ graph.OpID, _ string, o graph.Operator) bool {
		for _, s := range o.Spec().Slots {
			for _, u := range s.Uses {
				if u.Kernel == k {
					found = u
				}
			}
		}
		return true
	})
	return found
}

// buffer returns a buffer from the stock, or a new one.
func (x *bench) buffer(b testing.TB, size int, usage gpu.Usage) gpu.Buffer {
	kind := stockKind{size, usage}
	var buffer gpu.Buffer
	if list := stock[kind]; len(list) > 0 {
		buffer, stock[kind] = list[len(list)-1], list[:len(list)-1]
	} else {
		var err error
		if buffer, err = x.dev.NewBuffer("bench", uint64(size), usage); err != nil {
			b.Fatal(err)
		}
	}
	if x.buffers == nil {
		x.buffers = map[stockKind][]gpu.Buffer{}
	}
	x.buffers[kind] = append(x.buffers[kind], buffer)
	return buffer
}

// fill writes random bits to a buffer. Floats among them are small.
func (x *bench) fill(b testing.TB, buffer gpu.Buffer, t graph.DType) {
	data := filling[t]
	if data == nil {
		data = make([]byte, 4<<20)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range data {
			data[i] = byte(random.Uint32())
			if (t == graph.F32 || t == graph.F16) && i%4 == 3 || t == graph.F16 && i%4 == 1 {
				data[i] = 0x3c // about 0.01 as f32, about 1 as f16
			}
		}
		filling[t] = data
	}
	for at := uint64(0); at < buffer.Size(); at += uint64(len(data)) {
		if err := x.dev.Write(buffer, at, data[:min(uint64(len(data)), buffer.Size()-at)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := x.dev.Wait(); err != nil {
		b.Fatal(err)
	}
}

func (x *bench) release() {
	for _, o := range slices.Backward(x.owned) {
		o.Release()
	}
	for kind, list := range x.buffers {
		stock[kind] = append(stock[kind], list...)
	}
}

// once runs each copy once and returns the duration in ticks.
func (x *bench) once(b testing.TB) uint64 {
	enc, err := x.dev.Begin("bench")
	if err != nil {
		b.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	check(enc.Timestamp(x.stamps, 0))
	check(enc.BeginPass("bench"))
	for _, r := range x.runs {
		enc.Dispatch(r.pipeline, r.group, r.grid.X, r.grid.Y, r.grid.Z)
	}
	check(enc.EndPass())
	check(enc.Timestamp(x.stamps, 1))
	check(enc.Resolve(x.stamps, 2))
	check(enc.Submit())
	check(x.dev.Wait())
	var ticks [2]uint64
	check(x.stamps.Read(ticks[:]))
	return ticks[1] - ticks[0]
}

// warm runs the copies until the device's clock has risen.
func (x *bench) warm(b *testing.B) {
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		x.once(b)
	}
}

// median returns the median time per copy in ns. It assumes ticks of 1 ns, as on NVIDIA GPUs and llvmpipe.
func (x *bench) median(ticks []uint64) float64 {
	slices.Sort(ticks)
	return float64(ticks[len(ticks)/2]) / float64(x.copies)
}

// run warms the device up, and then reports the median time of a dispatch and its rates of memory traffic and
// computation.
func (x *bench) run(b *testing.B) {
	x.warm(b)
	var list []uint64
	for b.Loop() {
		list = append(list, x.once(b))
	}
	ns := x.median(list)
	b.ReportMetric(ns, "gpu-ns/dispatch")
	b.ReportMetric(float64(x.bytes)/ns, "GB/s")
	b.ReportMetric(float64(x.flops)/ns/1e3, "TFLOP/s")
	b.ReportMetric(0, "ns/op")
}

// llama1B and llama8B list the matrix products of a layer and the output head of Llamas with 1 and 8 billion
// parameters.
var (
	llama1B = [][2]int{
		{2048, 2048},
		{2048, 512},
		{2048, 3072},
		{2048, 8192},
		{2048, 16384},
		{8192, 2048},
		{2048, 128256},
	}
	llama8B = [][2]int{
		{4096, 4096},
		{4096, 1024},
		{4096, 6144},
		{4096, 14336},
		{4096, 28672},
		{14336, 4096},
		{4096, 128256},
	}
)

// placed names how the copies of a product are arranged: "chained" with a barrier between them, or "apart"
// without barriers.
func placed(apart bool) string {
	if apart {
		return "apart"
	}
	return "chained"
}

// linearOf builds a product of m rows with random weights in a format.
func linearOf(k, n, m int, f weight.Format) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		w := noiseMatrix("w", n, k, f)
		x := b.Input("x", graph.F32, []int{m, k}, []int{m, k})
		b.Output(Linear(b, "y", x, w, graph.None))
	}
}

// modelsLinear is like linearOf, with x in the layout that models use. For one row, x is the interleaved
// output of gate and up.
func modelsLinear(k, n, m int, f weight.Format) func(b *graph.Builder) {
	if m > 1 {
		return linearOf(k, n, m, f)
	}
	return func(b *graph.Builder) {
		b.Fuse(fuseGateUp, fuseSpread)
		x := b.Input("x", graph.F32, []int{1, 32}, []int{1, 32})
		gate := Linear(b, "gate", x, noiseMatrix("gate.w", k, 32, weight.Q8_0), graph.None)
		up := Linear(b, "up", x, noiseMatrix("up.w", k, 32, weight.Q8_0), graph.None)
		w := noiseMatrix("w", n, k, f)
		b.Output(Linear(b, "y", basic.SiLUMul(b, "mul", gate, up), w, graph.None))
	}
}

// BenchmarkLinear measures 4-bit products at a model's shapes: a single row with and without barriers, a few
// rows, and a prefill.
func BenchmarkLinear(b *testing.B) {
	dev := benchDevice(b)
	for _, s := range slices.Concat(llama1B, llama8B) {
		for _, m := range []int{1, 4, 16, 64, 512} {
			for _, apart := range []bool{false, true} {
				if apart && m > 1 {
					continue
				}
				b.Run(fmt.Sprintf("K%d/N%d/M%d/%s", s[0], s[1], m, placed(apart)), func(b *testing.B) {
					if m > 64 && s[1] > 100000 {
						b.Skip("a prefill needs the logits of one row")
					}
					x := newBench(b, dev, modelsLinear(s[0], s[1], m, weight.Q4_0), apart)
					defer x.release()
					x.run(b)
				})
			}
		}
	}
}

// BenchmarkLinearTiles measures the tile routes of a prefill in turns. It also measures multiplications in
// registers only, which are the upper bound of their speed.
func BenchmarkLinearTiles(b *testing.B) {
	dev := benchDevice(b)
	for _, s := range [][2]int{
		{2048, 2048},
		{2048, 512},
		{2048, 3072},
		{2048, 8192},
		{8192, 2048},
		{4096, 4096},
		{4096, 1024},
		{4096, 14336},
		{14336, 4096},
	} {
		for _, m := range []int{64, 128, 256, 512, 2048} {
			b.Run(fmt.Sprintf("K%d/N%d/M%d", s[0], s[1], m), func(b *testing.B) {
				turns := []*bench{newFMABench(b, dev)}
				names := []string{"fma"}
				for _, route := range routesByTiles(dev.Info().Limits, s[0], s[1], m) {
					turns = append(turns, newBench(b, dev, byRoute(s[0], s[1], m, route), false))
					names = append(names, route)
				}
				times := make([][]uint64, len(turns))
				for _, x := range turns {
					defer x.release()
					x.warm(b)
				}
				for b.Loop() {
					for i, x := range turns {
						times[i] = append(times[i], x.once(b))
					}
				}
				for i, x := range turns {
					b.ReportMetric(float64(x.flops)/x.median(times[i])/1e3, names[i]+"-TFLOP/s")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// routesByTiles returns the tile routes that a product of m rows of x can use.
func routesByTiles(limits gpu.Limits, k, n, m int) (names []string) {
	product := linear{w: noiseMatrix("w", n, k, weight.Q4_0), bias: graph.None, residual: graph.None}
	product.plan(&limits)
	able := product.Routes.Allowed(m)
	for i, route := range product.Routes {
		if product.shapes[i].tile > 0 && able>>i&1 == 1 {
			names = append(names, route.Name)
		}
	}
	return names
}

// byRoute builds the product of BenchmarkLinearTiles on the given route.
func byRoute(k, n, m int, route string) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		b.AskRoutes(map[string]string{weight.Q4_0.KindName("linear"): route})
		linearOf(k, n, m, weight.Q4_0)(b)
	}
}

// newFMABench prepares the kernel that measures a device's FLOP rate. It takes about 8 ms on a large GPU.
func newFMABench(b *testing.B, dev gpu.Device) *bench {
	c, err := kind.Ceilings()
	if err != nil {
		b.Fatal(err)
	}
	const rounds, groups = 2000, 4096
	x := &bench{dev: dev, copies: 1}
	x.readyStamps(b)
	x.flops = rounds * groups * int64(c.FMA.WorkgroupSize[0]) * int64(c.FlopsPerRound)
	run := benchRun{pipeline: x.compile(b, c.FMA), grid: grid.Grid{X: groups, Y: 1, Z: 1}}
	params := x.buffer(b, 16, gpu.Uniform)
	data := binary.LittleEndian.AppendUint32(nil, rounds) // rounds of 0 * sum + 0, which is never 1
	data = binary.LittleEndian.AppendUint32(append(data, make([]byte, 8)...), math.Float32bits(1))
	if err := dev.Write(params, 0, data); err != nil {
		b.Fatal(err)
	}
	x.bind(b, run, c.FMA, gpu.Binding{Buffer: x.buffer(b, 256, gpu.Storage)}, gpu.Binding{Buffer: params})
	return x
}

// BenchmarkLinearFormats measures products with weights in each format: a single row with and without
// barriers, a few rows, and a prefill.
func BenchmarkLinearFormats(b *testing.B) {
	dev := benchDevice(b)
	for _, f := range weight.Formats {
		if f.File == "" {
			continue
		}
		for _, s := range []struct {
			k, n, m int
			apart   bool
		}{
			{4096, 4096, 1, false},
			{4096, 4096, 1, true},
			{4096, 14336, 1, false},
			{4096, 14336, 1, true},
			{14336, 4096, 1, false},
			{14336, 4096, 1, true},
			{4096, 4096, 4, false},
			{4096, 4096, 512, false},
		} {
			name := fmt.Sprintf("%s/K%d/N%d/M%d/%s", f.File, s.k, s.n, s.m, placed(s.apart))
			b.Run(name, func(b *testing.B) {
				x := newBench(b, dev, modelsLinear(s.k, s.n, s.m, f), s.apart)
				defer x.release()
				x.run(b)
			})
		}
	}
}

// BenchmarkPack measures the conversion of a matrix from a file's blocks to the layout on the device.
func BenchmarkPack(b *testing.B) {
	for _, f := range weight.Formats {
		if f.File == "" {
			continue
		}
		b.Run(f.File, func(b *testing.B) {
			m := noiseMatrix("w", 1024, 1024, f)
			pieces, err := m.Data()
			if err != nil {
				b.Fatal(err)
			}
			m.Data = func() ([][]byte, error) { return pieces, nil }
			b.SetBytes(int64(m.Rows * f.Pieces[0].RowBytes(m.Cols)))
			for b.Loop() {
				for k := range f.Arrays(m.Rows, m.Cols) {
					if _, err := m.PackArray(k, 0, m.Rows); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkLinearTuning measures decode with other tuning parameters than the chosen ones.
func BenchmarkLinearTuning(b *testing.B) {
	dev := benchDevice(b)
	was := tuned
	defer func() { tuned = was }()
	for _, s := range slices.Concat(llama1B, llama8B) {
		for _, rows := range []int{4, 8, 16} {
			for _, lanes := range []int{64, 128, 256} {
				for _, apart := range []bool{false, true} {
					tuned.rows, tuned.lanes = rows, lanes
					b.Run(fmt.Sprintf("K%d/N%d/rows%d/lanes%d/%s", s[0], s[1], rows, lanes,
						placed(apart)), func(b *testing.B) {
						x := newBench(b, dev, modelsLinear(s[0], s[1], 1, weight.Q4_0), apart)
						defer x.release()
						x.run(b)
					})
				}
			}
		}
	}
}
