package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/model/gguf"
)

// The files of a Hugging Face folder that say something of its tokenizer.
const (
	jsonFile       = "tokenizer.json"
	modelFile      = "tokenizer.model"
	configFile     = "tokenizer_config.json"
	generationFile = "generation_config.json"
	templateFile   = "chat_template.jinja"
)

// maxFile is how large a file may be that is read whole; the largest published ones have some 40 MB.
const maxFile = 64 << 20

// Open reads a vocabulary: a GGUF file, a tokenizer.json, a SentencePiece model (tokenizer.model), or a
// folder with one of the latter two. What stands beside a file of just that name is read with it: special
// tokens and chat template of tokenizer_config.json and chat_template.jinja, ends of generation_config.json.
func Open(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openFolder(path)
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("GGUF")) {
		f, err := gguf.Open(path)
		if err != nil {
			return nil, err
		}
		t, err := New(f)
		return t, errors.Join(err, f.Close())
	}
	data, err := mapfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	parse := ParseModel
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		parse = ParseJSON
	} else if len(head) == 0 || head[0] != 1<<3|2 {
		return nil, fmt.Errorf("%s: it begins like no vocabulary: want a GGUF file, a %s or a SentencePiece %s", path,
			jsonFile, modelFile)
	}
	c, err := parse(data, path)
	if err != nil {
		return nil, err
	}
	if base := filepath.Base(path); base == jsonFile || base == modelFile {
		if err := c.readFolder(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	t, err := NewBPE(c)
	if err != nil {
		return nil, fmt.Errorf("%s: vocabulary: %w", path, err)
	}
	return t, nil
}

func openFolder(dir string) (*Tokenizer, error) {
	for _, name := range []string{jsonFile, modelFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return Open(path)
		}
	}
	return nil, fmt.Errorf("%s: the folder has no %s and no %s: %w", dir, jsonFile, modelFile,
		ErrNoVocabulary)
}

// readHead is the beginning of a file, by which it is known.
func readHead(path string) ([]byte, error) {
	f, _, err := mapfile.Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], err
}

// readFolder adds what the files beside a vocabulary say. What they leave out stays.
func (c *Config) readFolder(dir string) error {
	var file struct {
		BOS      tokenName `json:"bos_token"`
		EOS      tokenName `json:"eos_token"`
		AddBOS   *bool     `json:"add_bos_token"`
		AddEOS   *bool     `json:"add_eos_token"`
		Template templates `json:"chat_template"`
	}
	var generation struct {
		EOS idList `json:"eos_token_id"`
	}
	if err := readJSONFile(filepath.Join(dir, configFile), &file); err != nil {
		return err
	}
	if err := readJSONFile(filepath.Join(dir, generationFile), &generation); err != nil {
		return err
	}
	for _, named := range []struct {
		key  string
		name tokenName
		id   *int
	}{{"bos_token", file.BOS, &c.BOS}, {"eos_token", file.EOS, &c.EOS}} {
		if named.name == "" {
			continue
		}
		if *named.id = slices.Index(c.Tokens, string(named.name)); *named.id == None {
			return fmt.Errorf("%s: %s %q is none of the vocabulary", filepath.Join(dir, configFile),
				named.key, printable.Short(string(named.name), 40))
		}
	}
	around := func(add *bool, side *[]int, id int) {
		switch {
		case add == nil:
		case !*add:
			*side = nil
		case len(*side) == 0:
			*side = []int{id}
		}
	}
	around(file.AddBOS, &c.Before, c.BOS)
	around(file.AddEOS, &c.After, c.EOS)
	for _, id := range generation.EOS {
		if id != c.EOS {
			c.Ends = append(c.Ends, id)
		}
	}
	if generation.EOS == nil {
		c.Ends = c.turnEnds()
	}
	c.Template = string(file.Template)
	var err error
	if c.Special, err = readSpecialTokens(dir); err != nil {
		return err
	}
	data, err := mapfile.Read(filepath.Join(dir, templateFile), maxFile)
	if err == nil {
		c.Template = string(data)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// turnNames are the control tokens that end a turn of a conversation, in the templates of the models that
// have them.
var turnNames = []string{"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>"}

// turnEnds are the tokens that end a turn, by their names: many files name the end of a text alone.
func (c *Config) turnEnds() (ids []int) {
	for id, kind := range c.Kinds {
		if id < len(c.Tokens) && kind == Control && id != c.EOS && slices.Contains(turnNames, c.Tokens[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// readJSONFile reads a file that need not be there.
func readJSONFile(path string, into any) error {
	data, err := mapfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := readjson.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w: correct it, or fetch the file again", path, printable.Error(err, 200))
	}
	return nil
}

// tokenName is a token's text, written as such or as an object that has it.
type tokenName string

// UnmarshalJSON reads both.
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

// templates are a chat template, or several with names of which the default one is taken.
type templates string

// UnmarshalJSON reads both.
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

// idList is a token id or several.
type idList []int

// UnmarshalJSON reads both.
func (l *idList) UnmarshalJSON(data []byte) error {
	if data[0] != '[' && string(data) != "null" {
		data = []byte("[" + string(data) + "]")
	}
	return json.Unmarshal(data, (*[]int)(l))
}
