package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"gpuscope/internal/printable"
)

// splitRule cuts text into words before the merges: by one pattern after the other, each in the pieces that
// the one before left. What a pattern matches is a piece, and so is what stands between two matches.
type splitRule struct {
	names      []string // of tokenizer.ggml.pre, as llama.cpp has them; the first is the rule's own
	patterns   []string
	wholeWords bool // default of Config.WholeWords for files that do not say
	addBOS     bool // whether prompts start with BOS, for files that do not say
}

// The patterns of the rules, as the tokenizer.json of the first model of each has them.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	numberPattern = `\p{N}`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Words of capitals and words that go on in small letters, of GPT-4o and Tekken.
	tekkenPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4oPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	threeDigits   = `\p{N}{1,3}`
	numbers       = `\p{N}+`
	ascii3Digits  = `[0-9][0-9][0-9]`
	seedPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailing       = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	bloomPattern  = ` ?[^(\s|.,!?…。，、।۔،)]+`
	// The scripts that DeepSeek's rules keep apart.
	cjk      = `[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+`
	cjkKana  = `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`
	deepseek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
		`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	falconSymbols  = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	defaultSymbols = `[\p{P}\$\+<=>\^~\|]+`
)

// splits has every known rule.
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

// scanners do what these patterns say, faster.
var scanners = map[string]scanner{
	gpt2Pattern:   gpt2Word,
	numberPattern: digit,
	llama3Pattern: func(text string) int { return llama3Word(text, 3) },
	qwen2Pattern:  func(text string) int { return llama3Word(text, 1) },
}

// known are the patterns of all rules.
var known = func() map[string]bool {
	set := map[string]bool{}
	for _, rule := range splits {
		for _, p := range rule.patterns {
			set[p] = true
		}
	}
	return set
}()

// SplitRule is the rule that files call by that name, as steps of Config.Cut.
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
	return splitRule{}, fmt.Errorf("split rule %q is not supported yet (%s are, and %d more names of these): %w",
		printable.Short(name, 80), strings.Join(names, ", "), nameCount()-len(names), ErrUnsupported)
}

func nameCount() (n int) {
	for _, rule := range splits {
		n += len(rule.names)
	}
	return n
}

func (r splitRule) steps() (steps []Step) {
	for _, p := range r.patterns {
		step, err := Cut(p, Isolated, false)
		if err != nil {
			panic(err) // a pattern of this file: a test goes through them all
		}
		steps = append(steps, step)
	}
	return steps
}

// Behaviour says what becomes of the matches of a pattern that cuts, by the names of tokenizer.json.
type Behaviour string

// The behaviours.
const (
	Isolated           Behaviour = "Isolated" // a match is a piece of its own
	Removed            Behaviour = "Removed"
	MergedWithPrevious Behaviour = "MergedWithPrevious" // with what stands before it
	MergedWithNext     Behaviour = "MergedWithNext"
	Contiguous         Behaviour = "Contiguous" // with the matches that follow on it
)

// Cut is the step that cuts a text by a regular expression. With invert what lies between the matches counts
// as the matches. Known patterns are done by a scanner, others by an interpreter that takes some 20 times as
// long.
func Cut(pattern string, b Behaviour, invert bool) (Step, error) {
	if !slices.Contains([]Behaviour{Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous}, b) {
		return Step{}, fmt.Errorf("split behaviour %q is not known: %w", printable.Short(string(b), 80),
			ErrUnsupported)
	}
	if scan := scanners[pattern]; scan != nil && b == Isolated {
		return Step{cut: scan.cut}, nil
	}
	if len(pattern) > maxPattern {
		return Step{}, fmt.Errorf("split pattern %q has %d bytes, at most %d are possible",
			printable.Short(pattern, 80), len(pattern), maxPattern)
	}
	compiled, err := compile(pattern)
	if err != nil {
		return Step{}, fmt.Errorf("split pattern %q: %v: %w", printable.Short(pattern, 120), err,
			ErrUnsupported)
	}
	return Step{cut: func(text string, yield func(string) error) error {
		parts, err := matches(compiled, text)
		if err != nil {
			return err
		}
		if invert {
			for i := range parts {
				parts[i].match = !parts[i].match
			}
		}
		return behave(text, parts, b, yield)
	}}, nil
}

func (next scanner) cut(text string, yield func(string) error) error {
	for text != "" {
		n := next(text)
		if err := yield(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// maxMatchTime is how long one match of a pattern may take: those of a file can be made so that they never
// come to an end.
const maxMatchTime = 2 * time.Second

// maxPattern is how long a pattern may be, in bytes; the longest published ones have some 500.
const maxPattern = 1 << 14

var compiledPatterns sync.Map // by pattern, as compile left them

// compile reads a pattern. Those of tokenizer.json are Oniguruma's: ^ and $ are the ends of a line, and case
// folding takes the long s (ſ) for an s, which the interpreter's does not. What would mean something else to
// the interpreter is refused.
func compile(pattern string) (*regexp2.Regexp, error) {
	if re, ok := compiledPatterns.Load(pattern); ok {
		return re.(*regexp2.Regexp), nil
	}
	if err := foreign(pattern); err != nil {
		return nil, err
	}
	folded := strings.NewReplacer(`(?i:'s|`, `(?i:'s|'ſ|`, `(?i:[sdmt]|`, `(?i:[sſdmt]|`).Replace(pattern)
	re, err := regexp2.Compile(folded, regexp2.Multiline)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = maxMatchTime
	if known[pattern] { // not those of files, of which there is no end
		compiledPatterns.Store(pattern, re)
	}
	return re, nil
}

// foreign says what in a pattern the interpreter would take for characters: classes within classes, of which
// Oniguruma makes unions and intersections.
func foreign(pattern string) error {
	inside := false // of a class
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[' && inside:
			return errors.New("a class of characters within a class is not supported")
		case strings.HasPrefix(pattern[i:], "&&") && inside:
			return errors.New("an intersection of classes of characters is not supported")
		case c == '[':
			inside = true
			if strings.HasPrefix(pattern[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(pattern[i+1:], "]") { // a character where it comes first
				i++
			}
		case c == ']':
			inside = false
		}
	}
	return nil
}

// part is text[from:to], a match or what stands before, between or behind matches.
type part struct {
	from, to int
	match    bool
}

// matches gives the parts of a text, which cover it. The interpreter counts characters, an invalid byte as
// one.
func matches(re *regexp2.Regexp, text string) (parts []part, err error) {
	at, runes := 0, 0 // the same place in bytes and in characters
	forward := func(n int) int {
		for ; runes < n; runes++ {
			_, width := utf8.DecodeRuneInString(text[at:])
			at += width
		}
		return at
	}
	done := 0
	m, err := re.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
		from := forward(m.Index)
		to := forward(m.Index + m.Length)
		if done < from {
			parts = append(parts, part{done, from, false})
		}
		if from < to {
			parts = append(parts, part{from, to, true})
		}
		done = to
	}
	if err != nil { // time alone makes a match fail, and the interpreter's words for it have all of the text
		return nil, fmt.Errorf("split pattern %q: a match in %d bytes of text took longer than %v: %w",
			printable.Short(re.String(), 120), len(text), maxMatchTime, ErrUnsupported)
	}
	if done < len(text) {
		parts = append(parts, part{done, len(text), false})
	}
	return parts, nil
}

// behave gives the pieces that a behaviour makes of the parts of a text.
func behave(text string, parts []part, b Behaviour, yield func(string) error) error {
	for i := 0; i < len(parts); {
		p := parts[i]
		last := i
		joins := func(next int) bool { // whether the part of that number goes with those since i
			if next >= len(parts) {
				return false
			}
			switch b {
			case MergedWithPrevious:
				return parts[next].match && !parts[next-1].match
			case MergedWithNext:
				return parts[next-1].match && !parts[next].match
			case Contiguous:
				return parts[next].match == parts[next-1].match
			}
			return false
		}
		for joins(last + 1) {
			last++
		}
		if b != Removed || !p.match {
			if err := yield(text[p.from:parts[last].to]); err != nil {
				return err
			}
		}
		i = last + 1
	}
	return nil
}
