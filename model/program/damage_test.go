package program_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
)

// A damaged program is an error or runs. The device computes nothing, so only the host's part is tested.
func TestDamagedProgramsAreRefusedOrRun(t *testing.T) {
	dir := sharedPrograms(t)
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.pte"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d programs, %v", len(paths), err)
	}
	times := 40
	if testing.Short() {
		times = 4
	}
	dev := fake.New(fake.Options{NoLog: true})
	random := rand.New(rand.NewPCG(1, 2))
	built := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			damaged := append([]byte{}, data...)
			for range 1 + random.IntN(3) {
				damaged[random.IntN(min(len(damaged), 4096))] ^= byte(1 << random.IntN(8))
			}
			if runDamaged(t.Context(), dev, damaged) {
				built++
			}
		}
	}
	if built == 0 {
		t.Error("no damaged program was built")
	}
}

// runDamaged runs a program with inputs of the largest shapes, and returns whether it could be built.
func runDamaged(ctx context.Context, dev *fake.Device, data []byte) bool {
	f, err := pte.Parse(data, "damaged")
	if err != nil {
		return false
	}
	m, err := program.Build(f, "forward", dev.Info().Limits, program.Options{})
	if err != nil {
		return false
	}
	for i := range m.Graph.NumValues() {
		if graph.Numel(m.Graph.Value(graph.ValueID(i)).MaxDims) > 1<<22 {
			return true // too large to load in a test
		}
	}
	run, err := program.Load(dev, m)
	if err != nil {
		return true
	}
	defer run.Release()
	method, err := f.Method("forward")
	if err != nil {
		return true
	}
	var inputs []*npy.Array
	for _, id := range method.Inputs {
		a := &npy.Array{Type: npy.Float32}
		if t, ok := method.Values[id].(*pte.Tensor); ok {
			if t.Type == pte.Int64 {
				a.Type = npy.Int64
			}
			if graph.Numel(t.Sizes) > 1<<22 {
				return true
			}
			a.Dims = t.Sizes
			a.Data = make([]byte, graph.Numel(t.Sizes)*a.Type.Size())
		}
		inputs = append(inputs, a)
	}
	_, _ = run.Run(ctx, inputs)
	return true
}
