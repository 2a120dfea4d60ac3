package arch

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// orphan is a known kind of tensor that the graph of a decoder does not use. The field `fate` says what
// happens to a file that contains such a tensor. A file that contains an unused tensor of an unknown kind is
// refused, because the results might be wrong without the tensor.
type orphan struct {
	what  string
	parts []string // matches tensors whose names contain one of these dot-separated parts
	ends  []string // also matches tensors whose names end with one of these strings
	fate  fate
}

// fate is how a file with an unused tensor is handled.
type fate int

const (
	refused  fate = iota // the file is refused, because the results would be wrong without the tensor
	leftOut              // the results are right without the tensor; a warning reports it
	computed             // ignored without a warning: the configuration states the same information
)

var orphans = []orphan{
	{
		what: "RoPE frequencies", fate: computed,
		ends: []string{".inv_freq", ".cos_cached", ".sin_cached", ".attn_rot_embd.weight"},
	},
	{
		what: "attention masks and position ids", fate: computed,
		ends: []string{".masked_bias", ".attention.bias", ".attn.bias", ".position_ids"},
	},
	{
		what: "a quantized KV cache", fate: leftOut,
		ends: []string{".k_scale", ".v_scale", ".kv_scale", ".q_scale", ".prob_output_scale"},
	},
	{what: "scales of quantized activations", ends: []string{".input_scale"}, fate: leftOut},
	{
		what: "a quantizer", fate: refused,
		parts: []string{"qweight", "qzeros", "scales", "g_idx", "SCB", "absmax", "quant_map", "quant_state"},
		ends: []string{
			"_scale", "_scale_inv", "_scale_2", "_zero_point", "_shape", "_packed", ".weight_format", "_amax",
		},
	},
	{
		what: "an image or audio encoder", fate: leftOut,
		parts: []string{
			"vision_tower", "vision_model", "vision_encoder", "visual", "vision_embed_tokens",
			"multi_modal_projector", "mm_projector", "embed_vision", "image_newline", "vit", "audio_tower",
			"audio_encoder", "audio_model", "embed_audio",
		},
	},
	{what: "multi-token prediction layers", parts: []string{"mtp", "nextn"}, fate: leftOut},
	{what: "a value head", parts: []string{"v_head", "value_head"}, fate: leftOut},
}

// orphanOf returns the first entry of the list `orphans` that matches a tensor's name, or nil.
func orphanOf(name string) *orphan {
	parts := strings.Split(name, ".")
	for i := range orphans {
		o := &orphans[i]
		if slices.ContainsFunc(o.parts, func(p string) bool { return slices.Contains(parts, p) }) ||
			slices.ContainsFunc(o.ends, func(end string) bool { return strings.HasSuffix(name, end) }) {
			return o
		}
	}
	return nil
}

// OrphanWarnings returns one line for each kind of tensor that is ignored with a warning.
func (c *Checkpoint) OrphanWarnings() (warnings []string) {
	first, count := map[*orphan]*Tensor{}, map[*orphan]int{}
	for _, t := range c.Tensors() {
		if o := orphanOf(t.Name); o != nil && o.fate == leftOut {
			if count[o]++; first[o] == nil {
				first[o] = t
			}
		}
	}
	for i := range orphans {
		if o := &orphans[i]; count[o] > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: ignoring tensors that belong to %s (number of tensors: %d; first tensor: %s)",
				c.Name(),
				o.what, count[o], printable.Short(first[o].Name, 80)))
		}
	}
	return warnings
}

// refuse returns an error for an unused tensor that the model needs for correct results.
func (c *Checkpoint) refuse(t *Tensor) error {
	o := orphanOf(t.Name)
	if o != nil && o.fate != refused {
		return nil
	}
	why := "this version does not use this tensor, so the results might be wrong"
	if o != nil {
		why = "it belongs to " + o.what + ", and the weights would be wrong without this tensor"
	}
	return fmt.Errorf("%s: not supported yet: tensor %s: %s", c.Name(), printable.Short(t.Name, 80), why)
}
