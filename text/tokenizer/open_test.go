package tokenizer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/text/tokenizer"
)

// folder writes files into a new folder. It adds a tokenizer.json unless files names one.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if _, named := files["tokenizer.json"]; !named {
		data, err := json.Marshal(tinyJSON())
		if err != nil {
			t.Fatal(err)
		}
		files["tokenizer.json"] = string(data)
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFilesBesideAVocabularySayMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files    map[string]string
		bos, eos int
		addBOS   bool
		ends     string // the tokens that end a text
		template string
	}{
		"nothing": {map[string]string{}, -1, -1, false, "</s>", ""},
		"names": {
			map[string]string{"tokenizer_config.json": `{"bos_token": "<s>", "eos_token": {"content": "</s>"},
				"add_bos_token": true, "chat_template": "T"}`},
			1, 2, true, "</s>", "T",
		},
		"templates": {
			map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": "tool_use", "template": "A"},
				{"name": "default", "template": "B"}], "bos_token": null}`},
			-1, -1, false, "</s>", "B",
		},
		"template in a file": {
			map[string]string{"tokenizer_config.json": `{"chat_template": "A"}`, "chat_template.jinja": "B"},
			-1, -1, false, "</s>", "B",
		},
		"ends": {
			map[string]string{
				"tokenizer_config.json": `{"eos_token": "</s>"}`, "generation_config.json": `{"eos_token_id": [2, 4]}`,
			},
			-1, 2, false, "</s> a", "",
		},
		"end of a turn": {
			map[string]string{
				"tokenizer.json":        `{"model": {"vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 1, "content": "<end_of_turn>", "special": true}]}`,
				"tokenizer_config.json": `{"eos_token": "a"}`,
			},
			-1, 0, false, "a <end_of_turn>", "",
		},
		"one end": {
			map[string]string{"generation_config.json": `{"eos_token_id": 4}`}, -1, -1, false, "a", "",
		},
		"end of a decoder in a larger model": {
			map[string]string{"config.json": `{"text_config": {"eos_token_id": 4}}`}, -1, -1, false, "a", "",
		},
		"SentencePiece": {
			map[string]string{
				"tokenizer.json": "", "tokenizer.model": string(tinyModel(bpe(), nil)),
				"tokenizer_config.json": `{"add_bos_token": false}`,
			},
			1, 2, false, "</s>", "",
		},
	} {
		dir := folder(t, c.files)
		tok, err := tokenizer.Open(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var ends []string
		for id := range tok.VocabSize() {
			if tok.IsEnd(id) {
				ends = append(ends, tok.Token(id))
			}
		}
		if tok.BOS() != c.bos || tok.EOS() != c.eos || tok.AddBOS() != c.addBOS || strings.Join(ends,
			" ") != c.ends ||
			tok.Template() != c.template {
			t.Errorf("%s: BOS %d EOS %d add %v ends %q template %q", name, tok.BOS(), tok.EOS(),
				tok.AddBOS(), ends,
				tok.Template())
		}
	}
}

func TestWhatIsNoVocabularyIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		open  string
		want  string
		is    error
	}{
		"empty folder": {map[string]string{"tokenizer.json": ""}, "", "has neither a tokenizer.json nor a tokenizer.model", tokenizer.ErrNoVocabulary},
		"text": {
			map[string]string{"a.txt": "text"},
			"a.txt", "a.txt: the file is not a vocabulary",
			nil,
		},
		"missing": {map[string]string{}, "none", "no such file", os.ErrNotExist},
	} {
		_, err := tokenizer.Open(filepath.Join(folder(t, c.files), c.open))
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}
