package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// class describes the configuration keys that a program (transformers or llama.cpp) reads for an
// architecture, and the defaults of these keys. docs/guide/models.md lists the defaults and where they come
// from.
type class struct {
	Name string // name of the class in that program: "LlamaConfig"
	// Defaults holds the values of the keys that a file may leave out. Each value is an int, a float64 or a
	// bool. A file must state every other key that the reader needs, unless the value follows from other
	// keys.
	Defaults map[string]any
	// inert lists keys that the class knows and that do not affect the results.
	inert []string
}

// with is a helper that copies the entries of other into m and returns m.
func with(m, other map[string]any) map[string]any {
	maps.Copy(m, other)
	return m
}

// ggufClass returns the class for a GGUF architecture. Its defaults are those of all llama.cpp architectures
// plus those in `own`.
func ggufClass(name string, own map[string]any) class {
	return class{
		Name:     "llama.cpp's " + name,
		Defaults: with(map[string]any{"rope.freq_base": 1e4}, own),
	}
}

// ggufInert lists keys that do not affect the results of the supported architectures. Some of these keys are
// in the list because llama.cpp reads them for every architecture. The others only describe the file.
var ggufInert = []string{
	"expert_used_count", "rope.scaling.finetuned", "rope.scaling.yarn_attn_factor",
	"rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_ext_factor",
	"rope.scaling.yarn_log_multiplier", "tensor_data_layout", "vocab_size",
}

// ggufElsewhere lists keys that llama.cpp reads only for architectures that this version does not run.
var ggufElsewhere = class{Name: "architectures of llama.cpp that are not supported", inert: []string{
	"attention.clamp_kqv", "attention.group_norm_epsilon", "attention.group_norm_groups",
	"attention.kv_lora_rank", "attention.max_alibi_bias",
	"attention.output_scale", "attention.q_lora_rank", "attention.relative_buckets_count",
	"attention.temperature_length", "rope.dimension_sections",
	"rope.scaling.alpha",
}}

// hfInert lists keys that every class of transformers has and that do not affect the logits. They concern
// tokens, training, loading and text generation.
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

// Computes reports whether a key affects the results of the model.
func (s *Spelling) Computes(key string) bool {
	return slices.Contains(s.Keys.List(), key) ||
		slices.ContainsFunc(s.Only, func(o only) bool { return o.Key == key })
}

// knows reports whether models of this architecture and format have the key.
func (s *Spelling) knows(key string) bool {
	return s.Computes(key) || slices.Contains(s.Class.inert, key) || slices.Contains(s.Keys.inert, key)
}

// Ignored is a key in a model's files that has no effect, because the model's class does not define the key.
// Why tells the user the reason.
type Ignored struct{ Key, Why string }

// ignored returns the keys that have a value in the file although the model's class does not define them. If
// such a key would change the results of another class, ignored also returns a warning.
func (r *configReader) ignored() (list []Ignored, warnings []string) {
	for _, key := range r.f.Top() {
		key, ours := strings.CutPrefix(key, r.prefix)
		if !ours || r.form.knows(key) || r.null(key) {
			continue
		}
		others, name := r.others(key), r.prefix+printable.Short(key, 80)
		why := r.form.Class.Name + " has no such key"
		if len(others) > 0 {
			why += "; it belongs to " + strings.Join(others, ", ")
		}
		list = append(list, Ignored{name, why})
		if len(others) > 0 && !r.neutral(key) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is ignored: %s", r.f.Name(), name, why))
		}
	}
	return list, warnings
}

// neutral reports whether a key of another class has a value that would have no effect even in that class:
// false, 0, a factor of 1, or full attention in all layers. neutral also returns true for a key that only
// selects the layers with a sliding window, because another key states the size of the window.
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

// others returns the names of the classes of this file format whose results depend on the key.
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
