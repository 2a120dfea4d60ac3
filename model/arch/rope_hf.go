package arch

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/configjson"
)

// hfScaling is a RoPE scaling type of transformers. The function `apply` changes `rot`, the rotation of
// heads of headDim dims, as the scaling requires. `keys` lists the configuration keys that `apply` reads,
// without the prefix `path`.
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
				r.errorf(path+"low_freq_factor", "%g is greater than high_freq_factor, which is %g", low,
					high)
			}
			rot.Divisors = Llama3Divisors(rot.Base, headDim, r.float(path+"factor", 1, 1e6), low, high,
				r.int(path+hfOriginal, 1, math.MaxInt32))
		},
	},
	{"longrope", longKeys, longRotation},
	{"su", longKeys, longRotation}, // the older name of longrope
	{
		"yarn",
		[]string{
			"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate",
			hfOriginal,
		},
		yarnRotation,
	},
	{proportionalScaling, []string{"factor"}, proportionalRotation},
}

const proportionalScaling = "proportional"

// proportionalRotation rotates only the first pairs of dims. Their frequencies are the same as if all pairs
// were rotated. The key hfPart states which fraction of the pairs is rotated. With other scaling types, this
// key also changes the frequencies: they become those of a smaller head. Source: Gemma 4.
func proportionalRotation(r *configReader, path string, headDim int, rot *Rotation) {
	rotated := int(r.floatOr(path+hfPart, 1, 0, 1) * float64(headDim) / 2)
	rot.Divisors = slices.Repeat([]float64{r.floatOr(path+"factor", 1, 1e-6, 1e6)}, headDim/2)
	for i := rotated; i < len(rot.Divisors); i++ {
		rot.Divisors[i] = unrotated
	}
}

// hfAlpha is the RoPE scaling type that has the name "dynamic" in Hunyuan's files.
var hfAlpha = hfScaling{
	alphaScaling,
	[]string{"alpha", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"},
	func(r *configReader, path string, headDim int, rot *Rotation) {
		alpha := r.float(path+"alpha", 1e-6, 1e12)
		rot.Base *= math.Pow(alpha, float64(headDim)/float64(max(headDim-2, 1)))
	},
}

const alphaScaling = "alpha"

var longKeys = []string{
	"short_factor", "long_factor", "factor", "attention_factor", hfOriginal,
}

// longRotation implements Ding et al., LongRoPE (2024). Each pair of dims has two frequency divisors: one for
// contexts up to the trained length, and one for longer contexts. If the file states no attention_factor,
// Gain depends on the ratio of the model's maximum context to the trained length: above a ratio of 1, Gain is
// greater than 1 and grows with the ratio.
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

// yarn holds the parameters of YaRN: Peng et al., YaRN (2023).
type yarn struct {
	base, factor float64
	original     int // positions of the context in training
	dims         int // number of rotated dims
	fast, slow   float64
	truncate     bool
}

// divisors returns the numbers by which YaRN divides the RoPE frequencies, one for each pair of dims. A pair
// that rotates more than `fast` times within the context of training keeps its frequency. The frequency of a
// pair that rotates fewer than `slow` times is divided by the factor. In between, there is a linear ramp. If
// `truncate` is true, the ends of the ramp are rounded outwards to whole pairs.
func (y yarn) divisors() []float64 {
	end := func(turns float64) float64 {
		return float64(y.dims) * math.Log(float64(y.original)/(turns*2*math.Pi)) / (2 * math.Log(y.base))
	}
	low, high := end(y.fast), end(y.slow)
	if y.truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(y.dims-1))
	divisors := make([]float64, y.dims/2)
	for i := range divisors {
		slowed := min(max((float64(i)-low)/max(high-low, 0.001), 0), 1)
		divisors[i] = 1 / (1 - slowed + slowed/y.factor)
	}
	return divisors
}

// yarnGain returns the factor by which YaRN multiplies the cosines and sines: 0.1 * times * ln(factor) + 1.
// `times` is usually 1.
func yarnGain(factor, times float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*times*math.Log(factor) + 1
}

// yarnRotation reads the parameters of YaRN as transformers does.
func yarnRotation(r *configReader, path string, headDim int, rot *Rotation) {
	original := hfOriginal
	if r.has(path + original) {
		original = path + original
	} else if !r.has(original) {
		original = hfContext
	}
	rot.Original = r.int(original, 1, math.MaxInt32)
	y := yarn{
		base: rot.Base, factor: r.float(path+"factor", 1, 1e6), original: rot.Original, dims: headDim,
		fast: cmp.Or(r.floatOr(path+"beta_fast", 0, 0, 1e6), 32),
		slow: cmp.Or(r.floatOr(path+"beta_slow", 0, 0, 1e6), 1), truncate: true,
	}
	if r.has(path + "truncate") {
		y.truncate = r.bool(path + "truncate")
	}
	rot.Divisors = y.divisors()
	gain := yarnGain(y.factor, 1)
	one, all := r.floatOr(path+"mscale", 0, 0, 1e6), r.floatOr(path+"mscale_all_dim", 0, 0, 1e6)
	if one != 0 && all != 0 {
		gain = yarnGain(y.factor, one) / yarnGain(y.factor, all)
	}
	rot.Gain = r.floatOr(path+"attention_factor", gain, 1e-6, 1e6)
}

// hfQueryGrowth is the key that states Rotation.QueryGrowth.
const hfQueryGrowth = "llama_4_scaling_beta"

// divisors returns the list of n frequency divisors that the file states under `key`.
func (r *configReader) divisors(key string, n int) []float64 {
	list, err := r.f.Floats(r.prefix + key)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return nil
	}
	if len(list) != n {
		r.errorf(key, "the list has %d values; want %d, that is, one for each pair of dims", len(list),
			n)
	}
	for i, x := range list {
		if !(x >= 1e-6 && x <= 1e6) { // also refuses NaN
			r.errorf(key, "the factor at index %d is %g; want a factor from %g to %g", i, x, 1e-6, 1e6)
		}
	}
	return list
}

// Llama3Divisors returns the numbers by which Llama 3.1 divides the RoPE frequencies, one for each pair of
// dims. A divisor depends on how often its pair rotates fully within the training context. If it rotates more
// than `high` times, the divisor is 1. If it rotates fewer than `low` times, the divisor is `factor`. In
// between, the frequency is interpolated.
func Llama3Divisors(base float64, headDim int, factor, low, high float64, context int) []float64 {
	divisors := make([]float64, headDim/2)
	for i := range divisors {
		turns := float64(context) * math.Pow(base, -2*float64(i)/float64(headDim)) / (2 * math.Pi)
		kept := min(max((turns-low)/(high-low), 0), 1)
		if high == low { // low and high are equal, so no pair is between them
			kept = 0
			if turns > low {
				kept = 1
			}
		}
		divisors[i] = 1 / (kept + (1-kept)/factor)
	}
	return divisors
}

// Keys of a config.json that configure RoPE. Files written by transformers 5 or later have everything in the
// object rope_parameters. If layers with a sliding window have a separate rotation, rope_parameters contains
// an object for each type of layer. Older files use rope_theta and rope_scaling.
const (
	oldRotation   = "rope_scaling"
	newRotation   = "rope_parameters"
	fullRotation  = newRotation + "." + fullAttention
	localRotation = newRotation + ".sliding_attention"
	ropeBase      = "rope_theta"
	hfOriginal    = "original_max_position_embeddings" // number of positions of the trained context
)

// hfRotations lists the top-level keys of a config.json that configure RoPE.
var hfRotations = []string{ropeBase, oldRotation, newRotation, hfOriginal}

// neutralScalings lists the RoPE scaling types that have no effect if their factor is 1. The entry "" is for
// files that state no type.
var neutralScalings = []string{"", "default", "linear", "dynamic", "yarn"}

// neutralScaling reports whether the RoPE scaling in the object at `path` has no effect. It reads only the
// type and the factors, because the other keys have no effect if the factors are 1.
func (r *configReader) neutralScaling(path, kind string) bool {
	one := func(key string) bool {
		x, err := r.readFloat(path + key)
		return err == nil && x == 1
	}
	return slices.Contains(neutralScalings, kind) && r.form.scalings[kind] != alphaScaling && one("factor") &&
		(one("attention_factor") || !r.has(path+"attention_factor"))
}

// hfRotation reads the RoPE settings of a config.json. If the file states settings both under the old key and
// under the new key, they must be the same.
func hfRotation(r *configReader, headDim int) Rotation {
	said := slices.DeleteFunc([]string{oldRotation, newRotation}, func(at string) bool { return !r.has(at) })
	for i, at := range said {
		if said[i] = at; at == newRotation && r.has(fullRotation) {
			said[i] = fullRotation
		}
	}
	if len(said) == 0 && len(r.form.ropeKeys) > 0 {
		r.errorf(newRotation, "the key is missing, and its default is not supported yet")
	}
	if len(said) == 0 {
		return hfRotationAt(r, oldRotation, ropeBase, headDim)
	}
	rot := hfRotationAt(r, said[0], ropeBase, headDim)
	for _, at := range said[1:] {
		if !reflect.DeepEqual(rot, hfRotationAt(r, at, ropeBase, headDim)) {
			r.errorf(at, "the RoPE settings under this key differ from those under %s. Remove one of the two keys", said[0])
		}
	}
	return rot
}

// hfRotationAt reads the RoPE settings from the object under the key `at`. If there is no such object, it
// returns the default settings. If the object has no RoPE base, the base is read from the key `baseKey`.
func hfRotationAt(r *configReader, at, baseKey string, headDim int) Rotation {
	if r.has(at) {
		r.object(at)
	}
	path := at + "."
	if own := path + ropeBase; r.has(own) {
		if used := r.float(own, 1, 1e12); r.has(baseKey) && r.float(baseKey, 1, 1e12) != used {
			r.warnings = append(r.warnings, fmt.Sprintf("%s: the keys %s and %s have different values; using the value of the second key, %g",
				r.f.Name(), baseKey, own, used))
		}
		baseKey = own
	}
	rot := Rotation{Base: r.float(baseKey, 1, 1e12), Scale: 1}
	kind := r.stringOr(path+"rope_type", r.stringOr(path+"type", "")) // older files: type
	partKey := r.form.Keys.turned
	switch {
	case kind == proportionalScaling:
		partKey = ""
	case partKey == "":
		r.hold(only{path + hfPart, 1.0, "RoPE on only a part of each head"})
	case r.has(path + hfPart):
		partKey = path + hfPart
	}
	part := r.floatOr(partKey, 1, 0, 1)
	if rot.Dims = int(part * float64(headDim)); rot.Dims < 2 {
		r.errorf(hfPart, "%g is too small: RoPE would rotate none of the %d dims of a head", part,
			headDim)
		rot.Dims = 2
	}
	if slices.Contains(r.form.ropeKeys, hfQueryGrowth) {
		if rot.QueryGrowth = r.floatOr(path+hfQueryGrowth, 0, 0, 1e6); rot.QueryGrowth != 0 {
			rot.Original = r.int(path+hfOriginal, 1, math.MaxInt32)
		}
	}
	list := hfScalings
	if other, ok := r.form.scalings[kind]; ok {
		if kind = other; kind == alphaScaling {
			list = []hfScaling{hfAlpha}
		}
	}
	if r.neutralScaling(path, kind) {
		return rot
	}
	var known []string
	for _, s := range list {
		known = append(known, s.name)
	}
	if i := slices.Index(known, cmp.Or(kind, "default")); i >= 0 {
		s := list[i]
		s.keys = slices.Concat(s.keys, r.form.ropeKeys)
		if other := hfUnknown(r, path, s.keys); other != "" && kind == "" {
			r.errorf(other, "this key belongs to a type of RoPE scaling, but %srope_type is missing; set rope_type to %s",
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
	c, ok := r.f.(*configjson.File)
	if !ok {
		return
	}
	if err := c.Object(key); err != nil && r.err == nil {
		r.err = err
	}
}

// hfUnknown returns the first unknown key in the object at `path`, or "". A key is known if `known` contains
// it or every scaling type has it.
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
