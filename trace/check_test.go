package trace_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// unbounded are texts that no table and no title shows: what a screen shows it measures in each frame.
var unbounded = []string{
	"Trace.Created", "Trace.Command", "Host.OS", "Host.Arch", // of the recording
	"Kernel.Source", "Kernel.SourceSHA256", // shown line by line
	"StepDispatch.Raw", "Block.Raw", "NumericGap.Reference",
}

// Every text of a trace has a bound, or stands in the list above for a reason.
func TestNoTextOfATraceIsLongerThanAScreenCanTake(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for seed := range 40 {
		tr := rapid.Custom(tracetest.Random).Example(seed)
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		eachText(reflect.ValueOf(tr), "", func(name string, s reflect.Value) {
			if found[name] {
				return
			}
			found[name] = true
			old := s.String()
			s.SetString(strings.Repeat("x", 1<<16+1))
			if refused := tr.Check() != nil; refused == slices.Contains(unbounded, name) {
				t.Errorf("%s of more than 64 KiB: refused %t", name, refused)
			}
			s.SetString(old)
		})
	}
	for _, name := range []string{"Op.Name", "Plan.Reason", "Step.Text", "Event.Text", "Kernel.Source"} {
		if !found[name] {
			t.Errorf("%s was never tried; tried were %v", name, found)
		}
	}
}

// eachText calls f for the texts in v, with the type and the field that they stand in.
func eachText(v reflect.Value, name string, f func(name string, s reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		f(name, v)
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), name, f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachText(v.Index(i), name, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.IsExported() && field.Type != reflect.TypeFor[trace.Unknown]() {
				eachText(v.Field(i), v.Type().Name()+"."+field.Name, f)
			}
		}
	}
}
