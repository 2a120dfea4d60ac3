package arch

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// hfScaling is a RoPE scaling type of transformers. keys lists the keys that apply reads under path. apply
// applies the scaling to rot, the rotation of headDim dims.
type hfScaling struct {
	name  string
	keys  []string
	apply func(r *configReader, path string, headDim int, rot *Rotation)
}

var hfScalings = []hfScaling{
	{"default", nil, func(*configReader, string, int, *Rotation) {}},
	{
		"linear",
		[]string{"factor"},
		func(r *configReader, path string, _ int, rot *Rotation) {
			rot.Scale = 1 / r.float(path+"factor", 1e-6, 1e6)
		},
	},
	{
		"llama3",
		[]string{"factor", "low_freq_factor", "high_freq_factor", hfOriginal},
		func(r *configReader, path string, headDim int, rot *Rotation) {
			low := r.float(path+"low_freq_factor", 1e-6, 1e6)
			high := r.float(path+"high_freq_factor", 1e-6, 1e6)
			if low > high {
				r.errorf(path+"low_freq_factor", "%g is above the high_freq_factor of %g", low, high)
			}
			rot.Divisors = Llama3Divisors(rot.Base, headDim, r.float(path+"factor", 1, 1e6), low, high,
				r.int(path+hfOriginal, 1, math.MaxInt32))
		},
	},
	{"longrope", longKeys, longRotation},
	{"su", longKeys, longRotation}, // the older name of longrope
}

var longKeys = []string{
	"short_factor", "long_factor", "factor", "attention_factor", hfOriginal,
}

// longRotation implements Ding et al., LongRoPE (2024). Each pair has one frequency divisor for contexts up
// to the trained length and one for longer contexts. The scores grow with the factor by which the context was
// extended.
func longRotation(r *configReader, path string, headDim int, rot *Rotation) {
	rot.Divisors = r.divisors(path+"short_factor", headDim/2)
	rot.LongDivisors = r.divisors(path+"long_factor", headDim/2)
	original := hfOriginal
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

// divisors returns n frequency divisors.
func (r *configReader) divisors(key string, n int) []float64 {
	list, err := r.f.Floats(r.prefix + key)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return nil
	}
	if len(list) != n {
		r.errorf(key, "the list has %d values; want %d, one for each pair of dims of a head", len(list), n)
	}
	for i, x := range list {
		if !(x >= 1e-6 && x <= 1e6) { // also refuses NaN
			r.errorf(key, "factor %d is %g; want %g to %g", i, x, 1e-6, 1e6)
		}
	}
	return list
}

// Llama3Divisors returns Llama 3.1's divisors of the RoPE frequencies. Each pair of dims rotates a number of
// times over the training context. If this number is above high, the divisor is 1. If it is below low, the
// divisor is factor. In between, the frequency is interpolated.
func Llama3Divisors(base float64, headDim int, factor, low, high float64, context int) []float64 {
	divisors := make([]float64, headDim/2)
	for i := range divisors {
		turns := float64(context) * math.Pow(base, -2*float64(i)/float64(headDim)) / (2 * math.Pi)
		kept := min(max((turns-low)/(high-low), 0), 1)
		if high == low { // there is no range to interpolate in
			kept = 0
			if turns > low {
				kept = 1
			}
		}
		divisors[i] = 1 / (kept + (1-kept)/factor)
	}
	return divisors
}

// Keys of the rotations in a config.json. Since transformers 5, everything is in rope_parameters. If layers
// with a window have a separate rotation, rope_parameters has one object for each type of layer. Older
// files use rope_theta and rope_scaling.
const (
	oldRotation   = "rope_scaling"
	newRotation   = "rope_parameters"
	fullRotation  = newRotation + "." + fullAttention
	localRotation = newRotation + ".sliding_attention"
	ropeBase      = "rope_theta"
	hfOriginal    = "original_max_position_embeddings" // the trained context
)

// hfRotations lists the keys of a rotation.
var hfRotations = []string{ropeBase, oldRotation, newRotation, hfOriginal}

// neutralScalings lists the scaling types that change nothing if their factor is 1; "" is a missing type.
var neutralScalings = []string{"", "default", "linear", "dynamic", "yarn"}

// neutralScaling reports whether the scaling under a path changes nothing. Only the type and the factors
// matter, not the other keys.
func (r *configReader) neutralScaling(path, kind string) bool {
	one := func(key string) bool {
		x, err := r.readFloat(path + key)
		return err == nil && x == 1
	}
	return slices.Contains(neutralScalings, kind) && one("factor") &&
		(one("attention_factor") || !r.has(path+"attention_factor"))
}

// hfRotation reads the rotation of a config.json. If the file states the rotation in two places, both must
// agree.
func hfRotation(r *configReader, headDim int) Rotation {
	said := slices.DeleteFunc([]string{oldRotation, newRotation}, func(at string) bool { return !r.has(at) })
	for i, at := range said {
		if said[i] = at; at == newRotation && r.has(fullRotation) {
			said[i] = fullRotation
		}
	}
	if len(said) == 0 {
		return hfRotationAt(r, oldRotation, ropeBase, headDim)
	}
	rot := hfRotationAt(r, said[0], ropeBase, headDim)
	for _, at := range said[1:] {
		if !reflect.DeepEqual(rot, hfRotationAt(r, at, ropeBase, headDim)) {
			r.errorf(at, "these RoPE settings differ from those in %s. Remove one of the two keys", said[0])
		}
	}
	return rot
}

// hfRotationAt reads the rotation from the object under the key at. If there is no such object, it returns
// the default rotation. The RoPE base may also be stored under the key baseKey.
func hfRotationAt(r *configReader, at, baseKey string, headDim int) Rotation {
	if r.has(at) {
		r.object(at)
	}
	path := at + "."
	if own := path + ropeBase; r.has(own) {
		if used := r.float(own, 1, 1e12); r.has(baseKey) && r.float(baseKey, 1, 1e12) != used {
			r.warnings = append(r.warnings, fmt.Sprintf("%s: %s and %s differ; using the second value, %g",
				r.f.Name(), baseKey, own, used))
		}
		baseKey = own
	}
	rot := Rotation{Base: r.float(baseKey, 1, 1e12), Scale: 1}
	partKey := r.form.Keys.turned
	if partKey == "" {
		r.hold(only{path + hfPart, 1.0, "RoPE on only a part of each head"})
	} else if r.has(path + hfPart) {
		partKey = path + hfPart
	}
	part := r.floatOr(partKey, 1, 0, 1)
	if rot.Dims = int(part * float64(headDim)); rot.Dims < 2 {
		r.errorf(hfPart, "%g is too small: RoPE would rotate no pair of the %d dims of a head", part, headDim)
		rot.Dims = 2
	}
	kind := r.stringOr(path+"rope_type", r.stringOr(path+"type", "")) // type is the older key
	if r.neutralScaling(path, kind) {
		return rot
	}
	if other, ok := r.form.scalings[kind]; ok {
		kind = other
	}
	var known []string
	for _, s := range hfScalings {
		known = append(known, s.name)
	}
	if i := slices.Index(known, cmp.Or(kind, "default")); i >= 0 {
		s := hfScalings[i]
		if other := hfUnknown(r, path, s.keys); other != "" && kind == "" {
			r.errorf(other, "this key belongs to a RoPE scaling, but %srope_type is missing; set it to %s",
				path, printable.Choice(known))
		} else if other != "" {
			r.errorf(other, "not supported yet: unknown key of RoPE scaling %s; known keys are %s",
				s.name, printable.Choice(s.keys))
		}
		s.apply(r, path, rot.Dims, &rot)
		return rot
	}
	r.errorf(path+"rope_type", "not supported yet: RoPE scaling %s; this version supports %s",
		printable.Short(kind, 80), printable.Choice(known))
	return rot
}

// object records an error if the value of a key is not an object.
func (r *configReader) object(key string) {
	c, ok := r.f.(*configJSON)
	if !ok {
		return
	}
	if err := c.Object(key); err != nil && r.err == nil {
		r.err = err
	}
}

// hfUnknown returns the first unknown key under a path: one that is neither in known nor allowed for every
// rotation. It returns "" if there is no such key.
func hfUnknown(r *configReader, path string, known []string) string {
	always := []string{ropeBase, "rope_type", "type", hfPart}
	for _, key := range r.f.Keys() {
		own, inside := strings.CutPrefix(key, path)
		if inside && !slices.Contains(known, own) && !slices.Contains(always, own) {
			return printable.Short(key, 80)
		}
	}
	return ""
}
