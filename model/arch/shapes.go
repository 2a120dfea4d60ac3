package arch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// readShapes reads the sizes of attention and MLP, which may differ from layer to layer. c.Windows must be
// set.
func (r *configReader) readShapes(c *Config) {
	key := r.form.Keys
	c.FFN = r.eachInt(key.Ffn, 0)
	c.KVHeads = r.eachInt(key.kvHeads, c.Heads)
	dim := r.intOr(key.headDim, 0, 1, MaxDim)
	if dim == 0 {
		if c.Dim%c.Heads != 0 {
			r.errorf(key.Heads, "the number of heads, %d, does not divide the embedding size, %d",
				c.Heads, c.Dim)
		}
		dim = max(c.Dim/c.Heads, 1)
	}
	dims := slices.Repeat([]int{dim}, r.layers)
	local := r.intOr(key.localHeadDim, 0, 1, MaxDim)
	full, fullKV := r.intOr(key.fullHeadDim, 0, 1, MaxDim), r.intOr(key.fullKVHeads, 0, 1, MaxDim)
	for i, window := range c.Windows {
		if window > 0 {
			dims[i] = cmp.Or(local, dims[i])
			continue
		}
		dims[i], c.KVHeads[i] = cmp.Or(full, dims[i]), cmp.Or(fullKV, c.KVHeads[i])
	}
	r.ofSingleLayers(map[string][]int{key.headDim: dims, key.kvHeads: c.KVHeads, key.Ffn: c.FFN})
	r.headDims(c, dims)
	for _, n := range c.KVHeads {
		if n > 0 && c.Heads%n != 0 {
			r.errorf(key.Heads, "the number of query heads, %d, is not a multiple of the number of key and value heads, %d",
				c.Heads, n)
			return
		}
	}
	r.shareKV(c)
	c.LayerInput = r.intOr(key.layerInput, 0, 0, MaxDim)
}

// eachInt returns the value of a key for each layer. A file states one integer for all layers, or a list. In
// most architectures the integers of a list must be equal. If the key is missing and has no default, all
// values are `def`, or an error is recorded if `def` is 0.
func (r *configReader) eachInt(key string, def int) []int {
	if r.form.Keys.unequal && r.has(key) && r.f.List(r.prefix+key) {
		list, err := r.f.Ints(r.prefix + key)
		if r.fail(err); err == nil && r.eachLayer(key, len(list)) {
			for _, n := range list {
				r.checkInt(key, n, 1, MaxDim)
			}
			return list
		}
		return make([]int, r.layers)
	}
	if def == 0 {
		return slices.Repeat([]int{r.int(key, 1, MaxDim)}, r.layers)
	}
	return slices.Repeat([]int{r.intOr(key, def, 1, MaxDim)}, r.layers)
}

// ofSingleLayers changes the settings of those layers for which the file states separate values. These
// values are in an object that only some files have. `settings` holds the values of all layers, by key.
func (r *configReader) ofSingleLayers(settings map[string][]int) {
	at := r.form.Keys.byLayer
	if !r.has(at) {
		return
	}
	r.object(at)
	for _, key := range r.f.Keys() {
		own, inside := strings.CutPrefix(key, r.prefix+at+".")
		layer, setting, ok := strings.Cut(own, ".")
		if !inside || !ok {
			continue
		}
		i, err := strconv.Atoi(layer)
		if list := settings[setting]; list != nil && err == nil && i >= 0 && i < r.layers {
			list[i] = r.int(at+"."+own, 1, MaxDim)
			continue
		}
		r.errorf(at+"."+printable.Short(own, 80), "not supported yet: a separate value of this setting for one layer")
	}
}

// headDims sets c.HeadDim and c.LocalHeadDim from `dims`, the size of the heads in each layer. All layers
// with a window must have heads of the same size, because these layers share tables for RoPE. The same holds
// for all layers without a window.
func (r *configReader) headDims(c *Config, dims []int) {
	key := r.form.Keys
	for i, dim := range dims {
		of := &c.HeadDim
		if c.Windows[i] > 0 {
			of = &c.LocalHeadDim
		}
		if *of == 0 {
			*of = dim
		}
		if dim != *of {
			r.errorf(key.headDim, "not supported yet: heads of different sizes in layers of the same type of attention (heads of layer %d have %d dims; want %d)",
				i, dim, *of)
		}
		if dim%4 != 0 {
			r.errorf(key.headDim, "a head size of %d is not a multiple of 4", dim)
		}
	}
	c.HeadDim = cmp.Or(c.HeadDim, c.LocalHeadDim)
	c.LocalHeadDim = cmp.Or(c.LocalHeadDim, c.HeadDim)
	for _, same := range key.sameDim {
		r.hold(only{same, c.HeadDim, "heads of different sizes"})
	}
	for _, same := range key.sameLocalDim {
		r.hold(only{same, c.LocalHeadDim, "heads of different sizes"})
	}
}

// shareKV sets c.KVFrom: for each layer, the number of the layer whose keys and values it reads. In some
// models the last layers compute no keys and values. Such a layer reads the keys and values of the last
// layer that computes its own and has the same type of attention.
func (r *configReader) shareKV(c *Config) {
	key := r.form.Keys
	first := r.layers - r.intOr(key.sharedKV, 0, 0, r.layers)
	wide := r.bool(key.sharedWide)
	c.KVFrom = make([]int, r.layers)
	for i := range c.KVFrom {
		if c.KVFrom[i] = i; i < first {
			continue
		}
		from := first - 1
		for from >= 0 && (c.Windows[from] > 0) != (c.Windows[i] > 0) {
			from--
		}
		if from < 0 {
			r.errorf(key.sharedKV, "layer %d reads the keys and values of an earlier layer, but no layer before layer %d has the same type of attention",
				i, first)
			return
		}
		c.KVFrom[i], c.KVHeads[i] = from, c.KVHeads[from]
		if wide {
			c.FFN[i] *= 2
		}
	}
}

// headDim returns the size of the heads of a layer.
func (c *Config) headDim(layer int) int {
	if c.Windows[layer] > 0 {
		return c.LocalHeadDim
	}
	return c.HeadDim
}
