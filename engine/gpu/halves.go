package gpu

import (
	"encoding/binary"
	"errors"
	"math"
)

// FlushesHalves runs a kernel to find out whether unpack2x16float returns 0 for subnormal f16 numbers. WGSL
// allows both results, and no property of a device tells which one applies.
func FlushesHalves(dev Device) (flushes bool, err error) {
	var made []interface{ Release() }
	keep := func(o interface{ Release() }, e error) {
		if err = errors.Join(err, e); e == nil {
			made = append(made, o)
		}
	}
	defer func() {
		for _, o := range made {
			o.Release()
		}
	}()
	const size = 16
	in, e := dev.NewBuffer("halves", size, Storage)
	keep(in, e)
	out, e := dev.NewBuffer("floats", size, Storage)
	keep(out, e)
	back, e := dev.NewReadback("floats", size)
	keep(back, e)
	pipeline, e := dev.NewPipeline(PipelineDesc{
		Label: "flushes_halves", Source: flushesHalves, Bindings: []Access{Read, ReadWrite},
	})
	keep(pipeline, e)
	if err != nil {
		return false, err
	}
	group, e := dev.NewBindGroup("flushes_halves", pipeline, []Binding{{Buffer: in}, {Buffer: out}})
	if keep(group, e); err != nil {
		return false, err
	}
	if err := dev.Write(in, 0, binary.LittleEndian.AppendUint32(nil, 1)); err != nil {
		return false, err
	}
	enc, err := dev.Begin("flushes_halves")
	if err != nil {
		return false, err
	}
	data := make([]byte, size)
	for _, do := range []func() error{
		func() error { return enc.BeginPass("flushes_halves") },
		func() error { enc.Dispatch(pipeline, group, 1, 1, 1); return enc.EndPass() },
		func() error { return enc.CopyOut(out, 0, back, 0, size) },
		enc.Submit,
		dev.Wait,
		func() error { return back.Read(data, 0) },
	} {
		if err := do(); err != nil {
			return false, err
		}
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data)) != 0x1p-24, nil
}

const flushesHalves = `
@group(0) @binding(0) var<storage, read> halves: array<u32>;
@group(0) @binding(1) var<storage, read_write> floats: array<f32>;

@compute @workgroup_size(1)
fn main() {
  floats[0] = unpack2x16float(halves[0]).x;
}
`
