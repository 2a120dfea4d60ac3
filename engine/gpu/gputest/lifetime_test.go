package gputest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
)

// residentBytes returns the resident memory of this process. It skips the test if the system does not report
// it.
func residentBytes(t *testing.T) int {
	t.Helper()
	runtime.GC()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("needs /proc/self/statm")
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// growthRounds is the number of rounds in which memory must grow for the test to fail.
const growthRounds = 3

// grows fails the test if resident memory grows by more than allowed in each round of the given number of
// calls. Allocators request more memory once in a while, but a leak grows in every round.
func grows(t *testing.T, allowed int, what string, times int, run func()) {
	t.Helper()
	resident := []int{residentBytes(t) >> 10}
	for round := range growthRounds {
		for range times {
			run()
		}
		resident = append(resident, residentBytes(t)>>10)
		if resident[round+1]-resident[round] <= allowed>>10 {
			return
		}
	}
	t.Errorf("%d %s: resident memory was %d KiB", times, what, resident)
}

func TestNothingIsLeft(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p := k.increment()
		b, u, r := k.buffer("b", 16), k.uniform("u", 16), k.readback("r", 16)
		g := k.group(p, gpu.Binding{Buffer: b})
		objects := []interface{ Release() }{p, b, u, r, g}
		want := 5
		if dev.Info().Timestamps {
			objects, want = append(objects, got[gpu.Timestamps](k)(dev.NewTimestamps(5000))), 6
		}
		if n := dev.Live().Total(); n != want {
			t.Errorf("%d live objects, want %d", n, want)
		}
		for _, o := range objects {
			o.Release()
		}
		if live := dev.Live(); live.Total() != 0 {
			t.Errorf("live objects after their release: %+v", live)
		}
	})
}

// A device releases everything, including threads and file descriptors, even if it still has objects and
// submitted work.
func TestOpenAndCloseManyTimes(t *testing.T) {
	run := func() {
		dev := Open(t)
		k := kit{t, dev.(device)}
		p, b, r := k.increment(), k.buffer("b", 1<<20), k.readback("r", 1<<20)
		g := k.group(p, gpu.Binding{Buffer: b})
		enc := k.begin()
		k.pass(enc, p, g, 1024, 1, 1)
		k.must(enc.CopyOut(b, 0, r, 0, 1<<20), enc.Submit())
		if dev.Info().Timestamps {
			got[gpu.Timestamps](k)(dev.NewTimestamps(10))
		}
		dev.Release()
	}
	for range 4 {
		run()
	}
	descriptors := openFiles(t)
	grows(t, 24<<20, "devices", 20, run) // its buffers alone would be 40 MiB
	if n := openFiles(t); n != descriptors {
		t.Errorf("%d open descriptors, %d before", n, descriptors)
	}
}

// If all devices shared one instance of the library, this order of releases would abort the process.
func TestDevicesAreReleasedInAnyOrder(t *testing.T) {
	work := func(dev gpu.Device) {
		k := kit{t, dev.(device)}
		b := k.buffer("b", 16)
		enc := k.begin()
		k.pass(enc, k.increment(), k.group(k.increment(), gpu.Binding{Buffer: b}), 1, 1, 1)
		k.must(enc.Submit(), dev.Wait())
	}
	for range 3 {
		a, b := Open(t), Open(t)
		work(a)
		work(b)
		a.Release()
		c := Open(t)
		work(c)
		work(b)
		b.Release()
		d := Open(t)
		work(d)
		work(c)
		d.Release()
		c.Release()
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc/self/fd")
	}
	return len(list)
}

// A step with params, passes, timestamps and a readback does not leak memory.
func TestThousandsOfStepsInConstantMemory(t *testing.T) {
	dev := Open(t)
	k := kit{t, dev.(device)}
	p := k.add()
	a, b, c, u := k.buffer("a", 4096), k.buffer("b", 4096), k.buffer("c", 4096), k.uniform("u", 256)
	g := k.group(p, gpu.Binding{Buffer: a}, gpu.Binding{Buffer: b}, gpu.Binding{Buffer: c},
		gpu.Binding{Buffer: u})
	r := k.readback("r", 64)
	var ts gpu.Timestamps
	if dev.Info().Timestamps {
		ts = got[gpu.Timestamps](k)(dev.NewTimestamps(6))
	}
	params, out, ticks := words(1024, 0), make([]byte, 64), make([]uint64, 6)
	step := func() {
		k.must(dev.Write(u, 0, params), dev.Write(a, 0, out))
		enc := k.begin()
		for i := range 3 {
			if ts != nil {
				k.must(enc.Timestamp(ts, 2*i))
			}
			k.pass(enc, p, g, 16, 1, 1)
			if ts != nil {
				k.must(enc.Timestamp(ts, 2*i+1))
			}
		}
		if ts != nil {
			k.must(enc.Resolve(ts, 6))
		}
		k.must(enc.CopyOut(c, 0, r, 0, 64), enc.Submit(), dev.Wait(), r.Read(out, 0))
		if ts != nil {
			k.must(ts.Read(ticks))
		}
	}
	for range 300 {
		step()
	}
	grows(t, 1<<20, "steps", 3000, step)
	if n := testing.AllocsPerRun(50, step); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// Steps in flight do not leak memory either: the next step is submitted before the previous one is waited
// for.
func TestThousandsOfRecordingsInConstantMemory(t *testing.T) {
	dev := Open(t)
	k := kit{t, dev.(device)}
	p := k.add()
	a, b, c, u := k.buffer("a", 4096), k.buffer("b", 4096), k.buffer("c", 4096), k.uniform("u", 256)
	g := k.group(p, gpu.Binding{Buffer: a}, gpu.Binding{Buffer: b}, gpu.Binding{Buffer: c},
		gpu.Binding{Buffer: u})
	read := [2]gpu.Readback{k.readback("r0", 64), k.readback("r1", 64)}
	params, out := words(1024, 0), make([]byte, 64)
	var before gpu.Recording
	n := 0
	step := func() {
		k.must(dev.Write(u, 0, params))
		enc := k.begin()
		k.pass(enc, p, g, 16, 1, 1)
		k.must(enc.CopyOut(c, 0, read[n%2], 0, 64))
		r, err := enc.Finish()
		k.must(err, r.Submit())
		if before != nil {
			k.must(before.Wait(), read[(n+1)%2].Read(out, 0))
		}
		before, n = r, n+1
	}
	for range 300 {
		step()
	}
	grows(t, 1<<20, "recordings", 3000, step)
	if n := testing.AllocsPerRun(50, step); n > 0 {
		t.Errorf("%v allocations a recording", n)
	}
	k.must(before.Wait())
}

// Operators that switch routes create and release bind groups repeatedly.
func TestObjectsMadeAndReleasedInConstantMemory(t *testing.T) {
	dev := Open(t)
	k := kit{t, dev.(device)}
	p := k.increment()
	make1 := func() {
		b := k.buffer("b", 4096)
		g := k.group(p, gpu.Binding{Buffer: b})
		enc := k.begin()
		k.pass(enc, p, g, 1, 1, 1)
		k.must(enc.Submit(), dev.Wait())
		g.Release()
		b.Release()
	}
	for range 200 {
		make1()
	}
	grows(t, 2<<20, "buffers", 2000, make1)
}

// Written data is staged in memory of the same size. Staging memory must not pile up while a model's weights
// are written without a submit.
func TestUploadStaysWithinItsStagingMemory(t *testing.T) {
	dev := Open(t)
	k := kit{t, dev.(device)}
	const size = 32 << 20
	b := k.buffer("weights", size)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	write := func() { k.must(dev.Write(b, 0, data)) }
	for range 4 {
		write()
	}
	grows(t, 96<<20, "writes of 32 MiB", 16, write)
}
