package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gpuscope/internal/printable"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace/table"
)

// Vocabulary is that of a GGUF file or of what else holds one (see tokenizer.Open); of the embedded model
// where path is empty.
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

// readTokenizer takes the vocabulary from the model's files, or from the one that was named instead. A model
// without one, or with one that is broken or of an unknown kind, runs token ids alone: the rule is in package
// tokenizer. A vocabulary may have more tokens than the embedding has rows, as that of Gemma 3 has.
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
		m.warnf("only token ids run, no text: %v", refused.Err)
	}
	return nil
}

// OutsideError says that a token of a prompt has no row in the model's embedding.
type OutsideError struct {
	At   int    // in the prompt
	ID   int    // of the token
	Text string // as the vocabulary writes it; empty where it has no such token
	Rows int    // of the embedding
}

func (e *OutsideError) Error() string {
	name := ""
	if e.Text != "" {
		name = fmt.Sprintf(" (%s)", printable.Short(strconv.Quote(e.Text), 60))
	}
	return fmt.Sprintf("token %d of the prompt is %d%s, the model has ids 0 to %d: its embedding has %s",
		e.At, e.ID, name, e.Rows-1, table.Plural(e.Rows, "row"))
}

// prompt is the transcript that a prompt starts, every id and count of it checked.
func (m *Model) prompt(c session.Command) (run.Transcript, error) {
	ids, err := m.encode(c, true)
	if err != nil {
		return run.Transcript{}, err
	}
	return m.promptOf(ids, c)
}

// promptOf is the transcript that the ids of a prompt start.
func (m *Model) promptOf(ids []int, c session.Command) (run.Transcript, error) {
	t := run.Transcript{IDs: ids, Voice: run.NewVoice(m.tokens)}
	switch n := len(ids); {
	case n == 0:
		return t, session.Refusef("the prompt is empty: give at least one token")
	case n > m.context:
		return t,
			session.Refusef("the prompt has %s, the context holds %d: shorten it or raise --context",
				table.Plural(n, "token"), m.context)
	case c.N > m.context-n+1: // the last of them takes no place: nothing follows it
		return t,
			session.Refusef("the prompt has %s and %d are to follow, the context holds %d and what comes out last: "+
				"ask for fewer or raise --context", table.Plural(n, "token"), c.N, m.context)
	}
	for i, id := range ids {
		if id < 0 || id >= m.config.Vocab {
			return t, session.Refusef("%w",
				&OutsideError{At: i, ID: id, Text: m.tokens.Token(id), Rows: m.config.Vocab})
		}
	}
	t.Prompt = t.Voice.Read(ids)
	var err error
	t.Chunks, err = m.chunks(len(ids), c.Chunks)
	return t, err
}

// edited is the transcript of a text whose first tokens are kept and followed by others. Where those begin as
// the text itself went on, that much more is kept.
func (m *Model) edited(was *run.Transcript, c session.Command, chunk int) (run.Transcript, error) {
	all := was.All()
	if c.N > len(all) {
		return run.Transcript{}, session.Refusef("edit: the text has %d tokens, %d of them cannot be kept",
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

// goesOn is the transcript of ids as a prompt. Those that the text has had at their place stay in the cache,
// but the last one is run again: something must come out.
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

// told are ids of the vocabulary with the bytes that each of them stands for.
func (m *Model) told(ids []int) []session.Token {
	list := make([]session.Token, len(ids))
	for i, id := range ids {
		list[i] = session.Token{ID: id, Text: string(m.tokens.Bytes(id))}
	}
	return list
}

// encode gives the ids of a command: a text's, at the start with the token that starts texts where the
// model's file says so, or ids as they are.
func (m *Model) encode(c session.Command, start bool) ([]int, error) {
	switch {
	case c.Text == "":
		return c.Tokens, nil
	case len(c.Tokens) > 0:
		return nil, session.Refusef("a prompt is a text or token ids, not both")
	case m.noText != nil:
		return nil, session.Refusef("%w", m.noText)
	}
	ids, err := m.tokens.Encode(c.Text, tokenizer.Options{Special: true, BOS: start})
	if err != nil {
		return nil, session.Refusef("%w", err)
	}
	return ids, nil
}

// checkChunk refuses a number of tokens, of which what says whose it is, that no step can take, or that is
// less than the least.
func (m *Model) checkChunk(what string, n, least int) error {
	want := table.Integer(m.maxChunk)
	if least < m.maxChunk {
		want = fmt.Sprintf("%d to %s", least, want)
	}
	switch {
	case n < least:
		return session.Refusef("%s: want %s", what, want)
	case n > m.context:
		return session.Refusef("%s: want %s; the context holds %s (--context)", what, want,
			table.Integer(m.context))
	case n > m.maxChunk:
		return session.Refusef("%s: want %s; --max-chunk %d lets a step take so many", what, want, n)
	}
	return nil
}

// chunks are the sizes of the steps that prefill n tokens: those that were asked for, the last one repeating,
// else as large as can be.
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
