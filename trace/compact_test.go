package trace_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unsafe"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// Strings that many records share are in memory once, and no list has spare capacity.
func TestReadTraceHoldsNoSpareMemory(t *testing.T) {
	t.Parallel()
	made := tracetest.Llama(15, 4)
	for i := range made.Plans {
		made.Plans[i].Grid = &trace.Grid{Rule: "rows", Terms: []trace.Term{{Name: "rows", Value: 1, Per: 1}}}
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"object": func(b *bytes.Buffer) error { return trace.Write(b, made) },
		"lines":  func(b *bytes.Buffer) error { return trace.WriteStream(b, made) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		read, err := trace.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		places := map[string]*byte{}
		for i := range read.Plans {
			p := &read.Plans[i]
			for _, s := range []string{p.Kernel, p.Route, p.Reason, p.Grid.Rule, p.Grid.Terms[0].Name} {
				if at := unsafe.StringData(s); places[s] == nil {
					places[s] = at
				} else if s != "" && places[s] != at {
					t.Fatalf("%s: %q is in memory twice", name, s)
				}
			}
		}
		for i := range read.Steps {
			d := read.Steps[i].Dispatches
			if cap(d) > len(d)+len(d)/8 {
				t.Errorf("%s: %d dispatches, capacity %d", name, len(d), cap(d))
			}
		}
	}
	if n := unsafe.Sizeof(trace.StepDispatch{}); n > 72 { // a long trace has a million of them
		t.Errorf("a dispatch of a step takes %d bytes", n)
	}
}

func TestTimesAndTicksTakeAllThatTheySay(t *testing.T) {
	t.Parallel()
	for _, ns := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64 + 1} {
		var back trace.Time
		text, err := trace.Measured(ns).MarshalJSON()
		if err != nil || back.UnmarshalJSON(text) != nil {
			t.Errorf("%d: %s, %v", ns, text, err)
		}
		if got, ok := back.NS(); got != ns || !ok || !back.Equal(trace.Measured(ns)) {
			t.Errorf("%d was read back as %d, measured %t", ns, got, ok)
		}
	}
	if _, ok := (trace.Time{}).NS(); ok {
		t.Error("the zero time counts as measured")
	}
	if err := new(trace.Time).UnmarshalJSON([]byte("-9223372036854775808")); err == nil {
		t.Error("the integer reserved for an absent time was accepted as a time")
	}
	for text, good := range map[string]bool{
		`"0"`: true, `"18446744073709551615"`: true,
		`"18446744073709551616"`: false, `"-1"`: false, `""`: false, `"59000 "`: false, `59000`: false,
	} {
		var tick trace.Tick
		err := tick.UnmarshalJSON([]byte(text))
		if good != (err == nil) {
			t.Errorf("tick %s: %v", text, err)
		}
		if back, _ := tick.MarshalJSON(); good && string(back) != text {
			t.Errorf("tick %s was read back as %s", text, back)
		}
		if err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not name %s", err, text)
		}
	}
}
