package arch

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/session"
)

// Config is the configuration of a decoder. All its numbers have been checked.
type Config struct {
	Arch    *Architecture
	Form    *Spelling // how the model's file format represents Arch
	Layers  int
	Dim     int
	Heads   int
	KVHeads []int // by layer: a divisor of Heads
	KVFrom  []int // by layer: index of the layer whose keys and values are read; usually the layer itself
	HeadDim int
	// LocalHeadDim is the size of a head in layers with a sliding window. In most models it equals HeadDim.
	LocalHeadDim int
	FFN          []int // by layer
	LayerInput   int   // number of elements of the per-layer input; 0 for none; see layerInput
	Vocab        int
	Context      int // number of positions of the trained context
	Eps          float32
	Scale        float64 // scale of the attention scores; 0 for 1 / sqrt(HeadDim)
	// These factors multiply the rows of the embedding, the outputs of attention and MLP, and the logits. A
	// factor of 0 means 1.
	EmbedScale, ResidualScale, LogitScale float64
	// Soft caps of the attention scores and of the logits: x becomes cap * tanh(x / cap). 0 means no cap.
	ScoreCap, LogitCap float64
	Biases, OutBias    bool   // which projections of attention have biases: q, k and v; the output
	Windows            []int  // by layer: size of the sliding window; 0 for full attention
	Unrotated          []bool // by layer: whether the layer has no RoPE; nil if all layers have RoPE
	Rope               Rotation
	// LocalRope is the rotation in layers with a sliding window. It is nil if all layers use Rope.
	LocalRope *Rotation
	Tied      bool // the embedding is also the output head
	// Experts is the number of experts of a layer. Chosen is how many of them process each token. ExpertFFN
	// is the hidden size of an expert. All three are 0 if layers have no experts.
	Experts, Chosen, ExpertFFN int
	SharedFFN                  int    // hidden size of the shared expert; 0 if there is none
	Normalize                  bool   // whether the weights of a token's experts are divided by their sum
	Dense                      []bool // by layer: whether it has an MLP instead of experts; nil if none has
	// Recurrent has true for each recurrent layer and false for each layer with attention. It is nil if all
	// layers have attention.
	Recurrent []bool
	ConvTaps  int        // number of weights per channel of a short convolution
	Delta     deltaHeads // sizes of linear attention
	// Ignored lists the keys in the files that have no effect, because the model's class does not define
	// them.
	Ignored []Ignored
	// Warnings lists problems in the configuration that the reader worked around, and how.
	Warnings []string
}

// Limits for the numbers in a file. No real model reaches them, so a larger number means that the file is
// damaged. The limits are so small that the product of two allowed numbers fits in 64 bits.
const (
	MaxDim    = 1 << 20
	maxLayers = 1 << 10
	MaxVocab  = 1 << 24
	// A matrix that exceeds the device's limit for one binding is bound in parts. maxTensorBytes keeps the
	// number of parts below a few thousand.
	maxTensorBytes = 64 << 30
)

// readConfig reads the configuration from a file and fills in the defaults of its class. It returns an error
// for any setting that the builder does not support.
func readConfig(r *configReader, arch *Architecture) (Config, error) {
	form, key := r.form, r.form.Keys
	c := Config{Arch: arch, Form: form}
	c.Layers = r.int(key.Layers, 1, maxLayers)
	r.layers = c.Layers
	c.Dim = r.int(key.Dim, 1, MaxDim)
	c.Context = r.int(key.Context, 1, math.MaxInt32)
	c.Heads = r.int(key.Heads, 1, MaxDim)
	c.Eps = float32(r.float(key.Eps, 0, 1))
	if r.err != nil {
		return c, r.err
	}
	c.Windows = r.windows()
	r.readShapes(&c)
	if r.err != nil {
		return c, r.err
	}
	for _, o := range form.Only {
		r.hold(o)
	}
	c.Rope = key.rotation(r, c.HeadDim)
	switch turned := c.Rope.turned(c.HeadDim); {
	case turned%2 != 0:
		r.errorf(key.turned, "RoPE would rotate %d dims, but their number must be even", turned)
	case turned != c.HeadDim && !form.pairs.part:
		r.errorf(key.turned, "not supported yet: RoPE on only %d of the %d dims of each head", turned,
			c.HeadDim)
	}
	if key.localBase != "" {
		turned := c.Rope.Dims
		if c.LocalHeadDim != c.HeadDim {
			turned = c.LocalHeadDim
		}
		c.LocalRope = &Rotation{
			Dims: r.intOr(key.localTurned, turned, 2, c.LocalHeadDim),
			Base: r.float(key.localBase, 1, 1e12), Scale: 1,
		}
	}
	c.Scale = r.floatOr(key.scale, 0, 1e-6, 1e6)
	c.ScoreCap = r.floatOr(key.scoreCap, 0, 0, 1e6)
	c.LogitCap = r.floatOr(key.logitCap, 0, 0, 1e6)
	c.EmbedScale = r.floatOr(key.embedScale, 0, 0, 1e6)
	c.ResidualScale = r.floatOr(key.residualScale, 0, 0, 1e6)
	c.LogitScale = r.floatOr(key.logitScale, 0, 0, 1e6)
	c.Biases = arch.Biases || r.bool(key.biases)
	c.OutBias = r.bool(key.outBias)
	c.Unrotated = r.unrotated(arch, c.Windows)
	if form.implied != nil {
		form.implied(&c)
	}
	if form.recurrent != nil {
		form.recurrent(r, &c)
	}
	c.Tied = r.bool(key.Tied)
	if r.mixed(arch) {
		r.experts(&c)
	}
	c.Ignored, c.Warnings = r.ignored()
	return c, r.err
}

// windows returns the size of each layer's sliding window in positions, or 0 for full attention. Some files
// list the layers that have the window. Others state a rule.
func (r *configReader) windows() []int {
	key, list := r.form.Keys, make([]int, r.layers)
	window := r.intOr(key.window, 0, 0, math.MaxInt32)
	if key.windowUsed != "" && !r.bool(key.windowUsed) {
		window = 0
	}
	windowed := r.kinds()
	if windowed == nil && r.form.listed && window > 0 {
		r.errorf(cmp.Or(key.kinds, key.fullEach), "the key is missing; want a list with the type of attention of each layer")
	}
	if windowed == nil {
		from := r.intOr(key.windowFrom, 0, 0, math.MaxInt32)
		each := r.intOr(key.fullEach, r.form.fullEach, 0, maxLayers)
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
			r.errorf(key.window, "layer %d has sliding-window attention, but the files set no window size or turn the window off", i)
		}
	}
	return list
}

// unrotated returns true for each layer without RoPE, or nil if all layers have RoPE.
func (r *configReader) unrotated(arch *Architecture, windows []int) []bool {
	key, list := r.form.Keys, make([]bool, r.layers)
	switch {
	case arch.nullUnrotated && r.null(key.window):
		for i := range list {
			list[i] = true
		}
	case arch.fullUnrotated && !r.null(key.window):
		window := r.int(key.window, 1, math.MaxInt32)
		for i := range list {
			list[i] = window > 0 && windows[i] == 0
		}
	case r.has(key.rotated):
		rotated, err := r.f.Ints(r.prefix + key.rotated)
		if r.fail(err); err != nil || !r.eachLayer(key.rotated, len(rotated)) {
			return nil
		}
		for i, n := range rotated {
			list[i] = n == 0
		}
	default:
		each := r.intOr(key.unrotatedEach, r.form.unrotatedEach, 0, maxLayers)
		for i := range list {
			list[i] = each > 0 && (i+1)%each == 0
		}
	}
	if !slices.Contains(list, true) {
		return nil
	}
	return list
}

// fullAttention is the type of a layer that attends to all positions.
const fullAttention = "full_attention"

// kinds returns, for each layer, whether the layer has the sliding window. It returns nil if the file has no
// list with an entry for each layer.
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
		r.errorf(key.kinds, "the list has %d values, but there are %d layers", len(kinds), r.layers)
		return nil
	}
	windowed := make([]bool, r.layers)
	for i, kind := range kinds {
		switch kind {
		case fullAttention, r.form.recurrentKind:
		case "sliding_attention":
			windowed[i] = true
		default:
			r.errorf(key.kinds, "not supported yet: layer %d has attention of type %s",
				i, printable.Short(kind, 80))
		}
	}
	return windowed
}

// DefaultContext is the maximum size of the KV cache in positions if no size is requested.
const DefaultContext = 4096

// defaultChunk is the maximum number of tokens in a step if no number is requested.
const defaultChunk = 512

// Bounds returns the number of positions of the KV cache and the maximum number of tokens in a step. A
// requested value of 0 selects the default.
func (c *Config) Bounds(context, chunk int) (int, int, error) {
	switch {
	case context == 0:
		context = min(c.Context, DefaultContext)
	case context < 0:
		return 0, 0, session.Refusef("--context %d: want a number above 0", context)
	case context > c.Context:
		return 0, 0,
			session.Refusef("--context %d: the model's maximum is %d positions", context, c.Context)
	}
	switch {
	case chunk == 0:
		chunk = min(context, defaultChunk)
	case chunk < 0:
		return 0, 0, session.Refusef("--max-chunk %d: want a number above 0", chunk)
	case chunk > context:
		return 0, 0, session.Refusef("--max-chunk %d: want at most the context, which is %d", chunk,
			context)
	}
	return context, chunk, nil
}
