package arch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// Rotation describes the rotary position embedding (RoPE) of queries and keys: Su et al., RoFormer (2021),
// equation 15, with later extensions for texts that are longer than those of the training.
type Rotation struct {
	Dims  int // number of leading dims of a head that are rotated; 0 for all
	Base  float64
	Scale float64 // multiplies every angle; linear scaling by a factor sets it to 1 / factor
	// Gain is a factor by which the cosines and sines are multiplied. Attention scores are therefore
	// multiplied by Gain². A Gain of 0 means 1.
	Gain float64
	// Divisors has a divisor for the frequency of each pair of dims; nil means that all divisors are 1. If
	// Original is not 0 and the context has more than Original positions, LongDivisors is used instead of
	// Divisors.
	Divisors, LongDivisors []float64
	Original               int
	// QueryGrowth determines how the factor of the queries grows with the position; see queryScale. 0 means a
	// factor of 1 everywhere.
	QueryGrowth float64
}

// queryScale returns the factor of the queries at a position: 1 + growth * log(1 + floor(position /
// original)). The factor keeps attention sharp in long contexts. Source: Llama 4, which scales queries in
// layers without RoPE. Ministral 3 scales queries in all layers.
func (r *Rotation) queryScale(position int) float64 {
	return 1 + r.QueryGrowth*math.Log(float64(1+position/max(r.Original, 1)))
}

// ggufRotations lists the metadata keys that configure RoPE, without the architecture's prefix.
var ggufRotations = []string{
	"rope.freq_base", "rope.scale_linear",
	"rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor",
	"rope.scaling.original_context_length",
}

// ggufRotation reads the RoPE settings of a file as llama.cpp does. If the scaling type is missing, the
// scaling is linear. Old files use another key for the factor. A factor of 0 means no scaling. But if the
// file states the type linear, a factor of 0 is an error. YaRN with a factor of 1 changes nothing.
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
		r.errorf(factorKey, "the value %g is out of range; want 0, or a value from %g to %g", factor, 1e-6,
			1e6)
	}
	kind := r.stringOr("rope.scaling.type", "")
	if rot.QueryGrowth = r.ropeFloat(ggufTemperature, 0); rot.Original == 0 &&
		(rot.QueryGrowth != 0 || kind == "yarn") {
		rot.Original = r.int(r.form.Keys.Context, 1, math.MaxInt32)
	}
	if kind == "linear" && factor == 0 {
		r.errorf("rope.scaling.factor", "the value is missing or 0, but rope.scaling.type is linear; want a value from %g to %g", 1e-6,
			1e6)
	}
	switch {
	case kind == "none", kind == "yarn" && (factor == 0 || factor == 1):
	case kind == "yarn":
		rot.ggufYarn(r, factor)
	case kind == "", kind == "linear", kind == "longrope":
		if factor != 0 {
			rot.Scale = 1 / factor
		}
	default:
		r.errorf("rope.scaling.type", "not supported yet: RoPE scaling %q; supported are \"none\", \"linear\", \"longrope\" and \"yarn\"",
			printable.Short(kind, 80))
	}
	return rot
}

// Keys of a GGUF file that configure YaRN and that llama.cpp reads only for some architectures.
const (
	ggufBetaFast      = "rope.scaling.yarn_beta_fast"
	ggufBetaSlow      = "rope.scaling.yarn_beta_slow"
	ggufLogMultiplier = "rope.scaling.yarn_log_multiplier"
	ggufTemperature   = "attention.temperature_scale"
)

// ggufYarn applies YaRN as llama.cpp does. Keys that the architecture does not have are ignored: their
// defaults apply.
func (rot *Rotation) ggufYarn(r *configReader, factor float64) {
	if factor < 1 {
		r.errorf("rope.scaling.factor", "the value %g is out of range; want at least 1", factor)
	}
	rot.Divisors = yarn{
		base: rot.Base, factor: factor, original: rot.Original, dims: rot.Dims,
		fast: r.ropeFloat(ggufBetaFast, 32), slow: r.ropeFloat(ggufBetaSlow, 1), truncate: true,
	}.divisors()
	gain := yarnGain(factor, 1)
	if all := r.ropeFloat(ggufLogMultiplier, 0); all != 0 {
		gain /= yarnGain(factor, all)
	}
	rot.Gain *= gain
}

// ropeFloat returns the number that a file states for a key. It returns `def` if the file does not state the
// key, or if the Spelling's ropeKeys do not contain the key.
func (r *configReader) ropeFloat(key string, def float64) float64 {
	if !slices.Contains(r.form.ropeKeys, key) {
		return def
	}
	return r.floatOr(key, def, 0, 1e6)
}

// turned returns the number of dims of a head that are rotated.
func (r *Rotation) turned(headDim int) int { return cmp.Or(r.Dims, headDim) }

// rotary adds the operator that rotates queries and keys by their positions. `pos` is the position of the
// first token in k. If k is None, it is the position of the first token in q.
type rotary func(name string, q, k graph.ValueID, pos kind.Int) (yq, yk graph.ValueID)

// pairing is a way to group the dims of a head into the pairs that RoPE rotates: neighbours or halves. The
// function `rotary` adds values to the graph. The names of these values begin with `prefix`.
type pairing struct {
	part   bool // the operator can leave the last dims of a head unrotated
	rotary func(m *Decoder, prefix string, r *Rotation, headDim int) rotary
}

var neighbours = pairing{rotary: func(m *Decoder, prefix string, r *Rotation, headDim int) rotary {
	seq := basic.SymSize(m.Builder, prefix+"seq", m.tokens, 1)
	cos, sin := m.tables(prefix, r, headDim, 1)
	cos = basic.Slice(m.Builder, prefix+"slice cos", cos, 0, kind.Sym(m.pos), kind.Sym(seq))
	sin = basic.Slice(m.Builder, prefix+"slice sin", sin, 0, kind.Sym(m.pos), kind.Sym(seq))
	return func(name string, q, k graph.ValueID, pos kind.Int) (yq, yk graph.ValueID) {
		if pos != kind.Sym(m.pos) {
			m.Errorf("%s: not supported yet: RoPE that rotates pairs of adjacent elements by a position other than the step's position", name)
		}
		return ops.ApplyRotaryEmb(m.Builder, name, q, k, cos, sin)
	}
}}

var halves = pairing{part: true, rotary: func(m *Decoder, prefix string, r *Rotation, headDim int) rotary {
	cos, sin := m.tables(prefix, r, headDim, 2)
	return func(name string, q, k graph.ValueID, pos kind.Int) (yq, yk graph.ValueID) {
		return ops.ApplyRotaryEmbHF(m.Builder, name, q, k, cos, sin, pos)
	}
}}

// partOfNeighbours is a copy of `neighbours` for models in which RoPE rotates only the first dims of a head.
// The operator rotates the pairs of the other dims by an angle of 0, which does not change their values.
var partOfNeighbours = pairing{part: true, rotary: neighbours.rotary}

// tables adds two f32 tables to the graph: the cosines and the sines of the rotation angles. Each row belongs
// to one position. If `times` is 1, a row has headDim/2 elements: one for each pair of dims, including the
// pairs that are not rotated. If `times` is 2, a row has an element for each rotated pair, and then the same
// elements again.
func (m *Decoder) tables(prefix string, r *Rotation, headDim, times int) (cos, sin graph.ValueID) {
	turned, divisors := r.turned(headDim), m.divisors(r)
	columns := times * turned / 2
	if times == 1 {
		columns = headDim / 2
	}
	table := func(name string, f func(float64) float64) graph.ValueID {
		dims := []int{m.Context, columns}
		return m.Constant(prefix+name, graph.F32, dims, func() ([]byte, error) {
			d, err := divisors()
			if err != nil {
				return nil, err
			}
			return r.table(m.Context, turned, columns, times, d, f), nil
		})
	}
	return table("rope_cos", math.Cos), table("rope_sin", math.Sin)
}

// divisors returns a function that reads the frequency divisors of a rotation. The function returns nil if
// all divisors are 1. A file may store divisors in tensors: Llama 3.1 has one tensor, and Phi 3 has one for
// short contexts and one for long contexts. These tensors apply only to the rotation m.Rope, not to the
// separate rotation of layers with a sliding window.
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
			divisors = func() ([]float64, error) {
				stored, err := d()
				for i := range min(len(stored), len(list)) {
					stored[i] *= list[i]
				}
				return stored, err
			}
		}
	}
	return divisors
}

// table returns a table of f32 with one row per position. A row contains gain*f(angle) for each pair of the d
// rotated dims, computed in float64. If `times` is 2, these elements are stored twice in the row. If the row
// then has fewer than `columns` elements, it is padded with f(0).
func (r Rotation) table(context, d, columns, times int, divisors []float64, f func(float64) float64) []byte {
	out, gain := make([]byte, 0, 4*context*columns), cmp.Or(r.Gain, 1)
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
		for len(out)-row < 4*columns {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f(0))))
		}
	}
	return out
}

// unrotated is the frequency divisor that files store for a pair of dims that is not rotated.
const unrotated = 1e30

// divisors returns a function that reads the frequency divisors from the tensor with the given name.
func (w *Weights) divisors(name string, n int) func() ([]float64, error) {
	t := w.floats(name, n)
	return func() ([]float64, error) {
		list, err := t.Floats()
		if err != nil {
			return nil, err
		}
		divisors := make([]float64, n)
		for i, x := range list {
			if divisors[i] = float64(x); !(x >= 1e-6 && x <= 1e6 || x == unrotated) { // also refuses NaN
				return nil, fmt.Errorf("%s: tensor %s: the factor at index %d is %g; want a factor from %g to %g, or %g for a pair that is not rotated", w.file.Name(), name,
					i, x, 1e-6, 1e6, unrotated)
			}
		}
		return divisors, nil
	}
}
