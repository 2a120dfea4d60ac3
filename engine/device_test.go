package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// touchKernel adds one to each of n words. The result can be checked, and the kernel takes almost no time.
var touchKernel = &graph.Kernel{
	Name: "touch", WorkgroupSize: [3]uint32{64, 1, 1},
	Storage: []graph.Storage{{Name: "x", Elem: "u32"}, {Name: "y", Elem: "u32", Access: gpu.ReadWrite}},
	Params:  []trace.Param{{Name: "n", Type: "u32"}},
	Source: `
struct Params { n: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let i = gid.x + gid.y * groups.x * 64u;
	if (i < params.n) { y[i] = x[i] + 1u; }
}
`,
}

func touch(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "touch", Inputs: []graph.ValueID{in}, Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(touchKernel, in, out)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(in) },
		Plans: func(p *graph.Planner) error {
			n := p.Numel(in)
			p.SetDims(out, n)
			p.Dispatch(0, graphtest.Threads(p, n, 64)).Params.U32("n", n)
			return nil
		},
	})
	return out
}

// touches builds a graph of n touches. They form a chain, in which each waits for the previous one, or are
// independent.
func touches(t testing.TB, limits gpu.Limits, n int, chain bool) (g *graph.Graph, in, out graph.ValueID) {
	b := graph.NewBuilder(limits)
	in = b.Input("x", graph.U32, []int{1}, []int{1000})
	out = in
	for i := range n {
		if from := in; chain {
			out = touch(b, fmt.Sprint("touch", i), out)
		} else {
			out = touch(b, fmt.Sprint("touch", i), from)
		}
	}
	return graphtest.Finish(t, b, out), in, out
}

func TestEngineRunsOnTheDevice(t *testing.T) {
	dev := gputest.Open(t)
	g, in, out := touches(t, dev.Info().Limits, 5, true)
	x, err := Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	x.SetCheck(true)
	for _, n := range []int{1000, 1, 65, 64, 1000} {
		data := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
		}
		for _, level := range []Timing{TimingOff, TimingStep, TimingBlock, TimingDispatch} {
			if err := x.Step(context.Background(),
				&graph.StepInput{
					Inputs: []graph.InputData{{Value: in, Dims: []int{n}, Data: data}},
					Read:   []graph.ValueID{out},
				}, level); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 4*n)
			if _, err := x.Output(out, got); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if v := binary.LittleEndian.Uint32(got[4*i:]); v != uint32(i+5) {
					t.Fatalf("%d elements at %v: element %d is %d, want %d", n, level, i, v, i+5)
				}
			}
		}
	}
}

// BenchmarkLevels shows what a barrier costs: 64 dispatches in a chain have 64 levels, 64 independent ones
// have one.
func BenchmarkLevels(b *testing.B) {
	for name, chain := range map[string]bool{"chain": true, "row": false} {
		b.Run(name, func(b *testing.B) {
			dev := gputest.Open(b)
			const n = 64
			g, in, out := touches(b, dev.Info().Limits, n, chain)
			x, err := Load(dev, g, graph.LiveOptions{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer x.Release()
			step := &graph.StepInput{
				Inputs: []graph.InputData{{Value: in, Dims: []int{1000}, Data: make([]byte, 4000)}},
				Read:   []graph.ValueID{out},
			}
			run := func() {
				if err := x.Step(context.Background(), step, TimingStep); err != nil {
					b.Fatal(err)
				}
			}
			for range 200 {
				run()
			}
			var ticks uint64
			for b.Loop() {
				run()
				ticks += x.last.ticks[1] - x.last.ticks[0]
			}
			b.ReportMetric(float64(ticks)*x.clock.Scale.NsPerTick/float64(b.N)/n, "gpu-ns/dispatch")
			b.ReportMetric(float64(len(x.live.Levels())), "levels")
		})
	}
}
