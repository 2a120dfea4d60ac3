package ops

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/x448/float16"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
)

// trial is a graph of one operator (or a few) and how to test it. Inputs are identified by name.
type trial struct {
	name string
	// build adds the inputs and the operator, and makes its results graph outputs.
	build func(b *graph.Builder)
	// steps are live points, run in order: the dims of each tensor input, and each SymInt as a list of one.
	steps []step
	// below bounds integer inputs: values are 0 to below-1. An input without an entry gets -1000 to 1000.
	below map[string]int
	// fill gives the elements of an input. The elements of other inputs are random.
	fill map[string]func(i int) float64
	// Routes forces routes, as in graph.LiveOptions.
	Routes map[string]string
	// maxBinding replaces the device's limit on a storage binding if it is not 0, so that small tables are
	// split too.
	maxBinding uint64
	// flushes selects the kernels for a device that flushes subnormal f16 values to 0.
	flushes bool
	// state fills every State with random elements at the start. Otherwise they are zero.
	state bool
	// A result passes if it is within abs or within rel of the reference. If they are 0, they are 1e-4 and
	// 1e-3.
	abs, rel float64
	// maxWorkgroups replaces the device's limit in each dimension if it is not 0, so that small grids are
	// folded too.
	maxWorkgroups uint32
	// static runs every live shape on the grids of the largest corner.
	static bool
	order  graph.Order
}

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// step is a live point: dims of inputs and values of SymInts, by name.
type step map[string][]int

// input returns the StepInput of a live point.
func (c *trial) input(t failer, g *graph.Graph, s step) *graph.StepInput {
	in := &graph.StepInput{Read: g.Outputs()}
	for _, v := range g.Inputs() {
		info := g.Value(v)
		at, ok := s[info.Name]
		switch {
		case !ok:
			t.Fatalf("step %v has no input %s", s, info.Name)
		case info.SymInt:
			in.SymInts = append(in.SymInts, graph.SymIntValue{Value: v, Int: int64(at[0])})
		default:
			in.Inputs = append(in.Inputs, c.tensor(v, info, at))
		}
	}
	return in
}

func (c *trial) tensor(v graph.ValueID, info graph.ValueInfo, dims []int) graph.InputData {
	d := graph.InputData{Value: v, Dims: dims}
	for i := range shape.Product(dims) {
		x := noise(info.Name, i)
		if f := c.fill[info.Name]; f != nil {
			x = f(i)
		}
		if info.DType == graph.F32 {
			d.Data = binary.LittleEndian.AppendUint32(d.Data, math.Float32bits(float32(x)))
			continue
		}
		if c.fill[info.Name] == nil {
			if n, ok := c.below[info.Name]; ok {
				x = math.Floor((x + 2) / 4 * float64(n))
			} else {
				x = math.Floor(x * 500)
			}
		}
		d.Data = binary.LittleEndian.AppendUint32(d.Data, uint32(int32(x)))
		d.Host = append(d.Host, int64(x))
	}
	return d
}

// noise returns a number from -2 to 2 that depends only on name and index.
func noise(name string, i int) float64 { return noiseOf(name)(i) }

// noiseOf returns noise for one name. It hashes the name only once.
func noiseOf(name string) func(i int) float64 {
	seed := uint64(0xcbf29ce484222325)
	for _, b := range []byte(name) { // FNV-1a
		seed = (seed ^ uint64(b)) * 0x100000001b3
	}
	return func(i int) float64 {
		z := seed + uint64(i)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return float64((z^z>>31)>>11)/(1<<53)*4 - 2
	}
}

// constant adds an f32 constant filled with noise.
func constant(b *graph.Builder, name string, dims ...int) graph.ValueID {
	return scaledConstant(b, 1, name, dims...)
}

// scaledConstant adds a constant of noise times a factor.
func scaledConstant(b *graph.Builder, by float64, name string, dims ...int) graph.ValueID {
	return b.Constant(name, graph.F32, dims, func() ([]byte, error) {
		list := make([]float32, shape.Product(dims))
		for i := range list {
			list[i] = float32(by * noise(name, i))
		}
		return float32Bytes(list), nil
	})
}

// few returns how many of n random cases a test tries on a device: with -short a tenth, but at least two.
// Each case compiles its own kernels, and on a software device that takes most of a test's time.
func few(n int) int {
	if testing.Short() {
		return max(2, n/10)
	}
	return n
}

// dealt returns the cases of a list that a test tries for its i-th subject: all of them, or with -short one.
// Consecutive subjects get consecutive cases, so that together they cover the list.
func dealt[T any](i int, all []T) []T {
	if testing.Short() {
		i %= len(all)
		return all[i : i+1]
	}
	return all
}

// poison is a NaN that no kernel computes: an element that still has it was not written.
const poison = 0x7fc0dead

// hold runs trials on the GPU, each as a subtest.
func hold(t *testing.T, trials ...*trial) {
	dev := gputest.Open(t)
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) { c.run(t, dev) })
	}
}

// holdLarge is hold for trials of more than 0.3 GMAC or 128 MiB. Each trial is skipped if GPUSCOPE_LARGE is
// not set.
func holdLarge(t *testing.T, trials ...*trial) {
	if os.Getenv("GPUSCOPE_LARGE") != "" {
		hold(t, trials...)
		return
	}
	for _, c := range trials {
		t.Run(c.name,
			func(t *testing.T) { t.Skip("large: needs a real GPU and GPUSCOPE_LARGE (make test-large)") })
	}
}

// run runs the graph on the GPU: each step three times, then all steps in reverse order, so that the graph
// grows and shrinks. Every result must match the reference, and the three runs must match each other. Nothing
// may be written past the live elements.
func (c *trial) run(t *testing.T, dev gpu.Device) {
	limits := dev.Info().Limits
	if c.maxBinding > 0 {
		limits.MaxStorageBinding = c.maxBinding
	}
	if c.maxWorkgroups > 0 {
		limits.MaxWorkgroups = c.maxWorkgroups
	}
	limits.FlushesHalves = limits.FlushesHalves || c.flushes
	b := graph.NewBuilder(limits)
	b.AskRoutes(c.Routes)
	c.build(b)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Load(dev, g, graph.LiveOptions{Static: c.static, Order: c.order}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	ref := reference.NewInterpreter(g)
	if c.state {
		fillState(t, x, ref)
	}
	back := slices.Clone(c.steps)
	slices.Reverse(back)
	for i, s := range slices.Concat(c.steps, back) {
		in := c.input(t, g, s)
		var first [][]byte
		for run := range 3 {
			got, err := runPoisoned(x, g, in)
			if err != nil {
				t.Fatalf("step %d %v, run %d: %v", i, s, run, err)
			}
			if run == 0 {
				first = got
				if err := ref.Step(in, nil); err != nil {
					t.Fatalf("step %d %v: %v", i, s, err)
				}
				for j, v := range g.Outputs() {
					if err := c.compare(g.Value(v), x.Live().Dims(v), got[j], ref.Tensor(v)); err != nil {
						t.Errorf("step %d %v: %v", i, s, err)
					}
					if g.NumOps() == 1 {
						tolerance := ref.Tolerance(0, v)
						if err := tolerates(&tolerance, g.Value(v), got[j], ref.Tensor(v)); err != nil {
							t.Errorf("step %d %v: %v", i, s, err)
						}
					}
				}
			} else if !slices.EqualFunc(first, got, bytes.Equal) {
				t.Errorf("step %d %v: run %d differs from the first", i, s, run)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// fillState fills State with random elements, the same on the device and in the reference.
func fillState(t *testing.T, x *engine.Executor, ref *reference.Interpreter) {
	g := x.Graph()
	for i := range g.NumValues() {
		v := graph.ValueID(i)
		info := g.Value(v)
		if info.Role != graph.State {
			continue
		}
		start := reference.Zeros(info.MaxDims...)
		var data []byte
		for j := range start.Data {
			if half := float16.Fromfloat32(float32(noise(info.Name, j))); info.DType == graph.F16 {
				data = binary.LittleEndian.AppendUint16(data, half.Bits())
				start.Data[j] = float64(half.Float32())
			} else {
				start.Data[j] = float64(float32(noise(info.Name, j)))
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(start.Data[j])))
			}
		}
		if err := x.WriteValue(v, data); err != nil {
			t.Fatal(err)
		}
		ref.SetTensor(v, start)
	}
}

// runPoisoned fills the outputs with poison, runs a step, and returns the whole memory of the outputs.
func runPoisoned(x *engine.Executor, g *graph.Graph, in *graph.StepInput) ([][]byte, error) {
	var all [][]byte
	for _, v := range g.Outputs() {
		info := g.Value(v)
		mem := make([]byte, info.DType.Bytes(shape.Product(info.MaxDims)))
		for i := 0; i < len(mem); i += 4 {
			binary.LittleEndian.PutUint32(mem[i:], poison)
		}
		if err := x.WriteValue(v, mem); err != nil {
			return nil, err
		}
		all = append(all, mem)
	}
	if err := x.Step(context.Background(), in, engine.TimingOff); err != nil {
		return nil, err
	}
	for i, v := range g.Outputs() {
		if err := x.ReadValue(v, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// compare checks an output's memory: the live elements against the reference, the rest against the poison.
func (c *trial) compare(info graph.ValueInfo, dims []int, mem []byte, want reference.Tensor) error {
	if !slices.Equal(dims, want.Dims) {
		return fmt.Errorf("%s: planned dims %v, the reference has %v", info.Name, dims, want.Dims)
	}
	absLimit, relLimit := c.abs, c.rel
	if absLimit == 0 {
		absLimit = 1e-4
	}
	if relLimit == 0 {
		relLimit = 1e-3
	}
	var maxAbs, maxRel float64
	var absAt, relAt, bad int
	firstBad := -1
	for i := 0; 4*i < len(mem); i++ {
		bits := binary.LittleEndian.Uint32(mem[4*i:])
		if i >= len(want.Data) {
			if bits != poison {
				return fmt.Errorf("%s %v: element %d past the live %d was written: %#x", info.Name, dims, i,
					len(want.Data), bits)
			}
			continue
		}
		if bits == poison {
			return fmt.Errorf("%s %v: element %d was not written", info.Name, dims, i)
		}
		got := float64(math.Float32frombits(bits))
		if info.DType != graph.F32 {
			got = float64(int32(bits))
		}
		expected := want.Data[i]
		if info.DType == graph.F32 {
			expected = float64(float32(expected)) // values beyond the range of f32 are infinite
		}
		if got == expected || math.IsNaN(got) && math.IsNaN(expected) {
			continue
		}
		gap := math.Abs(got - expected)
		rel := gap / max(math.Abs(expected), 1e-6)
		if info.DType == graph.F32 && (gap <= absLimit || rel <= relLimit) {
			continue
		}
		if bad++; firstBad < 0 {
			firstBad = i
		}
		if !(gap <= maxAbs) {
			maxAbs, absAt = gap, i
		}
		if !(rel <= maxRel) {
			maxRel, relAt = rel, i
		}
	}
	if bad > 0 {
		got := math.Float32frombits(binary.LittleEndian.Uint32(mem[4*firstBad:]))
		return fmt.Errorf("%s %v: %d of %d elements differ, first %d (got %v, want %v); max abs %.3g at %d, max rel %.3g at %d",
			info.Name, dims, bad, len(want.Data), firstBad, got, want.Data[firstBad], maxAbs, absAt, maxRel,
			relAt)
	}
	return nil
}

// tolerates checks an operator's output against the tolerance that the operator declares.
func tolerates(tolerance *reference.Tolerance, info graph.ValueInfo, mem []byte,
	want reference.Tensor,
) error {
	got, err := reference.Decode(info.DType, mem, len(want.Data))
	if err != nil {
		return err
	}
	row := 0.0
	for i := range want.Data {
		w := want.Data[i]
		if i%shape.Last(want.Dims) == 0 {
			row = reference.Largest(want.Row(i / shape.Last(want.Dims)))
		}
		if info.DType == graph.F32 {
			w = float64(float32(w))
		}
		if got[i] == w || math.IsNaN(got[i]) && math.IsNaN(w) {
			continue
		}
		if off, most := math.Abs(got[i]-w), tolerance.At(w, row); !(off <= most) {
			return fmt.Errorf("%s %v: element %d is %v, want %v: %.2g times its tolerance, %s", info.Name,
				want.Dims, i, got[i], w, off/most, tolerance)
		}
	}
	return nil
}

// tinyBuilder returns a builder for a device with default limits.
func tinyBuilder() *graph.Builder { return graph.NewBuilder(gpu.DefaultLimits()) }

// float32Bytes encodes floats as the device stores them.
func float32Bytes(list []float32) []byte {
	data := make([]byte, 0, 4*len(list))
	for _, f := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}
