package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/internal/printable"
)

// rotation is how a decoder turns its queries and keys by their position: Su et al., RoFormer (2021),
// equation 15, and what was added to it so that texts may be longer than those of the training.
type rotation struct {
	Base  float64
	Scale float64 // of every angle: 1 / the factor by which positions are squeezed
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

// tables are the cosine and the sine of every angle: for positions [0, context) and pairs i of a head of d
// dims, f32 [context, d/2]. A file may divide each pair's frequency by a factor of its own, as those of Llama
// 3.1 do.
func (m *decoder) tables() (cos, sin engine.ValueID) {
	divisors := func() ([]float32, error) { return nil, nil }
	if name := m.Form.names.freqs; m.w.has(name) {
		divisors = m.w.divisors(name, m.HeadDim/2)
	}
	table := func(name string, f func(float64) float64) engine.ValueID {
		return m.Constant(name, engine.F32, []int{m.context, m.HeadDim / 2}, func() ([]byte, error) {
			d, err := divisors()
			if err != nil {
				return nil, err
			}
			return m.Rope.table(m.context, m.HeadDim, d, f), nil
		})
	}
	return table("rope_cos", math.Cos), table("rope_sin", math.Sin)
}

// table is a function of every angle, computed in float64. Without divisors they are 1.
func (r rotation) table(context, d int, divisors []float32, f func(float64) float64) []byte {
	out := make([]byte, 0, 4*context*d/2)
	frequency := make([]float64, d/2)
	for i := range frequency {
		frequency[i] = r.Scale * math.Pow(r.Base, -2*float64(i)/float64(d))
		if divisors != nil {
			frequency[i] /= float64(divisors[i])
		}
	}
	for pos := range context {
		for _, w := range frequency {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f(float64(pos)*w))))
		}
	}
	return out
}

// divisors are the numbers of a tensor that frequencies are divided by.
func (w *weights) divisors(name string, n int) func() ([]float32, error) {
	t := w.floats(name, n)
	return func() ([]float32, error) {
		list, err := t.floats()
		if err != nil {
			return nil, err
		}
		for i, x := range list {
			if !(x >= 1e-6 && x <= 1e6) { // NaN too
				return nil, fmt.Errorf("%s: tensor %s: factor %d is %g, want %g to %g", w.file.Name(), name,
					i, x, 1e-6, 1e6)
			}
		}
		return list, nil
	}
}
