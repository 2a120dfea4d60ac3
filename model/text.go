package model

import (
	"slices"

	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// transcript is where a session stands: the prompt, the steps that were made of it, and what they gave. The
// next step follows from it alone: a piece of the prompt while there is some left, else the token that came
// out last.
type transcript struct {
	prompt []session.Token
	ids    []int // of prompt
	kept   int   // of them, the first ones, whose positions in the cache an earlier text has filled
	chunks []int // sizes of the prompt's steps, adding up to what was not kept of it
	turns  []turn
	given  int             // turns that gave a token
	before []session.Token // those of them that gave one before the text was told
	ended  bool
	fault  error // why the current step gave no token where it should have, nil where it did
	told   bool  // to the front end
	voice  *voice
	talk   []session.Exchange // of a conversation; the last one has no answer yet
}

// turn is a step of the text, which Previous takes back.
type turn struct {
	index    int      // of its trace.Step
	position int      // before it
	tokens   []int    // that went in
	gives    bool     // a token; the steps of a prompt but the last do not
	token    int      // that came out
	held     string   // bytes of a character that was not complete before it
	edited   []string // what ran in place of kernels
}

// last is the current step, nil before the first.
func (t *transcript) last() *turn {
	if len(t.turns) == 0 {
		return nil
	}
	return &t.turns[len(t.turns)-1]
}

// step is the current step's index in the trace, -1 before the first.
func (t *transcript) step() int {
	if last := t.last(); last != nil {
		return last.index
	}
	return -1
}

// position is the number of positions in use.
func (t *transcript) position() int {
	if last := t.last(); last != nil {
		return last.position + len(last.tokens)
	}
	return t.kept
}

// all are the ids of the text: the prompt's, and those that came out.
func (t *transcript) all() []int {
	ids := slices.Clone(t.ids)
	for i := range t.turns {
		if t.turns[i].gives {
			ids = append(ids, t.turns[i].token)
		}
	}
	return ids
}

// recent are the last n ids before a position of the text; -1: all of them.
func (t *transcript) recent(position, n int) []int {
	from := 0
	if n >= 0 {
		from = max(0, position-n)
	}
	ids := slices.Clone(t.ids[min(from, len(t.ids)):min(position, len(t.ids))])
	for i := range t.turns {
		turn := &t.turns[i]
		if at := turn.position + len(turn.tokens); turn.gives && at >= from && at < position {
			ids = append(ids, turn.token)
		}
	}
	return ids
}

// next is the step that comes after the current one.
func (t *transcript) next() (phase trace.Phase, n turn) {
	n.position = t.position()
	if n.position >= len(t.ids) {
		n.tokens, n.gives = []int{0}, true
		if last := t.last(); last != nil { // else the text was planned, and nobody knows
			n.tokens[0] = last.token
		}
		return trace.Decode, n
	}
	end := t.kept
	for _, size := range t.chunks {
		if end += size; end > n.position {
			break
		}
	}
	n.tokens, n.gives = t.ids[n.position:end], end == len(t.ids)
	return trace.Prefill, n
}

// push makes a turn the current step, and returns the text that became complete with its token.
func (t *transcript) push(n turn) string {
	n.held = t.voice.held()
	t.turns = append(t.turns, n)
	if !n.gives {
		return ""
	}
	t.given++
	return t.voice.say(n.token)
}

// pop takes the current step back.
func (t *transcript) pop() {
	last := t.last()
	if last.gives {
		t.given--
		t.voice.restart(last.held)
	}
	t.turns = t.turns[:len(t.turns)-1]
	t.ended, t.fault = false, nil
}

// voice tells tokens as text, each character when it is complete. A nil voice, of a model without a
// vocabulary, says nothing.
type voice struct {
	tokens *tokenizer.Tokenizer
	stream *tokenizer.Stream
}

func newVoice(t *tokenizer.Tokenizer) *voice {
	if t.VocabSize() == 0 {
		return nil
	}
	return &voice{t, t.Stream()}
}

// say is the text that becomes complete with the next token. Tokens that steer the model or end a text have
// none.
func (v *voice) say(id int) string {
	if v == nil || v.tokens.Kind(id) == tokenizer.Control || v.tokens.IsEnd(id) {
		return ""
	}
	return v.stream.Push(id)
}

// held are the bytes of a character that is not complete yet.
func (v *voice) held() string {
	if v == nil {
		return ""
	}
	return v.stream.Held()
}

// read tells the tokens of a prompt as text, each character when it is complete, and goes on after them.
// Tokens that steer the model are told by their names.
func (v *voice) read(ids []int) []session.Token {
	list := make([]session.Token, len(ids))
	for i, id := range ids {
		list[i] = session.Token{ID: id}
		switch {
		case v == nil:
		case v.tokens.Kind(id) == tokenizer.Control:
			list[i].Text = v.stream.Flush() + string(v.tokens.Bytes(id))
		default:
			list[i].Text = v.stream.Push(id)
		}
	}
	return list
}

// restart goes on after bytes that were held at another time.
func (v *voice) restart(held string) {
	if v != nil {
		v.stream.Restart(held)
	}
}
