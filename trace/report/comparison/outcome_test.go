package comparison_test

import (
	"fmt"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/report/comparison"
)

// work is an operator of the test's graph with the time of its dispatch in µs.
type work struct {
	name  string
	parts []string
	us    float64
}

// unfused and fused are the operators of a layer. The norm is the same in both.
var (
	unfused = []work{{"norm", nil, 10}, {"gate", nil, 100}, {"up", nil, 100}, {"silu", nil, 80}}
	fused   = []work{{"norm", nil, 10}, {"gate+up+silu", []string{"gate", "up", "silu"}, 200}}
)

// runOf returns a run of 30 decode steps of a model with these operators. A step takes 50 µs more than its
// dispatches. Times vary by ± noise, as a fraction.
func runOf(layers int, list []work, noise float64) *trace.Trace {
	t := &trace.Trace{
		Schema: trace.Schema, Producer: trace.Producer{Name: "gpuscope", Version: "1.0"},
		Model:  trace.Model{Name: "small"},
		Device: trace.Device{Name: "GPU", AdapterType: trace.AdapterDiscrete},
		Clock:  trace.Clock{QuantumNS: 1},
	}
	var times []float64
	for layer := range layers {
		for _, w := range list {
			id := len(t.Graph.Ops)
			op := trace.Op{
				ID: trace.OpID(id), Name: fmt.Sprintf("layers.%d.mlp.%s", layer, w.name), Kind: w.name,
				Layer: &layer, Block: "mlp",
			}
			for _, part := range w.parts {
				op.Parts = append(op.Parts, fmt.Sprintf("layers.%d.mlp.%s", layer, part))
			}
			t.Graph.Ops = append(t.Graph.Ops, op)
			t.Graph.Dispatches = append(t.Graph.Dispatches, trace.Dispatch{
				ID: trace.DispatchID(id), Op: op.ID,
			})
			t.Plans = append(t.Plans, trace.Plan{
				ID: trace.PlanID(id), Dispatch: trace.DispatchID(id), Kernel: w.name,
				Workgroups: [3]int{1, 1, 1}, NeededGrid: [3]int{1, 1, 1},
			})
			times = append(times, w.us)
		}
	}
	for i := range 30 {
		s := trace.Step{
			Index: i, Phase: trace.Decode, Timing: trace.TimingDispatch, Position: i, Tokens: []int{1},
		}
		sum := 0.0
		for plan, us := range times {
			us *= 1 + noise*float64((7*i+plan)%5-2)/2
			s.Dispatches = append(s.Dispatches, trace.StepDispatch{
				Plan: trace.PlanID(plan), GPUNS: trace.Measured(int64(us * 1e3)),
			})
			sum += us
		}
		ns := int64((sum + 50) * 1e3)
		s.CPU.TotalNS, s.GPU = trace.Measured(ns), &trace.GPU{SpanNS: trace.Measured(ns)}
		t.Steps = append(t.Steps, s)
	}
	return t
}

func outcome(t *testing.T, base, now *trace.Trace) (*diff.Diff, []string) {
	t.Helper()
	var sides [2]diff.Side
	for i, tr := range []*trace.Trace{base, now} {
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		x := analyze.NewIndex(tr)
		sides[i] = diff.Side{Index: x, Selection: x.Phase(trace.Decode)}
	}
	d, err := diff.Of(ctx, sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	return d, comparison.Outcome(d)
}

// holds checks that a text contains all of these parts, in this order.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Errorf("no %q in %q", part, text)
			return
		}
		rest = after
	}
}

// 4 layers of 290 µs become 4 layers of 210 µs, and 16 dispatches become 8.
func TestOutcomeSaysWhatFusionBought(t *testing.T) {
	d, lines := outcome(t, runOf(4, unfused, 0.01), runOf(4, fused, 0.01))
	holds(t, lines[0], "Fusion: ", "0.32 ms faster", "1.21 → 0.89 ms", "decode",
		"8 of 16 dispatches fewer", "most in mlp.gate+up+silu", "-320", "12 → 4 dispatches")
	if step := &d.Step().Times; !step.Significant || step.DeltaNS > -300e3 || step.DeltaNS < -340e3 {
		t.Errorf("step: %+v", step)
	}
	if g := d.Most(-1); g == nil || g.Base != 12 || g.Now != 4 {
		t.Errorf("most: %+v", g)
	}
	_, lines = outcome(t, runOf(4, fused, 0.01), runOf(4, unfused, 0.01))
	holds(t, lines[0], "No fusion: ", "0.32 ms slower", "0.89 → 1.21 ms", "8 dispatches more than 8")
	for _, line := range lines { // the shortest lengths have the subject and the verdict
		holds(t, line, "No fusion: ", "slower")
	}
}

// A difference within the noise is said as such, with the noise, and no operator is named.
func TestOutcomeWithinNoiseNamesNothing(t *testing.T) {
	_, lines := outcome(t, runOf(4, fused, 0.01), runOf(4, fused, 0.01))
	holds(t, lines[0], "Same settings: no significant difference", "0.89 → 0.89 ms", "noise ± ",
		"no operator")
	slow := append([]work(nil), fused...)
	slow[1].us *= 1.02 // less than two runs of one program differ by
	d, lines := outcome(t, runOf(4, fused, 0.01), runOf(4, slow, 0.01))
	holds(t, lines[0], "no significant difference")
	if g := d.Most(0); g != nil {
		t.Errorf("%+v is named", g)
	}
}

// An operator that became slower comes before a step whose times vary too much to show it.
func TestOutcomeNamesAnOperatorBeforeAnUnsteadyStep(t *testing.T) {
	slow := append([]work(nil), fused...)
	slow[1].us *= 1.2
	base, now := runOf(4, fused, 0.01), runOf(4, slow, 0.01)
	for _, tr := range []*trace.Trace{base, now} {
		for i := range tr.Steps {
			s := &tr.Steps[i]
			ns, _ := s.CPU.TotalNS.NS()
			unsteady := trace.Measured(ns + int64(i*7%30)*1e6)
			s.CPU.TotalNS, s.GPU.SpanNS = unsteady, unsteady
		}
	}
	d, lines := outcome(t, base, now)
	if d.Step().Times.Significant {
		t.Fatalf("step: %+v", d.Step().Times)
	}
	holds(t, lines[0], "mlp.gate+up+silu +160", "(+20 %)", "step: no significant difference", "noise ± ")
	for i, line := range lines {
		holds(t, line, "mlp.gate+up+silu")
		if i > 0 && len(line) > len(lines[i-1]) {
			t.Errorf("%q is longer than %q", line, lines[i-1])
		}
	}
}

// A short line has the place of a significant difference, and both times of one that is not significant.
func TestShortOutcomesKeepWhatMatters(t *testing.T) {
	for _, c := range []struct {
		base []work
		want string
	}{{unfused, "most in mlp.gate+up+silu"}, {fused, "0.89 → 0.89 ms"}} {
		_, lines := outcome(t, runOf(4, c.base, 0.01), runOf(4, fused, 0.01))
		for i, line := range lines[:len(lines)-1] {
			holds(t, line, c.want)
			if i > 0 && len(line) > len(lines[i-1]) {
				t.Errorf("%q is longer than %q", line, lines[i-1])
			}
		}
	}
}

// Too few times say nothing about operators.
func TestOutcomeOfOneStepNamesNothing(t *testing.T) {
	x := analyze.NewIndex(runOf(4, fused, 0.01))
	d, err := diff.Of(ctx, diff.Side{Index: x, Selection: x.Step(3)},
		diff.Side{Index: x, Selection: x.Step(4)})
	if err != nil {
		t.Fatal(err)
	}
	lines := comparison.Outcome(d)
	holds(t, lines[0], "s4 against s3: too few times to compare", "ms a timed decode step")
	if strings.Contains(lines[0], "operator") {
		t.Error(lines[0])
	}
}

// Fewer dispatches can leave the GPU idle for less time. The operators then have little of the difference.
func TestOutcomeSeparatesIdleTime(t *testing.T) {
	base, now := runOf(4, unfused, 0.01), runOf(4, fused, 0.01)
	for i := range base.Steps {
		s := &base.Steps[i]
		ns, _ := s.CPU.TotalNS.NS()
		s.CPU.TotalNS, s.GPU.SpanNS = trace.Measured(ns+5e6), trace.Measured(ns+5e6)
	}
	_, lines := outcome(t, base, now)
	holds(t, lines[0], "Fusion: 5.32 ms faster", "largest in mlp.gate+up+silu",
		"all isolated times together -320")
}

// Timing blocks or dispatches makes a step longer, so both the sentence and the rows of whole steps say it.
func TestStepsTimedInDetailAreNamed(t *testing.T) {
	for timing, timed := range map[trace.Timing]bool{
		trace.TimingOff: false, trace.TimingStep: false, trace.TimingBlock: true, trace.TimingDispatch: true,
	} {
		for _, engine := range []string{"", "llama.cpp"} { // only our timing is known to make steps longer
			base, now := runOf(4, fused, 0.01), runOf(4, fused, 0.01)
			for _, tr := range []*trace.Trace{base, now} {
				tr.Engine = engine
				for i := range tr.Steps {
					tr.Steps[i].Timing = timing
				}
			}
			d, lines := outcome(t, base, now)
			want := timed && engine == ""
			for i := range d.Totals {
				if got := d.Totals[i].Timed; got != want {
					t.Errorf("%s of %q: %+v, want %v", timing, engine, d.Totals[i], want)
				}
			}
			table := comparison.Of(d, false)
			rows := 0
			for i := range table.Rows {
				if !strings.HasPrefix(table.Rows[i].Key, "steps/decode.") {
					continue
				}
				rows++
				name := table.Cell(i, table.Column("name")).Text
				if got := strings.Contains(name, "timed decode step"); got != want {
					t.Errorf("%s of %q: %q", timing, engine, name)
				}
			}
			if got := strings.Contains(lines[0], "a timed decode step"); got != want || rows != 2 {
				t.Errorf("%s of %q: %q, %d rows", timing, engine, lines[0], rows)
			}
		}
	}
}

// A difference from a fast baseline is larger than all times of the baseline, so it is no share of them.
func TestHeadlineHasNoShareAboveTheWhole(t *testing.T) {
	for times, share := range map[float64]string{2: "95.2 % of all isolated times", 10: ""} {
		slow := append([]work(nil), fused...)
		slow[1].us *= times
		d, _ := outcome(t, runOf(4, fused, 0.01), runOf(4, slow, 0.01))
		text := comparison.Headline(d)
		holds(t, text, "Slower: kernel gate, ", share)
		if share == "" && strings.Contains(text, "isolated") {
			t.Error(text)
		}
	}
}

// If dispatches were joined in order, only the total can differ significantly. It is the headline then.
func TestHeadlineOfATotalAlone(t *testing.T) {
	base, now := runOf(4, []work{{"a", nil, 10}}, 0.01), runOf(4, []work{{"b", nil, 30}}, 0.01)
	for _, tr := range []*trace.Trace{base, now} {
		for i := range tr.Steps { // as in a profile without times of whole steps
			tr.Steps[i].CPU.TotalNS, tr.Steps[i].GPU = trace.Time{}, nil
		}
	}
	d, _ := outcome(t, base, now)
	if text := comparison.Headline(d); d.Joined != join.ByOrder ||
		!strings.HasPrefix(text, "Slower: sum of isolated times, ") {
		t.Errorf("joined %v: %s", d.Joined, text)
	}
}

func TestSubjectNamesTheSettings(t *testing.T) {
	for want, change := range map[string]func(base, now *trace.Trace){
		"Same settings": func(_, _ *trace.Trace) {},
		"Possibly another model (one side does not name it)": func(_, now *trace.Trace) {
			now.Model.Name = ""
		},
		"Possibly another model (neither side names it)": func(base, now *trace.Trace) {
			base.Model.Name, now.Model.Name = "", ""
		},
		"No known setting differs": func(base, now *trace.Trace) {
			base.Device.Name, now.Device.Name = trace.ImportedDevice, trace.ImportedDevice
		},
		"Same settings, positions 512–541 instead of 0–29": func(_, now *trace.Trace) {
			for i := range now.Steps {
				now.Steps[i].Position += 512
			}
		},
		"Static grids":  func(_, now *trace.Trace) { now.Static = true },
		"Dynamic grids": func(base, _ *trace.Trace) { base.Command = []string{"gpuscope", "--static"} },
		"Routes linear=gemv instead of by default": func(_, now *trace.Trace) {
			now.Command = []string{"gpuscope", "run", "--route", "linear=gemv"}
		},
		"Fusion rules gate_up instead of on": func(base, now *trace.Trace) {
			base.Graph.Ops[0].Parts = []string{"a", "b"}
			now.Command = []string{"gpuscope", "--fuse=gate_up"}
		},
		"Weights Q8_0 instead of Q4_0": func(base, now *trace.Trace) {
			base.Model.Quantization, now.Model.Quantization = "Q4_0", "Q8_0"
		},
		"Model small with 4 layers instead of 16": func(base, now *trace.Trace) {
			base.Model = trace.Model{Name: "small", Layers: 16, Parameters: 4000}
			now.Model = trace.Model{Name: "small", Layers: 4, Parameters: 1000}
		},
		"Model small with dim 2,048 instead of 4,096, ffn 5 instead of 6, 1 more size": func(
			base, now *trace.Trace,
		) {
			dims := map[string]int{"dim": 4096, "ffn": 6, "kv_heads": 8, "vocab": 3}
			base.Model = trace.Model{Name: "small", Layers: 2, Dims: dims}
			dims = map[string]int{"dim": 2048, "ffn": 5, "kv_heads": 4}
			now.Model = trace.Model{Name: "small", Layers: 2, Dims: dims}
		},
		"Model small with 1 parameter instead of 2, Weights Q8_0 instead of Q4_0": func(
			base, now *trace.Trace,
		) {
			base.Model = trace.Model{Name: "small", Parameters: 2, Quantization: "Q4_0"}
			now.Model = trace.Model{Name: "small", Parameters: 1, Quantization: "Q8_0"}
		},
		"Model small instead of large": func(base, now *trace.Trace) {
			base.Model = trace.Model{Name: "large", Layers: 2}
			now.Model = trace.Model{Name: "small", Layers: 1}
		},
		"Build 1.1 instead of 1.0, positions 512–541 instead of 0–29": func(_, now *trace.Trace) {
			now.Producer.Version = "1.1"
			for i := range now.Steps {
				now.Steps[i].Position += 512
			}
		},
		"Engine llama.cpp instead of gpuscope": func(base, now *trace.Trace) { // imported without a model
			for i := range base.Steps {
				base.Steps[i].Position += 512 // the positions of the other engine are not known
			}
			base.Engine, base.Model = "gpuscope", trace.Model{Name: "small", Layers: 2, Quantization: "Q4_0"}
			now.Engine, now.Model = "llama.cpp", trace.Model{}
		},
		"KV cache f16 instead of f32": func(base, now *trace.Trace) {
			for tr, dtype := range map[*trace.Trace]string{base: "f32", now: "f16"} {
				tr.Graph.Values = []trace.Value{
					{Name: "k", Kind: "tensor", DType: dtype, Role: trace.RoleState},
				}
			}
		},
		"Another source of norm": func(_, now *trace.Trace) {
			now.Plans[0].Kernel = "norm+0123abcd"
		},
		"Build 1.1 instead of 1.0": func(_, now *trace.Trace) { now.Producer.Version = "1.1" },
		"Static grids, Propagation fixpoint instead of topological": func(base, now *trace.Trace) {
			now.Static, now.Producer.Version = true, "1.1"
			base.Command = []string{"gpuscope", "--propagation=topological"}
			now.Command = []string{"gpuscope", "--propagation", "fixpoint"}
		},
	} {
		base, now := runOf(2, fused, 0.01), runOf(2, fused, 0.01)
		change(base, now)
		d, _ := outcome(t, base, now)
		if got, _ := comparison.Subject(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Operators that are on one side only are not said to be the same.
func TestOutcomeCountsTheComparedOperators(t *testing.T) {
	others := []work{{"norm", nil, 10}, {"x", nil, 200}}
	_, lines := outcome(t, runOf(4, fused, 0.01), runOf(4, others, 0.01))
	holds(t, lines[0], "no significant difference", "of 1 compared operator")
	others[0].name = "y"
	unrelated := runOf(4, others, 0.01)
	unrelated.Graph.Ops[0].Name = runOf(1, fused, 0.01).Graph.Ops[0].Name // so that it is not in order
	d, lines := outcome(t, runOf(4, fused, 0.01), unrelated)
	if d.Joined != join.ByOperator {
		t.Errorf("joined %v", d.Joined)
	}
	for _, line := range lines {
		if strings.Contains(line, "no operator differs") {
			t.Error(line)
		}
	}
}

// Two selections of one run are named.
func TestSubjectNamesTheSelections(t *testing.T) {
	x := analyze.NewIndex(runOf(2, fused, 0.01))
	d, err := diff.Of(ctx, diff.Side{Index: x, Selection: x.Range(1, 9)},
		diff.Side{Index: x, Selection: x.Range(10, 20)})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := comparison.Subject(d); got != "s10–s20 against s1–s9" {
		t.Error(got)
	}
}
