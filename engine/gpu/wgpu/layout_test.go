//go:build cgo

package wgpu

import (
	"fmt"
	"testing"

	"gpuscope/engine/gpu"
)

// Kernels with the same bindings may have params of different sizes and run one after another in a pass.
func TestPipelinesOfOneLayoutKeepTheirOwnSizes(t *testing.T) {
	dev := openAny(t)
	const source = `
struct Params { %s }
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(1) fn main() { x[0] = x[0] + params.a; }`
	x, err := dev.NewBuffer("x", 16, gpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	params, err := dev.NewBuffer("params", 512, gpu.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := dev.Begin("step")
	if err != nil {
		t.Fatal(err)
	}
	if err := enc.BeginPass("pass"); err != nil {
		t.Fatal(err)
	}
	for i, fields := range []string{
		"a: u32, b: u32, c: u32, d: u32, e: u32, f: u32",
		"a: u32, b: u32, c: u32, d: u32",
	} {
		p, err := dev.NewPipeline(gpu.PipelineDesc{
			Label: fields, Source: fmt.Sprintf(source, fields),
			Bindings: []gpu.Access{gpu.ReadWrite, gpu.Params},
		})
		if err != nil {
			t.Fatal(err)
		}
		g, err := dev.NewBindGroup(fields, p,
			[]gpu.Binding{{Buffer: x}, {Buffer: params, Offset: uint64(256 * i), Size: uint64(32 - 16*i)}})
		if err != nil {
			t.Fatal(err)
		}
		enc.Dispatch(p, g, 1, 1, 1)
	}
	if err := enc.EndPass(); err != nil {
		t.Fatal(err)
	}
	if err := enc.Submit(); err != nil {
		t.Fatal(err)
	}
	if err := dev.Wait(); err != nil {
		t.Error(err)
	}
}
