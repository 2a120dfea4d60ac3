package inspect_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestAnyTraceCanBeShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { show(t, tracetest.Random(t)) })
}

// show asks for everything that can be computed of a trace.
func show(t interface{ Fatal(...any) }, tr *trace.Trace) {
	x := inspect.NewIndex(tr)
	tables := []*table.Table{inspect.NewProfile(tr).Table(), x.Steps()}
	for i := range tr.Steps {
		base := &inspect.Base{Index: x, Step: len(tr.Steps) - 1}
		for fold := inspect.FoldLayer; fold <= inspect.FoldNone; fold++ {
			tables = append(tables, x.Dispatches(i, inspect.DispatchOptions{Fold: fold, Base: base}).Table())
		}
		tables = append(tables, x.ResizeTable(i))
		for d := range tr.Graph.Dispatches {
			if why := x.Why(i, trace.DispatchID(d)); why != nil {
				why.Lines()
				x.Detail(i, trace.DispatchID(d), base).Lines()
			}
		}
	}
	for v := range tr.Graph.Values {
		x.Reaches(trace.ValueID(v))
	}
	for _, tab := range tables {
		rows, err := tab.Select(table.Selection{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range table.Formats {
			if err := tab.Print(io.Discard, format, rows, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func FuzzShow(f *testing.F) {
	var object, stream bytes.Buffer
	if err := trace.Write(&object, tracetest.Tiny()); err != nil {
		f.Fatal(err)
	}
	if err := trace.WriteStream(&stream, tracetest.Tiny()); err != nil {
		f.Fatal(err)
	}
	f.Add(object.Bytes())
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, err := trace.Read(bytes.NewReader(b)); err == nil {
			show(t, tr)
		}
	})
}

func TestSnapshotsCanBeReadWhileTheRunGoesOn(t *testing.T) {
	whole := tracetest.Run(1, slices.Repeat([]int{1}, 60)...)
	r := trace.NewRecorder(whole, 60_000)
	done := make(chan error)
	go func() { // the race detector watches what both touch
		x := &inspect.Index{}
		for {
			s := r.Snapshot()
			x.Sync(s)
			if n := len(s.Steps); n > 0 {
				x.Dispatches(n-1, inspect.DispatchOptions{}).Table()
				if s.Steps[n-1].Index == len(whole.Steps)-1 {
					done <- s.Check()
					return
				}
			}
		}
	}()
	tracetest.Record(t, r, whole, func() {})
	if err := <-done; err != nil {
		t.Error(err)
	}
}
