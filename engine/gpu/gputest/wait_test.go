package gputest

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"gpuscope/engine/gpu"
)

// slowSource counts its workgroups, each of which takes some time. (llvmpipe ends any loop after 65,535
// iterations.)
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

// The native library's own wait gives up after 5 s and frees what the device still uses. Wait must not give
// up.
func TestWaitIsForAsLongAsItTakes(t *testing.T) {
	dev := Open(t)
	if dev.Info().Type != gpu.CPU || os.Getenv("GPUSCOPE_LARGE") == "" {
		t.Skip("takes 7 s on a software device: set GPUSCOPE_LARGE=1")
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

// If a wait for the whole device saw the end of a recording, a wait for that recording must return at once
// and not wait for later submits. It once did wait: it then also saw the end of the next recording, whose own
// wait was late in the same way, and so on. The GPU was then never given a step ahead.
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
	const nothing = len(backs) // copies nothing out
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
			t.Errorf("%s: waited %v, the next recording took %v", what, waited, took)
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
