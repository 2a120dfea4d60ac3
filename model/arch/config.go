package arch

import (
	"math"

	"gpuscope/internal/printable"
	"gpuscope/session"
)

// Config is the shape of a decoder. All numbers of it have been checked.
type Config struct {
	Arch    *Architecture
	Form    *Spelling // how the files that it was read from have it
	Layers  int
	Dim     int
	Heads   int
	KVHeads int // divides Heads
	HeadDim int
	FFN     int
	Vocab   int
	Context int // that the model was trained for
	Eps     float32
	Scale   float64 // of scores; 0 for 1 / sqrt(HeadDim)
	Windows []int   // by layer: positions that a token sees at most, 0 for all
	Rope    Rotation
	// LocalRope is the rotation in layers with a window; nil where it is Rope.
	LocalRope *Rotation
	Tied      bool // the embedding is the head too
	// Ignored are the keys that the files state and their class does not know.
	Ignored []Ignored
	// Warnings are what a user should know of how the files were read.
	Warnings []string
}

// Bounds that no model comes near: past them a number is damage, and products of two still fit 64 bits.
const (
	MaxDim    = 1 << 20
	maxLayers = 1 << 10
	MaxVocab  = 1 << 24
	// A matrix is bound in parts where it is larger than a binding, and thousands of them are no model.
	maxTensorBytes = 64 << 30
)

// readConfig takes the shape from what a file says, or its class where the file leaves it out, and refuses
// what the builder would get wrong.
func readConfig(r *configReader, arch *Architecture) (Config, error) {
	form, key := r.form, r.form.Keys
	c := Config{Arch: arch, Form: form}
	c.Layers = r.int(key.Layers, 1, maxLayers)
	r.layers = c.Layers
	c.Dim = r.int(key.Dim, 1, MaxDim)
	c.FFN = r.int(key.Ffn, 1, MaxDim)
	c.Context = r.int(key.Context, 1, math.MaxInt32)
	c.Heads = r.int(key.Heads, 1, MaxDim)
	c.KVHeads = r.intOr(key.kvHeads, c.Heads, 1, MaxDim)
	c.Eps = float32(r.float(key.Eps, 0, 1))
	if r.err != nil {
		return c, r.err
	}
	if c.Heads%c.KVHeads != 0 {
		r.errorf(key.Heads, "%d query heads do not share %d key and value heads evenly", c.Heads, c.KVHeads)
	}
	if c.HeadDim = r.intOr(key.headDim, 0, 1, MaxDim); c.HeadDim == 0 {
		if c.Dim%c.Heads != 0 {
			r.errorf(key.Heads, "%d heads do not divide the embedding of %d", c.Heads, c.Dim)
		}
		c.HeadDim = max(c.Dim/c.Heads, 1)
	}
	for _, same := range key.sameDim {
		r.hold(only{same, c.HeadDim, "heads of different sizes"})
	}
	for _, o := range form.Only {
		r.hold(o)
	}
	c.Rope = key.rotation(r, c.HeadDim)
	switch turned := c.Rope.turned(c.HeadDim); {
	case turned%2 != 0:
		r.errorf(key.turned, "a rotation of %d dims, want an even number", turned)
	case turned != c.HeadDim && !form.pairs.part:
		r.errorf(key.turned, "not yet: a rotation of a part of the head (%d, want %d)", turned, c.HeadDim)
	}
	if key.localBase != "" {
		c.LocalRope = &Rotation{Dims: c.Rope.Dims, Base: r.float(key.localBase, 1, 1e12), Scale: 1}
	}
	c.Windows = r.windows()
	c.Scale = r.floatOr(key.scale, 0, 1e-6, 1e6)
	if form.implied != nil {
		form.implied(&c)
	}
	c.Tied = r.bool(key.Tied)
	if c.HeadDim%4 != 0 {
		r.errorf(key.headDim, "a head of %d dims, want a multiple of 4", c.HeadDim)
	}
	c.Ignored, c.Warnings = r.ignored()
	return c, r.err
}

// windows are how many positions each layer sees, 0 for all: from the size of the window and from which
// layers have it, which a file says layer by layer or by a rule.
func (r *configReader) windows() []int {
	key, list := r.form.Keys, make([]int, r.layers)
	window := r.intOr(key.window, 0, 0, math.MaxInt32)
	if key.windowUsed != "" && !r.bool(key.windowUsed) {
		window = 0
	}
	windowed := r.kinds()
	if windowed == nil {
		from := r.intOr(key.windowFrom, 0, 0, math.MaxInt32)
		each := r.intOr(key.fullEach, 0, 0, maxLayers)
		if window == 0 && (each == 0 || !r.null(key.window)) {
			return list
		}
		windowed = make([]bool, r.layers)
		for i := range windowed {
			windowed[i] = i >= from && (each == 0 || (i+1)%each != 0)
		}
	}
	for i := range list {
		if !windowed[i] {
			continue
		}
		if list[i] = window; window == 0 && key.kinds != "" {
			r.errorf(key.window, "none is stated or used, and layer %d has a window", i)
		}
	}
	return list
}

// fullAttention is what a layer is called that sees all positions.
const fullAttention = "full_attention"

// kinds are which layers have a window, nil where a file does not say that layer by layer.
func (r *configReader) kinds() []bool {
	key := r.form.Keys
	if list, err := r.f.Bools(r.prefix + key.fullEach); key.fullEach != "" && err == nil {
		if !r.eachLayer(key.fullEach, len(list)) {
			return nil
		}
		return list
	}
	if !r.has(key.kinds) {
		return nil
	}
	kinds, err := r.f.Strings(r.prefix + key.kinds)
	if r.fail(err); err != nil {
		return nil
	}
	if len(kinds) != r.layers {
		r.errorf(key.kinds, "%d of them, and %d layers", len(kinds), r.layers)
		return nil
	}
	windowed := make([]bool, r.layers)
	for i, kind := range kinds {
		switch kind {
		case fullAttention:
		case "sliding_attention":
			windowed[i] = true
		default:
			r.errorf(key.kinds, "not yet: layer %d has %s", i, printable.Short(kind, 80))
		}
	}
	return windowed
}

// DefaultContext is how many positions the KV cache holds at most where nobody says how long a text may be.
const DefaultContext = 4096

// defaultChunk is how many tokens a step takes at most where nobody says.
const defaultChunk = 512

// Bounds settles how many positions the KV cache holds and how many tokens a step takes.
func (c *Config) Bounds(context, chunk int) (int, int, error) {
	switch {
	case context == 0:
		context = min(c.Context, DefaultContext)
	case context < 0:
		return 0, 0, session.Refusef("--context %d: want a positive number", context)
	case context > c.Context:
		return 0, 0,
			session.Refusef("--context %d: the model was made for %d positions at most", context, c.Context)
	}
	switch {
	case chunk == 0:
		chunk = min(context, defaultChunk)
	case chunk < 0:
		return 0, 0, session.Refusef("--max-chunk %d: want a positive number", chunk)
	case chunk > context:
		return 0, 0, session.Refusef("--max-chunk %d: the context is %d", chunk, context)
	}
	return context, chunk, nil
}
