package otlp_test

import (
	"bytes"
	"math/big"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/otlp"
	"gpuscope/trace/export/samples"
	"gpuscope/trace/tracetest"
)

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// oneLine returns what an export writes. It must be one line, as the JSON files of a collector are.
func oneLine(t fataler, e trace.Export, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := e.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1 || b.Bytes()[b.Len()-1] != '\n' {
		t.Fatalf("%s has %d lines", e.Name, n)
	}
	return b.Bytes()
}

// spansOf returns the spans of a trace by id, as a collector reads them.
func spansOf(t fataler, tr *trace.Trace) map[pcommon.SpanID]ptrace.Span {
	t.Helper()
	data, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(oneLine(t, otlp.Traces, tr))
	if err != nil {
		t.Fatal(err)
	}
	list := data.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	byID := map[pcommon.SpanID]ptrace.Span{}
	for i := range list.Len() {
		s := list.At(i)
		if _, found := byID[s.SpanID()]; found || s.SpanID().IsEmpty() {
			t.Fatalf("two spans have the id %s, or it is 0", s.SpanID())
		}
		if s.TraceID() != list.At(0).TraceID() || s.TraceID().IsEmpty() {
			t.Fatalf("span %s is of trace %s", s.SpanID(), s.TraceID())
		}
		if parent, found := byID[s.ParentSpanID()]; !found && i > 0 {
			t.Fatalf("span %s is before its parent %s", s.SpanID(), s.ParentSpanID())
		} else if i > 0 && parent.TraceID() != s.TraceID() {
			t.Fatalf("span %s has a parent in another trace", s.SpanID())
		}
		if s.EndTimestamp() < s.StartTimestamp() {
			t.Fatalf("span %s ends before it starts", s.SpanID())
		}
		byID[s.SpanID()] = s
	}
	return byID
}

func number(s ptrace.Span, key string) (int64, bool) {
	v, ok := s.Attributes().Get(key)
	return v.Int(), ok
}

func TestSpansHaveTheTimesOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		want := exporttest.TotalsOf(tr)
		n, sum, steps := 0, new(big.Int), 0
		for _, s := range spansOf(t, tr) {
			if ns, ok := number(s, "gpuscope.dur_ns"); ok {
				n++
				sum.Add(sum, big.NewInt(ns))
				if last := s.EndTimestamp() - s.StartTimestamp(); int64(last) != ns {
					t.Fatalf("the span of a dispatch of %d ns lasts %d ns", ns, last)
				}
			}
			if _, ok := number(s, "gpuscope.step"); ok {
				steps++
			}
		}
		if n != want.Timed || sum.Cmp(want.GPU) != 0 {
			t.Fatalf("%d times, %d ns; want %d times, %d ns", n, sum, want.Timed, want.GPU)
		}
		if steps != len(tr.Steps) {
			t.Fatalf("%d steps, want %d", steps, len(tr.Steps))
		}
	})
}

func TestSpansAreNestedByOperatorAndStep(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	spans := spansOf(t, tr)
	found := map[string]int{}
	for _, s := range spans {
		path := s.Name()
		for at, ok := spans[s.ParentSpanID()]; ok; at, ok = spans[at.ParentSpanID()] {
			path = at.Name() + "/" + path
		}
		found[path]++
	}
	run := "text_completion " + tr.Model.Name
	for path, n := range map[string]int{
		run:                    1,
		run + "/decode":        3,
		run + "/decode/encode": 3,
		run + "/decode/layers.1.attn.sdpa/fd_split": 3,
		run + "/prefill/rms_norm":                   5,
	} {
		if found[path] != n {
			t.Errorf("%d spans %s, want %d", found[path], path, n)
		}
	}
	for _, s := range spans {
		if s.Name() != run {
			continue
		}
		in, _ := number(s, "gen_ai.usage.input_tokens")
		out, _ := number(s, "gen_ai.usage.output_tokens")
		if in != int64(len(tr.Steps[0].Tokens)) || out == 0 {
			t.Errorf("%d input tokens, %d output tokens", in, out)
		}
		model, _ := s.Attributes().Get("gen_ai.request.model")
		if model.Str() != tr.Model.Name {
			t.Errorf("model %q", model.Str())
		}
		if got := s.StartTimestamp().AsTime().Format("2006-01-02T15:04:05Z"); got != tr.Created {
			t.Errorf("the run starts at %s, want %s", got, tr.Created)
		}
	}
	before := 0
	for range spansOf(t, exporttest.Untimed(tracetest.Llama(2, 4))) {
		before++
	}
	if before != 1+len(tr.Steps) {
		t.Errorf("a trace without times has %d spans, want the run and its %d steps", before, len(tr.Steps))
	}
}

// The span of an operator has the sum of the times of its dispatches.
func TestOperatorsHaveTheSumOfTheirDispatches(t *testing.T) {
	t.Parallel()
	spans := spansOf(t, tracetest.Llama(2, 4))
	sums, counts := map[pcommon.SpanID]int64{}, map[pcommon.SpanID]int64{}
	for _, s := range spans {
		if ns, ok := number(s, "gpuscope.dur_ns"); ok {
			sums[s.ParentSpanID()] += ns
			counts[s.ParentSpanID()]++
		}
	}
	operators := 0
	for id, s := range spans {
		ns, ok := number(s, "gpuscope.operator_ns")
		if !ok {
			continue
		}
		operators++
		if n, _ := number(s, "gpuscope.dispatches"); n != counts[id] || ns != sums[id] || n < 2 {
			t.Errorf("%s has %d dispatches of %d ns, want %d of %d ns", s.Name(), n, ns, counts[id], sums[id])
		}
	}
	if operators == 0 {
		t.Error("no operator has a span")
	}
}

// profilesOf returns the profiles of a trace, as a collector reads them.
func profilesOf(t fataler, tr *trace.Trace) (pprofile.ProfilesDictionary, pprofile.ProfilesSlice) {
	t.Helper()
	data, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(oneLine(t, otlp.Profiles, tr))
	if err != nil {
		t.Fatal(err)
	}
	return data.Dictionary(), data.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
}

func TestProfilesHaveTheValuesOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		want := exporttest.TotalsOf(tr)
		spans := spansOf(t, tr)
		dict, list := profilesOf(t, tr)
		if n := 4; want.Timed == 0 && list.Len() != n-1 || want.Timed > 0 && list.Len() != n {
			t.Fatalf("%d profiles, with %d times", list.Len(), want.Timed)
		}
		for i := range list.Len() {
			p := list.At(i)
			name := dict.StringTable().At(int(p.SampleType().TypeStrindex()))
			if name != samples.Types[i].Name || p.ProfileID().IsEmpty() {
				t.Fatalf("profile %d is %s, id %s", i, name, p.ProfileID())
			}
			sums := map[int]*big.Int{}
			for j := range p.Samples().Len() {
				s := p.Samples().At(j)
				link := dict.LinkTable().At(int(s.LinkIndex()))
				step, ok := number(spans[link.SpanID()], "gpuscope.step")
				if !ok || link.TraceID() != spans[link.SpanID()].TraceID() {
					t.Fatalf("sample %d is linked to span %s", j, link.SpanID())
				}
				attribute := dict.AttributeTable().At(int(s.AttributeIndices().At(1)))
				if attribute.Value().Int() != step {
					t.Fatalf("sample %d is of step %d, linked to step %d", j, attribute.Value().Int(), step)
				}
				if sums[int(step)] == nil {
					sums[int(step)] = new(big.Int)
				}
				sums[int(step)].Add(sums[int(step)], big.NewInt(s.Values().At(0)))
				if leaf(dict, s) == "" {
					t.Fatalf("sample %d has no function", j)
				}
			}
			if n := p.Samples().Len(); name == "gpu_time" && n != want.Timed {
				t.Fatalf("%d samples of time, want %d", n, want.Timed)
			}
			for step, w := range want.Steps {
				sum := sums[step]
				if sum == nil {
					sum = new(big.Int)
				}
				if of := []*big.Int{w.Dispatches, w.Workgroups, w.Wasted, w.GPU}[i]; sum.Cmp(of) != 0 {
					t.Fatalf("step %d: %s is %d, want %d", step, name, sum, of)
				}
			}
		}
	})
}

// leaf returns the name of the innermost function of a sample.
func leaf(dict pprofile.ProfilesDictionary, s pprofile.Sample) string {
	stack := dict.StackTable().At(int(s.StackIndex()))
	location := dict.LocationTable().At(int(stack.LocationIndices().At(0)))
	function := dict.FunctionTable().At(int(location.Lines().At(0).FunctionIndex()))
	return dict.StringTable().At(int(function.NameStrindex()))
}

func TestTheFirstEntryOfEachTableIsEmpty(t *testing.T) {
	t.Parallel()
	dict, list := profilesOf(t, tracetest.Llama(1, 3))
	if s := dict.StringTable().At(0); s != "" {
		t.Errorf("string 0 is %q", s)
	}
	if n := dict.StackTable().At(0).LocationIndices().Len(); n != 0 {
		t.Errorf("stack 0 has %d locations", n)
	}
	if !dict.LinkTable().At(0).SpanID().IsEmpty() || dict.AttributeTable().At(0).KeyStrindex() != 0 ||
		dict.FunctionTable().At(0).NameStrindex() != 0 || dict.MappingTable().At(0).FilenameStrindex() != 0 ||
		dict.LocationTable().At(0).Lines().Len() != 0 {
		t.Error("a table has no empty entry")
	}
	if unit := dict.StringTable().At(int(list.At(3).SampleType().UnitStrindex())); unit != "nanoseconds" {
		t.Errorf("unit %q", unit)
	}
}
