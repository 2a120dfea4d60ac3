package perfetto_test

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/perfetto"
	"gpuscope/trace/tracetest"
)

// fields holds the fields of a message by number: integers, or the bytes of strings and messages.
type fields struct {
	ints  map[protowire.Number][]uint64
	bytes map[protowire.Number][][]byte
}

func (f fields) int(n protowire.Number) uint64 {
	if len(f.ints[n]) == 0 {
		return 0
	}
	return f.ints[n][0]
}

func (f fields) text(n protowire.Number) string {
	if len(f.bytes[n]) == 0 {
		return ""
	}
	return string(f.bytes[n][0])
}

type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// decode decodes a message.
func decode(t tester, b []byte) fields {
	t.Helper()
	f := fields{map[protowire.Number][]uint64{}, map[protowire.Number][][]byte{}}
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		switch wire {
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.ints[number] = append(f.ints[number], v)
		case protowire.BytesType:
			var v []byte
			v, n = protowire.ConsumeBytes(b)
			f.bytes[number] = append(f.bytes[number], v)
		default:
			t.Fatalf("field %d has the wire type %d", number, wire)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
	}
	return f
}

// Numbers of fields, from the .proto files of Perfetto.
const (
	timestamp, sequenceID, trackEvent, interned, flags, gpuEvent, descriptor = 8, 10, 11, 12, 13, 53, 60
)

// file is what a trace file contains, decoded.
type file struct {
	interned fields
	gpu      []gpu
	events   []event
	tracks   []fields
}

type gpu struct {
	fields
	at int64
}

type event struct {
	fields
	at int64
}

// read writes a trace and decodes the file.
func read(t tester, tr *trace.Trace) (f file) {
	t.Helper()
	var b bytes.Buffer
	if err := perfetto.Format.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	for i, bytes := range decode(t, b.Bytes()).bytes[1] {
		p := decode(t, bytes)
		if want := min(2, uint64(i+1)); p.int(flags) != want || p.int(sequenceID) != 1 {
			t.Fatalf("packet %d has the flags %d, want %d", i, p.int(flags), want)
		}
		at := int64(p.int(timestamp))
		switch {
		case p.bytes[interned] != nil:
			f.interned = decode(t, p.bytes[interned][0])
		case p.bytes[gpuEvent] != nil:
			f.gpu = append(f.gpu, gpu{decode(t, p.bytes[gpuEvent][0]), at})
		case p.bytes[trackEvent] != nil:
			f.events = append(f.events, event{decode(t, p.bytes[trackEvent][0]), at})
		case p.bytes[descriptor] != nil:
			f.tracks = append(f.tracks, decode(t, p.bytes[descriptor][0]))
		default:
			t.Fatalf("packet %d is unknown: %v", i, p)
		}
	}
	return f
}

// list returns interned entries by id.
func (f *file) list(t tester, field protowire.Number) map[uint64]fields {
	m := map[uint64]fields{}
	for _, b := range f.interned.bytes[field] {
		e := decode(t, b)
		m[e.int(1)] = e
	}
	return m
}

func TestTotalsAreThoseOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		f := read(r, tr)
		want := exporttest.TotalsOf(tr)
		n, ns := 0, new(big.Int)
		for _, e := range f.gpu {
			if e.int(13) == 1 { // the queue, not whole steps
				n, ns = n+1, ns.Add(ns, new(big.Int).SetUint64(e.int(2)))
			}
		}
		if n != want.Timed || ns.Cmp(want.GPU) != 0 {
			r.Fatalf("%d GPU events of %v ns, want %d of %v ns", n, ns, want.Timed, want.GPU)
		}
		nested(r, &f)
	})
}

// nested checks that each slice of the host ends, and that no slice ends after the one around it.
func nested(t tester, f *file) {
	t.Helper()
	var open []int64
	events := slices.Clone(f.events)
	slices.SortStableFunc(events, func(a, b event) int { return int(min(1, max(-1, a.at-b.at))) })
	for _, e := range events {
		switch e.int(9) {
		case 1:
			open = append(open, e.at)
		case 2:
			if len(open) == 0 || e.at <= open[len(open)-1] {
				t.Fatalf("an end at %d without a beginning before it: %v", e.at, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("slices do not end: %v", open)
	}
}

func TestUntimedStepsHaveNoSlices(t *testing.T) {
	t.Parallel()
	f := read(t, exporttest.Untimed(tracetest.Llama(2, 3)))
	if len(f.gpu) > 0 {
		t.Errorf("%d GPU events", len(f.gpu))
	}
	for _, e := range f.events {
		if e.int(9) != 4 && e.text(22) != "metadata" { // a counter
			t.Errorf("the event %v", e)
		}
	}
}

// The GPU Compute tab needs these fields.
func TestKernelsHaveWhatTheComputeTabShows(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	f := read(t, tr)
	kernels, names, specs := f.list(t, 1000), f.list(t, 2), f.list(t, 24)
	args, contexts := f.list(t, 1001), f.list(t, 23)
	if c := contexts[1]; c.int(2) != 1 || c.int(3) != 2 {
		t.Errorf("the context has pid %d and API %d", c.int(2), c.int(3))
	}
	ids := map[uint64]bool{}
	checked := 0
	for _, e := range f.gpu {
		if ids[e.int(1)] || e.int(5) != 1 {
			t.Fatalf("event id %d, context %d", e.int(1), e.int(5))
		}
		ids[e.int(1)] = true
		if e.int(13) != 1 {
			continue
		}
		launch := decode(t, e.bytes[21][0])
		got := map[string]int64{}
		text := map[string]string{}
		for _, b := range launch.bytes[3] {
			a := decode(t, b)
			name := args[a.int(1)]
			got[name.text(2)], text[name.text(2)] = int64(a.int(3)), a.text(6)
		}
		s := &tr.Steps[got["step"]]
		d := &s.Dispatches[got["seq"]]
		p := &tr.Plans[d.Plan]
		op := &tr.Graph.Ops[tr.Graph.Dispatches[p.Dispatch].Op]
		k := kernels[e.int(19)]
		if k.text(2) != p.Kernel || names[e.int(20)].text(2) != p.Kernel || specs[e.int(13)].int(4) != 2 ||
			specs[e.int(14)].int(4) != 2 || int64(e.int(10)) != got["step"]+1 {
			t.Fatalf("the event %v is not that of kernel %s", e, p.Kernel)
		}
		grid, group := decode(t, launch.bytes[1][0]), decode(t, launch.bytes[2][0])
		for i, n := range p.Workgroups {
			if grid.int(protowire.Number(i+1)) != uint64(n) || group.int(protowire.Number(i+1)) == 0 {
				t.Fatalf("grid %v of workgroups %v, want %v", grid, group, p.Workgroups)
			}
		}
		if text["op"] != tr.Graph.Dispatches[p.Dispatch].Named(op.Name) || text["phase"] != string(s.Phase) ||
			got["workgroups_needed"] != p.NeededGroups || got["thread_count"] == 0 {
			t.Fatalf("arguments %v %v", got, text)
		}
		if ns, _ := d.GPUNS.NS(); e.int(2) != uint64(ns) {
			t.Fatalf("%d ns, want %d", e.int(2), ns)
		}
		checked++
	}
	if want := exporttest.TotalsOf(tr).Timed; checked != want {
		t.Errorf("%d dispatches, want %d", checked, want)
	}
	// Each submit names its dispatches.
	submitted := 0
	for _, e := range f.events {
		if e.text(23) != "submit" {
			continue
		}
		for _, id := range decode(t, e.bytes[3000][0]).ints[1] {
			if !ids[id] {
				t.Fatalf("a submit names event %d", id)
			}
			submitted++
		}
	}
	if submitted != checked {
		t.Errorf("%d dispatches are submitted, want %d", submitted, checked)
	}
}

func TestTracksAndCountersAreDescribed(t *testing.T) {
	t.Parallel()
	tr := tracetest.Tiny()
	tr.Events = []trace.Event{{Step: 1, Kind: "note", Text: "\xff"}}
	f := read(t, tr)
	known := map[uint64]bool{}
	for _, d := range f.tracks {
		known[d.int(1)] = true
	}
	counters := map[uint64][]uint64{}
	notes := 0
	for _, e := range f.events {
		if !known[e.int(11)] {
			t.Fatalf("the track %d is not described", e.int(11))
		}
		if e.int(9) == 4 {
			counters[e.int(11)] = append(counters[e.int(11)], e.int(30))
		}
		if e.text(23) == "note" {
			notes++
		}
	}
	// Live bytes of the steps, and the last value again at the end.
	if got := counters[10]; !slices.Equal(got, []uint64{112, 48, 48}) || notes != 1 || len(counters) != 5 {
		t.Errorf("live bytes %v, %d counters, %d notes", got, len(counters), notes)
	}
}

func BenchmarkWrite(b *testing.B) {
	tr := tracetest.Llama(14, 500)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := perfetto.Format.Write(&out, tr); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(out.Len()))
}
