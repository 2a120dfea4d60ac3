package arch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// Rotation is how a decoder turns its queries and keys by their position: Su et al., RoFormer (2021),
// equation 15, and what was added to it so that texts may be longer than those of the training.
type Rotation struct {
	Dims  int // of a head that are turned, the first ones; 0 for all
	Base  float64
	Scale float64 // of every angle: 1 / the factor by which positions are squeezed
	// Gain is what cosines and sines are multiplied by, and so scores by its square; 0 for 1.
	Gain float64
	// Divisors are what the frequency of each pair is divided by; nil for 1. Past a context of Original
	// positions, where that is not 0, LongDivisors take their place.
	Divisors, LongDivisors []float64
	Original               int
}

// ggufRotations are the metadata keys of a rotation, after the architecture's prefix.
var ggufRotations = []string{
	"rope.freq_base", "rope.scale_linear",
	"rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor",
	"rope.scaling.original_context_length",
}

// ggufRotation reads a file's rotation as llama.cpp does: where a type of scaling is not stated it is linear,
// its factor may stand under the key of old files, and a factor of 0 is none. A type that is stated to be
// linear has a factor. YaRN by a factor of 1 changes nothing.
func ggufRotation(r *configReader, headDim int) Rotation {
	rot := Rotation{
		Dims: r.intOr("rope.dimension_count", headDim, 2, headDim),
		Base: r.float("rope.freq_base", 1, 1e12), Scale: 1,
		Gain:     r.floatOr("rope.scaling.attn_factor", 1, 1e-6, 1e6),
		Original: r.intOr("rope.scaling.original_context_length", 0, 0, math.MaxInt32),
	}
	factorKey := "rope.scaling.factor"
	if !r.has(factorKey) {
		factorKey = "rope.scale_linear"
	}
	factor := r.floatOr(factorKey, 0, 0, 1e6)
	if factor != 0 && factor < 1e-6 {
		r.errorf(factorKey, "%g, want 0 or %g to %g", factor, 1e-6, 1e6)
	}
	kind := r.stringOr("rope.scaling.type", "")
	if kind == "linear" && factor == 0 {
		r.errorf("rope.scaling.factor", "missing or 0, and rope.scaling.type is linear: want %g to %g", 1e-6,
			1e6)
	}
	switch {
	case kind == "none", kind == "yarn" && (factor == 0 || factor == 1):
	case kind == "", kind == "linear", kind == "longrope":
		if factor != 0 {
			rot.Scale = 1 / factor
		}
	default:
		r.errorf("rope.scaling.type", "not yet: rope scaling %q; this version runs none, linear, longrope",
			printable.Short(kind, 80))
	}
	return rot
}

// turned is how many dims of a head are.
func (r *Rotation) turned(headDim int) int { return cmp.Or(r.Dims, headDim) }

// rotary adds the operator that turns queries and keys by their positions.
type rotary func(name string, q, k graph.ValueID) (yq, yk graph.ValueID)

// pairing is which dims of a head are turned together. What it adds to the graph has a prefix before its
// names.
type pairing struct {
	part   bool // it takes rotations of a part of the head
	rotary func(m *Decoder, prefix string, r *Rotation) rotary
}

// neighbours pairs dims 2i and 2i + 1.
var neighbours = pairing{rotary: func(m *Decoder, prefix string, r *Rotation) rotary {
	seq := basic.SymSize(m.Builder, prefix+"seq", m.tokens, 1)
	cos, sin := m.tables(prefix, r, 1)
	cos = basic.Slice(m.Builder, prefix+"slice cos", cos, 0, kind.Sym(m.pos), kind.Sym(seq))
	sin = basic.Slice(m.Builder, prefix+"slice sin", sin, 0, kind.Sym(m.pos), kind.Sym(seq))
	return func(name string, q, k graph.ValueID) (yq, yk graph.ValueID) {
		return ops.ApplyRotaryEmb(m.Builder, name, q, k, cos, sin)
	}
}}

// halves pairs dims i and i + d/2 of the first d of a head.
var halves = pairing{part: true, rotary: func(m *Decoder, prefix string, r *Rotation) rotary {
	cos, sin := m.tables(prefix, r, 2)
	return func(name string, q, k graph.ValueID) (yq, yk graph.ValueID) {
		return ops.ApplyRotaryEmbHF(m.Builder, name, q, k, cos, sin, kind.Sym(m.pos))
	}
}}

// tables are the cosine and the sine of every angle, so many times over: for positions [0, context) and pairs
// i of d dims that are turned, f32 [context, times d/2].
func (m *Decoder) tables(prefix string, r *Rotation, times int) (cos, sin graph.ValueID) {
	turned, divisors := r.turned(m.HeadDim), m.divisors(r)
	table := func(name string, f func(float64) float64) graph.ValueID {
		dims := []int{m.Context, times * turned / 2}
		return m.Constant(prefix+name, graph.F32, dims, func() ([]byte, error) {
			d, err := divisors()
			if err != nil {
				return nil, err
			}
			return r.table(m.Context, turned, times, d, f), nil
		})
	}
	return table("rope_cos", math.Cos), table("rope_sin", math.Sin)
}

// divisors are what a rotation divides the frequency of each pair by, nil for 1. A file may have them in
// tensors: for any context, as those of Llama 3.1, or one for short and one for long contexts, as Phi 3. The
// tensors are of the model's rotation, not of one that only layers with a window have.
func (m *Decoder) divisors(r *Rotation) func() ([]float64, error) {
	list, name := r.Divisors, m.Form.Names
	long := r.Original > 0 && m.Context > r.Original
	if long && r.LongDivisors != nil {
		list = r.LongDivisors
	}
	divisors := func() ([]float64, error) { return list, nil }
	if r != &m.Rope {
		return divisors
	}
	for _, t := range []struct {
		name string
		here bool
	}{{name.freqs, true}, {name.freqsShort, !long}, {name.freqsLong, long}} {
		if !m.W.has(t.name) {
			continue
		}
		if d := m.W.divisors(t.name, r.turned(m.HeadDim)/2); t.here {
			divisors = d
		}
	}
	return divisors
}

// table is a function of every angle, times the gain, so many times over, computed in float64.
func (r Rotation) table(context, d, times int, divisors []float64, f func(float64) float64) []byte {
	out, gain := make([]byte, 0, 4*context*times*d/2), cmp.Or(r.Gain, 1)
	frequency := make([]float64, d/2)
	for i := range frequency {
		frequency[i] = r.Scale * math.Pow(r.Base, -2*float64(i)/float64(d))
		if divisors != nil {
			frequency[i] /= divisors[i]
		}
	}
	for pos := range context {
		row := len(out)
		for _, w := range frequency {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(gain*f(float64(pos)*w))))
		}
		for once := out[row:]; len(out)-row < times*len(once); {
			out = append(out, once...)
		}
	}
	return out
}

// divisors are the numbers of a tensor that frequencies are divided by.
func (w *Weights) divisors(name string, n int) func() ([]float64, error) {
	t := w.floats(name, n)
	return func() ([]float64, error) {
		list, err := t.Floats()
		if err != nil {
			return nil, err
		}
		divisors := make([]float64, n)
		for i, x := range list {
			if divisors[i] = float64(x); !(x >= 1e-6 && x <= 1e6) { // NaN too
				return nil, fmt.Errorf("%s: tensor %s: factor %d is %g, want %g to %g", w.file.Name(), name,
					i, x, 1e-6, 1e6)
			}
		}
		return divisors, nil
	}
}
