package expr_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/expr"
	"gpuscope/trace/tracetest"
)

func TestConditionsAreParsed(t *testing.T) {
	for _, c := range []struct {
		text, metric, op string
		value            float64
		unit             expr.Unit
		change           bool
	}{
		{"decode.p50>+5%", "decode.p50", ">", 0.05, expr.Percent, true},
		{"prefill.gpu.p50 >= 5 %", "prefill.gpu.p50", ">=", 0.05, expr.Percent, true},
		{"tokens_per_s<-5%", "tokens_per_s", "<", -0.05, expr.Percent, true},
		{"decode.tokens_per_s<50", "decode.tokens_per_s", "<", 50, expr.Plain, false},
		{"step>+20us", "step", ">", 20e3, expr.NS, true},
		{"step>20µs", "step", ">", 20e3, expr.NS, false},
		{"p50>1.5ms", "p50", ">", 1.5e6, expr.NS, false},
		{"isolated>+1s", "isolated", ">", 1e9, expr.NS, true},
		{"kernel:gemv.3 K=8192>+10%", "kernel:gemv.3 K=8192", ">", 0.1, expr.Percent, true},
		{"layer:3<-1%", "layer:3", "<", -0.01, expr.Percent, true},
		{"rows.added>0", "rows.added", ">", 0, expr.Plain, false},
		{"grid.changed<=2", "grid.changed", "<=", 2, expr.Plain, false},
	} {
		got, err := expr.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.Metric != c.metric || got.Op != c.op || math.Abs(got.Value-c.value) > 1e-9*math.Abs(c.value) ||
			got.Unit != c.unit || got.Change != c.change {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
}

func TestWrongConditionsNameTheirPart(t *testing.T) {
	for text, part := range map[string]expr.Part{
		"":                   expr.OpPart,
		"decode.p50":         expr.OpPart,
		"decode.p50=5%":      expr.OpPart,
		"decode.p99>5%":      expr.MetricPart,
		"speed>5%":           expr.MetricPart,
		"kernel:>5%":         expr.MetricPart,
		"shader:gemv>5%":     expr.MetricPart,
		">5%":                expr.MetricPart,
		"decode.p50>":        expr.ValuePart,
		"decode.p50>5":       expr.ValuePart,
		"decode.p50>x%":      expr.ValuePart,
		"decode.p50>NaN%":    expr.ValuePart,
		"decode.p50>1e999%":  expr.ValuePart,
		"decode.p50>0x10%":   expr.ValuePart,
		"rows.added>5%":      expr.ValuePart,
		"rows.added>+1":      expr.ValuePart,
		"tokens_per_s<5us":   expr.ValuePart,
		"decode.p50>>+5%":    expr.MetricPart,
		"decode.p50>+5% now": expr.ValuePart,
	} {
		_, err := expr.Parse(text)
		var wrong *expr.SyntaxError
		if !errors.As(err, &wrong) || wrong.Part != part {
			t.Errorf("%q: %v, want an error about the %s", text, err, part)
		}
	}
}

// runs returns the diff of two runs. In the second, a kernel takes `slow` times as long, and so does the
// step.
func runs(t *testing.T, slow float64) *diff.Diff {
	t.Helper()
	var sides [2]diff.Side
	for i := range sides {
		chunks := slices.Repeat([]int{1}, 20)
		chunks[0] = 8
		tr := tracetest.Run(1, chunks...)
		for k := range tr.Steps {
			s := &tr.Steps[k]
			for j := range s.Dispatches {
				d := &s.Dispatches[j]
				if ns, _ := d.GPUNS.NS(); i == 1 && tr.Plans[d.Plan].Kernel == "rms_norm" {
					d.GPUNS = trace.Measured(int64(float64(ns) * slow))
				}
			}
			span, _ := s.GPU.SpanNS.NS()
			if i == 1 {
				span = int64(float64(span) * slow)
			}
			s.GPU.SpanNS, s.CPU.TotalNS = trace.Measured(span), trace.Measured(span+span/20)
		}
		x := analyze.NewIndex(tr)
		sides[i] = diff.Side{Index: x, Selection: x.Phase(trace.Decode)}
	}
	d, err := diff.Of(context.Background(), sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOnlySignificantChangesFail(t *testing.T) {
	slower, same := runs(t, 1.5), runs(t, 1.01)
	for _, c := range []struct {
		text         string
		slower, same bool // the condition fails
	}{
		{"decode.p50>+5%", true, false},
		{"decode>+0.5%", true, false}, // 1 % is more than this, but not significant
		{"decode.p50>+60%", false, false},
		{"step.p50>+0%", true, false},
		{"decode.p50>1ns", true, true}, // about the second run alone
		{"decode.p50>10s", false, false},
		{"decode.tokens_per_s<-5%", true, false},
		{"tokens_per_s<1", false, false},
		{"kernel:rms_norm>+10%", true, false},
		{"op:attn.norm>+10%", true, false},
		{"kind:rms_norm>+10us", true, false},
		{"kernel:mul>+10%", false, false},
		{"rows.added>0", false, false},
		{"rows.slower>0", true, false},
		{"rows.faster>0", false, false},
		{"grid.changed>0", false, false},
		{"grid.changed>=0", true, true},
		{"grid.changed<=0", true, true},
		{"grid.changed<0", false, false},
	} {
		e, err := expr.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range []*diff.Diff{slower, same} {
			r, err := e.Eval(d)
			if want := []bool{c.slower, c.same}[i]; err != nil || r.Failed() != want {
				t.Errorf("%s: %+v %v, want failed %v", c.text, r, err, want)
			}
		}
	}
}

func TestWhatTheRunsDoNotHaveIsAnError(t *testing.T) {
	d := runs(t, 1)
	for _, text := range []string{"execute.p50>+5%", "kernel:none>+5%", "layer:77>+5%"} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var missing *expr.MissingError
		if _, err := e.Eval(d); !errors.As(err, &missing) || missing.Condition.Text != text {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What only one run has takes no time in the other. Its change is not judged, because the other run may do
// the work elsewhere.
func TestTimesOfDispatchesOfOneRun(t *testing.T) {
	side := func(layers int) diff.Side {
		x := analyze.NewIndex(tracetest.Llama(layers, 6))
		return diff.Side{Index: x, Selection: x.Phase(trace.Decode)}
	}
	one, two := side(1), side(2)
	for _, c := range []struct {
		text               string
		a, b               diff.Side
		fails, judged, err bool
	}{
		{"layer:1>1ns", one, two, true, true, false},
		{"layer:1>+1ns", one, two, false, false, false},
		{"layer:1>+5%", one, two, false, false, false}, // the time in A is 0
		{"layer:1>1ns", two, one, false, true, false},
		{"layer:1>+5%", two, one, false, false, false},
		{"layer:1<-5%", two, one, false, false, false},
	} {
		d, err := diff.Of(t.Context(), c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		e, err := expr.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Eval(d)
		if r.Failed() != c.fails || err == nil && (r.NotJudged == "") != c.judged ||
			errors.As(err, new(*expr.MissingError)) != c.err {
			t.Errorf("%s: %+v %v", c.text, r, err)
		}
	}
}

// An operator that is a part of a fused one, and a kernel with another source in each run, are named as such.
func TestWhatIsNotComparedIsAnError(t *testing.T) {
	traces := [2]*trace.Trace{tracetest.Llama(1, 6), tracetest.Llama(2, 6)}
	for i, tr := range traces {
		for k := range tr.Graph.Kernels {
			tr.Graph.Kernels[k].SourceSHA256 = strings.Repeat(string(rune('a'+i)), 64)
		}
	}
	g := &traces[1].Graph
	for i := range g.Ops {
		if o := &g.Ops[i]; strings.HasSuffix(o.Name, ".attn.q") {
			part := o.Name
			o.Name = strings.TrimSuffix(part, "q") + "fused"
			o.Parts = []string{part, strings.TrimSuffix(part, "q") + "other"}
		}
	}
	var sides [2]diff.Side
	for i, tr := range traces {
		x := analyze.NewIndex(tr)
		sides[i] = diff.Side{Index: x, Selection: x.Phase(trace.Decode)}
	}
	d, err := diff.Of(t.Context(), sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"op:attn.q>1us": "op:attn.fused", "kernel:rms_norm>+1%": "sources", "source.changed>0": "graphs",
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var missing *expr.MissingError
		if _, err := e.Eval(d); !errors.As(err, &missing) || !strings.Contains(missing.Why, want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	limit, err := expr.Parse("kernel:rms_norm>1ns")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := limit.Eval(d); err != nil || !r.Failed() {
		t.Errorf("the limit on B alone: %+v %v", r, err)
	}
}

// A kernel of the same name with another source is counted. Plans of two engines are not compared.
func TestSourcesOfKernelsAreCounted(t *testing.T) {
	count := func(engine string) (expr.Result, error) {
		base, now := tracetest.Llama(1, 6), tracetest.Llama(1, 6)
		now.Engine = engine
		for k := range now.Graph.Kernels {
			if kernel := &now.Graph.Kernels[k]; kernel.Name == "rms_norm" {
				kernel.SourceSHA256 = strings.Repeat("a", 64)
			}
		}
		x, y := analyze.NewIndex(base), analyze.NewIndex(now)
		d, err := diff.Of(t.Context(), diff.Side{Index: x, Selection: x.Phase(trace.Decode)},
			diff.Side{Index: y, Selection: y.Phase(trace.Decode)})
		if err != nil {
			t.Fatal(err)
		}
		e, err := expr.Parse("source.changed>0")
		if err != nil {
			t.Fatal(err)
		}
		return e.Eval(d)
	}
	if r, err := count(""); err != nil || !r.Failed() || r.Value != 3 {
		t.Errorf("%+v %v, want the 3 norms", r, err)
	}
	if _, err := count("another engine"); !errors.As(err, new(*expr.MissingError)) {
		t.Errorf("two engines: %v", err)
	}
}

// A run has one step of prefill, so it is not known how much its time varies. A condition about its change
// cannot fail, and says why and what to record. One about the second run alone can.
func TestChangesOfTooFewTimesAreNotJudged(t *testing.T) {
	d := runs(t, 20)
	for text, judged := range map[string]bool{
		"prefill.p50>+5%": false, "prefill.p50<+5%": false, "prefill.tokens_per_s<-5%": false,
		"prefill.gpu.p50>+1us": false, "prefill.p50>1us": true, "decode.p50>+5%": true, "rows.slower>0": true,
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Eval(d)
		if err != nil {
			t.Fatal(err)
		}
		if r.Failed() != judged || (r.NotJudged == "") != judged || (r.Remedy == "") != judged {
			t.Errorf("%s: %+v, want judged %t", text, r, judged)
		}
		if prompt := strings.Contains(r.Remedy, "--max-chunk"); prompt == judged {
			t.Errorf("%s: to get more times, %s", text, r.Remedy)
		}
	}
	d.Isolated.Known, d.Isolated.Now.N = false, 1
	e, err := expr.Parse("isolated>+5%")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Eval(d); err != nil || !strings.Contains(r.Remedy, "--timing dispatch and -n") {
		t.Errorf("times of dispatches in decode steps: %+v, %v", r, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"decode.p50>+5%", "kernel:a<b>=-1ms", "rows.added>0", "tokens_per_s<-5%", "p50>µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := expr.Parse(s)
		if err != nil {
			if wrong := (*expr.SyntaxError)(nil); !errors.As(err, &wrong) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if c.Metric == "" || c.Op == "" || math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
			t.Errorf("%q: %+v", s, c)
		}
	})
}
