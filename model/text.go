package model

import (
	"slices"

	"gpuscope/model/session"
	"gpuscope/model/tokenizer"
)

// transcript is where a session stands: the prompt, the steps that were made of it, and what they gave. The
// next step follows from it alone: a piece of the prompt while there is some left, else the token that came
// out last.
type transcript struct {
	prompt []session.Token
	ids    []int // of prompt
	chunks []int // sizes of the prompt's steps, adding up to its length
	turns  []turn
	given  []session.Token // what the turns gave
	ended  bool
	voice  *voice
}

// turn is a step of the text, which Previous takes back.
type turn struct {
	index    int   // of its trace.Step
	position int   // before it
	tokens   []int // that went in
	gives    bool  // a token; the steps of a prompt but the last do not
	token    int   // that came out
}

// last is the current step, nil before the first.
func (t *transcript) last() *turn {
	if len(t.turns) == 0 {
		return nil
	}
	return &t.turns[len(t.turns)-1]
}

// position is the number of positions in use.
func (t *transcript) position() int {
	if last := t.last(); last != nil {
		return last.position + len(last.tokens)
	}
	return 0
}

// next is the step that comes after the current one.
func (t *transcript) next() (phase string, n turn) {
	n.position = t.position()
	if n.position >= len(t.ids) {
		n.tokens, n.gives = []int{t.last().token}, true
		return "decode", n
	}
	end := 0
	for _, size := range t.chunks {
		if end += size; end > n.position {
			break
		}
	}
	n.tokens, n.gives = t.ids[n.position:end], end == len(t.ids)
	return "prefill", n
}

// push makes a turn the current step, and returns the text that became complete with its token.
func (t *transcript) push(n turn) string {
	t.turns = append(t.turns, n)
	if !n.gives {
		return ""
	}
	text := t.voice.say(n.token)
	t.given = append(t.given, session.Token{ID: n.token, Text: text})
	return text
}

// pop takes the current step back. The list of tokens that was published stays as it is: the next push copies
// it.
func (t *transcript) pop() {
	if t.last().gives {
		t.given = slices.Clip(t.given[:len(t.given)-1])
		t.voice.restart()
		for _, token := range t.given {
			t.voice.say(token.ID)
		}
	}
	t.turns = t.turns[:len(t.turns)-1]
	t.ended = false
}

// voice tells tokens as text, each character when it is complete. A nil voice, of a model without a
// vocabulary, says nothing.
type voice struct {
	tokens *tokenizer.Tokenizer
	stream *tokenizer.Stream
}

func newVoice(t *tokenizer.Tokenizer) *voice {
	if t == nil {
		return nil
	}
	return &voice{t, t.Stream()}
}

// say is the text that becomes complete with the next token. Tokens that steer the model have none.
func (v *voice) say(id int) string {
	if v == nil || v.tokens.Kind(id) == tokenizer.Control {
		return ""
	}
	return v.stream.Push(id)
}

// held are the bytes of a character that the last token left unfinished.
func (v *voice) held() string {
	if v == nil {
		return ""
	}
	return v.stream.Held()
}

// restart forgets what was held back.
func (v *voice) restart() {
	if v != nil {
		v.stream.Flush()
	}
}
