package fake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
)

// bench is a device with one kernel over three buffers and a readback.
type bench struct {
	*Device
	a, b, c  gpu.Buffer
	params   gpu.Buffer
	kernel   gpu.Pipeline
	group    gpu.BindGroup
	readback gpu.Readback
}

func newBench(t testing.TB, o Options) *bench {
	t.Helper()
	b := &bench{Device: New(o)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	b.a, err = b.NewBuffer("a", 16, gpu.Storage)
	must(err)
	b.b, err = b.NewBuffer("b", 16, gpu.Storage)
	must(err)
	b.c, err = b.NewBuffer("c", 16, gpu.Storage)
	must(err)
	b.params, err = b.NewBuffer("params", 512, gpu.Uniform)
	must(err)
	b.kernel,
		err = b.NewPipeline(gpu.PipelineDesc{
		Label: "add", Source: "...",
		Bindings: []gpu.Access{gpu.Read, gpu.Read, gpu.ReadWrite, gpu.Params},
	})
	must(err)
	b.group,
		err = b.NewBindGroup("g", b.kernel,
		[]gpu.Binding{{Buffer: b.a}, {Buffer: b.b}, {Buffer: b.c}, {Buffer: b.params, Offset: 256, Size: 16}})
	must(err)
	b.readback, err = b.NewReadback("out", 16)
	must(err)
	return b
}

func (b *bench) step(t testing.TB) {
	t.Helper()
	enc, err := b.Begin("step")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{enc.BeginPass("p"), nil} {
		if err != nil {
			t.Fatal(err)
		}
	}
	enc.Dispatch(b.kernel, b.group, 4, 1, 1)
	if err := enc.EndPass(); err != nil {
		t.Fatal(err)
	}
	if err := enc.CopyOut(b.c, 0, b.readback, 0, 16); err != nil {
		t.Fatal(err)
	}
	if err := enc.Submit(); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestDispatchRunsOnTheBytesOfATest(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	var seen []string
	b.OnDispatch = func(d Dispatch) {
		seen = append(seen,
			fmt.Sprintf("%s entry %s pass %s group %s source %s", d, d.Entry, d.Pass, d.Group, d.Source))
		for _, x := range d.Bound {
			seen = append(seen, fmt.Sprintf("%s %s %d+%d", x.Buffer, x.Access, x.Offset, len(x.Bytes)))
		}
		for i := range 4 {
			u := binary.LittleEndian.Uint32
			binary.LittleEndian.PutUint32(d.Bound[2].Bytes[4*i:],
				u(d.Bound[0].Bytes[4*i:])+u(d.Bound[1].Bytes[4*i:])+u(d.Bound[3].Bytes))
		}
	}
	if err := errors.Join(b.Write(b.a, 4, []byte{1, 0, 0, 0}), b.Write(b.b, 4, []byte{10, 0, 0, 0}),
		b.Write(b.params, 256, []byte{100, 0, 0, 0})); err != nil {
		t.Fatal(err)
	}
	b.step(t)
	var got [8]byte
	if err := b.readback.Read(got[:], 4); err != nil {
		t.Fatal(err)
	}
	if got != [8]byte{111, 0, 0, 0, 100, 0, 0, 0} {
		t.Errorf("read back % d", got)
	}
	want := "add [4 1 1] entry main pass p group g source ...|a read 0+16|b read 0+16|c read_write 0+16|params uniform 256+16"
	if s := strings.Join(seen, "|"); s != want {
		t.Errorf("saw %s\nwant %s", s, want)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.ResetCounts()
	if err := b.Write(b.a, 8, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	b.step(t)
	var got []string
	for _, c := range b.Log {
		got = append(got, c.String())
	}
	want := "Write a: 8 bytes at 8|Begin step|BeginPass p|Dispatch add [4 1 1] with g|EndPass p|CopyOut out: 16 bytes at 0 from c|Submit step|Wait"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("log %s\nwant %s", s, want)
	}
	if b.Count(Run) != 1 || b.Count(Submit) != 1 || b.Count(NewBuffer) != 0 || b.WroteBytes != 8 {
		t.Errorf("counts: %d dispatches, %d submits, %d buffers, %d bytes written", b.Count(Run),
			b.Count(Submit), b.Count(NewBuffer), b.WroteBytes)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	t.Parallel()
	for k := range kinds {
		if k.String() == "?" || k.String() == "" {
			t.Errorf("kind %d prints as %q", k, k)
		}
	}
}

func TestTimestampsFollowTheScriptedDurations(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.Duration = func(label string, x, y, z uint32) int64 { return int64(len(label)) * int64(x*y*z) * 100 }
	b.PassNS, b.NSPerTick = 50, 10
	ts, err := b.NewTimestamps(3)
	if err != nil {
		t.Fatal(err)
	}
	enc, _ := b.Begin("timed")
	if err := enc.Timestamp(ts, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := enc.BeginPass(""); err != nil {
			t.Fatal(err)
		}
		enc.Dispatch(b.kernel, b.group, uint32(1+i), 2, 1)
		if err := errors.Join(enc.EndPass(), enc.Timestamp(ts, 1+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(enc.Resolve(ts, 3), enc.Submit(), b.Wait()); err != nil {
		t.Fatal(err)
	}
	var ticks [3]uint64
	if err := ts.Read(ticks[:]); err != nil {
		t.Fatal(err)
	}
	if want := [3]uint64{0, 65, 190}; ticks != want {
		t.Errorf("ticks %v, want %v", ticks, want)
	}
	if b.NowNS() != 1900 {
		t.Errorf("clock at %d", b.NowNS())
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	b := newBench(t, Options{})
	b.FailNth(Write, 2, broken)
	for i, want := range []error{nil, broken, nil} {
		if err := b.Write(b.a, 0, []byte{byte(i + 1), 0, 0, 0}); !errors.Is(err, want) {
			t.Errorf("write %d: %v, want %v", i, err, want)
		}
	}
	b.Fault = func(c Call) error {
		if c.Kind == Run && c.X == 4 {
			return broken
		}
		return nil
	}
	enc, _ := b.Begin("step")
	if err := enc.BeginPass("p"); err != nil {
		t.Fatal(err)
	}
	enc.Dispatch(b.kernel, b.group, 4, 1, 1)
	if err := enc.EndPass(); !errors.Is(err, broken) ||
		err.Error() != "encoder step: pass p: Dispatch add: broken" {
		t.Errorf("end of pass: %v", err)
	}
	if err := enc.Submit(); !errors.Is(err, broken) {
		t.Errorf("submit after a failed pass: %v", err)
	}
	b.Fault = nil
	b.step(t)
	b.FailNth(Submit, 1, broken)
	enc, _ = b.Begin("step")
	if err := enc.Submit(); !errors.Is(err, broken) {
		t.Errorf("submit: %v", err)
	}
	b.step(t)
	b.Lose("unplugged")
	if _, err := b.Begin("step"); !errors.Is(err, gpu.ErrDeviceLost) ||
		err.Error() != "device lost: unplugged" {
		t.Errorf("begin on a lost device: %v", err)
	}
}

func TestReadbackIsScripted(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.OnRead = func(label string, offset uint64, dst []byte) {
		if label == "out" && offset == 4 {
			dst[0] = 42
		}
	}
	b.step(t)
	var got [4]byte
	if err := b.readback.Read(got[:], 4); err != nil || got != [4]byte{42} {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestHotPathAllocatesNothingWithoutLog(t *testing.T) {
	b := newBench(t, Options{NoLog: true})
	ts, err := b.NewTimestamps(2)
	if err != nil {
		t.Fatal(err)
	}
	b.OnDispatch = func(Dispatch) {}
	data := make([]byte, 16)
	ticks := make([]uint64, 2)
	step := func() {
		_ = b.Write(b.a, 0, data)
		enc, _ := b.Begin("step")
		_ = enc.Timestamp(ts, 0)
		_ = enc.BeginPass("p")
		for range 10 {
			enc.Dispatch(b.kernel, b.group, 4, 1, 1)
		}
		_ = enc.EndPass()
		_ = enc.Timestamp(ts, 1)
		_ = enc.Resolve(ts, 2)
		_ = enc.CopyOut(b.c, 0, b.readback, 0, 16)
		if err := enc.Submit(); err != nil {
			t.Fatal(err)
		}
		_ = b.Wait()
		_ = b.readback.Read(data, 0)
		if err := ts.Read(ticks); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestAdapterFromOptions(t *testing.T) {
	t.Parallel()
	limits := gpu.DefaultLimits()
	limits.MaxStorageBinding = 1 << 10
	drv := &Driver{All: []Options{
		{NoTimestamps: true},
		{Info: gpu.AdapterInfo{Name: "big", Type: gpu.Discrete, Limits: limits}},
	}}
	list, err := drv.Adapters()
	if err != nil || len(list) != 2 || list[0].Timestamps || !list[1].Timestamps ||
		list[1].Limits != limits || list[0].Limits != gpu.DefaultLimits() {
		t.Fatalf("adapters %+v, %v", list, err)
	}
	if _, err := drv.Open(2); !errors.Is(err, gpu.ErrNoAdapter) {
		t.Errorf("open of adapter 2 of 2: %v", err)
	}
	dev, err := drv.Open(0)
	if err != nil || len(drv.Opened) != 1 || drv.Opened[0] != dev {
		t.Fatalf("open: %v, %v", dev, err)
	}
	if _, err := dev.NewTimestamps(2); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("timestamps without a clock: %v", err)
	}
}
