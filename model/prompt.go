package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace/table"
)

// Vocabulary reads the vocabulary from the GGUF file at `path`, or from a file of another kind that
// tokenizer.Open can read. If `path` is empty, it returns the vocabulary of the embedded model.
func Vocabulary(path string) (*tokenizer.Tokenizer, error) {
	if path != "" {
		if !gguf.Is(path) {
			return tokenizer.Open(path)
		}
		f, err := gguf.Open(path)
		if err != nil {
			return nil, err
		}
		t, err := tokenizer.New(f)
		return t, errors.Join(err, f.Close())
	}
	file, err := arch.OpenFile("")
	if err != nil {
		return nil, err
	}
	t, err := file.Tokenizer()
	return t, errors.Join(err, file.Close())
}

// readTokenizer reads the vocabulary from the model's files, or from the file given with --tokenizer. If the
// model's vocabulary is missing, broken or unsupported, the model accepts prompts only as token ids. A
// vocabulary may have more tokens than the embedding has rows, as in Gemma 3.
func (m *Model) readTokenizer() error {
	if named := m.options.Tokenizer; named != "" {
		var err error
		if m.tokens, err = Vocabulary(named); err != nil {
			return fmt.Errorf("--tokenizer: %w", err)
		}
	} else {
		m.tokens, m.noText = m.file.Tokenizer()
	}
	m.warnings = append(m.warnings, m.tokens.Warnings()...)
	if refused, ok := errors.AsType[*tokenizer.RefusedError](m.noText); ok {
		m.warnf("the model can only be used with token ids, not with text: %v", refused.Err)
	}
	return nil
}

// OutsideError is the error for a prompt that contains a token id for which the model's embedding has no row.
type OutsideError struct {
	At   int    // index of the token in the prompt
	ID   int    // id of the token
	Text string // text of the token in the vocabulary; empty if the vocabulary has no such token
	Rows int    // number of rows of the embedding
}

func (e *OutsideError) Error() string {
	name := ""
	if e.Text != "" {
		name = fmt.Sprintf(" (%s)", printable.Short(strconv.Quote(e.Text), 60))
	}
	return fmt.Sprintf("token %d of the prompt has id %d%s; the model has ids 0 to %d because its embedding has %s",
		e.At, e.ID, name, e.Rows-1, table.Plural(e.Rows, "row"))
}

// prompt returns a new transcript whose prompt is the text or the token ids of a command. It checks every
// token id and every number in the command.
func (m *Model) prompt(c session.Command) (run.Transcript, error) {
	ids, err := m.encode(c, true)
	if err != nil {
		return run.Transcript{}, err
	}
	return m.promptOf(ids, c)
}

// orRaise returns the end of an error message about a context that is too small: how to get a larger context,
// or that the model allows none.
func (m *Model) orRaise() string {
	if m.context >= m.sizes.Context {
		return " (the model allows no larger context)"
	}
	return " or raise --context"
}

// promptOf returns a new transcript whose prompt has the given token ids.
func (m *Model) promptOf(ids []int, c session.Command) (run.Transcript, error) {
	t := run.Transcript{IDs: ids, Voice: run.NewVoice(m.tokens)}
	switch n := len(ids); {
	case n == 0:
		return t, session.Refusef("the prompt is empty; give at least one token")
	case n > m.context:
		return t,
			session.Refusef("the prompt has %s, but the context holds %d. Shorten the prompt%s",
				table.Plural(n, "token"), m.context, m.orRaise())
	case c.N > m.context-n+1: // the last generated token needs no position, because no step processes it
		return t,
			session.Refusef("the prompt has %s, and %d more were requested, but the context holds only %d "+
				"(the last generated token needs no position). Request fewer tokens%s",
				table.Plural(n, "token"), c.N, m.context, m.orRaise())
	}
	for i, id := range ids {
		if id < 0 || id >= m.sizes.Vocab {
			return t, session.Refusef("%w",
				&OutsideError{At: i, ID: id, Text: m.tokens.Token(id), Rows: m.sizes.Vocab})
		}
	}
	t.Prompt = t.Voice.Read(ids)
	var err error
	t.Chunks, err = m.chunks(len(ids), c.Chunks)
	return t, err
}

// edited returns the transcript after an edit: the first c.N tokens of the text, followed by the tokens of
// the command. If the first tokens of the command are the same as the tokens that they replace, their cache
// positions are kept too.
func (m *Model) edited(was *run.Transcript, c session.Command, chunk int) (run.Transcript, error) {
	all := was.All()
	if c.N > len(all) {
		return run.Transcript{}, session.Refusef(
			"edit: the text has only %d tokens, so %d cannot be kept",
			len(all), c.N)
	}
	added, err := m.encode(c, c.N == 0)
	if err != nil {
		return run.Transcript{}, err
	}
	var by session.Command
	if chunk > 0 {
		by.Chunks = []int{chunk}
	}
	t, err := m.goesOn(was, slices.Concat(all[:c.N], added), by)
	t.Talk = upTo(was.Talk, c.N)
	return t, err
}

// goesOn returns a transcript with ids as its prompt. Tokens at the start that are the same as in the old
// text keep their cache positions. The last token always runs again, because only a step produces the next
// token.
func (m *Model) goesOn(was *run.Transcript, ids []int, c session.Command) (run.Transcript, error) {
	t, err := m.promptOf(ids, c)
	if err != nil {
		return t, err
	}
	all := was.All()
	for t.Kept < min(len(t.IDs)-1, was.Position()) && t.IDs[t.Kept] == all[t.Kept] {
		t.Kept++
	}
	t.Chunks, err = m.chunks(len(t.IDs)-t.Kept, c.Chunks)
	return t, err
}

// told returns, for each token id, the id together with the text of the token in the vocabulary.
func (m *Model) told(ids []int) []session.Token {
	list := make([]session.Token, len(ids))
	for i, id := range ids {
		list[i] = session.Token{ID: id, Text: string(m.tokens.Bytes(id))}
	}
	return list
}

// encode returns the token ids of a command. If the command has token ids, they are returned unchanged. If it
// has a text, encode tokenizes the text. Without a vocabulary, the text may consist of token ids, separated
// by commas. If start is true, the tokens begin a new text, and encode adds the beginning-of-sequence token
// if the model's file requires this token.
func (m *Model) encode(c session.Command, start bool) ([]int, error) {
	switch {
	case c.Text == "":
		return c.Tokens, nil
	case len(c.Tokens) > 0:
		return nil, session.Refusef("both a text and token ids were given; give only one of them")
	case m.noText != nil:
		if ids, ok := typedIDs(c.Text); ok {
			return ids, nil
		}
		return nil, session.Refusef("%w", m.noText)
	}
	ids, err := m.tokens.Encode(c.Text, tokenizer.Options{Special: true, BOS: start})
	if err != nil {
		return nil, session.Refusef("%w", err)
	}
	return ids, nil
}

// typedIDs parses token ids that are separated by commas. `ok` is false if the text is anything else.
func typedIDs(text string) (ids []int, ok bool) {
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// checkChunk returns an error if a step cannot process n tokens, or if n is less than `least`. The error
// message begins with `what`.
func (m *Model) checkChunk(what string, n, least int) error {
	want := table.Integer(m.maxChunk)
	if least < m.maxChunk {
		want = fmt.Sprintf("%d to %s", least, want)
	}
	switch {
	case n < least:
		return session.Refusef("%s: want %s", what, want)
	case n > m.context:
		return session.Refusef("%s: want %s; the context holds %s (see --context)", what, want,
			table.Integer(m.context))
	case n > m.maxChunk:
		if _, _, err := m.file.Bounds(m.options.Context, n); err != nil {
			return session.Refusef("%s: want %s", what, want) // the model allows no more
		}
		return session.Refusef("%s: want %s; to allow it, use --max-chunk %d", what, want, n)
	}
	return nil
}

// chunks returns how many tokens each step processes when n tokens are prefilled. The sizes in `want` are
// used one after the other; the last of them is used for all further steps. If `want` is empty, every step is
// as large as possible.
func (m *Model) chunks(n int, want []int) ([]int, error) {
	for i, size := range want {
		what := fmt.Sprintf("chunk %d is %s", i, table.Plural(size, "token"))
		if err := m.checkChunk(what, size, 1); err != nil {
			return nil, err
		}
	}
	if len(want) == 0 {
		want = []int{m.maxChunk}
	}
	var sizes []int
	for i := 0; n > 0; i++ {
		size := min(want[min(i, len(want)-1)], n)
		sizes = append(sizes, size)
		n -= size
	}
	return sizes, nil
}
