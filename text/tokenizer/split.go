package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// splitRule splits text into words before the merges. Its patterns apply one after another, each to the
// pieces that the previous pattern produced. Each match becomes a piece, and so does the text between two
// matches.
type splitRule struct {
	names      []string // values of tokenizer.ggml.pre in llama.cpp; the first is the rule's name
	patterns   []string
	wholeWords bool // default value of Config.WholeWords
	addBOS     bool // whether prompts start with BOS by default
}

// The patterns of the rules. Each pattern is from the tokenizer.json of the first model with this rule.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	numberPattern = `\p{N}`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Patterns of GPT-4o and Tekken, which distinguish words in capitals from words that continue in lower
	// case.
	tekkenPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4oPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	threeDigits   = `\p{N}{1,3}`
	numbers       = `\p{N}+`
	ascii3Digits  = `[0-9][0-9][0-9]`
	seedPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailing       = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	bloomPattern  = ` ?[^(\s|.,!?…。，、।۔،)]+`
	// Scripts that DeepSeek's rules split from other text.
	cjk      = `[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+`
	cjkKana  = `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`
	deepseek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
		`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	linesPattern   = `[^\n]+|\n+` // Gemma 4
	falconSymbols  = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	defaultSymbols = `[\p{P}\$\+<=>\^~\|]+`
)

// splits lists all known rules.
var splits = []splitRule{
	{
		names: []string{
			"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4", "gigachat", "mellum", "modern-bert",
			"granite-docling", "a.x-4.0", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
			"jina-v2-code", "roberta-bpe",
		},
		patterns: []string{gpt2Pattern},
	},
	{
		names: []string{
			"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2",
		},
		patterns: []string{numberPattern, gpt2Pattern},
	},
	{
		names: []string{
			"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
		},
		patterns:   []string{llama3Pattern},
		wholeWords: true, addBOS: true,
	},
	{names: []string{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, patterns: []string{llama3Pattern}},
	{
		names: []string{
			"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2", "kormo", "f2llmv2",
		},
		patterns: []string{qwen2Pattern},
	},
	{names: []string{"qwen35"}, patterns: []string{qwen35Pattern}},
	{names: []string{"tekken"}, patterns: []string{tekkenPattern}, wholeWords: true, addBOS: true},
	{
		names:    []string{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
		patterns: []string{gpt4oPattern},
	},
	{
		names:    []string{"deepseek-coder"},
		patterns: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, cjk, numberPattern},
	},
	{
		names:    []string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
		patterns: []string{threeDigits, cjkKana, deepseek},
	},
	{names: []string{"falcon"}, patterns: []string{falconSymbols, gpt2Pattern, ascii3Digits}},
	{names: []string{"default"}, patterns: []string{defaultSymbols, gpt2Pattern, numbers, ascii3Digits}},
	{names: []string{"poro-chat", "bloom", "gpt3-finnish"}, patterns: []string{bloomPattern}},
	{names: []string{"viking"}, patterns: []string{bloomPattern, numberPattern}},
	{names: []string{"seed-coder"}, patterns: []string{seedPattern}},
	{names: []string{"bailingmoe", "bailingmoe2", "llada-moe"}, patterns: []string{bailing}},
}

// scanners maps patterns to faster hand-written equivalents.
var scanners = map[string]scanner{
	gpt2Pattern:   gpt2Word,
	numberPattern: digit,
	llama3Pattern: func(text string) int { return llama3Word(text, 3) },
	qwen2Pattern:  func(text string) int { return llama3Word(text, 1) },
}

// known is the set of the patterns of all rules.
var known = func() map[string]bool {
	set := map[string]bool{}
	for _, rule := range splits {
		for _, p := range rule.patterns {
			set[p] = true
		}
	}
	return set
}()

// SplitRule returns the steps of a split rule, for Config.Cut. `name` is a value of tokenizer.ggml.pre.
func SplitRule(name string) ([]Step, error) {
	rule, err := findSplit(name)
	return rule.steps(), err
}

func findSplit(name string) (splitRule, error) {
	var names []string
	for _, rule := range splits {
		if slices.Contains(rule.names, name) {
			return rule, nil
		}
		names = append(names, rule.names[0])
	}
	return splitRule{}, fmt.Errorf("split rule %q is not supported yet (supported: %s; these rules also have %d other names): %w",
		printable.Short(name, 80), strings.Join(names, ", "), nameCount()-len(names), ErrUnsupported)
}

func nameCount() (n int) {
	for _, rule := range splits {
		n += len(rule.names)
	}
	return n
}

func (r splitRule) steps() []Step { return patternSteps(r.patterns...) }

// patternSteps returns the steps that split text by patterns of this file.
func patternSteps(patterns ...string) (steps []Step) {
	for _, p := range patterns {
		step, err := Cut(p, Isolated, false)
		if err != nil {
			panic(err) // cannot happen, because a test compiles all patterns of this file
		}
		steps = append(steps, step)
	}
	return steps
}
