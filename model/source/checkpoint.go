package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/arch"
	"gpuscope/model/network"
	"gpuscope/model/quantize"
	"gpuscope/session"
	"gpuscope/trace"
)

// checkpoint is a model whose graph gpuscope builds: a GGUF file or a Hugging Face folder.
type checkpoint struct {
	*arch.Checkpoint
	config arch.Config
	// quantizer quantizes the weights while they are loaded; nil if all weights keep their stored format.
	quantizer *quantize.Quantizer
	warnings  []string
}

func openCheckpoint(o Options, q *quantize.Quantizer) (Source, error) {
	if o.Method != "" || len(o.Data) > 0 {
		return nil, session.Refusef("--method and --data are for ExecuTorch programs")
	}
	file, err := arch.OpenFile(o.Path)
	if err != nil {
		return nil, err
	}
	return OfCheckpoint(file, q), nil
}

// OfCheckpoint returns an open checkpoint as a Source. If the quantizer is nil, all weights keep their stored
// format.
func OfCheckpoint(file *arch.Checkpoint, q *quantize.Quantizer) Source {
	return &checkpoint{Checkpoint: file, quantizer: q}
}

func (c *checkpoint) Ignored() []arch.Ignored { return c.config.Ignored }

func (c *checkpoint) warnf(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// Sizes implements Source. It determines some settings from the tensors, because the configuration does not
// contain them.
func (c *checkpoint) Sizes() (Sizes, error) {
	var err error
	if c.config, err = c.Config(); err != nil {
		return Sizes{}, err
	}
	table, err := c.Tensor(c.config.Form.Names.Embed)
	if err != nil {
		return Sizes{}, err
	}
	if len(table.Dims) != 2 || table.Dims[0] > arch.MaxVocab {
		return Sizes{}, fmt.Errorf("%s: tensor %s has shape %s; want [size of the vocabulary, %d]", c.Name(),
			table.Name, printable.Dims(table.Dims), c.config.Dim)
	}
	c.config.Vocab = table.Dims[0]
	c.warnings = slices.Clone(c.config.Warnings)
	if err := c.settleHead(table); err != nil {
		return Sizes{}, err
	}
	c.warnings = append(c.warnings, c.OrphanWarnings()...)
	return Sizes{Vocab: c.config.Vocab, Context: c.config.Context, Warnings: c.warnings}, nil
}

func (c *checkpoint) Bounds(context, maxChunk int) (positions, tokens int, err error) {
	return c.config.Bounds(context, maxChunk)
}

// settleHead decides which matrix computes the logits if the configuration contradicts the tensors. If the
// files have a head matrix that differs from the embedding, the head matrix computes them. Otherwise the
// embedding does.
func (c *checkpoint) settleHead(table *arch.Tensor) error {
	head := c.ByName[c.config.Form.Names.Head]
	switch {
	case head == nil && !c.config.Tied:
		c.config.Tied = true
		c.warnf("%s: %s is not true, but tensor %s is missing; using the embedding as the output head",
			c.Name(), c.config.Form.Keys.Tied, c.config.Form.Names.Head)
	case head != nil && c.config.Tied:
		same, err := table.Equal(head)
		if err != nil || same {
			return err
		}
		c.config.Tied = false
		c.warnf("%s: %s is true, but tensor %s differs from the embedding; using this tensor as the output head", c.Name(),
			c.config.Form.Keys.Tied, printable.Short(head.Name, 80))
	}
	return nil
}

// Operators implements Source. It builds the graph of a short step without fusion, and reads no weights.
func (c *checkpoint) Operators() ([]trace.Op, []trace.Value, error) {
	if _, err := c.Sizes(); err != nil {
		return nil, nil, err
	}
	context, chunk, err := c.Bounds(0, 0)
	if err != nil {
		return nil, nil, err
	}
	large := gpu.LimitSets[len(gpu.LimitSets)-1].Limits // so that no matrix is split
	n, err := c.Build(graph.NewBuilder(large), Step{
		Context: min(context, shortContext), MaxChunk: min(chunk, shortContext),
	})
	if err != nil {
		return nil, nil, err
	}
	g := n.Graph.Describe()
	for i := range g.Values {
		g.Values[i].Slot = nil // gpuscope's memory plan does not apply to another engine's profile
	}
	return g.Ops, g.Values, nil
}

const shortContext = 64 // positions of a graph that only lists operators

// Build implements Source. If quantization was requested but no matrix can be quantized, the error wraps
// session.ErrUsage.
func (c *checkpoint) Build(b *graph.Builder, o Step) (*network.Network, error) {
	l := &arch.Decoder{
		Builder: b, Config: c.config, Context: o.Context, KV: graph.F32,
		W: arch.NewWeights(b, c.Checkpoint, c.config.Form, c.quantizer),
	}
	if o.HalfKV {
		l.KV = graph.F16
	}
	n, err := l.Build(o.MaxChunk, o.Told, o.Sampling)
	if err == nil {
		err = c.quantizer.Check(c.Name())
	}
	return n, err
}

func (c *checkpoint) Loaded() { c.quantizer.Loaded() }

func (c *checkpoint) Changed() string {
	if c.quantizer == nil {
		return ""
	}
	return c.quantizer.String()
}

func (c *checkpoint) Describe(info *trace.Model) {
	is := &c.config
	info.Name, info.Architecture, info.Layers = bounded(c.Title()), is.Arch.Name, is.Layers
	info.Dims = map[string]int{
		"dim": is.Dim, "heads": is.Heads, "kv_heads": slices.Max(is.KVHeads),
		"head_dim": is.HeadDim, "ffn": slices.Max(is.FFN), "vocab": is.Vocab, "trained_context": is.Context,
	}
	if w := slices.Max(is.Windows); w > 0 {
		info.Dims["window"] = w
	}
	if is.LocalHeadDim != is.HeadDim {
		info.Dims["local_head_dim"] = is.LocalHeadDim
	}
	elements := map[string]int64{}
	for _, t := range c.Tensors() {
		elements[t.Type] += int64(t.Elements())
		info.Parameters += int64(t.Elements())
	}
	most := slices.SortedFunc(maps.Keys(elements),
		func(a, b string) int { return cmp.Or(cmp.Compare(elements[b], elements[a]), cmp.Compare(a, b)) })
	if len(most) > 0 {
		info.Quantization = most[0]
	}
	if c.quantizer != nil {
		info.Quantization, info.Quantized = c.quantizer.String(), c.quantizer.Cost()
	}
}
