package classes

import (
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/workclass"
)

// ran returns a run whose steps have the given times, in µs by operator. A negative time was not measured.
func ran(ops []trace.Op, joined trace.Joined, steps ...[]int64) *analyze.Index {
	t := &trace.Trace{Schema: trace.Schema}
	for i, o := range ops {
		o.ID = trace.OpID(i)
		t.Graph.Ops = append(t.Graph.Ops, o)
		t.Graph.Dispatches = append(t.Graph.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(i), Op: o.ID, Kernels: []string{"k"}, Joined: joined,
		})
		t.Plans = append(t.Plans, trace.Plan{ID: trace.PlanID(i), Dispatch: trace.DispatchID(i), Kernel: "k"})
	}
	for i, times := range steps {
		s := trace.Step{Index: i, Phase: trace.Decode, Timing: trace.TimingDispatch}
		for k, us := range times {
			d := trace.StepDispatch{Plan: trace.PlanID(k)}
			if us >= 0 {
				d.GPUNS = trace.Measured(us * 1000)
			}
			s.Dispatches = append(s.Dispatches, d)
		}
		t.Steps = append(t.Steps, s)
	}
	return analyze.NewIndex(t)
}

func op(name, kind string) trace.Op {
	layer := 0
	return trace.Op{Name: "layers.0.attn." + name, Kind: kind, Layer: &layer, Block: "attn"}
}

func all(t *testing.T, x *analyze.Index) analyze.Selection {
	t.Helper()
	s, err := x.ParseSelection("decode")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClassesStandBesideThoseOfTheBaseline(t *testing.T) {
	ours := ran([]trace.Op{op("q", "linear_f16"), op("o", "linear_f16"), op("k", "linear_f16")}, "",
		[]int64{10, 20, 5}, []int64{12, 20, 5}, []int64{14, 20, -1})
	theirs := ran([]trace.Op{op("q", "linear_f16"), op("norm", "rms_norm")}, trace.JoinedByTensor,
		[]int64{16, 4})
	c, err := Of(t.Context(), ours, analyze.Options{
		Selection: all(t, ours), Baseline: &analyze.Baseline{Index: theirs, Selection: all(t, theirs)},
	})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		class            workclass.Class
		now, base        float64
		nowRows, baseRow int
		difference       float64
		known            bool
	}
	var got []row
	for _, r := range append(slices.Clone(c.Rows), c.Total) {
		difference, known := r.DifferenceNS()
		got = append(got, row{
			r.Class, r.Now.Time.Median, r.Base.Time.Median, r.Now.Rows, r.Base.Rows, difference, known,
		})
	}
	want := []row{
		{workclass.QO, 32000, 16000, 2, 1, 16000, true},
		{workclass.KV, 5000, 0, 1, 0, 5000, true}, // the third step was not timed
		{workclass.Norms, 0, 4000, 0, 1, -4000, true},
		{"", 36000, 20000, 3, 2, 16000, true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %+v, want %+v", got, want)
	}
	if ratio, ok := c.Rows[0].Ratio(); !ok || ratio != 2 {
		t.Errorf("ratio %v, %v", ratio, ok)
	}
	if _, ok := c.Rows[1].Ratio(); ok {
		t.Error("a class that the baseline lacks has a ratio")
	}
	if j := c.Rows[0].Base.Joined; !slices.Equal(j, []trace.Joined{trace.JoinedByTensor}) {
		t.Errorf("joined by %v", j)
	}
}

func TestUnmeasuredClassHasNoDifference(t *testing.T) {
	x := ran([]trace.Op{op("q", "linear_f16")}, "", []int64{-1})
	c, err := Of(t.Context(), x, analyze.Options{Selection: all(t, x)})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := c.Rows[0].DifferenceNS(); known || c.Rows[0].Now.Rows != 1 {
		t.Errorf("row %+v", c.Rows[0])
	}
}
