package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"

	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
)

// ParseJSON reads the text of a tokenizer.json, the form of Hugging Face's tokenizers library. What it does
// to text and is not known here is an error that names it, and ErrUnsupported.
func ParseJSON(data []byte, name string) (Config, error) {
	if err := checkCounts(data); err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	var f tokenizerJSON
	if err := readjson.Unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("%s: no tokenizer.json: %w: correct it, or fetch the file again", name,
			printable.Error(err, 200))
	}
	c, err := f.config()
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	c.Name = name
	return c, nil
}

// maxCounts are how many objects, lists and commas a file may have, which bounds what it takes as Go has it.
// Published ones have some 10,000 objects and a million lists and commas.
var maxCounts = [256]int{'{': 1 << 17, '[': 1 << 22, ',': 1 << 22}

func checkCounts(data []byte) error {
	var counts [256]int
	text := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			text = !text
		case !text:
			counts[c]++
		case c == '\\':
			i++
		}
	}
	for c, most := range maxCounts {
		if most > 0 && counts[c] > most {
			return fmt.Errorf("it has %d of %q, at most %d are read: it is no tokenizer.json", counts[c],
				string(byte(c)), most)
		}
	}
	return nil
}

// tokenizerJSON is what is read of the file; the decoder and what is for training are not.
type tokenizerJSON struct {
	Added         []addedJSON `json:"added_tokens"`
	Normalizer    *component  `json:"normalizer"`
	PreTokenizer  *component  `json:"pre_tokenizer"`
	PostProcessor *component  `json:"post_processor"`
	Model         modelJSON   `json:"model"`
}

type addedJSON struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	StripLeft  bool   `json:"lstrip"`
	StripRight bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type modelJSON struct {
	Type         string         `json:"type"`
	Vocab        map[string]int `json:"-"`
	Merges       [][2]string    `json:"-"`
	Unknown      string         `json:"unk_token"`
	FuseUnknown  bool           `json:"fuse_unk"`
	ByteFallback bool           `json:"byte_fallback"`
	WholeWords   bool           `json:"ignore_merges"`
	Dropout      float64        `json:"dropout"`
	Prefix       string         `json:"continuing_subword_prefix"`
	Suffix       string         `json:"end_of_word_suffix"`
}

// UnmarshalJSON looks at the type first: models of other kinds have other vocabularies.
func (m *modelJSON) UnmarshalJSON(data []byte) error {
	type plain modelJSON
	if err := json.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	if m.Type != "BPE" && m.Type != "" {
		return nil
	}
	var tables struct {
		Vocab  map[string]int  `json:"vocab"`
		Merges json.RawMessage `json:"merges"`
	}
	if err := json.Unmarshal(data, &tables); err != nil {
		return err
	}
	m.Vocab = tables.Vocab
	merges, err := readMergesJSON(tables.Merges)
	m.Merges = merges
	return err
}

// readMergesJSON reads merges as pairs, or as lines with a space between the two.
func readMergesJSON(data json.RawMessage) (merges [][2]string, err error) {
	var pairs [][]string
	inside := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("[")), " \t\r\n")
	if len(inside) > 0 && inside[0] == '"' {
		var lines []string
		if err := json.Unmarshal(data, &lines); err != nil {
			return nil, err
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "#version") {
				pairs = append(pairs, strings.SplitN(line, " ", 3))
			}
		}
	} else if len(data) > 0 {
		if err := json.Unmarshal(data, &pairs); err != nil {
			return nil, err
		}
	}
	merges = make([][2]string, len(pairs))
	for i, p := range pairs {
		if len(p) != 2 || p[0] == "" || p[1] == "" {
			return nil, fmt.Errorf("merge %d is %q, want two tokens", i,
				printable.Short(strings.Join(p, " "), 80))
		}
		merges[i] = [2]string(p)
	}
	return merges, nil
}

// literal is the pattern of a text as it stands.
func literal(text string) string { return regexp2.Escape(text) }

func (f *tokenizerJSON) config() (Config, error) {
	m := &f.Model
	switch {
	case m.Type == "" && m.Vocab == nil:
		return Config{}, errors.New("no tokenizer.json: it has no model with a vocabulary")
	case m.Type != "BPE" && m.Type != "":
		return Config{}, fmt.Errorf("tokenizer model %q is not supported yet (BPE is): %w",
			printable.Short(m.Type, 80),
			ErrUnsupported)
	case m.Prefix != "" || m.Suffix != "":
		return Config{}, fmt.Errorf("tokens that mark the inside or the end of words (%q, %q) are not supported yet: %w",
			printable.Short(m.Prefix, 40), printable.Short(m.Suffix, 40), ErrUnsupported)
	case m.Dropout != 0:
		return Config{}, fmt.Errorf("dropout %v of merges is for training, and not supported: %w",
			m.Dropout, ErrUnsupported)
	}
	c := Config{
		Merges: m.Merges, ByteFallback: m.ByteFallback, WholeWords: m.WholeWords, Unknown: None,
		FuseUnknown: m.FuseUnknown, BOS: None, EOS: None,
	}
	var err error
	if c.Normal, err = normalizers.steps(f.Normalizer); err != nil {
		return c, err
	}
	if c.Cut, err = preTokenizers.steps(f.PreTokenizer); err != nil {
		return c, err
	}
	c.Characters = !f.PreTokenizer.has("ByteLevel")
	if err := checkSteps(c.Normal); err != nil { // added tokens go through them
		return c, err
	}
	if err := f.fill(&c); err != nil {
		return c, err
	}
	if m.Unknown != "" {
		id, ok := m.Vocab[m.Unknown]
		if !ok {
			return c, fmt.Errorf("the token of what is unknown, %q, is none of the vocabulary",
				printable.Short(m.Unknown, 40))
		}
		c.Unknown = id
	}
	err = f.PostProcessor.around(&c)
	if len(c.Before) == 1 {
		c.BOS = c.Before[0]
	}
	if len(c.After) == 1 {
		c.EOS = c.After[0]
	}
	return c, err
}

// fill orders the tokens by id. Ids may leave gaps, which are tokens of no kind and no text.
func (f *tokenizerJSON) fill(c *Config) error {
	const spare = 1 << 16
	n := len(f.Model.Vocab) + len(f.Added)
	size := 0
	check := func(text string, id int) error {
		if id < 0 || id >= 2*n+spare {
			return fmt.Errorf("token %q has id %d, in a vocabulary of %d tokens", printable.Short(text, 40),
				id, n)
		}
		size = max(size, id+1)
		return nil
	}
	for text, id := range f.Model.Vocab {
		if err := check(text, id); err != nil {
			return err
		}
	}
	for _, a := range f.Added {
		if err := check(a.Content, a.ID); err != nil {
			return err
		}
	}
	c.Tokens, c.Kinds = make([]string, size), make([]Kind, size)
	for text, id := range f.Model.Vocab {
		if c.Kinds[id] != Undefined {
			first, second := min(text, c.Tokens[id]), max(text, c.Tokens[id])
			return fmt.Errorf("tokens %q and %q both have id %d", printable.Short(first, 40),
				printable.Short(second, 40), id)
		}
		c.Tokens[id], c.Kinds[id] = text, Normal
		if c.ByteFallback && fromByteName(text) != text {
			c.Kinds[id] = Byte
		}
	}
	c.Added = []Added{}
	for _, a := range f.Added {
		if a.Content == "" {
			continue
		}
		kind, text := UserDefined, a.Content
		if a.Special {
			kind = Control
		}
		if a.Normalized {
			text = rewriteAll(c.Normal, text, true)
		}
		c.Tokens[a.ID], c.Kinds[a.ID] = a.Content, kind
		c.Added = append(c.Added, Added{
			ID: a.ID, Text: text, Normalized: a.Normalized, Special: a.Special,
			StripLeft: a.StripLeft, StripRight: a.StripRight, Word: a.SingleWord,
		})
	}
	return nil
}

// component is a normalizer, pre_tokenizer or post_processor: a type and the fields of all types.
type component struct {
	Type          string       `json:"type"`
	Normalizers   []*component `json:"normalizers"`   // of a Sequence
	PreTokenizers []*component `json:"pretokenizers"` // likewise
	Processors    []*component `json:"processors"`    // likewise

	Pattern          patternJSON `json:"pattern"`  // of Replace and Split
	Content          string      `json:"content"`  // of Replace
	Prepend          string      `json:"prepend"`  // of Prepend
	Behaviour        Behaviour   `json:"behavior"` // of Split and Punctuation
	Invert           bool        `json:"invert"`
	IndividualDigits bool        `json:"individual_digits"`
	Replacement      string      `json:"replacement"` // of Metaspace
	PrependScheme    string      `json:"prepend_scheme"`
	AddPrefixSpace   *bool       `json:"add_prefix_space"` // of Metaspace and ByteLevel
	Split            *bool       `json:"split"`            // of Metaspace
	UseRegex         *bool       `json:"use_regex"`        // of ByteLevel

	Single        []templatePiece            `json:"single"`         // of TemplateProcessing
	SpecialTokens map[string]templateSpecial `json:"special_tokens"` // likewise
	CLS, SEP      idPair                     // of BertProcessing and RobertaProcessing
}

type patternJSON struct{ String, Regex string }

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

// idPair is a token as processors of BERT name it: its text and its id.
type idPair struct {
	ID  int
	Has bool
}

// UnmarshalJSON reads a list of text and id.
func (p *idPair) UnmarshalJSON(data []byte) error {
	var text string
	list := []any{&text, &p.ID}
	p.Has = true
	return json.Unmarshal(data, &list)
}

func (c *component) parts() []*component {
	return slices.Concat(c.Normalizers, c.PreTokenizers, c.Processors)
}

// has says whether a component of that type is this one or in it.
func (c *component) has(kind string) bool {
	if c == nil {
		return false
	}
	return c.Type == kind || slices.ContainsFunc(c.parts(), func(p *component) bool { return p.has(kind) })
}

// components are the types of one place of the file.
type components map[string]func(*component) ([]Step, error)

// steps are what a component does to text; none does nothing.
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
		return nil, fmt.Errorf("%q is not supported yet in that place of a tokenizer.json (%s are): %w",
			printable.Short(c.Type, 80), strings.Join(slices.Sorted(maps.Keys(known)), ", "), ErrUnsupported)
	}
	return known[c.Type](c)
}

func one(s Step) ([]Step, error) { return []Step{s}, nil }

var normalizers = components{
	"NFC": unicodeForm, "NFD": unicodeForm, "NFKC": unicodeForm, "NFKD": unicodeForm,
	"Prepend": func(c *component) ([]Step, error) { return one(Prepend(c.Prepend)) },
	"Replace": func(c *component) ([]Step, error) {
		if c.Pattern.Regex != "" || c.Pattern.String == "" {
			return nil, fmt.Errorf("a Replace of the pattern %q is not supported yet (that of a text is): %w",
				printable.Short(c.Pattern.Regex, 80), ErrUnsupported)
		}
		return one(Replace(c.Pattern.String, c.Content))
	},
}

func unicodeForm(c *component) ([]Step, error) { return one(normalize(forms[c.Type])) }

// Patterns of the pre-tokenizers that have none of their own in the file.
const (
	punctuation = `[\p{P}!-/:-@\[-` + "`" + `{-~]`
	whiteSpace  = `\s`
)

var preTokenizers = components{
	"Split": func(c *component) ([]Step, error) {
		pattern := c.Pattern.Regex
		if pattern == "" {
			pattern = literal(c.Pattern.String)
		}
		return cut(pattern, c.Behaviour, c.Invert)
	},
	"Digits": func(c *component) ([]Step, error) {
		if c.IndividualDigits {
			return cut(numberPattern, Isolated, false)
		}
		return cut(numberPattern, Contiguous, false)
	},
	"Punctuation": func(c *component) ([]Step, error) {
		if c.Behaviour == "" {
			c.Behaviour = Isolated
		}
		return cut(punctuation, c.Behaviour, false)
	},
	"WhitespaceSplit": func(*component) ([]Step, error) { return cut(whiteSpace, Removed, false) },
	"Metaspace": func(c *component) (steps []Step, err error) {
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
			return nil, fmt.Errorf("prepend_scheme %q is not known: %w", printable.Short(scheme, 80),
				ErrUnsupported)
		}
		if c.Split == nil || *c.Split {
			more, err := cut(literal(c.Replacement), MergedWithNext, false)
			return append(steps, more...), err
		}
		return steps, nil
	},
	"ByteLevel": func(c *component) (steps []Step, err error) {
		if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
			steps = append(steps, PrependMissing(" ", false))
		}
		if c.UseRegex == nil || *c.UseRegex {
			more, err := cut(gpt2Pattern, Isolated, false)
			return append(steps, more...), err
		}
		return steps, nil
	},
}

func cut(pattern string, b Behaviour, invert bool) ([]Step, error) {
	s, err := Cut(pattern, b, invert)
	return []Step{s}, err
}

// around takes from a post_processor what is put before and behind a text.
func (c *component) around(to *Config) error {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "ByteLevel":
	case "Sequence":
		for _, p := range c.Processors {
			if err := p.around(to); err != nil {
				return err
			}
		}
	case "BertProcessing", "RobertaProcessing":
		if c.CLS.Has && c.SEP.Has {
			to.Before, to.After = []int{c.CLS.ID}, []int{c.SEP.ID}
		}
	case "TemplateProcessing":
		side := &to.Before
		for _, p := range c.Single {
			if p.SpecialToken != nil {
				special, ok := c.SpecialTokens[p.SpecialToken.ID]
				if !ok {
					return fmt.Errorf("the template puts %q around a text, and does not say which token that is",
						printable.Short(p.SpecialToken.ID, 40))
				}
				*side = append(*side, special.IDs...)
			} else {
				side = &to.After
			}
		}
	default:
		return fmt.Errorf("post-processor %q is not supported yet: %w", printable.Short(c.Type, 80),
			ErrUnsupported)
	}
	return nil
}
