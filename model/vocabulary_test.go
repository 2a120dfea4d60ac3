//go:build !race

package model

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// readModel reads a model and closes it at the end of the test.
func readModel(t *testing.T, o Options) *Model {
	t.Helper()
	m, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// readShared reads a model of the shared cases. It checks the number of warnings, and that token ids can be
// used.
func readShared(t *testing.T, name string, warnings int) *Model {
	t.Helper()
	m := readModel(t, Options{Path: sharedCase(t, name)})
	if got := m.Warnings(); len(got) != warnings {
		t.Errorf("%d warnings, want %d: %q", len(got), warnings, got)
	}
	if _, err := m.prompt(session.Command{Tokens: []int{3, 4}}); err != nil {
		t.Errorf("token ids: %v", err)
	}
	return m
}

// wantPrompt checks the ids of a text.
func wantPrompt(t *testing.T, m *Model, text string, want ...int) {
	t.Helper()
	got, err := m.prompt(session.Command{Text: text})
	if err != nil || !slices.Equal(got.IDs, want) {
		t.Errorf("%q: %v, %v, want %v", text, got.IDs, err, want)
	}
}

// wantOutside checks that a command is refused because a token has no row in the embedding.
func wantOutside(t *testing.T, m *Model, c session.Command, want OutsideError) {
	t.Helper()
	_, err := m.prompt(c)
	outside, ok := errors.AsType[*OutsideError](err)
	if !ok || *outside != want || !errors.Is(err, session.ErrUsage) {
		t.Errorf("got %v, want %+v", err, want)
	}
}

func TestTokenWithoutARowIsRefusedWhereUsed(t *testing.T) {
	t.Parallel()
	m := readShared(t, "vocab-one-more", 0)
	wantPrompt(t, m, "ab", 97, 98)
	wantOutside(t, m, session.Command{Text: "a<image_soft_token>"},
		OutsideError{At: 1, ID: 264, Text: "<image_soft_token>", Rows: 264})
	wantOutside(t, m, session.Command{Tokens: []int{265}}, OutsideError{ID: 265, Rows: 264})
}

func TestNamedTokenThatIsMissingIsAdded(t *testing.T) {
	t.Parallel()
	m := readShared(t, "vocab-bos-not-in-vocab", 1)
	wantPrompt(t, m, "ab", 97, 98)
	if m.tokens.BOS() != 264 {
		t.Errorf("BOS is %d, want 264", m.tokens.BOS())
	}
	wantOutside(t, m, session.Command{Text: "<|startoftext|>"},
		OutsideError{ID: 264, Text: "<|startoftext|>", Rows: 264})
}

func TestAddBOSWithoutBOSIsAWarning(t *testing.T) {
	t.Parallel()
	wantPrompt(t, readShared(t, "vocab-addbos-null", 1), "ab", 97, 98)
}

func TestListOfEndTokensIsTaken(t *testing.T) {
	t.Parallel()
	m := readShared(t, "vocab-eos-list", 1)
	wantPrompt(t, m, "ab", 97, 98)
	if m.tokens.EOS() != 257 || !m.tokens.IsEnd(257) || !m.tokens.IsEnd(261) || m.tokens.IsEnd(256) {
		t.Errorf("EOS %d, ends %v", m.tokens.EOS(), m.tokens.Ends())
	}
}

// given runs a prompt on the device and returns the generated tokens.
func given(t *testing.T, path string, prompt session.Command, n int) (ids []int) {
	t.Helper()
	r := openOn(t, gputest.Open(t), Options{Path: path})
	r.do(prompt)
	_, err := r.s.Do(t.Context(), session.Command{Kind: session.Run, N: n - 1})
	if err != nil && !errors.Is(err, session.ErrUsage) { // the text has ended
		t.Fatal(err)
	}
	for _, s := range r.end().Steps {
		if s.Token != nil {
			ids = append(ids, *s.Token)
		}
	}
	return ids
}

func TestEndTokenComesFromConfig(t *testing.T) {
	m := readShared(t, "eos-in-config", 0)
	want := []tokenizer.End{{ID: 2, Text: "<eos>", From: "config.json: eos_token_id"}}
	if got := m.tokens.Ends(); !slices.Equal(got, want) {
		t.Errorf("ends %v, want %v", got, want)
	}
	prompt := session.Command{Kind: session.Prompt, Text: "a"}
	if got := given(t, m.options.Path, prompt, 20); !slices.Equal(got, []int{5, 6, 3, 7, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestEndTokensOfGGUFAreKnownByName(t *testing.T) {
	m := readShared(t, "eos-by-name.gguf", 0)
	for id := range 12 {
		if got, want := m.tokens.IsEnd(id), id == 0 || id >= 2 && id <= 9; got != want {
			t.Errorf("token %d %q ends a text: %v, want %v", id, m.tokens.Token(id), got, want)
		}
	}
	prompt := session.Command{Kind: session.Prompt, Tokens: []int{11}}
	if got := given(t, m.options.Path, prompt, 3); !slices.Equal(got, []int{2}) {
		t.Errorf("got %v", got)
	}
}

// soundFolder returns a valid Hugging Face folder and the contents of its vocabulary files.
func soundFolder(t *testing.T) (dir string, files map[string]map[string]any) {
	t.Helper()
	f := newTinyFolder()
	f.tensors["model.embed_tokens.weight"], f.tensors["lm_head.weight"] = []int{10, 64}, []int{10, 64}
	added := []any{}
	for id, text := range []string{"<s>", "</s>"} {
		added = append(added, map[string]any{"id": id, "content": text, "special": true})
	}
	bytes := map[string]any{"type": "ByteLevel", "add_prefix_space": false}
	return f.write(t), map[string]map[string]any{
		"config.json": f.Config,
		"tokenizer.json": {
			"added_tokens": added, "pre_tokenizer": bytes,
			"model": map[string]any{
				"type": "BPE", "vocab": map[string]any{"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4},
				"merges": []any{"a b"},
			},
		},
		"tokenizer_config.json":   {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true},
		"special_tokens_map.json": {"bos_token": "<s>", "eos_token": "</s>"},
		"generation_config.json":  {"eos_token_id": 1},
	}
}

// remains describes what still works if a model's vocabulary has a defect. Token ids always work.
type remains struct {
	text     bool  // whether the text "ab" can be encoded
	prompt   []int // ids of "ab", if it can be encoded
	warnings bool
	ends     []int // ids that end a text
}

// holdDefect checks how a model with a defective vocabulary behaves. Token ids must always run.
func holdDefect(t *testing.T, name, path string, want remains) {
	t.Helper()
	m, err := Read(Options{Path: path})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer m.Close()
	if _, err := m.Plan(gpu.DefaultLimits()); err != nil {
		t.Errorf("%s: plan: %v", name, err)
	}
	ids, err := m.prompt(session.Command{Tokens: []int{2, 3}})
	if err != nil || len(ids.Prompt) != 2 {
		t.Errorf("%s: token ids: %v", name, err)
	}
	ids, err = m.prompt(session.Command{Text: "ab"})
	if want.text && (err != nil || !slices.Equal(ids.IDs, want.prompt)) {
		t.Errorf("%s: text gives %v, %v, want %v", name, ids.IDs, err, want.prompt)
	}
	_, refused := errors.AsType[*tokenizer.RefusedError](err)
	none := errors.Is(err, tokenizer.ErrNoVocabulary) // a missing vocabulary is not a defect
	if !want.text && (refused != want.warnings || none == refused || !errors.Is(err, session.ErrUsage)) {
		t.Errorf("%s: text gives %v, %v, want a refusal", name, ids.IDs, err)
	}
	if _, err := m.render(nil); err == nil {
		t.Errorf("%s: the model has a chat template", name)
	}
	if got := m.Warnings(); want.warnings != (len(got) > 0) ||
		slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, "\n") || len(w) > 500 }) {
		t.Errorf("%s: warnings %q, want warnings: %v", name, got, want.warnings)
	}
	var ends []int
	for _, e := range m.tokens.Ends() {
		ends = append(ends, e.ID)
	}
	if slices.Sort(ends); !slices.Equal(ends, want.ends) {
		t.Errorf("%s: ends %v, want %v", name, ends, want.ends)
	}
	s, err := Open(t.Context(), Options{Path: path, Device: trace.NoDevice, Driver: &fake.Driver{}}, nil)
	if err != nil {
		t.Errorf("%s: without a device: %v", name, err)
		return
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestDefectsOfAFoldersVocabularyLeaveIDs(t *testing.T) {
	t.Parallel()
	type files = map[string]map[string]any
	key := func(file, key string, value any) func(string, files) {
		return func(_ string, f files) { f[file][key] = value }
	}
	of := func(name string, value any) func(string, files) { // changes the model in tokenizer.json
		return func(_ string, f files) { f["tokenizer.json"]["model"].(map[string]any)[name] = value }
	}
	text := func(name, text string) func(string, files) { // replaces the file
		return func(dir string, f files) {
			delete(f, name)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	both := func(changes ...func(string, files)) func(string, files) {
		return func(dir string, f files) {
			for _, c := range changes {
				c(dir, f)
			}
		}
	}
	const vocabulary, config, names, generation = "tokenizer.json", "tokenizer_config.json",
		"special_tokens_map.json", "generation_config.json"
	object := func(pairs ...any) map[string]any {
		v := map[string]any{}
		for pair := range slices.Chunk(pairs, 2) {
			v[pair[0].(string)] = pair[1]
		}
		return v
	}
	sound := remains{true, []int{0, 4}, false, []int{1}}
	warned := remains{true, []int{0, 4}, true, []int{1}}
	noBOS := remains{true, []int{4}, true, []int{1}}
	refused := remains{warnings: true, ends: []int{1}}
	endsAt := func(ids ...int) remains { return remains{true, []int{0, 4}, false, ids} }
	for name, c := range map[string]struct {
		change func(dir string, f files)
		want   remains
	}{
		"sound": {func(string, files) {}, sound},
		// tokenizer.json
		"truncated":                 {text(vocabulary, `{"model": {"type": "BPE", "vocab": {"a`), refused},
		"empty":                     {text(vocabulary, ""), refused},
		"binary":                    {text(vocabulary, "\x00\xff\xfe"), refused},
		"a list":                    {text(vocabulary, `[]`), refused},
		"no model":                  {text(vocabulary, `{}`), refused},
		"vocabulary of wrong type":  {of("vocab", 3), refused},
		"ids of wrong type":         {of("vocab", object("a", "0")), refused},
		"no merges":                 {of("merges", nil), refused},
		"merges of wrong type":      {of("merges", "a b"), refused},
		"merge of a missing token":  {of("merges", []any{"a x"}), refused},
		"merge of three":            {of("merges", []any{"a b c"}), refused},
		"two tokens of one id":      {of("vocab", object("a", 2, "b", 2)), refused},
		"negative id":               {of("vocab", object("a", -1)), refused},
		"id out of range":           {of("vocab", object("a", 1<<40)), refused},
		"unknown token missing":     {of("unk_token", "<unk>"), refused},
		"another kind of model":     {of("type", "Unigram"), refused},
		"added tokens of a string":  {key(vocabulary, "added_tokens", "x"), refused},
		"unknown normalizer":        {key(vocabulary, "normalizer", object("type", "Zork")), refused},
		"pattern that is none":      {key(vocabulary, "pre_tokenizer", object("type", "Split", "pattern", object("Regex", "(a"))), refused},
		"post-processor out of ids": {key(vocabulary, "post_processor", object("type", "BertProcessing", "sep", []any{"</s>", 99}, "cls", []any{"<s>", 0})), refused},
		"a folder": {func(dir string, f files) {
			delete(f, vocabulary)
			if err := os.Mkdir(filepath.Join(dir, vocabulary), 0o700); err != nil {
				t.Error(err)
			}
		}, refused},
		"no vocabulary": {func(_ string, f files) { delete(f, vocabulary) }, remains{ends: []int{1}}},
		// tokenizer_config.json and special_tokens_map.json
		"config truncated":  {text(config, `{"bos_token": "<s`), noBOS},
		"config is a list":  {text(config, `[1]`), noBOS},
		"map is no JSON":    {text(names, `nope`), warned},
		"BOS of wrong type": {key(config, "bos_token", 7), warned}, // the older file has a valid one
		"BOS a list":        {key(config, "bos_token", []any{"<s>", "</s>"}), warned},
		"BOS missing": {
			key(config, "bos_token", "<bos>"), remains{true, []int{5, 4}, true, []int{1}},
		},
		"EOS missing":              {key(config, "eos_token", "<eos>"), warned},
		"EOS of wrong type":        {key(config, "eos_token", []any{3, "</s>"}), warned},
		"add_bos a string":         {key(config, "add_bos_token", "yes"), noBOS},
		"template of wrong type":   {key(config, "chat_template", 3), warned},
		"template list of numbers": {key(config, "chat_template", []any{1}), warned},
		"template is a folder": {func(dir string, _ files) {
			if err := os.Mkdir(filepath.Join(dir, "chat_template.jinja"), 0o700); err != nil {
				t.Error(err)
			}
		}, warned},
		"no BOS named": {both(key(config, "bos_token", nil), key(names, "bos_token", nil)), noBOS},
		"no BOS key": {func(_ string, f files) {
			delete(f[config], "bos_token")
			delete(f, names)
		}, warned},
		// ends
		"end of wrong type": {key(generation, "eos_token_id", "x"), warned}, // other files have a valid one
		"ends partly wrong": {key(generation, "eos_token_id", []any{1, "x", nil}), warned},
		"end outside": {
			key(generation, "eos_token_id", []any{1, 9}), remains{true, []int{0, 4}, true, []int{1, 9}},
		},
		"generation truncated": {text(generation, `{"eos`), warned},
		"ends of config.json": {
			both(key(generation, "eos_token_id", nil), key("config.json", "eos_token_id", []any{2, 3})),
			endsAt(2, 3),
		},
		"older place": {
			both(key(generation, "eos_token_id", nil), key(config, "eos_token", nil),
				key(names, "eos_token", object("content", "b"))),
			remains{true, []int{0, 2, 3}, false, []int{1, 3}}, // "b" is a special token from then on
		},
		"NaN as Python writes it": {
			text(generation, `{"eos_token_id": 3, "temperature": NaN, "top_p": Infinity}`), endsAt(3),
		},
		"EOS that is no end":    {both(key(generation, "eos_token_id", 3)), endsAt(3)},
		"end of negative value": {key(generation, "eos_token_id", -1), sound},
	} {
		dir, f := soundFolder(t)
		c.change(dir, f)
		for file, content := range f {
			data, err := json.Marshal(content)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		holdDefect(t, name, dir, c.want)
	}
}

func TestDefectsOfAGGUFVocabularyLeaveIDs(t *testing.T) {
	t.Parallel()
	set := func(pairs ...any) func(*gguftest.Builder) {
		return func(b *gguftest.Builder) {
			for pair := range slices.Chunk(pairs, 2) {
				b.Set("tokenizer."+pair[0].(string), pair[1])
			}
		}
	}
	without := func(key string) func(*gguftest.Builder) {
		return func(b *gguftest.Builder) { b.Remove("tokenizer.ggml." + key) }
	}
	const a, b = 'a', 'b'
	warned := remains{true, []int{tinyEnd, a, b}, true, []int{tinyEnd}}
	bare := remains{true, []int{a, b}, true, []int{tinyEnd}} // no token has a usual BOS name
	refused := remains{warnings: true, ends: []int{tinyEnd}}
	for name, c := range map[string]struct {
		change func(*gguftest.Builder)
		want   remains
	}{
		"sound":                  {set(), remains{true, []int{tinyEnd, a, b}, false, []int{tinyEnd}}},
		"BOS a string":           {set("ggml.bos_token_id", "x"), bare},
		"BOS outside":            {set("ggml.bos_token_id", 9999), bare},
		"EOS a float":            {set("ggml.eos_token_id", float32(1)), warned},
		"EOS outside":            {set("ggml.eos_token_id", 9999), warned},
		"EOT outside":            {set("ggml.eot_token_id", uint32(1<<31)), warned},
		"EOM a list":             {set("ggml.eom_token_id", []int{1}), warned},
		"BOS of no name":         {without("bos_token_id"), bare},
		"add_bos a number":       {set("ggml.add_bos_token", 1), bare},
		"add_eos a string":       {set("ggml.add_eos_token", "x"), warned},
		"template a list":        {set("chat_template", []string{"x"}), warned},
		"no tokens":              {without("tokens"), refused},
		"tokens of numbers":      {set("ggml.tokens", []int{1}), refused},
		"types of another count": {set("ggml.token_type", []int32{1, 1}), refused},
		"types of text":          {set("ggml.token_type", []string{"x"}), refused},
		"no merges":              {without("merges"), refused},
		"merges of numbers":      {set("ggml.merges", []int{1}), refused},
		"merge of one":           {set("ggml.merges", []string{"a"}), refused},
		"merge of missing token": {set("ggml.merges", []string{"a zork"}), refused},
		"no split rule":          {without("pre"), refused},
		"split rule a number":    {set("ggml.pre", 1), refused},
		"unknown split rule":     {set("ggml.pre", "zork"), refused},
		"model a number":         {set("ggml.model", 1), refused},
		"unknown model":          {set("ggml.model", "zork"), refused},
		"scores of other count":  {set("ggml.model", "llama", "ggml.scores", []float32{1}), refused},
		"scores of text":         {set("ggml.model", "llama", "ggml.scores", []string{"x"}), refused},
		"no vocabulary":          {set("ggml.model", "none"), remains{ends: []int{tinyEnd}}},
	} {
		file := tiny()
		c.change(file)
		path := write(t, file.Bytes())
		holdDefect(t, name, path, c.want)
	}
}
