package tokenizer

import "slices"

// End is a token that ends a text.
type End struct {
	ID   int
	Text string // as the vocabulary writes it; empty where that is not known
	From string // the key or file that says so
}

// byName is End.From of a token that ends a text in every vocabulary that has it.
const byName = "its name"

// endNames are the tokens that end a text in every vocabulary that has them, whatever their type: the list
// of llama.cpp. The earlier of two is the better stand-in for an EOS token that a file fails to name.
var endNames = []string{
	"</s>", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
	"<|end|>", "<end_of_turn>", "<turn|>", "<end_of_utterance>", "<EOT>", "_<EOT>", "[EOT]", "<|return|>",
	"<|call|>", "<|calls|>", "<|flush|>", "<|tool_response>",
}

// fillIns are the tokens of fill-in-the-middle prompts that end a text, also as in llama.cpp: those of the
// GGUF keys, and the names that count where a file has no such key.
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

// notEnds are the exceptions: a token that does not end a text in a vocabulary that has all tokens of with.
var notEnds = []struct {
	token string
	with  []string
}{
	{"<|end|>", []string{"<|return|>", "<|call|>"}}, // ends a message of gpt-oss, not its turn
	{"<|end|>", []string{"<|call|>", "<|flush|>"}},
	{"<|end|>", []string{"<|calls|>", "<|flush|>"}},
	{"</s>", []string{"<|tool_response>"}},
}

// bosNames stand in for a BOS token that a file asks for and fails to name.
var bosNames = []string{"<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<|bos|>", "[BOS]"}

// endAt adds a token that ends a text; the first place that names it counts.
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

// endByName adds the tokens that end a text by their names. has says which of the GGUF keys the file has.
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

// Ends are the tokens that end a text, each with what says so.
func (t *Tokenizer) Ends() []End {
	if t == nil {
		return nil
	}
	return t.config.Ends
}

// IsEnd says whether a token ends a text.
func (t *Tokenizer) IsEnd(id int) bool {
	return slices.ContainsFunc(t.Ends(), func(e End) bool { return e.ID == id })
}
