package tokenizer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/text/tokenizer"
)

// pipelineCase is a text, the reference's ids, and its decoded text if that was recorded.
type pipelineCase struct {
	text    string
	ids     []int
	decoded *string
}

func (c *pipelineCase) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&c.text, &c.ids, &c.decoded})
}

// TestRandomPipelinesGiveTheReferencesIDs tests the tokenizer.json files that testdata/pipelines/make.js drew
// at random. A file that is refused must return a typed error.
func TestRandomPipelinesGiveTheReferencesIDs(t *testing.T) {
	t.Parallel()
	name := os.Getenv("GPUSCOPE_PIPELINES") // another output of make.js
	if name == "" {
		name = filepath.Join("testdata", "pipelines", "pipelines.json")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Models    map[string]object
		Pipelines []struct {
			Model  string
			Fields object
			File   object
			Cases  []pipelineCase
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	refused, compared := 0, 0
	for i, p := range file.Pipelines {
		p.File["model"] = maps.Clone(file.Models[p.Model])
		maps.Copy(p.File["model"].(object), p.Fields)
		data, err := json.Marshal(p.File)
		if err != nil {
			t.Fatal(err)
		}
		config, err := tokenizer.ParseJSON(data, fmt.Sprint("pipeline ", i))
		if err != nil {
			refused++
			t.Log(err)
			if !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Errorf("refused with %v", err)
			}
			continue
		}
		tok, err := tokenizer.NewBPE(config)
		if err != nil {
			t.Errorf("pipeline %d: %v", i, err)
			continue
		}
		delete(p.File, "model")
		about, _ := json.Marshal(p.File)
		for _, c := range p.Cases {
			ids, err := tok.Encode(c.text, tokenizer.Options{Special: true})
			if _, lost := errors.AsType[*tokenizer.LostError](err); err != nil && !lost {
				t.Errorf("pipeline %d: %q: %v", i, c.text, err)
			} else if fmt.Sprint(ids) != fmt.Sprint(c.ids) {
				t.Errorf("pipeline %d: %q:\n got %v\nwant %v\n got %q\nwant %q\n%s %v\n%s", i, c.text, ids,
					c.ids, names(tok, ids), names(tok, c.ids), p.Model, p.Fields, about)
			} else if c.decoded != nil && comparable(tok.Decode(ids)) != comparable(*c.decoded) {
				t.Errorf("pipeline %d: %q is decoded to\n     %q\nwant %q\n%s", i, c.text, tok.Decode(ids),
					*c.decoded, about)
			}
			compared++
		}
	}
	if len(file.Pipelines) < 100 || refused > 10 || compared < 600 {
		t.Errorf("%d of %d pipelines refused, %d texts compared", refused, len(file.Pipelines), compared)
	}
}

func names(tok *tokenizer.Tokenizer, ids []int) (list []string) {
	for _, id := range ids {
		list = append(list, tok.Token(id))
	}
	return list
}

// comparable removes what Decode handles differently from the reference: leading spaces, and bytes that are
// not UTF-8.
func comparable(text string) string {
	return strings.TrimLeft(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\ufffd", ""), " ")
}
