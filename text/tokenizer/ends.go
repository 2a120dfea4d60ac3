package tokenizer

import "slices"

// End is a token that ends a text.
type End struct {
	ID   int
	Text string // text of the token in the vocabulary; empty if it is not known
	From string // key or file that declares that this token ends a text
}

// byName is the value of End.From for a token that is recognized by its text.
const byName = "its name"

// endNames lists the names of tokens that end a text in every vocabulary, whatever their kind. The list comes
// from llama.cpp. If a file does not name its EOS token, the first token of the list that is in the
// vocabulary is used.
var endNames = []string{
	"</s>", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
	"<|end|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>", "<EOT>", "_<EOT>", "[EOT]", "<|return|>",
	"<|call|>", "<|calls|>", "<|flush|>", "<|tool_response>",
}

// fillIns lists the tokens of fill-in-the-middle prompts that end a text, as in llama.cpp. Each token has a
// GGUF key, and names for files without this key.
var fillIns = []struct {
	key   string
	names []string
}{
	{"tokenizer.ggml.fim_pad_token_id", []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
	{"tokenizer.ggml.fim_rep_token_id", []string{
		"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>",
	}},
	{"tokenizer.ggml.fim_sep_token_id", []string{"<|file_sep|>"}},
}

// notEnds lists exceptions: `token` does not end a text if the vocabulary also contains all tokens in `with`.
var notEnds = []struct {
	token string
	with  []string
}{
	{"<|end|>", []string{"<|return|>", "<|call|>"}}, // in gpt-oss, <|end|> ends a message, but not the turn
	{"<|end|>", []string{"<|call|>", "<|flush|>"}},
	{"<|end|>", []string{"<|calls|>", "<|flush|>"}},
	{"</s>", []string{"<|tool_response>"}},
}

// bosNames lists the names that are tried if a file requires a BOS token without naming it.
var bosNames = []string{"<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<|bos|>", "[BOS]"}

// endAt adds a token that ends a text, unless it has already been added. `from` is the key or file that names
// the token.
func (c *Config) endAt(id int, from string) {
	if id == None || slices.ContainsFunc(c.Ends, func(e End) bool { return e.ID == id }) {
		return
	}
	e := End{ID: id, From: from}
	if id < len(c.Tokens) {
		e.Text = c.Tokens[id]
	}
	c.Ends = append(c.Ends, e)
}

// endByName adds the tokens whose names show that they end a text. `has` reports whether the file contains
// the given GGUF key.
func (c *Config) endByName(has func(key string) bool) {
	names, found := map[string]bool{}, map[string]bool{}
	for _, name := range endNames {
		names[name] = true
	}
	for _, f := range fillIns {
		for _, name := range f.names {
			names[name] = !has(f.key)
		}
	}
	for id, text := range c.Tokens {
		if names[text] {
			found[text] = true
			c.endAt(id, byName)
		}
	}
	for _, n := range notEnds {
		if !slices.ContainsFunc(n.with, func(name string) bool { return !found[name] }) {
			c.Ends = slices.DeleteFunc(c.Ends, func(e End) bool { return e.Text == n.token })
		}
	}
}

// Ends returns the tokens that end a text.
func (t *Tokenizer) Ends() []End {
	if t == nil {
		return nil
	}
	return t.config.Ends
}

// IsEnd reports whether a token ends a text.
func (t *Tokenizer) IsEnd(id int) bool {
	return slices.ContainsFunc(t.Ends(), func(e End) bool { return e.ID == id })
}
