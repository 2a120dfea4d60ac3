package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// component is a normalizer, pre_tokenizer, post_processor or decoder of a tokenizer.json. The struct has the
// fields of all types. The comment of a field names the types that have the field.
type component struct {
	Type          string       `json:"type"`
	Normalizers   []*component `json:"normalizers"`   // field of Sequence
	PreTokenizers []*component `json:"pretokenizers"` // field of Sequence
	Processors    []*component `json:"processors"`    // field of Sequence
	Decoders      []*component `json:"decoders"`      // field of Sequence

	Pattern          patternJSON `json:"pattern"`  // field of Replace and Split
	Content          string      `json:"content"`  // field of Replace
	Prepend          string      `json:"prepend"`  // field of Prepend
	Behaviour        Behaviour   `json:"behavior"` // field of Split and Punctuation
	Invert           bool        `json:"invert"`
	IndividualDigits bool        `json:"individual_digits"`
	Replacement      string      `json:"replacement"` // field of Metaspace
	PrependScheme    string      `json:"prepend_scheme"`
	AddPrefixSpace   *bool       `json:"add_prefix_space"` // field of Metaspace and ByteLevel
	Split            *bool       `json:"split"`            // field of Metaspace
	UseRegex         *bool       `json:"use_regex"`        // field of ByteLevel
	StripLeft        bool        `json:"strip_left"`       // field of Strip
	StripRight       bool        `json:"strip_right"`
	CleanText        bool        `json:"clean_text"` // field of BertNormalizer
	HandleChinese    bool        `json:"handle_chinese_chars"`
	StripAccents     *bool       `json:"strip_accents"`
	Lowercase        bool        `json:"lowercase"`
	Delimiter        string      `json:"delimiter"` // field of CharDelimiterSplit
	Length           *int        `json:"length"`    // field of FixedLength

	Single        []templatePiece            `json:"single"`         // field of TemplateProcessing
	SpecialTokens map[string]templateSpecial `json:"special_tokens"` // field of TemplateProcessing
	CLS, SEP      idPair                     // field of BertProcessing and RobertaProcessing
}

// patternJSON is a literal text or a regular expression.
type patternJSON struct{ String, Regex *string }

type templatePiece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

type templateSpecial struct {
	IDs []int `json:"ids"`
}

// idPair is a token in the post-processors of BERT. The file contains the text and the id of the token. Has
// is true if the file contains the pair.
type idPair struct {
	ID  int
	Has bool
}

// UnmarshalJSON reads a list of the text and the id.
func (p *idPair) UnmarshalJSON(data []byte) error {
	var text string
	list := []any{&text, &p.ID}
	p.Has = true
	return json.Unmarshal(data, &list)
}

func (c *component) parts() []*component {
	return slices.Concat(c.Normalizers, c.PreTokenizers, c.Processors)
}

// has reports whether the component, or a component inside of it, has the type `kind`.
func (c *component) has(kind string) bool {
	if c == nil {
		return false
	}
	return c.Type == kind || slices.ContainsFunc(c.parts(), func(p *component) bool { return p.has(kind) })
}

// find returns the matcher of a pattern, and the minimum length of a match in bytes.
func (p patternJSON) find() (_ matcher, least int, err error) {
	var source string
	switch {
	case p.Regex != nil:
		source = *p.Regex
	case p.String == nil:
		return nil, 0, fmt.Errorf("a pattern has neither a String nor a Regex: %w", ErrUnsupported)
	case *p.String != "":
		return literal(*p.String), len(*p.String), nil
	}
	e, err := compile(source)
	if err != nil {
		return nil, 0, err
	}
	if !e.empty {
		least = 1
	}
	return e.find, least, nil
}

// components lists the component types that are supported in one place of the file. It maps each type to the
// function that returns the steps of such a component.
type components map[string]func(*component) ([]Step, error)

// steps returns the steps of a component, or nil if there is no component.
func (known components) steps(c *component) (steps []Step, err error) {
	switch {
	case c == nil:
		return nil, nil
	case c.Type == "Sequence":
		for _, p := range c.parts() {
			more, err := known.steps(p)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
			if err := countSteps(steps); err != nil { // before more patterns are compiled
				return nil, err
			}
		}
		return steps, nil
	case known[c.Type] == nil:
		return nil, fmt.Errorf("component %q is not supported yet in this place of a tokenizer.json; supported here: %s: %w",
			printable.Short(c.Type, 80), strings.Join(slices.Sorted(maps.Keys(known)), ", "), ErrUnsupported)
	}
	return known[c.Type](c)
}

// always returns a function for a map of type components. The function is for a component type without
// fields, so it always returns the same steps.
func always(steps ...Step) func(*component) ([]Step, error) {
	return func(*component) ([]Step, error) { return steps, nil }
}

func one(s Step, err error) ([]Step, error) { return []Step{s}, err }

var normalizers = components{
	"BertNormalizer": func(c *component) ([]Step, error) {
		return bertSteps(c.CleanText, c.HandleChinese, c.StripAccents, c.Lowercase), nil
	},
	"ByteLevel": always(byteAlphabet),
	"Lowercase": always(lowercase),
	"NFC":       unicodeForm, "NFD": unicodeForm, "NFKC": unicodeForm, "NFKD": unicodeForm,
	"Nmt":     always(nmt),
	"Prepend": func(c *component) ([]Step, error) { return one(Prepend(c.Prepend), nil) },
	"Replace": func(c *component) ([]Step, error) {
		find, least, err := c.Pattern.find()
		return one(replaceWhere(find, least, c.Content), err)
	},
	"Strip": func(c *component) ([]Step, error) {
		return one(trimSpace(c.StripLeft, c.StripRight), nil)
	},
	"StripAccents": always(without(unicode.IsMark)),
}

func unicodeForm(c *component) ([]Step, error) { return one(normalize(forms[c.Type]), nil) }

// isPunctuation reports whether Punctuation and BertPreTokenizer treat a character as punctuation: Unicode
// punctuation, and all ASCII symbols.
func isPunctuation(r rune) bool {
	return unicode.IsPunct(r) || r < utf8.RuneSelf && unicode.IsSymbol(r)
}

var preTokenizers = components{
	"BertPreTokenizer": func(*component) ([]Step, error) {
		spaces, _ := cutWhere(single(unicode.IsSpace), Removed, false)
		signs, err := cutWhere(single(isPunctuation), Isolated, false)
		return []Step{spaces, signs}, err
	},
	"ByteLevel": func(c *component) (steps []Step, err error) {
		if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
			steps = append(steps, PrependMissing(" ", false))
		}
		if c.UseRegex == nil || *c.UseRegex {
			words, err := Cut(gpt2Pattern, Isolated, false)
			if err != nil {
				return nil, err
			}
			steps = append(steps, words)
		}
		return append(steps, byteAlphabet), nil
	},
	"CharDelimiterSplit": func(c *component) ([]Step, error) {
		if utf8.RuneCountInString(c.Delimiter) != 1 {
			return nil, notOne("delimiter", c.Delimiter)
		}
		return one(cutWhere(literal(c.Delimiter), Removed, false))
	},
	"Digits": func(c *component) ([]Step, error) {
		if c.IndividualDigits {
			return one(Cut(numberPattern, Isolated, false))
		}
		return one(cutWhere(single(unicode.IsNumber), Contiguous, false))
	},
	"FixedLength": func(c *component) ([]Step, error) {
		length := 5
		if c.Length != nil {
			length = *c.Length
		}
		if length < 1 {
			return nil, fmt.Errorf("a FixedLength splitter has length %d, but the minimum is 1: %w", length,
				ErrUnsupported)
		}
		return one(fixedLength(length), nil)
	},
	"Metaspace": metaspace,
	"Punctuation": func(c *component) ([]Step, error) {
		if c.Behaviour == "" {
			c.Behaviour = Isolated
		}
		return one(cutWhere(single(isPunctuation), c.Behaviour, false))
	},
	"Split": func(c *component) ([]Step, error) {
		if c.Pattern.Regex != nil {
			return one(Cut(*c.Pattern.Regex, c.Behaviour, c.Invert))
		}
		find, _, err := c.Pattern.find()
		if err != nil {
			return nil, err
		}
		return one(cutWhere(find, c.Behaviour, c.Invert))
	},
	"UnicodeScripts": always(cutScripts),
	"Whitespace":     func(*component) ([]Step, error) { return one(cutWhere(runsOfKinds, Removed, false)) },
	"WhitespaceSplit": func(*component) ([]Step, error) {
		return one(cutWhere(single(unicode.IsSpace), Removed, false))
	},
}

func notOne(what, text string) error {
	return fmt.Errorf("%s %q is not one character: %w", what, printable.Short(text, 80), ErrUnsupported)
}

func metaspace(c *component) (steps []Step, err error) {
	if utf8.RuneCountInString(c.Replacement) != 1 {
		return nil, notOne("replacement", c.Replacement)
	}
	scheme := c.PrependScheme
	if c.AddPrefixSpace != nil && !*c.AddPrefixSpace {
		scheme = "never"
	}
	steps = []Step{Replace(" ", c.Replacement)}
	switch scheme {
	case "always", "":
		steps = append(steps, PrependMissing(c.Replacement, false))
	case "first":
		steps = append(steps, PrependMissing(c.Replacement, true))
	case "never":
	default:
		return nil, fmt.Errorf("unknown prepend_scheme %q: %w", printable.Short(scheme, 80),
			ErrUnsupported)
	}
	if c.Split != nil && !*c.Split {
		return steps, nil
	}
	words, err := cutWhere(literal(c.Replacement), MergedWithNext, false)
	return append(steps, words), err
}

// fixedLength returns the step that splits a text into pieces of `length` characters.
func fixedLength(length int) Step {
	return Step{cut: func(text string, yield func(from, to int) error) error {
		from, count := 0, 0
		for at := range text {
			if count == length {
				if err := yield(from, at); err != nil {
					return err
				}
				from, count = at, 0
			}
			count++
		}
		if from == len(text) {
			return nil
		}
		return yield(from, len(text))
	}}
}

// runsOfKinds splits a text into runs of characters of one kind. The kinds are white space; letters, marks,
// digits and underscores; and all other characters. Only the runs of white space count as matches, and the
// caller removes them.
func runsOfKinds(text string) (parts []part, err error) {
	kindOf := func(r rune) int {
		switch {
		case inWord(r):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	last := -1
	for at, r := range text {
		n := len(parts)
		if kind := kindOf(r); kind != last {
			parts = append(parts, part{at, at, kind == 0})
			last, n = kind, n+1
		}
		parts[n-1].to = at + firstLength(text[at:])
	}
	return parts, nil
}

// cutScripts splits a text where the script changes, as SentencePiece does. Kana counts as Han. Spaces and
// characters without a script join the previous piece. At the start of the text they are dropped.
var cutScripts = Step{cut: func(text string, yield func(from, to int) error) error {
	from, last := -1, ""
	for at, r := range text {
		script := scriptOf(r)
		if script == "" || script == last {
			continue
		}
		if from >= 0 {
			if err := yield(from, at); err != nil {
				return err
			}
		}
		from, last = at, script
	}
	if from < 0 {
		return nil
	}
	return yield(from, len(text))
}}

// scriptOf returns the script of a character as SentencePiece defines it, or "" for a space and for a
// character without a script.
func scriptOf(r rune) string {
	switch {
	case r == ' ':
		return ""
	case r == 'ー' || unicode.In(r, unicode.Hiragana, unicode.Katakana):
		return "Han"
	case unicode.Is(unicode.Common, r):
		return "Common"
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
