package model

import (
	"fmt"
	"math"

	"gpuscope/internal/printable"
	"gpuscope/model/session"
)

// config is the shape of a decoder. All numbers of it have been checked.
type config struct {
	Arch    *architecture
	Form    *spelling // how the files that it was read from have it
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
	Rope    rotation
	// LocalRope is the rotation in layers with a window; nil where it is Rope.
	LocalRope *rotation
	Tied      bool // the embedding is the head too
}

// Bounds that no model comes near: past them a number is damage, and products of two still fit 64 bits.
const (
	maxDim    = 1 << 20
	maxLayers = 1 << 10
	maxVocab  = 1 << 24
	// A matrix is bound in parts where it is larger than a binding, and thousands of them are no model.
	maxTensorBytes = 64 << 30
)

// readConfig takes the shape from what a file says, and refuses what the builder would get wrong.
func readConfig(r *configReader, arch *architecture, form *spelling) (config, error) {
	key := form.keys
	c := config{Arch: arch, Form: form}
	c.Layers = r.int(key.layers, 1, maxLayers)
	c.Dim = r.int(key.dim, 1, maxDim)
	c.FFN = r.int(key.ffn, 1, maxDim)
	c.Context = r.int(key.context, 1, math.MaxInt32)
	c.Heads = r.int(key.heads, 1, maxDim)
	c.KVHeads = r.intOr(key.kvHeads, c.Heads, 1, maxDim)
	c.Eps = float32(r.float(key.eps, 0, 1))
	if r.err != nil {
		return c, r.err
	}
	if c.Heads%c.KVHeads != 0 {
		r.errorf(key.heads, "%d query heads do not share %d key and value heads evenly", c.Heads, c.KVHeads)
	}
	if !r.has(key.headDim) && c.Dim%c.Heads != 0 {
		r.errorf(key.heads, "%d heads do not divide the embedding of %d", c.Heads, c.Dim)
	}
	c.HeadDim = r.intOr(key.headDim, c.Dim/c.Heads, 1, maxDim)
	r.hold(only{key.valueDims, c.HeadDim, "keys and values of different lengths"})
	for _, o := range form.only {
		r.hold(o)
	}
	c.Rope = key.rotation(r, c.HeadDim)
	switch turned := c.Rope.turned(c.HeadDim); {
	case turned%2 != 0:
		r.errorf(key.turned, "a rotation of %d dims, want an even number", turned)
	case turned != c.HeadDim && !form.pairs.part:
		r.errorf(key.turned, "not yet: a rotation of a part of the head (%d, want %d)", turned, c.HeadDim)
	}
	if arch.localBase > 0 {
		base := r.floatOr(key.localBase, arch.localBase, 1, 1e12)
		c.LocalRope = &rotation{Dims: c.Rope.Dims, Base: base, Scale: 1}
	}
	c.Windows = make([]int, c.Layers)
	window := r.intOr(key.window, 0, 0, math.MaxInt32)
	full := r.intOr(key.fullEach, arch.fullEach, 0, maxLayers)
	for i := range c.Windows {
		if full == 0 || (i+1)%full != 0 {
			c.Windows[i] = window
		}
	}
	if r.has(key.scale) {
		c.Scale = r.float(key.scale, 1e-6, 1e6)
	}
	if form.implied != nil {
		form.implied(&c)
	}
	if c.HeadDim%4 != 0 {
		r.errorf(key.headDim, "a head of %d dims, want a multiple of 4", c.HeadDim)
	}
	return c, r.err
}

// keyed is what says numbers and words by key: the metadata of a GGUF file, or a config.json. Errors name the
// file and the key.
type keyed interface {
	Name() string
	Keys() []string
	Has(key string) bool
	Int(key string) (int, error)
	Float(key string) (float64, error)
	Bool(key string) (bool, error)
	String(key string) (string, error)
	Floats(key string) ([]float64, error)
	Strings(key string) ([]string, error)
}

// configReader reads what stands under an architecture's prefix and holds numbers to a range. The first error
// stays.
type configReader struct {
	f      keyed
	prefix string
	err    error
}

// has says whether a key is there; the empty one, for which the files have no word, never is.
func (r *configReader) has(key string) bool { return key != "" && r.f.Has(r.prefix+key) }

func (r *configReader) errorf(key, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s%s: %w", r.f.Name(), r.prefix, key, fmt.Errorf(format, args...))
	}
}

func (r *configReader) int(key string, lo, hi int) int {
	n, err := r.f.Int(r.prefix + key)
	return r.checkInt(key, n, lo, hi, err)
}

func (r *configReader) intOr(key string, def, lo, hi int) int {
	if !r.has(key) {
		return r.checkInt(key, def, lo, hi, nil)
	}
	return r.int(key, lo, hi)
}

func (r *configReader) checkInt(key string, n, lo, hi int, err error) int {
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case n < lo || n > hi:
		r.errorf(key, "%d, want %d to %d", n, lo, hi)
	}
	return n
}

func (r *configReader) float(key string, lo, hi float64) float64 {
	x, err := r.f.Float(r.prefix + key)
	return r.checkFloat(key, x, lo, hi, err)
}

func (r *configReader) floatOr(key string, def, lo, hi float64) float64 {
	if !r.has(key) {
		return r.checkFloat(key, def, lo, hi, nil)
	}
	return r.float(key, lo, hi)
}

func (r *configReader) checkFloat(key string, x, lo, hi float64, err error) float64 {
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case !(x >= lo && x <= hi): // NaN too
		r.errorf(key, "%g, want %g to %g", x, lo, hi)
	}
	return x
}

func (r *configReader) boolOr(key string, def bool) bool {
	if !r.has(key) {
		return def
	}
	b, err := r.f.Bool(r.prefix + key)
	if err != nil && r.err == nil {
		r.err = err
	}
	return b
}

func (r *configReader) stringOr(key, def string) string {
	if !r.has(key) {
		return def
	}
	s, err := r.f.String(r.prefix + key)
	if err != nil && r.err == nil {
		r.err = err
	}
	return s
}

// hold refuses what the builder has no place for.
func (r *configReader) hold(o only) {
	if !r.has(o.key) {
		return
	}
	var got any
	var err error
	switch o.want.(type) {
	case nil:
		r.errorf(o.key, "not yet: %s", o.otherwise)
		return
	case int:
		got, err = r.f.Int(r.prefix + o.key)
	case float64:
		got, err = r.f.Float(r.prefix + o.key)
	case bool:
		got, err = r.f.Bool(r.prefix + o.key)
	case string:
		got, err = r.f.String(r.prefix + o.key)
	}
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case got != o.want:
		r.errorf(o.key, "not yet: %s (%s, want %v)", o.otherwise, printable.Short(fmt.Sprint(got), 80),
			o.want)
	}
}

// DefaultContext is how many positions the KV cache holds at most where nobody says how long a text may be.
const DefaultContext = 4096

// defaultChunk is how many tokens a step takes at most where nobody says.
const defaultChunk = 512

// bounds settles how many positions the KV cache holds and how many tokens a step takes.
func (c *config) bounds(context, chunk int) (int, int, error) {
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
