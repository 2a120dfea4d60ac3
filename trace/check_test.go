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

// unbounded lists texts that no table or title shows. Texts on screen are measured in every frame.
var unbounded = []string{
	"Trace.Created", "Trace.Command", "Host.OS", "Host.Arch", // about the recording
	"Kernel.Source", "Kernel.SourceSHA256", // shown line by line
	"Event.Prompt",
}

// Every text in a trace has a maximum length or is in the list above.
func TestTextsOfTracesAreBounded(t *testing.T) {
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
			t.Errorf("%s was never tested; tested: %v", name, found)
		}
	}
}

// Code that computes from a checked trace uses its ids as indices. So every id in every list is refused if it
// is out of range.
func TestIDsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for seed := range 60 {
		tr := rapid.Custom(tracetest.Random).Example(seed)
		eachPart(reflect.ValueOf(tr), "", func(name string, v reflect.Value) {
			if v.Kind() != reflect.Int32 || !strings.HasSuffix(v.Type().Name(), "ID") || found[name] {
				return
			}
			found[name] = true
			old := v.Int()
			for _, id := range []int64{-1, 1 << 30} {
				v.SetInt(id)
				if tr.Check() == nil {
					t.Errorf("%s = %d is not refused", name, id)
				}
			}
			v.SetInt(old)
		})
	}
	var want []string
	eachType(reflect.TypeFor[trace.Trace](), "", map[reflect.Type]bool{}, func(name string, v reflect.Type) {
		if v.Kind() == reflect.Int32 && !slices.Contains(want, name) {
			want = append(want, name)
		}
	})
	for _, name := range want {
		if !found[name] {
			t.Errorf("%s was never tested", name)
		}
	}
	if len(want) < 20 {
		t.Errorf("too few ids: %v", want)
	}
}

// uncounted lists fields that hold one of a few short words known to Check.
var uncounted = []string{"Step.Phase", "Step.Timing", "Resize.Order", "Wait.Kind", "Grid.Rule"}

// Recordings and opened traces have a memory budget. So every list, text, map and pointer of a step or a plan
// must count in its size.
func TestSizeCountsEverythingInAStep(t *testing.T) {
	t.Parallel()
	const more = 1000
	found := map[string]bool{}
	hold := func(root reflect.Value, size func() int64) {
		eachPart(root, "", func(name string, v reflect.Value) {
			if found[name] || slices.Contains(uncounted, name) {
				return
			}
			old, before := reflect.New(v.Type()).Elem(), size()
			old.Set(v)
			want := int64(0)
			switch v.Kind() {
			case reflect.Slice:
				want = more * int64(v.Type().Elem().Size())
				v.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Cap()+more))
				reflect.Copy(v, old)
			case reflect.String:
				want = more
				v.SetString(v.String() + strings.Repeat("0", more))
			case reflect.Map:
				want = more
				v.Set(reflect.MakeMap(v.Type()))
				for i := range more {
					v.SetMapIndex(reflect.ValueOf(strings.Repeat("k", i)), reflect.Zero(v.Type().Elem()))
				}
			case reflect.Pointer:
				if v.IsNil() {
					return
				}
				want = -int64(v.Type().Elem().Size())
				v.SetZero()
			default:
				return
			}
			found[name] = true
			if got := size() - before; want > 0 && got < want || want < 0 && got > want {
				t.Errorf("%s: %d added bytes are counted as %d", name, want, got)
			}
			v.Set(old)
		})
	}
	for seed := range 60 {
		tr := rapid.Custom(tracetest.Random).Example(seed)
		for i := range tr.Steps {
			hold(reflect.ValueOf(&tr.Steps[i]), tr.Steps[i].Size)
		}
		for i := range tr.Plans {
			hold(reflect.ValueOf(&tr.Plans[i]), tr.Plans[i].Size)
		}
	}
	for _, root := range []reflect.Type{reflect.TypeFor[trace.Step](), reflect.TypeFor[trace.Plan]()} {
		eachType(root, "", map[reflect.Type]bool{}, func(name string, v reflect.Type) {
			held := v.Kind() == reflect.Slice || v.Kind() == reflect.String || v.Kind() == reflect.Map ||
				v.Kind() == reflect.Pointer
			if held && !found[name] && !slices.Contains(uncounted, name) {
				t.Errorf("%s was never tested", name)
			}
		})
	}
}

// eachText calls f for every text in v, with the name of its type and field.
func eachText(v reflect.Value, name string, f func(name string, s reflect.Value)) {
	eachPart(v, name, func(name string, v reflect.Value) {
		if v.Kind() == reflect.String {
			f(name, v)
		}
	})
}

// eachPart calls f for everything in v, with the name of its type and field. Elements of a list have the name
// of the list.
func eachPart(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	if name != "" && v.CanSet() {
		f(name, v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachPart(v.Elem(), name, f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachPart(v.Index(i), name, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); held(field) {
				eachPart(v.Field(i), v.Type().Name()+"."+field.Name, f)
			}
		}
	}
}

// eachType is eachPart for everything that a value of a type could hold.
func eachType(t reflect.Type, name string, seen map[reflect.Type]bool, f func(name string, t reflect.Type)) {
	if name != "" {
		f(name, t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		eachType(t.Elem(), name, seen, f)
	case reflect.Struct:
		if seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			if field := t.Field(i); held(field) {
				eachType(field.Type, t.Name()+"."+field.Name, seen, f)
			}
		}
	}
}

// held reports whether a field is a part of the trace that this version knows.
func held(field reflect.StructField) bool {
	return field.IsExported() && field.Type != reflect.TypeFor[*trace.Unknown]()
}

// signed lists the values that may be negative: instants, whose axis begins at a different point in each
// recording, differences, numbers of other programs and SymInts, and numbers that a model computes.
var signed = []string{
	"Block.StartNS", "CPU.DoneNS", "CPU.StartNS", "CPU.SubmittedNS", "Clock.OffsetNS", "GPU.StartNS",
	"StepDispatch.StartNS", "Observer.BeforeNS", "Cost.NS", "Cost.Q3NS", "Event.Step", "Observer.Step",
	"Op.SourceID", "Value.SourceID", "SymInt.Min", "SymInt.Max", "Change.From", "Change.To",
	"Candidate.Logit", "Candidate.P", "Drift.MSE", "Drift.MaxAbs", "Drift.SNRdB", "NumericError.Got",
	"NumericError.Want", "NumericError.MSE", "NumericError.MaxAbs", "NumericError.SNRdB",
	"NumericError.Share", "Quantized.MSE", "Quantized.MaxAbs", "Quantized.SNRdB", "Quantized.WorstSNRdB",
}

// No run has a negative duration, count or token id.
func TestNegativeValuesAreRefused(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for seed := range 60 {
		tr := rapid.Custom(tracetest.Random).Example(seed)
		eachPart(reflect.ValueOf(tr), "", func(name string, v reflect.Value) {
			if found[name] || !v.CanSet() {
				return
			}
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			switch {
			case v.Type() == reflect.TypeFor[trace.Time]():
				v.Set(reflect.ValueOf(trace.Measured(-5_000_000)))
			case v.CanInt():
				v.SetInt(-5)
			case v.CanFloat():
				v.SetFloat(-5)
			default:
				return
			}
			found[name] = true
			if refused := tr.Check() != nil; refused == slices.Contains(signed, name) {
				t.Errorf("%s: negative value refused: %t", name, refused)
			}
			v.Set(old)
		})
	}
	for _, name := range []string{"Trace.DroppedSteps", "CPU.TotalNS", "Step.Tokens", "CopyRate.PerS"} {
		if !found[name] {
			t.Errorf("%s was never tested; tested: %v", name, found)
		}
	}
}

func TestAliasesOfThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	at := func(id trace.ValueID) *trace.ValueID { return &id }
	for _, c := range []struct {
		aliases []*trace.ValueID
		valid   bool
	}{
		{[]*trace.ValueID{at(0)}, false},
		{[]*trace.ValueID{nil, at(2), at(3), at(1)}, false},
		{[]*trace.ValueID{at(1), at(2), at(1)}, false},
		{[]*trace.ValueID{at(2), at(2), at(3), nil, at(0)}, true},
	} {
		tr := &trace.Trace{Schema: trace.Schema}
		for i, a := range c.aliases {
			tr.Graph.Values = append(tr.Graph.Values, trace.Value{
				ID: trace.ValueID(i), Kind: "tensor", Role: trace.RoleState, AliasOf: a,
			})
		}
		if err := tr.Check(); (err == nil) != c.valid {
			t.Errorf("%v: %v", c.aliases, err)
		}
	}
}
