package gputest

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/rules"
)

// device is what the suite needs from a driver's device in addition to the interface.
type device interface {
	gpu.Device
	Live() rules.Live
}

// onEveryDriver runs a test on the fake driver and on the adapter of this machine.
func onEveryDriver(t *testing.T, test func(t *testing.T, dev device)) {
	t.Run("fake", func(t *testing.T) {
		dev := fake.New(fake.Options{})
		dev.OnDispatch = compute
		test(t, dev)
	})
	t.Run("wgpu", func(t *testing.T) { test(t, Open(t).(device)) })
}

// The kernels of the suite. The function compute does the same on the fake device.
const (
	// addSource computes c = a + scale*b for n elements. Its params block contains n and scale.
	addSource = `
struct Params { n: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = gid.x + gid.y * groups.x * 64u;
  if (i < params.n) { c[i] = a[i] + params.scale * b[i]; }
}`
	// incrementSource adds one to each element in place.
	incrementSource = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1)
fn bump(@builtin(global_invocation_id) gid: vec3<u32>) { x[gid.x] = x[gid.x] + 1u; }`
)

func compute(d fake.Dispatch) {
	u32 := binary.LittleEndian.Uint32
	f32 := func(b []byte) float32 { return math.Float32frombits(u32(b)) }
	switch d.Source {
	case addSource:
		a, b, c, params := d.Bound[0].Bytes, d.Bound[1].Bytes, d.Bound[2].Bytes, d.Bound[3].Bytes
		n := min(u32(params), d.X*d.Y*64)
		for i := 0; i < int(n); i++ {
			binary.LittleEndian.PutUint32(c[4*i:],
				math.Float32bits(f32(a[4*i:])+f32(params[4:])*f32(b[4*i:])))
		}
	case incrementSource:
		x := d.Bound[0].Bytes
		for i := range int(d.X) {
			binary.LittleEndian.PutUint32(x[4*i:], u32(x[4*i:])+1)
		}
	}
}

// kit creates what a test needs on a device, and fails the test on an error.
type kit struct {
	*testing.T
	dev device
}

func (k kit) must(errs ...error) {
	k.Helper()
	for _, err := range errs {
		if err != nil {
			k.Fatal(err)
		}
	}
}

func got[T any](k kit) func(v T, err error) T {
	return func(v T, err error) T {
		k.Helper()
		k.must(err)
		return v
	}
}

func (k kit) buffer(label string, size uint64) gpu.Buffer {
	k.Helper()
	return got[gpu.Buffer](k)(k.dev.NewBuffer(label, size, gpu.Storage))
}

func (k kit) uniform(label string, size uint64) gpu.Buffer {
	k.Helper()
	return got[gpu.Buffer](k)(k.dev.NewBuffer(label, size, gpu.Uniform))
}

func (k kit) readback(label string, size uint64) gpu.Readback {
	k.Helper()
	return got[gpu.Readback](k)(k.dev.NewReadback(label, size))
}

func (k kit) add() gpu.Pipeline {
	k.Helper()
	return got[gpu.Pipeline](k)(k.dev.NewPipeline(gpu.PipelineDesc{
		Label: "add", Source: addSource,
		Bindings: []gpu.Access{gpu.Read, gpu.Read, gpu.ReadWrite, gpu.Params},
	}))
}

func (k kit) increment() gpu.Pipeline {
	k.Helper()
	return got[gpu.Pipeline](k)(k.dev.NewPipeline(gpu.PipelineDesc{
		Label: "increment", Source: incrementSource, Entry: "bump", Bindings: []gpu.Access{gpu.ReadWrite},
	}))
}

func (k kit) group(p gpu.Pipeline, bindings ...gpu.Binding) gpu.BindGroup {
	k.Helper()
	return got[gpu.BindGroup](k)(k.dev.NewBindGroup("group", p, bindings))
}

func (k kit) begin() gpu.Encoder {
	k.Helper()
	return got[gpu.Encoder](k)(k.dev.Begin("test"))
}

// pass runs one dispatch in its own pass.
func (k kit) pass(enc gpu.Encoder, p gpu.Pipeline, g gpu.BindGroup, x, y, z uint32) {
	k.Helper()
	k.must(enc.BeginPass("pass"))
	enc.Dispatch(p, g, x, y, z)
	k.must(enc.EndPass())
}

// read copies a buffer out, waits, and returns its bytes.
func (k kit) read(b gpu.Buffer) []byte {
	k.Helper()
	r := k.readback("read", b.Size())
	defer r.Release()
	enc := k.begin()
	k.must(enc.CopyOut(b, 0, r, 0, b.Size()), enc.Submit(), k.dev.Wait())
	data := make([]byte, b.Size())
	k.must(r.Read(data, 0))
	return data
}

func floats(n int, f func(i int) float32) []byte {
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(f(i)))
	}
	return data
}

func words(values ...uint32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, v)
	}
	return data
}

func TestBufferBytesRoundTrip(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		for _, size := range []uint64{4, 8, 252, 4096, 1<<20 + 4} {
			b := k.buffer("b", size)
			if b.Size() != size {
				t.Fatalf("size %d, want %d", b.Size(), size)
			}
			if data := k.read(b); slices.ContainsFunc(data, func(x byte) bool { return x != 0 }) {
				t.Fatalf("a new buffer of %d bytes is not zero", size)
			}
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 7)
			}
			k.must(dev.Flush(), dev.Write(b, 0, want), dev.Flush(), dev.Write(b, size-4, []byte{1, 2, 3, 4}))
			copy(want[size-4:], []byte{1, 2, 3, 4})
			if !slices.Equal(k.read(b), want) {
				t.Fatalf("%d bytes came back different", size)
			}
			b.Release()
		}
	})
}

func TestWritesLargerThanTheStagingMemoryArriveWhole(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		const size = 66<<20 + 12 // engine/gpu/wgpu must split it and wait
		b := k.buffer("large", size)
		data := make([]byte, size)
		for i := range len(data) / 8 {
			binary.LittleEndian.PutUint64(data[8*i:], uint64(i)*0x9e3779b97f4a7c15)
		}
		enc := k.begin() // an open recording must not block the write
		k.must(dev.Write(b, 0, data))
		enc.Discard()
		if !slices.Equal(k.read(b), data) {
			t.Fatal("the bytes came back different")
		}
	})
}

func TestBytesOfAStructWithPointersAreWritten(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		b := k.buffer("b", 16)
		from := &struct {
			name  *string
			bytes [16]byte
		}{name: new(string)}
		copy(from.bytes[:], words(1, 2, 3, 4))
		k.must(dev.Write(b, 0, from.bytes[:]))
		if data := k.read(b); !slices.Equal(data, words(1, 2, 3, 4)) {
			t.Fatalf("written % x", data)
		}
	})
}

func TestCopyBetweenBuffers(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		a, b := k.buffer("a", 16), k.buffer("b", 16)
		k.must(dev.Write(a, 0, words(1, 2, 3, 4)), dev.Write(b, 0, words(5, 6, 7, 8)))
		enc := k.begin()
		k.must(enc.Copy(a, 4, b, 8, 8), enc.Copy(b, 0, a, 0, 0), enc.Submit())
		if data := k.read(b); !slices.Equal(data, words(5, 6, 2, 3)) {
			t.Fatalf("copied % x", data)
		}
	})
}

func TestVectorAdd(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p := k.add()
		for _, n := range []int{1, 63, 64, 65, 1000, 70000} {
			a, b, c, params := k.buffer("a", uint64(4*n)), k.buffer("b", uint64(4*n)),
				k.buffer("c", uint64(4*n)), k.uniform("params", 16)
			k.must(
				dev.Write(a, 0, floats(n, func(i int) float32 { return float32(i) })),
				dev.Write(b, 0, floats(n, func(i int) float32 { return float32(2*i + 1) })),
				dev.Write(params, 0, words(uint32(n), math.Float32bits(0.5))),
			)
			g := k.group(p, gpu.Binding{Buffer: a}, gpu.Binding{Buffer: b}, gpu.Binding{Buffer: c},
				gpu.Binding{Buffer: params})
			enc := k.begin()
			k.pass(enc, p, g, uint32((n+127)/128), 2, 1)
			k.must(enc.Submit())
			want := floats(n, func(i int) float32 { return float32(i) + 0.5*float32(2*i+1) })
			if !slices.Equal(k.read(c), want) {
				t.Fatalf("n = %d: wrong sum", n)
			}
		}
	})
}

func TestUniformOffsetsReachTheirDispatch(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p := k.add()
		a, b := k.buffer("a", 4), k.buffer("b", 4)
		align := uint64(dev.Info().Limits.UniformAlignment)
		arena := k.uniform("arena", 4*align)
		storage := uint64(dev.Info().Limits.StorageAlignment)
		out := k.buffer("out", 4*storage)
		k.must(dev.Write(a, 0, floats(1, func(int) float32 { return 1 })),
			dev.Write(b, 0, floats(1, func(int) float32 { return 1 })))
		enc := k.begin()
		k.must(enc.BeginPass("four"))
		for i := range uint64(4) {
			k.must(dev.Write(arena, i*align, words(1, math.Float32bits(float32(10*i)))))
			g := k.group(p, gpu.Binding{Buffer: a}, gpu.Binding{Buffer: b},
				gpu.Binding{Buffer: out, Offset: i * storage, Size: 4},
				gpu.Binding{Buffer: arena, Offset: i * align, Size: 8})
			enc.Dispatch(p, g, 1, 1, 1)
		}
		k.must(enc.EndPass(), enc.Submit())
		data := k.read(out)
		for i := range uint64(4) {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(data[i*storage:])); v != float32(1+10*i) {
				t.Errorf("dispatch %d gave %v, want %v", i, v, 1+10*i)
			}
		}
	})
}

func TestDispatchesOfOneRecordingRunInOrder(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p := k.increment()
		x := k.buffer("x", 16)
		g := k.group(p, gpu.Binding{Buffer: x})
		r := k.readback("halfway", 16)
		enc := k.begin()
		k.must(enc.BeginPass("one"))
		for range 10 {
			enc.Dispatch(p, g, 4, 1, 1)
		}
		k.must(enc.EndPass(), enc.CopyOut(x, 0, r, 0, 16))
		for range 5 {
			k.pass(enc, p, g, 2, 1, 1)
		}
		k.must(enc.Submit(), dev.Wait())
		data := make([]byte, 12)
		k.must(r.Read(data, 4))
		if !slices.Equal(data, words(10, 10, 10)) {
			t.Errorf("halfway % x", data)
		}
		if data := k.read(x); !slices.Equal(data, words(15, 15, 10, 10)) {
			t.Errorf("at the end % x", data)
		}
	})
}

func TestTimestampsRise(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		if !dev.Info().Timestamps {
			t.Skip("this adapter has no timestamps")
		}
		k := kit{t, dev}
		p := k.increment()
		g := k.group(p, gpu.Binding{Buffer: k.buffer("x", 4096)})
		const n = 5000 // more than one query set
		ts := got[gpu.Timestamps](k)(dev.NewTimestamps(n))
		for range 2 {
			enc := k.begin()
			for i := range n {
				k.must(enc.Timestamp(ts, i))
				if i == 1 || i == n-2 {
					k.pass(enc, p, g, 1024, 1, 1)
				}
			}
			k.must(enc.Resolve(ts, n), enc.Submit(), dev.Wait())
			ticks := make([]uint64, n)
			k.must(ts.Read(ticks))
			if !slices.IsSorted(ticks) {
				t.Error("the clock runs backwards")
			}
			if ticks[2] <= ticks[1] || ticks[n-1] <= ticks[n-2] {
				t.Errorf("dispatches took %d and %d ticks", ticks[2]-ticks[1], ticks[n-1]-ticks[n-2])
			}
		}
		// Resolve only some of the slots.
		enc := k.begin()
		k.must(enc.Timestamp(ts, 0), enc.Timestamp(ts, 1), enc.Resolve(ts, 2), enc.Submit(), dev.Wait())
		k.must(ts.Read(make([]uint64, 2)))
	})
}

func TestReadbackIsReusedStepAfterStep(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p := k.increment()
		x := k.buffer("x", 4)
		g := k.group(p, gpu.Binding{Buffer: x})
		r := k.readback("r", 8)
		for i := range uint32(20) {
			enc := k.begin()
			k.pass(enc, p, g, 1, 1, 1)
			k.must(enc.CopyOut(x, 0, r, 0, 4), enc.CopyOut(x, 0, r, 4, 4), enc.Submit())
			if i%3 == 0 { // two submits, one wait
				enc := k.begin()
				k.must(enc.CopyOut(x, 0, r, 4, 4), enc.Submit())
			}
			k.must(dev.Wait())
			data := make([]byte, 8)
			k.must(r.Read(data, 0))
			if !slices.Equal(data, words(i+1, i+1)) {
				t.Fatalf("step %d read % x", i, data)
			}
			if i%5 == 0 {
				k.must(dev.Wait(), r.Read(data, 0))
			}
		}
	})
}
