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

// hfScaling is a kind of rotation that transformers knows: what else is said of it, after its path, and what
// that makes of the rotation of so many dims of a head.
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
				r.errorf(path+"low_freq_factor", "%g, want at most the high_freq_factor of %g", low, high)
			}
			rot.Divisors = Llama3Divisors(rot.Base, headDim, r.float(path+"factor", 1, 1e6), low, high,
				r.int(path+hfOriginal, 1, math.MaxInt32))
		},
	},
	{"longrope", longKeys, longRotation},
	{"su", longKeys, longRotation}, // its older name
}

var longKeys = []string{
	"short_factor", "long_factor", "factor", "attention_factor", hfOriginal,
}

// longRotation is Ding et al., LongRoPE (2024): a divisor for each pair, other ones past the context of the
// training, and scores that grow with the factor by which the context did.
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

// Llama3Divisors returns Llama 3.1's divisors of the RoPE frequencies. Pairs that make more than high
// rotations over the training context keep divisor 1, those that make fewer than low are divided by the
// factor, and in between the two are interpolated.
func Llama3Divisors(base float64, headDim int, factor, low, high float64, context int) []float64 {
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

// Where a config.json has rotations: since transformers 5 all of it is in rope_parameters, by kinds of layers
// where those with a window have one of their own; before that it was in rope_theta and rope_scaling.
const (
	oldRotation   = "rope_scaling"
	newRotation   = "rope_parameters"
	fullRotation  = newRotation + "." + fullAttention
	localRotation = newRotation + ".sliding_attention"
	ropeBase      = "rope_theta"
	hfOriginal    = "original_max_position_embeddings" // the context of the training
)

// hfRotations are the keys of a rotation.
var hfRotations = []string{ropeBase, oldRotation, newRotation, hfOriginal}

// neutralScalings are the kinds of scaling that change nothing where their factor is 1; "" where no kind is
// stated.
var neutralScalings = []string{"", "default", "linear", "dynamic", "yarn"}

// neutralScaling says whether a scaling that stands under a path changes nothing, whatever else it states.
func (r *configReader) neutralScaling(path, kind string) bool {
	one := func(key string) bool {
		x, err := r.readFloat(path + key)
		return err == nil && x == 1
	}
	return slices.Contains(neutralScalings, kind) && one("factor") &&
		(one("attention_factor") || !r.has(path+"attention_factor"))
}

// hfRotation reads the rotation of a config.json. What says it twice must say one thing.
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
			r.errorf(at, "another rotation than that of %s: leave one of them out", said[0])
		}
	}
	return rot
}

// hfRotationAt reads a rotation that stands under a key, where that is there. Its base may stand there too,
// or under a key of its own.
func hfRotationAt(r *configReader, at, baseKey string, headDim int) Rotation {
	if r.has(at) {
		r.object(at)
	}
	path := at + "."
	if own := path + ropeBase; r.has(own) {
		if used := r.float(own, 1, 1e12); r.has(baseKey) && r.float(baseKey, 1, 1e12) != used {
			r.warnings = append(r.warnings, fmt.Sprintf("%s: %s and %s differ: the second, %g, is used",
				r.f.Name(), baseKey, own, used))
		}
		baseKey = own
	}
	rot := Rotation{Base: r.float(baseKey, 1, 1e12), Scale: 1}
	partKey := r.form.Keys.turned
	if partKey == "" {
		r.hold(only{path + hfPart, 1.0, "a rotation of a part of the head"})
	} else if r.has(path + hfPart) {
		partKey = path + hfPart
	}
	part := r.floatOr(partKey, 1, 0, 1)
	if rot.Dims = int(part * float64(headDim)); rot.Dims < 2 {
		r.errorf(hfPart, "%g: no pair of a head of %d dims is turned", part, headDim)
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
			r.errorf(other, "it is of a rope scaling, and %srope_type does not say of which: want %s",
				path, printable.Choice(known))
		} else if other != "" {
			r.errorf(other, "not yet: this version does not know what it does to rope scaling %s, which takes %s",
				s.name, printable.Choice(s.keys))
		}
		s.apply(r, path, rot.Dims, &rot)
		return rot
	}
	r.errorf(path+"rope_type", "not yet: rope scaling %s; this version runs %s", printable.Short(kind, 80),
		printable.Choice(known))
	return rot
}

// object refuses a key that does not stand for keys of its own.
func (r *configReader) object(key string) {
	c, ok := r.f.(*configJSON)
	if !ok {
		return
	}
	if err := c.Object(key); err != nil && r.err == nil {
		r.err = err
	}
}

// hfUnknown is the first key after a path that is not known, beside what every rotation says; "" for none.
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
