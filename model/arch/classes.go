package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// class is what the program that a form of files comes from (transformers, llama.cpp) knows of the
// configuration of an architecture. docs/guide/models.md lists the defaults and where they were read.
type class struct {
	Name string // what that program calls it: "LlamaConfig"
	// Defaults are what keys stand for that a file leaves out: an int, a float64 or a bool. A key that is
	// read and is not here must be stated, or follows from others.
	Defaults map[string]any
	// inert are keys that the class knows and that change nothing of what is computed here.
	inert []string
}

// with is a map with the entries of another added.
func with(m, other map[string]any) map[string]any {
	maps.Copy(m, other)
	return m
}

// ggufClass is what llama.cpp knows of an architecture: the defaults of all, and its own.
func ggufClass(name string, own map[string]any) class {
	return class{
		Name:     "llama.cpp's " + name,
		Defaults: with(map[string]any{"rope.freq_base": 1e4}, own),
	}
}

// ggufInert are keys that llama.cpp reads for every architecture, or that only describe a file.
var ggufInert = []string{
	"expert_used_count", "rope.scaling.finetuned", "rope.scaling.yarn_beta_fast",
	"rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier", "tensor_data_layout", "vocab_size",
}

// ggufElsewhere are keys that llama.cpp reads for architectures that this version does not run.
var ggufElsewhere = class{Name: "other architectures of llama.cpp", inert: []string{
	"attention.clamp_kqv", "attention.group_norm_epsilon", "attention.group_norm_groups",
	"attention.kv_lora_rank", "attention.layer_norm_epsilon", "attention.max_alibi_bias",
	"attention.output_scale", "attention.q_lora_rank", "attention.relative_buckets_count",
	"attention.scale", "attention.shared_kv_layers", "attention.temperature_length",
	"attention.temperature_scale", "attn_logit_softcapping", "embedding_scale", "final_logit_softcapping",
	"logit_scale", "residual_scale", "rope.dimension_sections", "rope.scaling.alpha",
}}

// hfInert are keys that every class of transformers knows: of tokens, of training, of how a model is loaded
// and how texts are generated.
var hfInert = []string{
	"_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path",
	"add_cross_attention", "architectures", "attention_dropout", "attn_implementation", "auto_map",
	"bad_words_ids", "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward",
	"cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype",
	"early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty",
	"finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing",
	"id2label", "initializer_range", "is_decoder", "is_encoder_decoder", "label2id", "length_penalty",
	"max_length", "min_length", "model_type", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
	"num_return_sequences", "output_attentions", "output_hidden_states", "output_scores", "pad_token_id",
	"prefix", "problem_type", "pruned_heads", "remove_invalid_values", "repetition_penalty",
	"return_dict", "return_dict_in_generate", "sep_token_id", "suppress_tokens", "task_specific_params",
	"temperature", "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p",
	"torch_dtype", "torchscript", "transformers_version", "typical_p", "use_bfloat16", "use_cache",
	"vocab_size",
}

// Computes says whether the result of a model depends on a key.
func (s *Spelling) Computes(key string) bool {
	return slices.Contains(s.Keys.List(), key) ||
		slices.ContainsFunc(s.Only, func(o only) bool { return o.Key == key })
}

// knows says whether a key is one of the class.
func (s *Spelling) knows(key string) bool {
	return s.Computes(key) || slices.Contains(s.Class.inert, key) || slices.Contains(s.Keys.inert, key)
}

// Ignored is a key that a model's files state and its class does not know, so that nothing was done with it.
type Ignored struct{ Key, Why string }

// ignored are the keys that the file gives a value and its class does not know. Those that another class
// computes with are worth a warning, unless what they state is nothing.
func (r *configReader) ignored() (list []Ignored, warnings []string) {
	for _, key := range r.f.Top() {
		key, ours := strings.CutPrefix(key, r.prefix)
		if !ours || r.form.knows(key) || r.null(key) {
			continue
		}
		others, name := r.others(key), r.prefix+printable.Short(key, 80)
		why := r.form.Class.Name + " has no such key"
		if len(others) > 0 {
			why += "; it is of " + strings.Join(others, ", ")
		}
		list = append(list, Ignored{name, why})
		if len(others) > 0 && !r.neutral(key) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is ignored: %s", r.f.Name(), name, why))
		}
	}
	return list, warnings
}

// neutral says whether a key of another class says that there is nothing: by false, 0, a factor of 1 or
// layers that all see all positions; or only which layers have a window, whose size is another key.
func (r *configReader) neutral(key string) bool {
	for _, a := range Architectures {
		k := r.in(a).Keys
		if k != nil && slices.Contains([]string{k.windowUsed, k.windowFrom, k.fullEach}, key) {
			return true
		}
	}
	key = r.prefix + key
	if b, err := r.f.Bool(key); err == nil {
		return !b
	}
	if kinds, err := r.f.Strings(key); err == nil {
		return !slices.ContainsFunc(kinds, func(kind string) bool { return kind != fullAttention })
	}
	n, err := r.f.Int(key)
	if err == nil {
		return n == 0 || n == 1
	}
	x, err := r.f.Float(key)
	return err == nil && (x == 0 || x == 1)
}

// others are the names of the classes of the same form that compute with a key.
func (r *configReader) others(key string) (list []string) {
	for _, a := range Architectures {
		if s := r.in(a); s.Names != nil && s.Computes(key) {
			list = append(list, s.Class.Name)
		}
	}
	if len(list) == 0 && slices.Contains(r.form.Keys.elsewhere.inert, key) {
		list = append(list, r.form.Keys.elsewhere.Name)
	}
	return list
}
