package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
)

// maxBeside is the maximum size in bytes of a file next to a vocabulary. The largest published files have
// about 2 MB.
const maxBeside = 16 << 20

// maxValues is the maximum number of values in a list in a file next to a vocabulary.
const maxValues = 1 << 12

// settings holds the keys of a file next to a vocabulary. A key that cannot be read causes a warning and
// counts as missing.
type settings struct {
	c    *Config
	name string // name of the file
	keys map[string]json.RawMessage
}

// readSettings reads a settings file. The file may be missing.
func (c *Config) readSettings(dir, name string) *settings {
	s := &settings{c: c, name: name}
	data, err := mapfile.Read(filepath.Join(dir, name), maxBeside)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err == nil {
		err = readjson.Unmarshal(readjson.Python(data), &s.keys)
	}
	if err != nil {
		c.warnf("%s is ignored: %v", filepath.Join(dir, name), printable.Error(err, 200))
		s.keys = nil
	}
	return s
}

// from returns the file and the key of a value, for messages.
func (s *settings) from(key string) string { return s.name + ": " + key }

// has reports whether the file has a key, even if its value is null.
func (s *settings) has(key string) bool { return s.keys[key] != nil }

// object returns the settings inside the object under a key, or empty settings if the key is missing.
func (s *settings) object(key string) *settings {
	return &settings{s.c, s.from(key), value[map[string]json.RawMessage](s, key)}
}

// ignored adds a warning about a value that cannot be read.
func (s *settings) ignored(key string, err error) {
	s.c.warnf("%s is ignored: %v", s.from(key), printable.Error(err, 200))
}

// value returns the value of a key. It returns the zero value if the key is null or missing.
func value[T any](s *settings, key string) (v T) {
	if !s.has(key) {
		return v
	}
	if err := readjson.Unmarshal(s.keys[key], &v); err != nil {
		s.ignored(key, err)
		return *new(T)
	}
	return v
}

// list returns the values of a key, which may hold a single value or a list. It omits nulls and values of
// another type.
func list[T any](s *settings, key string) (values []T) {
	raw := s.keys[key]
	if !s.has(key) {
		return nil
	}
	elements := []json.RawMessage{raw}
	if raw[0] == '[' {
		if n := bytes.Count(raw, []byte(",")); n >= maxValues {
			s.ignored(key, errors.New("the list has too many values"))
			return nil
		}
		elements = value[[]json.RawMessage](s, key)
	}
	for _, e := range elements {
		if string(e) == "null" {
			continue
		}
		var v T
		if err := readjson.Unmarshal(e, &v); err != nil {
			s.ignored(key, err)
			continue
		}
		values = append(values, v)
	}
	return values
}

// readBeside reads the files next to a vocabulary. A value that one of these files contains replaces the
// value in c.
func (c *Config) readBeside(dir string) {
	own, older := c.readSettings(dir, configFile), c.readSettings(dir, mapFile)
	c.Special = specialTokens(older, own)
	c.decoderTokens(own)
	bos, eos := c.named("bos_token", own, older), c.named("eos_token", own, older)
	c.otherSpecials()
	shape := c.readSettings(dir, shapeFile)
	c.ends(eos, c.readSettings(dir, generationFile), shape, shape.object("text_config"))
	names := bosNames
	if own.has("bos_token") { // null means that the model has no BOS token
		names = nil
	}
	if len(bos) > 0 {
		c.BOS = bos[0].ID
	}
	if len(eos) > 0 {
		c.EOS = eos[0].ID
	}
	c.around(own, "add_bos_token", &c.Before, &c.BOS, names)
	c.around(own, "add_eos_token", &c.After, &c.EOS, endNames)
	c.Template = string(value[templates](own, "chat_template"))
	data, err := mapfile.Read(filepath.Join(dir, templateFile), maxBeside)
	switch {
	case err == nil:
		c.Template = string(data)
	case !errors.Is(err, fs.ErrNotExist):
		c.warnf("%s is ignored: %v", filepath.Join(dir, templateFile), printable.Error(err, 200))
	}
}

// around reads a key that states whether a token is added at one side of a text. If the key is true, around
// adds the token to `side`. If the key is false, it clears `side`.
func (c *Config) around(s *settings, key string, side *[]int, id *int, names []string) {
	switch add := value[*bool](s, key); {
	case add == nil:
	case !*add:
		*side = nil
	case len(*side) == 0 && len(c.Tokens) > 0:
		c.ask(side, id, s.from(key), names)
	}
}

// named returns the tokens under `key` in the first file that has any. Usually there is one token. If there
// are several, all of them are returned, because each EOS token ends a text. Tokens that the vocabulary lacks
// are added to the vocabulary, as in transformers.
func (c *Config) named(key string, files ...*settings) (named []End) {
	if len(c.Tokens) == 0 {
		return nil
	}
	for _, s := range files {
		for _, name := range list[tokenName](s, key) {
			if name == "" {
				continue
			}
			id := c.special(s.from(key), addedJSON{Content: string(name), Special: true})
			named = append(named, End{ID: id, From: s.from(key)})
		}
		if len(named) > 1 {
			c.warnf("%s names %d tokens, but only one is expected, so the first is used",
				s.from(key), len(named))
		}
		if named != nil {
			return named
		}
	}
	return nil
}

// special adds to c.Added a token that a file next to the vocabulary names. It returns the token's id. If the
// vocabulary lacks the token, the token is added there too, with the next free id.
func (c *Config) special(from string, a addedJSON) (id int) {
	if c.Added == nil {
		c.Added = addedByKind(c.Tokens, c.Kinds)
	}
	for i := range c.Added {
		if c.Tokens[c.Added[i].ID] == a.Content {
			return c.Added[i].ID
		}
	}
	id = slices.Index(c.Tokens, a.Content)
	outside := id == None
	if outside {
		id = len(c.Tokens)
		c.Tokens, c.Kinds = append(c.Tokens, a.Content), append(c.Kinds, Control)
		if c.Scores != nil {
			c.Scores = append(c.Scores, 0)
		}
		c.warnf("%s %q is not in the vocabulary, so it was added as token %d, as transformers does",
			from, printable.Short(a.Content, 40), id)
	}
	c.Added = append(c.Added, Added{
		ID: id, Text: a.Content, Special: a.Special, Outside: outside,
		StripLeft: a.StripLeft, StripRight: a.StripRight, Word: a.SingleWord,
	})
	return id
}

// decoderTokens adds the tokens of added_tokens_decoder that the vocabulary lacks, in the order of their ids.
// As in transformers, each token gets the next free id instead of its id in the file.
func (c *Config) decoderTokens(s *settings) {
	if len(c.Tokens) == 0 {
		return
	}
	const key = "added_tokens_decoder"
	byID := value[map[int]addedJSON](s, key)
	if len(byID) > maxValues {
		s.ignored(key, errors.New("the list has too many values"))
		return
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if a := byID[id]; a.Content != "" && !slices.Contains(c.Tokens, a.Content) {
			c.special(s.from(key), a)
		}
	}
}

// otherSpecials adds all special tokens except BOS and EOS to c.Added. If the vocabulary lacks some of them,
// they get ids in the same order as in transformers.
func (c *Config) otherSpecials() {
	if len(c.Tokens) == 0 {
		return
	}
	add := func(from, text string) {
		if text != "" {
			c.special(from, addedJSON{Content: text, Special: true})
		}
	}
	for _, key := range []string{"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		add(key, c.Special.Named[key])
	}
	for _, text := range c.Special.Extra[:min(len(c.Special.Extra), maxValues)] {
		add(extraKeys[0], text)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Special.Named)) { // specific to this model
		add(key, c.Special.Named[key])
	}
}

// ends sets the tokens that end a text. It uses the first source that names such tokens:
// generation_config.json, config.json, or the files of the tokenizer. If it uses the files of the tokenizer,
// it also adds the tokens whose names are known to end a text.
func (c *Config) ends(named []End, files ...*settings) {
	for _, s := range files {
		const key = "eos_token_id"
		for _, id := range list[int](s, key) {
			if id < 0 {
				continue // a negative id means no token
			}
			if id >= len(c.Tokens) && len(c.Tokens) > 0 {
				c.warnf("%s is token %d, which is not in the vocabulary of %d tokens",
					s.from(key), id, len(c.Tokens))
			}
			c.endAt(id, s.from(key))
		}
		if c.Ends != nil {
			return
		}
	}
	for _, e := range named {
		c.endAt(e.ID, e.From)
	}
	c.ownEnds()
}

// ownEnds adds the tokens that end a text according to the vocabulary itself.
func (c *Config) ownEnds() {
	if c.Ends == nil && c.EOS < len(c.Tokens) {
		c.endAt(c.EOS, filepath.Base(c.Name))
	}
	c.endByName(func(string) bool { return false })
}

// tokenName is the text of a token, stored as a string or as an object with a content field.
type tokenName string

// UnmarshalJSON reads a string, or an object with a content field.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(n))
	}
	err := json.Unmarshal(data, &object)
	*n = tokenName(object.Content)
	return err
}

// templates is a chat template, or a list of named templates from which the default one is chosen.
type templates string

// UnmarshalJSON reads a single template, or a list of named templates.
func (t *templates) UnmarshalJSON(data []byte) error {
	var named []struct{ Name, Template string }
	if data[0] != '[' {
		return json.Unmarshal(data, (*string)(t))
	}
	err := json.Unmarshal(data, &named)
	for i, n := range named {
		if i == 0 || n.Name == "default" {
			*t = templates(n.Template)
		}
	}
	return err
}
