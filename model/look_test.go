package model

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
	"gpuscope/trace"
)

// value returns the id of a value by name.
func (r *rig) value(name string) trace.ValueID {
	r.t.Helper()
	r.wait() // for events that would change the trace meanwhile
	for _, v := range r.mirror.Trace.Graph.Values {
		if v.Name == name {
			return v.ID
		}
	}
	r.t.Fatalf("no value has the name %s", name)
	return 0
}

func (r *rig) look(at session.LookAt) *session.Tensor {
	r.t.Helper()
	reply, err := r.s.Do(context.Background(), session.Command{Kind: session.Look, At: &at})
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.Tensor
}

// replays makes the device return the given numbers as f32 when a session reads a value.
func (r *rig) replays(number func(i int) float32) {
	was := r.dev.OnRead
	r.dev.OnRead = func(label string, offset uint64, dst []byte) {
		if label != "read" {
			was(label, offset, dst)
			return
		}
		for i := range len(dst) / 4 {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(number(i)))
		}
	}
}

func TestInspectionShowsAPageAndStatistics(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	wild := []float32{1, -3, 0, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, 2}
	r.replays(func(i int) float32 {
		if i < len(wild) {
			return wild[i]
		}
		return 0.5
	})
	v := r.value("embed")
	got := r.look(session.LookAt{Value: v, Count: 8, Statistics: true})
	if !slices.Equal(got.Dims, []int{1, 5, tinyDim}) || got.DType != "f32" || *got.Step != 0 ||
		got.After == nil {
		t.Errorf("%+v", got)
	}
	if n := got.Numbers; len(n) != 8 || n[1] != -3 || !math.IsNaN(float64(n[3])) ||
		!math.IsInf(float64(n[5]), -1) {
		t.Errorf("page %v", n)
	}
	s := got.Statistics
	if s.Elements != 5*tinyDim || s.NaN != 1 || s.PosInf != 1 || s.NegInf != 1 || s.Zeros != 2 ||
		*s.FirstOdd != 3 || s.Min != -3 ||
		s.Max != 2 {
		t.Errorf("statistics %+v", s)
	}
	n, sum, squares := 0.0, 0.0, 0.0
	for i := range 5 * tinyDim {
		x := 0.5
		if i < len(wild) {
			x = float64(wild[i])
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	std := math.Sqrt(squares/n - sum/n*sum/n)
	if math.Abs(s.Mean-sum/n) > 1e-12 || math.Abs(s.Std-std) > 1e-12 {
		t.Errorf("mean %v, want %v; std %v, want %v", s.Mean, sum/n, s.Std, std)
	}
	total := 0
	for _, c := range s.Histogram {
		total += c
	}
	if total != s.Finite() || s.Histogram[0] != 1 || s.Histogram[len(s.Histogram)-1] != 1 {
		t.Errorf("histogram %v of %d", s.Histogram, s.Finite())
	}
}

func TestAPageStartsAtAnyElement(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.dev.OnRead = nil // reads then return what was written, which is the prompt
	for _, at := range []struct{ offset, count, want int }{
		{0, 5, 5}, {1, 2, 2}, {3, 9, 2}, {5, 4, 0}, {99, 1, 0},
	} {
		got := r.look(session.LookAt{Value: r.value("tokens"), Offset: at.offset, Count: at.count})
		if len(got.Numbers) != at.want {
			t.Fatalf("%+v: %v", at, got.Numbers)
		}
		for i, n := range got.Numbers {
			if want := ids(5)[at.offset+i]; int(n) != want {
				t.Errorf("%+v: element %d is %v, want %d", at, i, n, want)
			}
		}
	}
}

// A row in interleaved layout is shown in column order.
func TestRowIsReadInColumnOrder(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.replays(func(i int) float32 { return float32(i) })
	for _, name := range []string{"layers.0.attn.sdpa.spread", "layers.1.mlp.norm.weighted"} {
		got := r.look(session.LookAt{Value: r.value(name), Offset: 3, Count: 6, Statistics: true})
		if want := []trace.Number{3, 8, 9, 10, 11, 16}; !slices.Equal(got.Numbers, want) {
			t.Errorf("%s: %v, want %v", name, got.Numbers, want)
		}
		if s := got.Statistics; s.Elements != 64 || s.Max != 63 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A look at the newest step runs its dispatches again only up to the requested one. A look at another page of
// the same value runs nothing.
func TestALookRunsNoMoreThanItMust(t *testing.T) {
	r := newRig(t, Options{Fuse: "off"}) // every dispatch runs
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	dispatches := func(at session.LookAt) int {
		before := r.dev.Count(fake.Run)
		r.look(at)
		return r.dev.Count(fake.Run) - before
	}
	step := len(r.mirror.Trace.Steps[1].Dispatches)
	v, third, first := r.value("embed"), trace.DispatchID(2), 0
	none := func(n int) bool { return n == 0 }
	three := func(n int) bool { return n == 3 }
	some := func(n int) bool { return n > 0 && n < step }
	more := func(n int) bool { return n > step }
	for _, test := range []struct {
		what string
		at   session.LookAt
		want func(n int) bool
	}{
		{"the newest step", session.LookAt{Value: v, Count: 4}, some},
		{"another page", session.LookAt{Value: v, Offset: 4, Count: 4}, none},
		{"the third dispatch", session.LookAt{Value: r.value("tokens"), After: &third, Count: 1}, three},
		{"an older step", session.LookAt{Value: v, Step: &first, Count: 1}, more},
		{"the same again", session.LookAt{Value: v, Step: &first, Count: 2}, none},
		{"a constant", session.LookAt{Value: r.value("output_norm.weight"), Count: 4}, none},
	} {
		if n := dispatches(test.at); !test.want(n) {
			t.Errorf("%s: %d dispatches ran, a step has %d", test.what, n, step)
		}
	}
	// The text continues as if nothing had been inspected, and the trace still records each step relative to
	// the previous step of the text.
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 3, position 8, "fghi"`)
	p := r.mirror.Trace.Steps[3].Resize.Passes
	if len(p) > 0 && slices.Contains(p[0].Dirty, r.value("tokens")) {
		t.Errorf("the next step is recorded as one whose shape changed: %+v", p)
	}
}

// A quantized matrix is shown as dequantized numbers.
func TestALookAtAMatrixReadsItsFormat(t *testing.T) {
	r := newRig(t, Options{})
	want := make([]float32, tinyVocab*tinyDim)
	random := rand.New(rand.NewPCG(1, 2)) // the seed with which tiny fills its first matrix
	for i := range want {
		want[i] = float32(random.NormFloat64()) / 8
	}
	v := r.value("token_embd.weight")
	offset := 7*tinyDim + 5
	got := r.look(session.LookAt{Value: v, Offset: offset, Count: 200, Statistics: true}) // before any step
	if got.DType != "Q4_0" || !slices.Equal(got.Dims, []int{tinyVocab, tinyDim}) || got.Step != nil ||
		got.After != nil || len(got.Numbers) != 200 {
		t.Fatalf("%+v", got)
	}
	for i, n := range got.Numbers {
		if math.Abs(float64(n)-float64(want[offset+i])) > 0.04 { // half a quantization step of 4 bits
			t.Fatalf("element %d is %v, it was %v", i, n, want[offset+i])
		}
	}
	if s := got.Statistics; math.Abs(s.Std-0.125) > 0.005 || s.Elements != len(want) {
		t.Errorf("statistics %+v", s)
	}
}

func TestALookSaysWhatItCannotShow(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	try := func(name string, at *session.LookAt) error {
		t.Helper()
		err := r.try(context.Background(), session.Command{Kind: session.Look, At: at})
		golden.Error(name, err)
		return err
	}
	try("before any step", &session.LookAt{Value: r.value("embed")})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	try("a value that is fused away", &session.LookAt{Value: r.value("layers.0.attn.sdpa"), Count: 1})
	r.do(session.Command{Kind: session.Previous})
	one, late := 1, trace.DispatchID(9999)
	try("no value", nil)
	try("a negative value", &session.LookAt{Value: -1})
	try("a value past the last", &session.LookAt{Value: 99999})
	try("a SymInt", &session.LookAt{Value: r.value("pos")})
	try("a negative count", &session.LookAt{Value: r.value("embed"), Count: -1})
	try("too many elements", &session.LookAt{Value: 0, Count: session.MostNumbers + 1})
	try("too many rows", &session.LookAt{Value: 0, Count: 128, Rows: 129, Stride: 1})
	try("a heat map without rows", &session.LookAt{Value: 0, Map: &session.MapAt{Width: 5, Columns: 1}})
	try("a baseline of a constant", &session.LookAt{
		Value: r.value("output_norm.weight"), Baseline: &session.BaselineAt{},
	})
	try("a baseline that was undone", &session.LookAt{
		Value: r.value("embed"), Baseline: &session.BaselineAt{Step: one},
	})
	try("a baseline after a dispatch that did not run", &session.LookAt{
		Value: r.value("embed"), Baseline: &session.BaselineAt{After: &late},
	})
	try("a step that was undone", &session.LookAt{Value: r.value("embed"), Step: &one})
	try("a dispatch that did not run", &session.LookAt{Value: r.value("embed"), After: &late})
	fault := errors.New("injected")
	r.dev.FailNth(fake.CopyOut, 1, fault)
	err := try("a copy that fails", &session.LookAt{Value: r.value("embed"), Count: 1})
	if !errors.Is(err, fault) {
		t.Errorf("a copy that fails: %v", err)
	}
	r.look(session.LookAt{Value: r.value("embed"), Count: 1})
}

func TestALookAtAWindowOfAMatrix(t *testing.T) {
	r := newRig(t, Options{})
	v := r.value("token_embd.weight")
	all := r.look(session.LookAt{Value: v, Count: 20 * tinyDim}).Numbers
	got := r.look(session.LookAt{Value: v, Offset: 3*tinyDim + 7, Count: 5, Rows: 4, Stride: tinyDim}).Numbers
	var want []trace.Number
	for row := 3; row < 7; row++ {
		want = append(want, all[row*tinyDim+7:][:5]...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	end := r.look(session.LookAt{
		Value: v, Offset: (tinyVocab - 1) * tinyDim, Count: 9, Rows: 3, Stride: tinyDim,
	})
	if len(end.Numbers) != 9 {
		t.Errorf("rows beyond the last: %v", end.Numbers)
	}
}

// A value whose memory has been reused is refused, even directly after another value was inspected after the
// same dispatch.
func TestInspectingAnOverwrittenValueIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	r.do(promptOf(5))
	last := trace.DispatchID(0)
	for _, d := range r.mirror.Trace.Steps[0].Dispatches {
		last = r.mirror.Trace.Plans[d.Plan].Dispatch
	}
	r.look(session.LookAt{Value: r.value("tokens"), After: &last, Count: 1})
	err := r.try(context.Background(), session.Command{
		Kind: session.Look,
		At:   &session.LookAt{Value: r.value("embed"), After: &last, Count: 1},
	})
	golden.Error("embed after the last dispatch", err)
}

// The value at the step of the baseline is subtracted. It is read once, even if the window of elements moves.
func TestALookSubtractsTheBaseline(t *testing.T) {
	r := newRig(t, Options{Fuse: "off"})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	v, zero := r.value("embed"), 0
	var reads int
	at := func(step float32) {
		r.replays(func(i int) float32 { reads++; return step*step*10 + step*float32(i) })
	}
	at(3)
	was := r.look(session.LookAt{Value: v, Count: 4, Statistics: true, Step: &zero})
	if was.Baseline != nil || was.Difference != nil || len(was.Dims) != 3 || was.Dims[1] != 5 {
		t.Fatalf("%+v", was)
	}
	last := r.dev.OnRead
	r.dev.OnRead = func(label string, offset uint64, dst []byte) { // the first read is the baseline's
		last(label, offset, dst)
		if label == "read" {
			at(1)
		}
	}
	look := session.LookAt{
		Value: v, Count: 4, Statistics: true, Baseline: &session.BaselineAt{Step: zero},
		Map: &session.MapAt{Width: tinyDim, Rows: 1, Columns: tinyDim / 2},
	}
	got := r.look(look)
	if !slices.Equal(got.Dims, []int{1, 1, tinyDim}) || !slices.Equal(got.Baseline.Whole, got.Dims) ||
		!slices.Equal(got.Baseline.Dims, []int{1, 5, tinyDim}) || got.Baseline.Step != 0 || *got.Step != 2 ||
		got.Baseline.After == nil {
		t.Errorf("%+v of %+v", got, got.Baseline)
	}
	if want := []trace.Number{-80, -82, -84, -86}; !slices.Equal(got.Numbers, want) {
		t.Errorf("%v, want %v", got.Numbers, want)
	}
	const most = 80 + 2*(tinyDim-1)
	if d := got.Difference; d.MaxAbs != most || *d.MaxAt != tinyDim-1 || d.Differ != tinyDim ||
		math.Abs(d.MeanAbs-(80+tinyDim-1)) > 1e-9 {
		t.Errorf("%+v", d)
	}
	if s := got.Statistics; s.Min != -most || s.Max != -80 {
		t.Errorf("%+v", s)
	}
	if want := []trace.Number{80 + 2*(tinyDim/2-1), most}; !slices.Equal(got.Map.Cells, want) {
		t.Errorf("%+v, want cells %v", got.Map, want)
	}
	ran := r.dev.Count(fake.Run)
	look.Offset, look.Statistics, look.Map = 2, false, nil
	if next := r.look(look); r.dev.Count(fake.Run) != ran || next.Numbers[0] != -84 {
		t.Errorf("%v, and %d dispatches ran", next.Numbers, r.dev.Count(fake.Run)-ran)
	}
	r.do(session.Command{Kind: session.Next})
	if r.look(look); r.dev.Count(fake.Run) == ran {
		t.Error("after another step, nothing ran to read the baseline again")
	}
}
