package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gpuscope/internal/mapfile"
)

// Files of a Hugging Face folder with information about the tokenizer.
const (
	jsonFile       = "tokenizer.json"
	modelFile      = "tokenizer.model"
	configFile     = "tokenizer_config.json"
	mapFile        = "special_tokens_map.json" // older file with the names of special tokens
	generationFile = "generation_config.json"
	shapeFile      = "config.json" // configuration of the model
	templateFile   = "chat_template.jinja"
)

// maxFile is the maximum size in bytes of a file that is read into memory. The largest published files have
// about 40 MB.
const maxFile = 64 << 20

// Open reads a vocabulary from a tokenizer.json, a SentencePiece model (tokenizer.model), or a folder with
// one of these files. If the name of the file is exactly one of these two names, Open also reads the files
// next to it. Special tokens and the chat template come from tokenizer_config.json, special_tokens_map.json
// and chat_template.jinja. End tokens come from generation_config.json and config.json. The errors are those
// of New. The Tokenizer is nil only if the path does not exist.
func Open(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return openFile(path)
	}
	for _, name := range []string{jsonFile, modelFile} {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); err == nil {
			return openFile(file)
		}
	}
	c := unread(path)
	c.readBeside(path)
	return newTokenizer(c, fmt.Errorf("%s: the folder has neither a %s nor a %s: %w",
		path, jsonFile, modelFile, ErrNoVocabulary))
}

func openFile(path string) (*Tokenizer, error) {
	head, err := readHead(path)
	c := unread(path)
	if err == nil {
		var read Config
		if read, err = readFile(path, head); err == nil || read.Tokens != nil {
			c = read
		}
	}
	if base := filepath.Base(path); base == jsonFile || base == modelFile {
		c.readBeside(filepath.Dir(path))
	} else {
		c.ownEnds()
	}
	return newTokenizer(c, err)
}

// readFile reads a tokenizer.json or a SentencePiece model. `head` is the beginning of the file.
func readFile(path string, head []byte) (Config, error) {
	parse := ParseModel
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		parse = ParseJSON
	} else if len(head) == 0 || head[0] != 1<<3|2 {
		return Config{}, fmt.Errorf("%s: the file is not a vocabulary. Use a %s or a SentencePiece %s",
			path, jsonFile, modelFile)
	}
	data, err := mapfile.Read(path, maxFile)
	if err != nil {
		return Config{}, err
	}
	return parse(data, path)
}

// unread returns a Config without a vocabulary.
func unread(name string) Config { return Config{Name: name, BOS: None, EOS: None, Unknown: None} }

// readHead returns the beginning of a file, which shows the format.
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
