package jsonstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace/export/jsonstream"
)

// write writes a value that encoding/json decoded.
func write(w *jsonstream.Writer, v any) {
	switch v := v.(type) {
	case map[string]any:
		w.Object()
		for key, value := range v {
			w.Key(key)
			write(w, value)
		}
		w.EndObject()
	case []any:
		w.Array()
		for _, value := range v {
			w.Line()
			write(w, value)
		}
		w.EndArray()
	case string:
		w.String(v)
	case float64:
		w.Float(v)
	case bool:
		w.Bool(v)
	default:
		w.Raw([]byte("null"))
	}
}

func values(depth int) *rapid.Generator[any] {
	simple := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
	}
	if depth > 0 {
		inner := values(depth - 1)
		simple = append(simple, rapid.SliceOfN(inner, 0, 4).AsAny(),
			rapid.MapOfN(rapid.StringMatching(`[a-z_]{0,5}`), inner, 0, 4).AsAny())
	}
	return rapid.OneOf(simple...)
}

func TestAnyValueIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		v := values(4).Draw(r, "value")
		var b bytes.Buffer
		w := jsonstream.New(&b)
		write(w, v)
		if err := w.Flush(); err != nil {
			r.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			r.Fatalf("%v: %s", err, b.Bytes())
		}
		a, _ := json.Marshal(got)
		want, _ := json.Marshal(v)
		if !bytes.Equal(a, want) {
			r.Fatalf("wrote %s, read %s", want, a)
		}
	})
}

func TestMicrosecondsAreExact(t *testing.T) {
	t.Parallel()
	for ns, want := range map[int64]string{
		0: "0.000", 1: "0.001", 12_345: "12.345", -1: "-0.001", -12_345: "-12.345", 90_010: "90.010",
		math.MaxInt64: "9223372036854775.807", math.MinInt64: "-9223372036854775.808",
	} {
		if got := string(jsonstream.Members(func(w *jsonstream.Writer) { w.Micros(ns) })); got != want {
			t.Errorf("%d ns: %s µs, want %s", ns, got, want)
		}
	}
}

type full struct{ room int }

var errFull = errors.New("full")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFirstErrorIsKept(t *testing.T) {
	t.Parallel()
	w := jsonstream.New(&full{1 << 17})
	w.Array()
	for range 1 << 16 {
		w.Int(12345)
	}
	w.EndArray()
	if err := w.Flush(); !errors.Is(err, errFull) {
		t.Errorf("error %v, want errFull", err)
	}
}

func TestLongArraysHaveAllCommas(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := jsonstream.New(&b)
	members := jsonstream.Members(func(w *jsonstream.Writer) { w.IntsMember("list", 1, 2) })
	w.Array()
	for range 20_000 {
		w.Object()
		w.StringMember("a", "é\n")
		w.Raw(members)
		w.EndObject()
	}
	w.EndArray()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var list []struct {
		A    string
		List []int
	}
	err := json.Unmarshal(b.Bytes(), &list)
	if err != nil || len(list) != 20_000 || list[19_999].List[1] != 2 || list[0].A != "é\n" {
		t.Errorf("%d elements: %v", len(list), err)
	}
}
