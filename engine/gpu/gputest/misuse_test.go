package gputest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
)

// refused fails the test unless err contains all of the parts.
func refused(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: not refused", what)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not contain %q", what, err, part)
		}
	}
}

// refusals compares the messages of refused calls with a golden file. They must be the same on every driver.
type refusals struct {
	golden *wordingtest.Golden
	said   map[string]string // the message of each case
}

func newRefusals(t *testing.T) refusals {
	t.Helper()
	return refusals{wordingtest.New(t), map[string]string{}}
}

// refused fails the test unless err has the message that the case has in the golden file.
func (r refusals) refused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: not refused", what)
		return
	}
	text, ok := r.said[what]
	if !ok {
		r.said[what] = err.Error()
		r.golden.Error(what, err)
	} else if text != err.Error() {
		t.Errorf("%s: the message is %q, and was %q before", what, err, text)
	}
}

func TestWrongSizesAndOffsetsAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		limits := dev.Info().Limits
		over := limits.MaxBufferSize + 4 - limits.MaxBufferSize%4
		for _, size := range []uint64{0, 1, 6, over, 1 << 63} {
			_, err := dev.NewBuffer("odd", size, gpu.Storage)
			refused(t, "buffer", err, "buffer odd", "bytes")
			_, err = dev.NewReadback("odd", size)
			refused(t, "readback", err, "readback odd", "bytes")
		}
		_, err := dev.NewBuffer("large", over, gpu.Storage)
		if !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("a buffer over the limit: %v", err)
		}
		_, err = dev.NewBuffer("strange", 4, gpu.Usage(7))
		said.refused(t, "usage", err)

		b := k.buffer("b", 16)
		said.refused(t, "write not aligned", dev.Write(b, 2, make([]byte, 4)))
		said.refused(t, "write of odd length", dev.Write(b, 0, make([]byte, 3)))
		said.refused(t, "write past the end", dev.Write(b, 12, make([]byte, 8)))
		said.refused(t, "write far past the end", dev.Write(b, 1<<63, make([]byte, 8)))
		k.must(dev.Write(b, 16, nil))

		for _, n := range []int{0, -1} {
			_, err := dev.NewTimestamps(n)
			said.refused(t, fmt.Sprint(n, " timestamps"), err)
		}
	})
}

func TestWrongBindingsAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		limits := dev.Info().Limits
		p := k.add()
		a, b, c, u := k.buffer("a", 1024), k.buffer("b", 1024), k.buffer("c", 1024), k.uniform("u", 1024)
		bind := func(bindings ...gpu.Binding) error {
			_, err := dev.NewBindGroup("g", p, bindings)
			return err
		}
		of := func(b gpu.Buffer) gpu.Binding { return gpu.Binding{Buffer: b} }
		said.refused(t, "too few", bind(of(a)))
		said.refused(t, "too many", bind(of(a), of(b), of(c), of(u), of(u)))
		said.refused(t, "no buffer", bind(of(a), of(b), of(nil), of(u)))
		said.refused(t, "uniform as storage", bind(of(u), of(b), of(c), of(u)))
		said.refused(t, "storage as uniform", bind(of(a), of(b), of(c), of(a)))
		said.refused(t, "read and read_write", bind(of(a), of(b), of(a), of(u)))
		refused(t, "storage offset", bind(of(a), gpu.Binding{Buffer: b, Offset: 4}, of(c), of(u)),
			"buffer b", " 4,", strconv.Itoa(int(limits.StorageAlignment)))
		refused(t, "uniform offset",
			bind(of(a), of(b), of(c), gpu.Binding{Buffer: u, Offset: uint64(limits.UniformAlignment) / 2}),
			"buffer u", strconv.Itoa(int(limits.UniformAlignment)/2),
			strconv.Itoa(int(limits.UniformAlignment)))
		said.refused(t, "past the end",
			bind(of(a), of(b), of(c), gpu.Binding{Buffer: u, Offset: 512, Size: 1024}))
		said.refused(t, "at the end", bind(of(a), of(b), of(c), gpu.Binding{Buffer: u, Offset: 1024}))
		said.refused(t, "odd size", bind(of(a), of(b), gpu.Binding{Buffer: c, Size: 6}, of(u)))
		big := k.uniform("big", limits.MaxUniformBinding+256)
		if err := bind(of(a), of(b), of(c), of(big)); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("a uniform binding over the limit: %v", err)
		}
		k.must(bind(of(a), of(a), of(c), of(u))) // binding one buffer for reading twice is allowed

		_, err := dev.NewPipeline(gpu.PipelineDesc{
			Label: "wide", Source: "x",
			Bindings: make([]gpu.Access, limits.MaxStorageBuffers+1),
		})
		if !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("too many storage bindings: %v", err)
		}
		_, err = dev.NewPipeline(gpu.PipelineDesc{Label: "empty"})
		said.refused(t, "no source", err)
		_, err = dev.NewBindGroup("g", nil, nil)
		said.refused(t, "no pipeline", err)
	})
}

func TestWrongDispatchesAreRefusedAtPassEnd(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		p, inc := k.add(), k.increment()
		b := k.buffer("b", 16)
		g := k.group(inc, gpu.Binding{Buffer: b})
		limit := dev.Info().Limits.MaxWorkgroups
		for _, tt := range []struct {
			name    string
			p       gpu.Pipeline
			g       gpu.BindGroup
			x, y, z uint32
		}{
			{"x is zero", inc, g, 0, 1, 1},
			{"y is zero", inc, g, 1, 0, 1},
			{"z is zero", inc, g, 1, 1, 0},
			{"over the limit", inc, g, limit + 1, 1, 1},
			{"another kernel's group", p, g, 1, 1, 1},
			{"no pipeline", nil, g, 1, 1, 1},
			{"no bind group", inc, nil, 1, 1, 1},
		} {
			enc := k.begin()
			k.must(enc.BeginPass("p"))
			enc.Dispatch(tt.p, tt.g, tt.x, tt.y, tt.z)
			enc.Dispatch(inc, g, 1, 1, 1)
			said.refused(t, tt.name, enc.EndPass())
			said.refused(t, tt.name+": submit", enc.Submit())
		}
		// The recordings were freed, and none of their dispatches ran.
		enc := k.begin()
		k.pass(enc, inc, g, 1, 1, 1)
		k.must(enc.Submit())
		if data := k.read(b); data[0] != 1 {
			t.Errorf("%d increments, want 1", data[0])
		}
	})
}

func TestCommandsOutOfOrderAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		inc := k.increment()
		b, c := k.buffer("b", 16), k.buffer("c", 16)
		g := k.group(inc, gpu.Binding{Buffer: b})
		r := k.readback("r", 16)

		enc := k.begin()
		_, err := dev.Begin("second")
		said.refused(t, "second encoder", err)
		k.must(enc.BeginPass("outer"))
		said.refused(t, "nested pass", enc.BeginPass("inner"))
		enc.Discard()

		for _, tt := range []struct {
			name string
			do   func(enc gpu.Encoder) error
		}{
			{"copy", func(enc gpu.Encoder) error { return enc.Copy(b, 0, c, 0, 4) }},
			{"copy out", func(enc gpu.Encoder) error { return enc.CopyOut(b, 0, r, 0, 4) }},
			{"timestamp", func(enc gpu.Encoder) error { return enc.Timestamp(nil, 0) }},
			{"resolve", func(enc gpu.Encoder) error { return enc.Resolve(nil, 1) }},
		} {
			enc := k.begin()
			k.must(enc.BeginPass("p"))
			said.refused(t, tt.name+" in a pass", tt.do(enc))
			k.must(enc.EndPass())
			said.refused(t, tt.name+": submit", enc.Submit())
			said.refused(t, tt.name+" after submit", tt.do(enc))
		}
		enc = k.begin()
		enc.Dispatch(inc, g, 1, 1, 1)
		said.refused(t, "dispatch without a pass", enc.Submit())
		enc = k.begin()
		said.refused(t, "end without begin", enc.EndPass())
		enc.Discard()
		enc = k.begin()
		k.must(enc.BeginPass("open"))
		said.refused(t, "submit in a pass", enc.Submit())
		said.refused(t, "submit twice", enc.Submit())
		enc.Discard()
		enc.Discard()
		said.refused(t, "end after discard", enc.EndPass())
		enc = k.begin()
		k.pass(enc, inc, g, 1, 1, 1)
		k.must(enc.Submit())
	})
}

func TestWrongCopiesAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		b, c, r := k.buffer("b", 16), k.buffer("c", 16), k.readback("r", 8)
		for _, tt := range []struct {
			name string
			do   func(enc gpu.Encoder) error
		}{
			{"past the source", func(e gpu.Encoder) error { return e.Copy(b, 12, c, 0, 8) }},
			{"past the target", func(e gpu.Encoder) error { return e.Copy(b, 0, c, 12, 8) }},
			{"overflow", func(e gpu.Encoder) error { return e.Copy(b, 1<<63, c, 0, 1<<63) }},
			{"odd offset", func(e gpu.Encoder) error { return e.Copy(b, 2, c, 0, 4) }},
			{"odd size", func(e gpu.Encoder) error { return e.Copy(b, 0, c, 0, 7) }},
			{"to itself", func(e gpu.Encoder) error { return e.Copy(b, 0, b, 8, 8) }},
			{"no source", func(e gpu.Encoder) error { return e.Copy(nil, 0, b, 8, 8) }},
			{"past the readback", func(e gpu.Encoder) error { return e.CopyOut(b, 0, r, 4, 8) }},
			{"no readback", func(e gpu.Encoder) error { return e.CopyOut(b, 0, nil, 4, 8) }},
		} {
			enc := k.begin()
			said.refused(t, tt.name, tt.do(enc))
			said.refused(t, tt.name+": submit", enc.Submit())
		}
	})
}

func TestReadbackIsReadOnlyAfterSubmitAndWait(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		b, r := k.buffer("b", 16), k.readback("r", 16)
		dst := make([]byte, 16)
		said.refused(t, "nothing copied", r.Read(dst, 0))
		enc := k.begin()
		k.must(enc.CopyOut(b, 0, r, 0, 16))
		said.refused(t, "not submitted", r.Read(dst, 0))
		k.must(enc.Submit())
		said.refused(t, "not waited for", r.Read(dst, 0))
		k.must(dev.Wait(), r.Read(dst, 0))
		said.refused(t, "past the end", r.Read(dst, 4))
		said.refused(t, "far past the end", r.Read(dst, 1<<63))
		k.must(r.Read(dst[:1], 15))

		// A discarded recording does not change the readback.
		enc = k.begin()
		k.must(enc.CopyOut(b, 0, r, 0, 16))
		enc.Discard()
		k.must(r.Read(dst, 0), dev.Wait(), r.Read(dst, 0))
	})
}

// Two recordings in flight are waited for separately. Waiting for one does not make the readback of the other
// readable.
func TestARecordingIsWaitedForAlone(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		b, dst := k.buffer("b", 16), make([]byte, 4)
		read := [2]gpu.Readback{k.readback("r0", 16), k.readback("r1", 16)}
		record := func(i int) gpu.Recording {
			enc := k.begin()
			k.must(enc.CopyOut(b, 0, read[i], 0, 16))
			r := got[gpu.Recording](k)(enc.Finish())
			said.refused(t, "submitted as an encoder too", enc.Submit())
			return r
		}
		first, second := record(0), record(1) // recorded before either was submitted
		said.refused(t, "not submitted", first.Wait())
		for n := range byte(5) {
			k.must(dev.Write(b, 0, []byte{n, 0, 0, 0}), first.Submit())
			k.must(dev.Write(b, 0, []byte{n + 100, 0, 0, 0}), second.Submit())
			said.refused(t, "submitted again", first.Submit())
			said.refused(t, "not waited for", read[0].Read(dst, 0))
			k.must(first.Wait(), read[0].Read(dst, 0))
			if dst[0] != n {
				t.Errorf("the first of round %d read %d", n, dst[0])
			}
			said.refused(t, "the other", read[1].Read(dst, 0))
			first = record(0)
			k.must(second.Wait(), read[1].Read(dst, 0))
			if dst[0] != n+100 {
				t.Errorf("the second of round %d read %d", n, dst[0])
			}
			second = record(1)
		}
		first.Discard()
		k.must(dev.Write(b, 0, []byte{77, 0, 0, 0}), second.Submit(), dev.Wait(), read[1].Read(dst, 0))
		if dst[0] != 77 {
			t.Errorf("the device's wait read %d", dst[0])
		}
	})
}

func TestTimestampsAreResolvedOnlyWhenWritten(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		if !dev.Info().Timestamps {
			t.Skip("this adapter has no timestamps")
		}
		k := kit{t, dev}
		ts := got[gpu.Timestamps](k)(dev.NewTimestamps(4))
		enc := k.begin()
		k.must(enc.Timestamp(ts, 0), enc.Timestamp(ts, 2))
		said.refused(t, "gap", enc.Resolve(ts, 3))
		enc.Discard()
		enc = k.begin()
		k.must(enc.Timestamp(ts, 1))
		said.refused(t, "written in a discarded recording", enc.Resolve(ts, 2))
		enc.Discard()
		enc = k.begin()
		k.must(enc.Timestamp(ts, 0))
		waiting := got[gpu.Recording](k)(enc.Finish())
		enc = k.begin()
		said.refused(t, "written in a recording that waits", enc.Resolve(ts, 1))
		enc.Discard()
		waiting.Discard()
		enc = k.begin()
		said.refused(t, "slot out of range", enc.Timestamp(ts, 4))
		said.refused(t, "negative slot", enc.Timestamp(ts, -1))
		said.refused(t, "too many", enc.Resolve(ts, 5))
		enc.Discard()
		enc = k.begin()
		k.must(enc.Timestamp(ts, 0), enc.Timestamp(ts, 1), enc.Submit())
		enc = k.begin()
		k.must(enc.Resolve(ts, 2), enc.Submit()) // written by an earlier submit
		said.refused(t, "not waited for", ts.Read(make([]uint64, 2)))
		k.must(dev.Wait(), ts.Read(make([]uint64, 2)))
		said.refused(t, "more than resolved", ts.Read(make([]uint64, 3)))
	})
}

func TestReleasedObjectsAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		a, b, r := k.buffer("a", 16), k.buffer("b", 16), k.readback("r", 16)
		inc := k.increment()
		g, g2 := k.group(inc, gpu.Binding{Buffer: b}), k.group(inc, gpu.Binding{Buffer: a})
		b.Release()
		b.Release()
		said.refused(t, "write", dev.Write(b, 0, make([]byte, 4)))
		_, err := dev.NewBindGroup("g", inc, []gpu.Binding{{Buffer: b}})
		said.refused(t, "bind group", err)
		dispatch := func(p gpu.Pipeline, g gpu.BindGroup) error {
			enc := k.begin()
			defer enc.Discard()
			k.must(enc.BeginPass("p"))
			enc.Dispatch(p, g, 1, 1, 1)
			return enc.EndPass()
		}
		said.refused(t, "dispatch over a released buffer", dispatch(inc, g))
		g.Release()
		said.refused(t, "dispatch with a released group", dispatch(inc, g))
		enc := k.begin()
		said.refused(t, "copy", enc.Copy(a, 0, b, 0, 4))
		enc.Discard()
		enc = k.begin()
		k.must(enc.CopyOut(a, 0, r, 0, 4))
		r.Release()
		said.refused(t, "submit to a released readback", enc.Submit())
		said.refused(t, "read", r.Read(make([]byte, 4), 0))

		// The objects of a recording may be released before it is submitted and while it runs.
		enc = k.begin()
		k.pass(enc, inc, g2, 1, 1, 1)
		g2.Release()
		inc.Release()
		c := k.buffer("c", 16)
		k.must(enc.Copy(a, 0, c, 0, 16))
		a.Release()
		k.must(enc.Submit())
		if data := k.read(c); data[0] != 1 {
			t.Errorf("the recording did not run: % x", data)
		}
		said.refused(t, "dispatch with a released pipeline", dispatch(inc, g2))
		if live := dev.Live(); live.Total() != 1 {
			t.Errorf("live objects: %+v, want one buffer", live)
		}
	})
}

func TestAReleasedDeviceRefusesEverything(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		inc := k.increment()
		b, r := k.buffer("b", 16), k.readback("r", 16)
		g := k.group(inc, gpu.Binding{Buffer: b})
		enc := k.begin()
		k.pass(enc, inc, g, 1, 1, 1)
		k.must(enc.CopyOut(b, 0, r, 0, 16), enc.Submit())
		enc = k.begin() // left open
		dev.Release()
		dev.Release()
		if live := dev.Live(); live.Total() != 0 {
			t.Errorf("live objects after the release: %+v", live)
		}
		_, err := dev.NewBuffer("x", 4, gpu.Storage)
		said.refused(t, "new buffer", err)
		_, err = dev.NewReadback("x", 4)
		said.refused(t, "new readback", err)
		_, err = dev.NewPipeline(gpu.PipelineDesc{Source: incrementSource})
		said.refused(t, "new pipeline", err)
		_, err = dev.NewBindGroup("x", inc, []gpu.Binding{{Buffer: b}})
		said.refused(t, "new bind group", err)
		_, err = dev.NewTimestamps(1)
		said.refused(t, "new timestamps", err)
		_, err = dev.Begin("x")
		said.refused(t, "begin", err)
		said.refused(t, "write", dev.Write(b, 0, make([]byte, 4)))
		said.refused(t, "flush", dev.Flush())
		said.refused(t, "wait", dev.Wait())
		refused(t, "submit", enc.Submit())
		said.refused(t, "read", r.Read(make([]byte, 4), 0))
		b.Release()
		g.Release()
	})
}

func TestObjectsOfAnotherDeviceAreRefused(t *testing.T) {
	said := newRefusals(t)
	onEveryDriver(t, func(t *testing.T, dev device) {
		k := kit{t, dev}
		other := fake.New(fake.Options{})
		if _, ok := dev.(*fake.Device); !ok {
			foreign, err := other.NewBuffer("foreign", 16, gpu.Storage)
			k.must(err)
			said.refused(t, "not of this driver", dev.Write(foreign, 0, nil))
		}
		said.refused(t, "not of this driver", dev.Write(nil, 0, nil))
		twin := device(other)
		if _, ok := dev.(*fake.Device); !ok {
			twin = Open(t).(device)
		}
		b := kit{t, twin}.buffer("b", 16)
		said.refused(t, "write", dev.Write(b, 0, make([]byte, 4)))
		enc := k.begin()
		said.refused(t, "copy", enc.Copy(b, 0, b, 0, 4))
		enc.Discard()
		_, err := dev.NewBindGroup("g", k.increment(), []gpu.Binding{{Buffer: b}})
		said.refused(t, "bind group", err)
	})
}
