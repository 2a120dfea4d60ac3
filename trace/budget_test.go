package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"

	"pgregory.net/rapid"

	"gpuscope/internal/wordingtest"
)

// endless repeats a text forever after a start text.
type endless struct {
	start, again string
	at           int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n = copy(p, e.start)
	e.start = e.start[n:]
	for n < len(p) {
		k := copy(p[n:], e.again[e.at:])
		e.at = (e.at + k) % len(e.again)
		n += k
	}
	return n, nil
}

// An endless file, which a small gzip file can contain, is refused before it takes more memory than allowed.
func TestEndlessFilesAreRefused(t *testing.T) {
	small := bounds{memory: 4 << 20, value: 1 << 20, idle: 1 << 20}
	const head = `{"schema":"gpuscope.trace/1"`
	for _, c := range []struct{ name, start, again, want string }{
		{"steps", head + `,"plans":[],"steps":[{}`, ",{}", "4 MiB"},
		{"plans", head + `,"plans":[{}`, ",{}", "4 MiB"},
		{"values of a graph", head + `,"graph":{"values":[{}`, ",{}", "1 MiB"},
		{"dispatches of a step", head + `,"steps":[{"dispatches":[{}`, ",{}", "1 MiB"},
		{"samples", head + `,"steps":[{"dispatches":[{"samples":[0`, ",0", "1 MiB"},
		{"a string", head + `,"model":{"name":"`, "a", "1 MiB"},
		{"a key", head + `,"`, "k", "1 MiB"},
		{"a number", head + `,"steps":[{"index":1`, "1", "1 MiB"},
		{"fields", head + `,"x":1`, `,"x":1`, "duplicate"},
		{"fields of a step", head + `,"steps":[{"z":1`, `,"z":1`, "1 MiB"},
		{"unknown fields", head + `,"steps":[{"z":1}`, `,{"z":1}`, "4 MiB"},
		{"lists in lists", head + `,"x":`, "[", "deeper than 10000"},
		{"objects in objects", head + `,"steps":`, `[{"x":`, "deeper than 10000"},
		{"white space", head, " \n\t\r", "white space"},
		{"white space behind", head + "}", "\n", "white space"},
		{"white space in a value", head + `,"x":[`, "          1,", "1 MiB"},
		{"records of another kind", head + "}", `{"new":1}` + "\n", "unknown records"},
		{"empty records", head + "}", `{}`, "unknown records"},
		{"events", head + "}", `{"event":{}}`, "4 MiB"},
		{"steps of a stream", head + "}", `{"step":{}}`, "4 MiB"},
		{"plans of a stream", head + "}", `{"plan":{}}`, "4 MiB"},
		{"clocks", head + "}", `{"clock":{}}`, "4 MiB"},
		{
			"samples for a step",
			head + `,"steps":[{"index":1,"dispatches":[` + strings.Repeat("{},", 999) + `{}]}]}`,
			`{"samples":{"step":1,"samples":[` + strings.Repeat("[],", 999) + `[]]}}`, "4 MiB",
		},
		{
			"trees of sampling", head + "}", `{"step":{"sampling":{"a":[[],[],[],[],[],[]]}}}`,
			"4 MiB",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readWithin(&endless{start: c.start, again: c.again}, &file{}, small)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
}

// A large recording may use more memory than a small file.
func TestLargeFilesMayTakeMoreMemory(t *testing.T) {
	t.Parallel()
	in := &endless{
		start: `{"schema":"gpuscope.trace/1","plans":[{"id":0}]}`,
		again: `{"step":{"dispatches":[` + strings.Repeat(`{"plan":0,"start_ns":1234567,"gpu_ns":9999},`, 99) + `{}]}}`,
	}
	text, err := io.ReadAll(io.LimitReader(in, 4<<20))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text[:bytes.LastIndexByte(text, '}')], '}')
	small := bounds{memory: 1 << 20, value: 1 << 20, idle: 1 << 20}
	raw := &file{r: bytes.NewReader(text)}
	if _, err := readWithin(raw, raw, small); err != nil {
		t.Errorf("a file of %d bytes: %v", raw.size, err)
	}
	_, err = readWithin(bytes.NewReader(text), &file{}, small)
	wordingtest.New(t).Error("a small file that grows", err)
}

// A trace that passes CheckSize can be read, and one that is a little larger cannot.
func TestCheckSizeAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	small := bounds{memory: 1 << 20, value: 1 << 20, idle: 1 << 20}
	traceOf := func(steps, dispatches int) *Trace {
		r := &Trace{Schema: Schema, Graph: Graph{Ops: []Op{{Name: "a,{b"}}}}
		for i := range dispatches {
			id := DispatchID(i)
			r.Graph.Dispatches = append(r.Graph.Dispatches, Dispatch{ID: id, Label: strconv.Itoa(i)})
			r.Plans = append(r.Plans, Plan{ID: PlanID(i), Dispatch: id, Kernel: "k"})
		}
		for i := range steps {
			s := Step{Index: i, Phase: Decode, Timing: TimingDispatch, SymInts: map[string]int64{"seq": 1}}
			for j := range dispatches {
				s.Dispatches = append(s.Dispatches, StepDispatch{Plan: PlanID(j), GPUNS: Measured(1)})
			}
			r.Steps = append(r.Steps, s)
		}
		return r
	}
	for name, of := range map[string]func(n int) *Trace{
		"steps":      func(n int) *Trace { return traceOf(n, 1) },
		"dispatches": func(n int) *Trace { return traceOf(1, n) },
		"rows":       func(n int) *Trace { return traceOf(n, 100) },
	} {
		n := sort.Search(1<<14, func(n int) bool { return of(n).checkSize(small) != nil })
		wrong := new(SizeError)
		if err := of(n).checkSize(small); !errors.As(err, &wrong) || wrong.Bytes < wrong.Limit {
			t.Errorf("%s: error %v for %d", name, err, n)
		}
		readable := func(n int, write func(io.Writer, *Trace) error) error {
			var text bytes.Buffer
			if err := write(&text, of(n)); err != nil {
				t.Fatal(err)
			}
			_, err := readWithin(&text, &file{}, small)
			return err
		}
		for _, write := range []func(io.Writer, *Trace) error{Write, WriteStream} {
			if err := readable(n-1, write); err != nil {
				t.Errorf("%s: %d pass, but cannot be read: %v", name, n-1, err)
			}
			if readable(n+n/8+1, write) == nil {
				t.Errorf("%s: %d are refused, but %d can be read", name, n, n+n/8+1)
			}
		}
	}
}

// A decoded record takes no more memory than estimated from its JSON.
func TestNoRecordIsLargerThanItsEstimate(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			// Steps, plans and the head are decoded one by one and counted by their content.
			if typ != reflect.TypeFor[Trace]() && typ != reflect.TypeFor[Step]() && typ.Size() > recordBytes {
				t.Errorf("%v takes %d bytes, more than the %d estimated for an object", typ, typ.Size(),
					recordBytes)
			}
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[Trace]())
	if len(seen) < 20 {
		t.Errorf("only %d types", len(seen))
	}
	if unsafe.Sizeof(Step{}) > 4*recordBytes {
		t.Errorf("a step has %d bytes", unsafe.Sizeof(Step{}))
	}
}

// Squeezing JSON does not change its values, no matter how the input is split.
func TestSqueezingChangesNoValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.StringOf(rapid.RuneFrom([]rune("a \\\"\n\té")))
		value := rapid.MapOf(rapid.String(), rapid.SliceOf(texts)).Draw(t, "value")
		indent := rapid.StringOf(rapid.RuneFrom([]rune(" \t"))).Draw(t, "indent")
		in, err := json.MarshalIndent(value, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		s := &source{r: iotest.OneByteReader(bytes.NewReader(in)), file: &file{}, bounds: usualBounds}
		if rapid.Bool().Draw(t, "whole") {
			s.r = bytes.NewReader(in)
		}
		s.Next()
		out, err := io.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		if json.Compact(&want, in) != nil || json.Compact(&got, out) != nil || want.String() != got.String() {
			t.Fatalf("%q became %q", in, out)
		}
		if s.text+s.space != int64(len(in)) {
			t.Fatalf("%d bytes and %d of white space, want %d together", s.text, s.space, len(in))
		}
	})
	in := strings.NewReader(`{"schema":"gpuscope.trace/1","x":[1 2]}`)
	if _, err := readWithin(in, &file{}, usualBounds); err == nil {
		t.Error("two numbers were merged into one")
	}
}

func BenchmarkSqueeze(b *testing.B) {
	line := []byte(`{"plan":12,"start_ns":1234567,"gpu_ns":4321,"samples":[1,2,3]},` + "\n")
	in := bytes.Repeat(line, 1<<14)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		s := &source{r: bytes.NewReader(in), file: &file{}, bounds: usualBounds}
		s.Next()
		if _, err := io.Copy(io.Discard, s); err != nil {
			b.Fatal(err)
		}
	}
}
