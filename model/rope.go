package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/internal/printable"
	"gpuscope/ops"
)

// rotation is how a decoder turns its queries and keys by their position: Su et al., RoFormer (2021),
// equation 15, and what was added to it so that texts may be longer than those of the training.
type rotation struct {
	Base  float64
	Scale float64 // of every angle: 1 / the factor by which positions are squeezed
	// Divisors are what the frequency of each pair is divided by; nil for 1.
	Divisors []float64
}

// rotationKeys are the metadata keys of a rotation that this version knows, behind the architecture's prefix.
// Each other one would change the angles.
var rotationKeys = []string{
	"rope.dimension_count", "rope.freq_base", "rope.scale_linear",
	"rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor",
	// What these two tell of the training changes nothing where the scaling is linear.
	"rope.scaling.original_context_length", "rope.scaling.finetuned",
}

// ggufRotation reads a file's rotation as llama.cpp does: where a type of scaling is not stated it is linear,
// its factor may stand under the key of old files, and a factor of 0 is none.
func ggufRotation(r *configReader, headDim int) rotation {
	for _, key := range r.f.Keys() {
		if own, ok := strings.CutPrefix(key, r.prefix); ok && strings.HasPrefix(own, "rope.") &&
			!slices.Contains(rotationKeys, own) {
			r.errorf(printable.Short(own, 80), "not yet: this version does not know what it does to the rotation")
		}
	}
	r.hold(only{"rope.dimension_count", headDim, "a rotation of a part of the head"})
	rot := rotation{Base: r.floatOr("rope.freq_base", 10000, 1, 1e12), Scale: 1}
	factorKey := "rope.scaling.factor"
	if !r.has(factorKey) {
		factorKey = "rope.scale_linear"
	}
	factor := r.floatOr(factorKey, 0, 0, 1e6)
	if factor != 0 && factor < 1e-6 {
		r.errorf(factorKey, "%g, want 0 or %g to %g", factor, 1e-6, 1e6)
	}
	if a := r.floatOr("rope.scaling.attn_factor", 1, 0, 1e6); a != 1 {
		r.errorf("rope.scaling.attn_factor", "not yet: attention scaled by the rotation (%g, want 1)", a)
	}
	switch kind := r.stringOr("rope.scaling.type", "linear"); kind {
	case "none":
	case "linear":
		if factor != 0 {
			rot.Scale = 1 / factor
		}
	default:
		r.errorf("rope.scaling.type", "not yet: rope scaling %q; this version runs none and linear",
			printable.Short(kind, 80))
	}
	return rot
}

// rotary adds the operator that turns queries and keys by their positions.
type rotary func(name string, q, k engine.ValueID) (yq, yk engine.ValueID)

// pairing is which dims of a head are turned together.
type pairing struct{ rotary func(m *decoder) rotary }

// neighbours pairs dims 2i and 2i + 1.
var neighbours = pairing{func(m *decoder) rotary {
	seq := ops.SymSize(m.Builder, "seq", m.tokens, 1)
	cos, sin := m.tables(1)
	cos = ops.Slice(m.Builder, "slice cos", cos, 0, ops.Sym(m.pos), ops.Sym(seq))
	sin = ops.Slice(m.Builder, "slice sin", sin, 0, ops.Sym(m.pos), ops.Sym(seq))
	return func(name string, q, k engine.ValueID) (yq, yk engine.ValueID) {
		return ops.ApplyRotaryEmb(m.Builder, name, q, k, cos, sin)
	}
}}

// halves pairs dims i and i + d/2 of a head of d.
var halves = pairing{func(m *decoder) rotary {
	cos, sin := m.tables(2)
	return func(name string, q, k engine.ValueID) (yq, yk engine.ValueID) {
		return ops.ApplyRotaryEmbHF(m.Builder, name, q, k, cos, sin, ops.Sym(m.pos))
	}
}}

// tables are the cosine and the sine of every angle, so many times over: for positions [0, context) and pairs
// i of a head of d dims, f32 [context, times d/2]. A file may divide each pair's frequency by a factor of its
// own, as those of Llama 3.1 do.
func (m *decoder) tables(times int) (cos, sin engine.ValueID) {
	divisors := func() ([]float64, error) { return m.Rope.Divisors, nil }
	if name := m.Form.names.freqs; m.w.has(name) {
		divisors = m.w.divisors(name, m.HeadDim/2)
	}
	table := func(name string, f func(float64) float64) engine.ValueID {
		return m.Constant(name, engine.F32, []int{m.context, times * m.HeadDim / 2}, func() ([]byte, error) {
			d, err := divisors()
			if err != nil {
				return nil, err
			}
			return m.Rope.table(m.context, m.HeadDim, times, d, f), nil
		})
	}
	return table("rope_cos", math.Cos), table("rope_sin", math.Sin)
}

// table is a function of every angle, so many times over, computed in float64. Without divisors they are 1.
func (r rotation) table(context, d, times int, divisors []float64, f func(float64) float64) []byte {
	out := make([]byte, 0, 4*context*times*d/2)
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
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f(float64(pos)*w))))
		}
		for once := out[row:]; len(out)-row < times*len(once); {
			out = append(out, once...)
		}
	}
	return out
}

// divisors are the numbers of a tensor that frequencies are divided by.
func (w *weights) divisors(name string, n int) func() ([]float64, error) {
	t := w.floats(name, n)
	return func() ([]float64, error) {
		list, err := t.floats()
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
