package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/quantize"
	"gpuscope/session"
)

// The quantizer reports the error that the graph's matrix has against the file's weights, for every type of
// file.
func TestQuantizedMatrixHasTheReportedError(t *testing.T) {
	t.Parallel()
	const rows, cols = 70, 128
	random := rand.New(rand.NewPCG(5, 6))
	values := make([]float32, rows*cols)
	for i := range values { // values that each type can represent exactly
		values[i] = float32(random.IntN(255)-127) / 64
	}
	for name, put := range map[string]func(*gguftest.Builder){
		"F32": func(b *gguftest.Builder) { b.F32("m", []int{rows, cols}, values) },
		"F16": func(b *gguftest.Builder) { b.F16("m", []int{rows, cols}, values) },
	} {
		b := gguftest.New()
		b.Set("general.architecture", "llama")
		put(b)
		q, err := quantize.New("q4", 64)
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
			t.Errorf("%s: largest error %v and total %v, reported %+v", name, worst, noise, l)
		}
		if db := l.Decibels(); db < 18 || db > 30 {
			t.Errorf("%s: SNR of %v dB for uniform weights in groups of 64", name, db)
		}
	}
}

func TestQuantizedModelSaysWhatItCost(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
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
	golden.Text("quantization", got) // the SNR is infinite, because weights of 1 lose nothing
	if !strings.Contains(said, got) {
		t.Errorf("the trace has %q, the log\n%s", got, said)
	}
}

func TestQuantizingIsRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	dir := newTinyFolder().write(t)
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"another format", Options{Path: dir, Quantize: "q5"}},
		{"another group size", Options{Path: dir, Quantize: "q4", GroupSize: 48}},
		{"a group size alone", Options{Path: dir, GroupSize: 32}},
		{"groups longer than a row", Options{Path: dir, Quantize: "q4", GroupSize: 128}},
		{"the embedded model, of 4 bits", Options{Quantize: "q4"}},
	} {
		err := planFolder(c.o.Path, c.o)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", c.name, err)
		}
		golden.Text(c.name, inFolder(err, dir))
	}
}
