package session

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/trace"
)

// fill gives every field below v a value of its own, none of them zero.
func fill(t *testing.T, v reflect.Value, n *int, path string) {
	*n++
	if v.Type() == reflect.TypeFor[trace.Time]() {
		v.Set(reflect.ValueOf(trace.Measured(int64(*n))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("é\n", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n, path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n, path+"[]")
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n, path+"[]")
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n, path+" key")
		fill(t, elem, n, path+" value")
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fill(t, field, n, path+"."+f.Name)
			}
		}
	case reflect.Interface: // what JSON makes of anything
		v.Set(reflect.ValueOf(fmt.Sprint(*n)))
	default:
		t.Fatalf("%s: a %s cannot cross a pipe", path, v.Kind())
	}
}

// Whatever a message holds arrives: a field that JSON leaves out, or gives to nobody, is a field that a
// session in another process does not have.
func TestEveryFieldOfEveryMessageCrossesThePipe(t *testing.T) {
	t.Parallel()
	for _, m := range []any{&request{}, &message{}} {
		n := 0
		fill(t, reflect.ValueOf(m).Elem(), &n, fmt.Sprintf("%T", m))
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(m).Elem()).Interface()
		if err := json.Unmarshal(line, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateComparable(trace.Time{}),
			cmpopts.IgnoreUnexported(trace.Trace{})); diff != "" {
			t.Errorf("%T: %s", m, diff)
		}
		if n < 5 {
			t.Errorf("%T: only %d values were tried", m, n)
		}
	}
}

// What is measured and 0, or 0 and not absent, must not become absent on its way.
func TestAZeroThatIsThereArrives(t *testing.T) {
	t.Parallel()
	zero, token := trace.PlanID(0), 0
	want := message{Event: &Event{Records: []trace.Record{{Step: &trace.Step{
		Token: &token, Dispatches: []trace.StepDispatch{{GPUNS: trace.Measured(0)}},
		Resize: trace.Resize{Passes: []trace.Pass{{Hooks: []trace.Hook{{
			Plans: []trace.PlanChange{{From: &zero}},
		}}}}},
	}}}}}
	line, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got message
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(trace.Time{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestAnEngineOfAnotherVersionIsRefusedByName(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{
		`{"hello":{"protocol":"0123456789abcdef"}}`: `the engine speaks session protocol "0123456789abcdef"`,
		`{"event":{"log":{"level":"info"}}}`:        "does not say hello",
	} {
		synctest.Test(t, func(t *testing.T) {
			requests, front := io.Pipe()
			s := Connect(Peer{Messages: strings.NewReader(first + "\n"), Requests: front})
			if n, err := io.Copy(io.Discard, requests); n != 0 || err != nil {
				t.Errorf("the engine was sent %d bytes, %v", n, err)
			}
			if e, ok := <-s.Events(); ok {
				t.Errorf("event %+v", e)
			}
			if err := s.Close(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", first, err)
			}
		})
	}
}

func TestProtocolNamesTheTypesOfMessages(t *testing.T) {
	t.Parallel()
	name := func(typ reflect.Type) string {
		var b strings.Builder
		describe(&b, typ, map[reflect.Type]bool{})
		return b.String()
	}
	type inner struct{ A int }
	names := map[string]bool{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ A int }](),
		reflect.TypeFor[struct{ B int }](),
		reflect.TypeFor[struct{ A string }](),
		reflect.TypeFor[struct {
			A int `json:"a"`
		}](),
		reflect.TypeFor[struct{ A []inner }](),
		reflect.TypeFor[struct{ A []struct{ B int } }](),
		reflect.TypeFor[struct{ A map[int]inner }](),
	} {
		names[name(typ)] = true
	}
	if len(names) != 7 {
		t.Errorf("7 types have %d names: %v", len(names), names)
	}
	if !strings.Contains(name(reflect.TypeFor[message]()), "gpu_ns") {
		t.Error("what a step's dispatch has does not show")
	}
}

func TestProgressSaysHowMuch(t *testing.T) {
	for want, p := range map[string]Progress{
		"3/12":      {Done: 3, Total: 12},
		"0/4400 MB": {Total: 4_400_000_000, Bytes: true},
		"1200/4400 MB at 830 MB/s": {
			Done: 1_200_000_000, Total: 4_400_000_000, Bytes: true, PerSecond: 830e6,
		},
	} {
		if got := p.Amount(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
