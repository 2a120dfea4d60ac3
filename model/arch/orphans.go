package arch

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// orphan is a kind of tensor that a decoder has no place for, and what becomes of a file that has one. A kind
// that is not in the table is refused: nobody knows what the model would be without it.
type orphan struct {
	what  string
	parts []string // one of these is a part of its name
	ends  []string // or its name ends in one of these
	fate  fate
}

// fate is what becomes of a tensor that has no place.
type fate int

const (
	refused  fate = iota // the model would be wrong without it
	leftOut              // the model is right without it, and a warning says so
	computed             // it says what the configuration says
)

var orphans = []orphan{
	{
		what: "the rotation's frequencies", fate: computed,
		ends: []string{".inv_freq", ".cos_cached", ".sin_cached", ".attn_rot_embd.weight"},
	},
	{
		what: "attention masks and positions", fate: computed,
		ends: []string{".masked_bias", ".attention.bias", ".attn.bias", ".position_ids"},
	},
	{
		what: "a quantized KV cache", fate: leftOut,
		ends: []string{".k_scale", ".v_scale", ".kv_scale", ".q_scale", ".prob_output_scale"},
	},
	{
		what: "a quantizer", fate: refused,
		parts: []string{"qweight", "qzeros", "scales", "g_idx", "SCB", "absmax", "quant_map", "quant_state"},
		ends: []string{
			"_scale", "_scale_inv", "_scale_2", "_zero_point", "_shape", "_packed", ".weight_format", "_amax",
		},
	},
	{
		what: "an encoder of images or sound", fate: leftOut,
		parts: []string{
			"vision_tower", "vision_model", "vision_encoder", "visual", "vision_embed_tokens",
			"multi_modal_projector", "mm_projector", "embed_vision", "image_newline", "vit", "audio_tower",
			"audio_encoder", "audio_model", "embed_audio",
		},
	},
	{what: "layers that predict further tokens", parts: []string{"mtp", "nextn"}, fate: leftOut},
	{what: "a value head", parts: []string{"v_head", "value_head"}, fate: leftOut},
}

// orphanOf is the first row of a tensor without a place, nil where there is none.
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

// OrphanWarnings says which kinds of tensors are left out, a line each.
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
			warnings = append(warnings, fmt.Sprintf("%s: left out: tensors of %s (%d, the first %s)",
				c.Name(),
				o.what, count[o], printable.Short(first[o].Name, 80)))
		}
	}
	return warnings
}

// refuse is why a file with a tensor without a place is refused; nil where it is not.
func (c *Checkpoint) refuse(t *Tensor) error {
	o := orphanOf(t.Name)
	if o != nil && o.fate != refused {
		return nil
	}
	why := "this version's model has no place for it"
	if o != nil {
		why = "it is of " + o.what + ", and the weights are wrong without it"
	}
	return fmt.Errorf("%s: not yet: tensor %s: %s", c.Name(), printable.Short(t.Name, 80), why)
}
