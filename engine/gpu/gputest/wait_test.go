package gputest

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"gpuscope/engine/gpu"
)

// slowSource counts its workgroups, each of which takes its time. (llvmpipe ends any loop after 65,535
// rounds.)
const slowSource = `
@group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
  var x = lane;
  for (var i = 0u; i < 60000u; i++) {
    x = (x * 1664525u + 1013904223u) ^ (x >> 3u);
  }
  if (lane == 0u) {
    atomicAdd(&y[0], 1u);
    atomicMax(&y[1], x);
  }
}
`

// The library's own wait gives up after 5 s, and frees what the device is still at.
func TestWaitIsForAsLongAsItTakes(t *testing.T) {
	dev := Open(t)
	if dev.Info().Type != gpu.CPU || os.Getenv("GPUSCOPE_LARGE") == "" {
		t.Skip("large: takes 7 s of a software device, and GPUSCOPE_LARGE")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := dev.NewPipeline(gpu.PipelineDesc{
		Label: "slow", Source: slowSource,
		Bindings: []gpu.Access{gpu.ReadWrite},
	})
	check(err)
	y, err := dev.NewBuffer("y", 8, gpu.Storage)
	check(err)
	group, err := dev.NewBindGroup("slow", p, []gpu.Binding{{Buffer: y}})
	check(err)
	back, err := dev.NewReadback("y", 8)
	check(err)
	total := uint32(0)
	run := func(workgroups uint32) time.Duration {
		enc, err := dev.Begin("slow")
		check(err)
		check(enc.BeginPass("slow"))
		enc.Dispatch(p, group, workgroups, 1, 1)
		check(enc.EndPass())
		check(enc.CopyOut(y, 0, back, 0, 8))
		start := time.Now()
		check(enc.Submit())
		check(dev.Wait())
		took := time.Since(start)
		var data [8]byte
		check(back.Read(data[:], 0))
		total += workgroups
		if n := binary.LittleEndian.Uint32(data[:]); n != total {
			t.Fatalf("%d workgroups have run after %v, want %d", n, took, total)
		}
		return took
	}
	run(1) // compiles
	each := run(50) / 50
	run(min(uint32(7*time.Second/each), 65535))
}
