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

func (k kit) slow() gpu.Pipeline {
	k.Helper()
	desc := gpu.PipelineDesc{Label: "slow", Source: slowSource, Bindings: []gpu.Access{gpu.ReadWrite}}
	return got[gpu.Pipeline](k)(k.dev.NewPipeline(desc))
}

// The library's own wait gives up after 5 s, and frees what the device is still at.
func TestWaitIsForAsLongAsItTakes(t *testing.T) {
	dev := Open(t)
	if dev.Info().Type != gpu.CPU || os.Getenv("GPUSCOPE_LARGE") == "" {
		t.Skip("large: takes 7 s of a software device, and GPUSCOPE_LARGE")
	}
	k := kit{t, dev.(device)}
	p, y, back := k.slow(), k.buffer("y", 8), k.readback("y", 8)
	group := k.group(p, gpu.Binding{Buffer: y})
	total := uint32(0)
	run := func(workgroups uint32) time.Duration {
		enc := k.begin()
		k.pass(enc, p, group, workgroups, 1, 1)
		k.must(enc.CopyOut(y, 0, back, 0, 8))
		start := time.Now()
		k.must(enc.Submit(), dev.Wait())
		took := time.Since(start)
		var data [8]byte
		k.must(back.Read(data[:], 0))
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

// A recording whose end was seen by who waited for the whole device is over: to wait for it is not to wait
// for what was submitted since. It once was, and that wait saw the end of the next recording too, whose own
// wait was late in the same way, and so on: the GPU was never given a step ahead again.
func TestEndedRecordingIsNotWaitedFor(t *testing.T) {
	dev := Open(t)
	k := kit{t, dev.(device)}
	p, y := k.slow(), k.buffer("y", 8)
	group := k.group(p, gpu.Binding{Buffer: y})
	backs := [2]gpu.Readback{k.readback("y0", 8), k.readback("y1", 8)}
	record := func(i int, groups uint32) gpu.Recording {
		enc := k.begin()
		k.pass(enc, p, group, groups, 1, 1)
		if i < len(backs) {
			k.must(enc.CopyOut(y, 0, backs[i], 0, 8))
		}
		return got[gpu.Recording](k)(enc.Finish())
	}
	const nothing = len(backs) // is copied out
	compiles := record(0, 1)
	k.must(compiles.Submit(), compiles.Wait())
	behind := func(what string, over gpu.Recording) {
		t.Helper()
		next := record(1, 40)
		k.must(next.Submit())
		begin := time.Now()
		k.must(over.Wait())
		waited := time.Since(begin)
		k.must(next.Wait())
		if took := time.Since(begin); waited > took/4 {
			t.Errorf("%s: waited %v of %v that the next one took", what, waited, took)
		}
	}
	for what, copied := range map[string]int{"something is copied out": 0, "nothing is copied out": nothing} {
		over := record(copied, 1)
		k.must(over.Submit(), dev.Wait())
		behind(what, over)
	}
	over, last := record(nothing, 1), record(0, 1)
	k.must(over.Submit(), last.Submit(), last.Wait())
	behind("who waited was for a later one", over)
}
