package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
)

// ParseJSON parses a tokenizer.json, the format of Hugging Face's tokenizers library. If the file requires an
// unknown operation, the error names the operation and wraps ErrUnsupported. Even with an error, the Config
// contains the tokens that could be read.
func ParseJSON(data []byte, name string) (Config, error) {
	if err := checkCounts(data); err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	var f tokenizerJSON
	if err := readjson.Unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("%s: not a valid tokenizer.json: %w. Correct the file or download it again", name,
			printable.Error(err, 200))
	}
	c, err := f.config()
	c.Name = name
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// maxCounts limits the numbers of objects, lists and commas in a file, which bounds the memory for the
// parsed file. Published files have about 10,000 objects and a million lists and commas.
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
			return fmt.Errorf("not a tokenizer.json: the file has %d occurrences of the character %q, but the maximum is %d",
				counts[c],
				string(byte(c)), most)
		}
	}
	return nil
}

// tokenizerJSON holds the parts of the file that are read. Training settings are not read.
type tokenizerJSON struct {
	Added         []addedJSON `json:"added_tokens"`
	Normalizer    *component  `json:"normalizer"`
	PreTokenizer  *component  `json:"pre_tokenizer"`
	PostProcessor *component  `json:"post_processor"`
	Decoder       *component  `json:"decoder"`
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

// UnmarshalJSON reads the vocabulary only if the type is BPE, because the vocabularies of other types have
// another structure.
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
	if text := string(tables.Merges); m.Vocab != nil && (text == "" || text == "null") {
		return errors.New("the model has a vocabulary but no list of merges")
	}
	merges, err := readMergesJSON(tables.Merges)
	m.Merges = merges
	return err
}

// readMergesJSON reads merges as pairs, or as lines in which a space separates the two tokens.
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
			return nil, fmt.Errorf("merge %d is %q; it must be two tokens", i,
				printable.Short(strings.Join(p, " "), 80))
		}
		merges[i] = [2]string(p)
	}
	return merges, nil
}

// config returns the vocabulary. If text cannot be encoded, it returns the reason and the tokens.
func (f *tokenizerJSON) config() (Config, error) {
	m := &f.Model
	c := Config{
		Merges: m.Merges, ByteFallback: m.ByteFallback, WholeWords: m.WholeWords, Unknown: None,
		FuseUnknown: m.FuseUnknown, BOS: None, EOS: None,
	}
	if m.Type == "" && m.Vocab == nil {
		return c, errors.New("not a tokenizer.json: it has no model with a vocabulary")
	}
	err := f.rules(&c)
	if err != nil {
		c.Normal, c.Cut = nil, nil
		_ = f.spelling(&c) // sets the encoding of tokens; only the first error is returned
	}
	if wrong := f.fill(&c); wrong != nil {
		c.Tokens, c.Kinds, c.Added = nil, nil, nil
		return c, cmp.Or(err, wrong)
	}
	if err == nil && m.Unknown != "" {
		id, ok := m.Vocab[m.Unknown]
		if !ok {
			return c, fmt.Errorf("the unknown token %q is not in the vocabulary",
				printable.Short(m.Unknown, 40))
		}
		c.Unknown = id
	}
	around := f.PostProcessor.around(&c)
	if len(c.Before) == 1 {
		c.BOS = c.Before[0]
	}
	if len(c.After) == 1 {
		c.EOS = c.After[0]
	}
	return c, cmp.Or(err, around)
}

// rules reads the settings that determine how text is encoded.
func (f *tokenizerJSON) rules(c *Config) (err error) {
	m := &f.Model
	switch {
	case m.Type != "BPE" && m.Type != "":
		return fmt.Errorf("tokenizer model %q is not supported yet; only BPE is supported: %w",
			printable.Short(m.Type, 80),
			ErrUnsupported)
	case m.Prefix != "" || m.Suffix != "":
		return fmt.Errorf("the tokenizer marks tokens inside of words with a prefix or suffix (here %q and %q), which is not supported yet: %w",
			printable.Short(m.Prefix, 40), printable.Short(m.Suffix, 40), ErrUnsupported)
	case m.Dropout != 0:
		return fmt.Errorf("the tokenizer drops merges at random (dropout %v); this is only for training and is not supported: %w",
			m.Dropout, ErrUnsupported)
	}
	if c.Normal, err = normalizers.steps(f.Normalizer); err != nil {
		return err
	}
	if c.Cut, err = preTokenizers.steps(f.PreTokenizer); err != nil {
		return err
	}
	// If the last step writes bytes in the byte alphabet, it is dropped, and the initial symbols are the
	// bytes themselves. A vocabulary with byte fallback has separate tokens for bytes, so its initial symbols
	// are characters.
	if n := len(c.Cut); n > 0 && c.Cut[n-1].alphabet && !c.ByteFallback {
		c.Cut = c.Cut[:n-1]
	} else {
		c.Characters = true
	}
	if err := f.spelling(c); err != nil {
		return err
	}
	return checkSteps(c.Normal) // check the steps again, because they are also applied to added tokens
}

// fill stores the tokens by id. An id that belongs to no token gets a token of kind Undefined without a text.
func (f *tokenizerJSON) fill(c *Config) error {
	const spare = 1 << 16
	n := len(f.Model.Vocab) + len(f.Added)
	size := 0
	check := func(text string, id int) error {
		if id < 0 || id >= 2*n+spare {
			return fmt.Errorf("token %q has id %d, which is not possible in a vocabulary of %d tokens",
				printable.Short(text, 40), id, n)
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
			p, err := rewriteAll(c.Normal, piece{text: text, head: firstLength(text)})
			if err != nil {
				return fmt.Errorf("added token %q: %w", printable.Short(a.Content, 40), err)
			}
			text = p.text
		}
		_, inVocab := f.Model.Vocab[a.Content]
		c.Tokens[a.ID], c.Kinds[a.ID] = a.Content, kind
		c.Added = append(c.Added, Added{
			ID: a.ID, Text: text, Normalized: a.Normalized, Special: a.Special,
			StripLeft: a.StripLeft, StripRight: a.StripRight, Word: a.SingleWord, Outside: !inVocab,
		})
	}
	return nil
}

// around reads the tokens that a post_processor adds before and after a text.
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
					return fmt.Errorf("the post-processor template adds the token %q but does not define it",
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

// spelling determines from the decoder how tokens represent bytes and spaces. It ignores operations at the
// ends of a text, because they do not affect single tokens.
func (f *tokenizerJSON) spelling(to *Config) error {
	to.Alphabet, to.Space = f.PreTokenizer.has("ByteLevel") || f.Normalizer.has("ByteLevel"), spaceSign
	if f.Decoder == nil {
		return nil
	}
	to.Alphabet = false
	return f.Decoder.spelling(to)
}

func (c *component) spelling(to *Config) error {
	switch c.Type {
	case "Sequence":
		for _, p := range c.Decoders {
			if err := p.spelling(to); err != nil {
				return err
			}
		}
	case "ByteLevel":
		to.Alphabet = true
	case "Metaspace":
		to.Space = c.Replacement
	case "Replace":
		if c.Pattern.String == nil || *c.Pattern.String == "" || c.Content != " " {
			return fmt.Errorf("a Replace decoder is supported only if it replaces a fixed text with one space: %w",
				ErrUnsupported)
		}
		to.Space = *c.Pattern.String
	case "ByteFallback", "Fuse", "Strip":
	default:
		return fmt.Errorf("decoder %q is not supported yet: %w", printable.Short(c.Type, 80), ErrUnsupported)
	}
	return nil
}
