package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
)

// What the graph holds is as far from the file's weights as the quantiser says, whatever the file's type is.
func TestQuantizedMatrixIsAsFarFromTheFilesAsIsSaid(t *testing.T) {
	t.Parallel()
	const rows, cols = 70, 128
	random := rand.New(rand.NewPCG(5, 6))
	values := make([]float32, rows*cols)
	for i := range values { // such as each type has exactly
		values[i] = float32(random.IntN(255)-127) / 64
	}
	for name, put := range map[string]func(*gguftest.Builder){
		"F32": func(b *gguftest.Builder) { b.F32("m", []int{rows, cols}, values) },
		"F16": func(b *gguftest.Builder) { b.F16("m", []int{rows, cols}, values) },
	} {
		b := gguftest.New()
		b.Set("general.architecture", "llama")
		put(b)
		q, err := arch.NewQuantizer("q4", 64)
		if err != nil {
			t.Fatal(err)
		}
		var worst, noise float64
		for i, got := range matrixOf(t, b, q, rows, cols) {
			gap := math.Abs(got - float64(values[i]))
			worst, noise = max(worst, gap), noise+gap*gap
		}
		if len(q.Losses) != 1 {
			t.Fatalf("%s: %d losses, want one matrix once", name, len(q.Losses))
		}
		l := q.Losses[0]
		if math.Abs(worst-l.Worst) > 1e-6 || math.Abs(noise-l.Noise) > 1e-4*noise || l.From != name {
			t.Errorf("%s: at most %v off and %v in all, told %+v", name, worst, noise, l)
		}
		if db := l.Decibels(); db < 18 || db > 30 {
			t.Errorf("%s: SNR of %v dB for uniform weights in groups of 64", name, db)
		}
	}
}

func TestQuantizedModelSaysWhatItCost(t *testing.T) {
	t.Parallel()
	f := newTinyFolder()
	f.ones = true
	dir := f.write(t)
	var said string
	o := Options{Path: dir, Driver: &fake.Driver{All: []fake.Options{{}}}, Quantize: "q4"}
	s, err := Open(t.Context(), o, func(e session.Event) {
		if e.Log != nil {
			said += e.Log.Text + "\n"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var mirror session.Mirror
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for e := range s.Events() {
		if err := mirror.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	cost := mirror.Trace.Model.Quantized
	if cost == nil || cost.Format != "q4gsw" || cost.GroupSize != 32 || cost.Matrices != 9 ||
		!slices.Equal(cost.From, []string{"BF16"}) || !math.IsInf(float64(cost.SNRdB), 1) || cost.MSE != 0 ||
		cost.Worst == "" {
		t.Errorf("the trace has %+v", cost)
	}
	got := mirror.Trace.Model.Quantization
	const want = "q4gsw in groups of 32, 9 matrices quantised from BF16: SNR +Inf dB" // ones lose nothing
	if !strings.HasPrefix(got, want) || !strings.Contains(said, want) {
		t.Errorf("the trace has %q, the log\n%s", got, said)
	}
}

func TestQuantizingIsRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	dir := newTinyFolder().write(t)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Path: dir, Quantize: "q5"}, `--quantize "q5": only q4 is supported`},
		{Options{Path: dir, Quantize: "q4", GroupSize: 48}, "--group-size 48: want 32, 64 or 128"},
		{Options{Path: dir, GroupSize: 32}, "--group-size 32: only valid with --quantize q4"},
		{Options{Path: dir, Quantize: "q4", GroupSize: 128}, "rows of 64 elements; use groups of 32 or 64"},
		{Options{Quantize: "q4"}, "has no matrix of F32, F16 or BF16"}, // the embedded model
	} {
		err := planFolder(c.o.Path, c.o)
		if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
