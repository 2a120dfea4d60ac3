package run

import (
	"slices"

	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Transcript is where a session stands: the prompt, the steps that were made of it, and what they gave. The
// next step follows from it alone: a piece of the prompt while there is some left, else the token that came
// out last.
type Transcript struct {
	Prompt []session.Token
	IDs    []int // of prompt
	Kept   int   // of them, the first ones, whose positions in the cache an earlier text has filled
	Chunks []int // sizes of the prompt's steps, adding up to what was not kept of it
	Turns  []Turn
	Given  int             // turns that gave a token
	Before []session.Token // those of them that gave one before the text was told
	Ended  bool
	Fault  error // why the current step gave no token where it should have, nil where it did
	Told   bool  // to the front end
	Voice  *voice
	Talk   []session.Exchange // of a conversation; the last one has no answer yet
}

// Turn is a step of the text, which Previous takes back.
type Turn struct {
	Index    int      // of its trace.Step
	Position int      // before it
	Tokens   []int    // that went in
	Gives    bool     // a token; the steps of a prompt but the last do not
	Token    int      // that came out
	held     string   // bytes of a character that was not complete before it
	Edited   []string // what ran in place of kernels
}

// Last is the current step, nil before the first.
func (t *Transcript) Last() *Turn {
	if len(t.Turns) == 0 {
		return nil
	}
	return &t.Turns[len(t.Turns)-1]
}

// Step is the current step's index in the trace, -1 before the first.
func (t *Transcript) Step() int {
	if last := t.Last(); last != nil {
		return last.Index
	}
	return -1
}

// Position is the number of positions in use.
func (t *Transcript) Position() int {
	if last := t.Last(); last != nil {
		return last.Position + len(last.Tokens)
	}
	return t.Kept
}

// All are the ids of the text: the prompt's, and those that came out.
func (t *Transcript) All() []int {
	ids := slices.Clone(t.IDs)
	for i := range t.Turns {
		if t.Turns[i].Gives {
			ids = append(ids, t.Turns[i].Token)
		}
	}
	return ids
}

// Recent are the last n ids before a position of the text; -1: all of them.
func (t *Transcript) Recent(position, n int) []int {
	from := 0
	if n >= 0 {
		from = max(0, position-n)
	}
	ids := slices.Clone(t.IDs[min(from, len(t.IDs)):min(position, len(t.IDs))])
	for i := range t.Turns {
		turn := &t.Turns[i]
		if at := turn.Position + len(turn.Tokens); turn.Gives && at >= from && at < position {
			ids = append(ids, turn.Token)
		}
	}
	return ids
}

// Next is the step that comes after the current one.
func (t *Transcript) Next() (phase trace.Phase, n Turn) {
	n.Position = t.Position()
	if n.Position >= len(t.IDs) {
		n.Tokens, n.Gives = []int{0}, true
		if last := t.Last(); last != nil { // else the text was planned, and nobody knows
			n.Tokens[0] = last.Token
		}
		return trace.Decode, n
	}
	end := t.Kept
	for _, size := range t.Chunks {
		if end += size; end > n.Position {
			break
		}
	}
	n.Tokens, n.Gives = t.IDs[n.Position:end], end == len(t.IDs)
	return trace.Prefill, n
}

// Push makes a turn the current step, and returns the text that became complete with its token.
func (t *Transcript) Push(n Turn) string {
	n.held = t.Voice.Held()
	t.Turns = append(t.Turns, n)
	if !n.Gives {
		return ""
	}
	t.Given++
	return t.Voice.say(n.Token)
}

// Pop takes the current step back.
func (t *Transcript) Pop() {
	last := t.Last()
	if last.Gives {
		t.Given--
		t.Voice.restart(last.held)
	}
	t.Turns = t.Turns[:len(t.Turns)-1]
	t.Ended, t.Fault = false, nil
}

// voice tells tokens as text, each character when it is complete. A nil voice, of a model without a
// vocabulary, says nothing.
type voice struct {
	tokens *tokenizer.Tokenizer
	stream *tokenizer.Stream
}

func NewVoice(t *tokenizer.Tokenizer) *voice {
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

// Held are the bytes of a character that is not complete yet.
func (v *voice) Held() string {
	if v == nil {
		return ""
	}
	return v.stream.Held()
}

// Read tells the tokens of a prompt as text, each character when it is complete, and goes on after them.
// Tokens that steer the model are told by their names.
func (v *voice) Read(ids []int) []session.Token {
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
