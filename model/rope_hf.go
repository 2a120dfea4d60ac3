package model

import (
	"math"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// hfScaling is a kind of rotation that transformers knows: what else is said of it, behind its path, and what
// that makes of the rotation of so many dims of a head.
type hfScaling struct {
	name  string
	keys  []string
	apply func(r *configReader, path string, headDim int, rot *rotation)
}

var hfScalings = []hfScaling{
	{"default", nil, func(*configReader, string, int, *rotation) {}},
	{
		"linear",
		[]string{"factor"},
		func(r *configReader, path string, _ int, rot *rotation) {
			rot.Scale = 1 / r.float(path+"factor", 1e-6, 1e6)
		},
	},
	{
		"llama3",
		[]string{"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
		func(r *configReader, path string, headDim int, rot *rotation) {
			rot.Divisors = llama3Divisors(rot.Base, headDim, r.float(path+"factor", 1, 1e6),
				r.float(path+"low_freq_factor", 1e-6, 1e6), r.float(path+"high_freq_factor", 1e-6, 1e6),
				r.int(path+"original_max_position_embeddings", 1, math.MaxInt32))
		},
	},
	{"longrope", longKeys, longRotation},
	{"su", longKeys, longRotation}, // its older name
}

var longKeys = []string{
	"short_factor", "long_factor", "factor", "attention_factor", "original_max_position_embeddings",
}

// longRotation is Ding et al., LongRoPE (2024): a divisor for each pair, other ones past the context of the
// training, and scores that grow with the factor by which the context did.
func longRotation(r *configReader, path string, headDim int, rot *rotation) {
	rot.Divisors = r.divisors(path+"short_factor", headDim/2)
	rot.LongDivisors = r.divisors(path+"long_factor", headDim/2)
	original := "original_max_position_embeddings"
	if r.has(path + original) {
		original = path + original
	}
	rot.Original = r.int(original, 2, math.MaxInt32)
	grown := float64(r.int(hfContext, 1, math.MaxInt32)) / float64(max(rot.Original, 2))
	gain := 1.0
	if grown > 1 {
		gain = math.Sqrt(1 + math.Log(grown)/math.Log(float64(max(rot.Original, 2))))
	}
	rot.Gain = r.floatOr(path+"attention_factor", gain, 1e-6, 1e6)
}

// divisors are n numbers that frequencies are divided by.
func (r *configReader) divisors(key string, n int) []float64 {
	list, err := r.f.Floats(r.prefix + key)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return nil
	}
	if len(list) != n {
		r.errorf(key, "%d of them, want %d: one for each pair of a head", len(list), n)
	}
	for i, x := range list {
		if !(x >= 1e-6 && x <= 1e6) { // NaN too
			r.errorf(key, "factor %d is %g, want %g to %g", i, x, 1e-6, 1e6)
		}
	}
	return list
}

// llama3Divisors are those of Llama 3.1: pairs that turn more than high times within the context of the
// training stay as they are, those that turn less than low times are slowed by the factor, and between the
// two it goes over from the one to the other.
func llama3Divisors(base float64, headDim int, factor, low, high float64, context int) []float64 {
	divisors := make([]float64, headDim/2)
	for i := range divisors {
		turns := float64(context) * math.Pow(base, -2*float64(i)/float64(headDim)) / (2 * math.Pi)
		kept := min(max((turns-low)/(high-low), 0), 1)
		if high == low { // one goes over into the other at once
			kept = 0
			if turns > low {
				kept = 1
			}
		}
		divisors[i] = 1 / (kept + (1-kept)/factor)
	}
	return divisors
}

// Where a config.json has the rotations of layers that see all positions, and of those with a window, if they
// differ.
const (
	fullRotation  = "rope_parameters.full_attention"
	localRotation = "rope_parameters.sliding_attention"
)

// hfRotation reads the rotation of a config.json: since transformers 5 it is all in rope_parameters, before
// it was in rope_theta and rope_scaling.
func hfRotation(r *configReader, headDim int) rotation {
	for _, at := range []string{fullRotation, "rope_parameters"} {
		if r.has(at) {
			return hfRotationAt(r, at+".", at+".rope_theta", headDim)
		}
	}
	return hfRotationAt(r, "rope_scaling.", "rope_theta", headDim)
}

// hfRotationAt reads a rotation whose kind is said behind a path, and its base under a key.
func hfRotationAt(r *configReader, path, baseKey string, headDim int) rotation {
	rot := rotation{Base: r.floatOr(baseKey, 10000, 1, 1e12), Scale: 1}
	part := r.floatOr(path+hfPart, r.floatOr(hfPart, 1, 0, 1), 0, 1)
	if rot.Dims = int(part * float64(headDim)); rot.Dims < 2 {
		r.errorf(hfPart, "%g: no pair of a head of %d dims is turned", part, headDim)
		rot.Dims = 2
	}
	kind := r.stringOr(path+"rope_type", r.stringOr(path+"type", "default")) // type is the older key
	var known []string
	for _, s := range hfScalings {
		if s.name == kind {
			hfRefuseUnknown(r, path, s.keys)
			s.apply(r, path, rot.Dims, &rot)
			return rot
		}
		known = append(known, s.name)
	}
	r.errorf(path+"rope_type", "not yet: rope scaling %s; this version runs %v", printable.Short(kind, 80),
		known)
	return rot
}

// hfRefuseUnknown refuses what stands behind a path and is not known, beside what every rotation says.
func hfRefuseUnknown(r *configReader, path string, known []string) {
	always := []string{"rope_theta", "rope_type", "type", hfPart}
	for _, key := range r.f.Keys() {
		own, inside := strings.CutPrefix(key, path)
		if inside && !slices.Contains(known, own) && !slices.Contains(always, own) {
			r.errorf(printable.Short(key, 80),
				"not yet: this version does not know what it does to the rotation")
		}
	}
}
