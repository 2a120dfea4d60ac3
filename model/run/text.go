package run

import (
	"slices"

	"gpuscope/session"
	"gpuscope/text/tokenizer"
	"gpuscope/trace"
)

// Transcript is the state of a text: the prompt, the steps that have run, and the tokens that they produced.
// It determines which tokens the next step processes: the next chunk of the prompt or, once the whole prompt
// has been processed, the token that was produced last.
type Transcript struct {
	Prompt []session.Token
	IDs    []int // token ids of the prompt
	// Kept is the number of tokens at the start of the prompt that no step processes, because an earlier text
	// has already filled their cache positions.
	Kept int
	// Chunks has the number of tokens of each prefill step. Their sum is the length of the prompt minus Kept.
	Chunks []int
	Turns  []Turn
	Given  int             // number of turns that produced a token
	Before []session.Token // tokens that were produced before the text was sent to the front end
	Ended  bool
	Fault  error // why the current step produced no token, although it should have; nil if it did
	Told   bool  // whether the text has been sent to the front end
	Voice  *voice
	Talk   []session.Exchange // exchanges of a conversation; the Answer of the last one is not filled in yet
}

// Turn is a step of the text. The command Previous removes the last turn.
type Turn struct {
	Index    int      // index of its trace.Step
	Position int      // position before the step
	Tokens   []int    // input tokens
	Gives    bool     // whether the step produces a token; false for prefill steps before the last chunk
	Token    int      // the produced token
	held     string   // bytes of a character that was still incomplete before the step
	Edited   []string // names of the edited kernels that were in use
}

// Last returns the current step, or nil before the first step.
func (t *Transcript) Last() *Turn {
	if len(t.Turns) == 0 {
		return nil
	}
	return &t.Turns[len(t.Turns)-1]
}

// Find returns the step with a trace index, or nil if the text has no such step.
func (t *Transcript) Find(index int) *Turn {
	for i := range t.Turns {
		if t.Turns[i].Index == index {
			return &t.Turns[i]
		}
	}
	return nil
}

// Step returns the trace index of the current step, or -1 before the first step.
func (t *Transcript) Step() int {
	if last := t.Last(); last != nil {
		return last.Index
	}
	return -1
}

// Position returns the number of cache positions in use.
func (t *Transcript) Position() int {
	if last := t.Last(); last != nil {
		return last.Position + len(last.Tokens)
	}
	return t.Kept
}

// All returns the token ids of the text: the prompt, and the tokens that steps produced.
func (t *Transcript) All() []int {
	ids := slices.Clone(t.IDs)
	for i := range t.Turns {
		if t.Turns[i].Gives {
			ids = append(ids, t.Turns[i].Token)
		}
	}
	return ids
}

// Recent returns the last n token ids before a position of the text, or all earlier token ids if n is -1.
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

// Next returns the step that follows the current one.
func (t *Transcript) Next() (phase trace.Phase, n Turn) {
	n.Position = t.Position()
	if n.Position >= len(t.IDs) {
		n.Tokens, n.Gives = []int{0}, true
		// After the command `plan`, the text can be at this position although no step has run. The token is
		// then unknown.
		if last := t.Last(); last != nil {
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

// Push appends a turn and returns the characters that its token completes.
func (t *Transcript) Push(n Turn) string {
	n.held = t.Voice.Held()
	t.Turns = append(t.Turns, n)
	if !n.Gives {
		return ""
	}
	t.Given++
	return t.Voice.say(n.Token)
}

// Pop removes the current step.
func (t *Transcript) Pop() {
	last := t.Last()
	if last.Gives {
		t.Given--
		t.Voice.restart(last.held)
	}
	t.Turns = t.Turns[:len(t.Turns)-1]
	t.Ended, t.Fault = false, nil
}

// voice decodes tokens to text. It holds back the bytes of a character until the character is complete. A
// model without a vocabulary has a nil voice, which returns no text.
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

// say decodes the next token and returns the characters that this token completes. It returns "" for control
// tokens and end tokens.
func (v *voice) say(id int) string {
	if v == nil || v.tokens.Kind(id) == tokenizer.Control || v.tokens.IsEnd(id) {
		return ""
	}
	return v.stream.Push(id)
}

// Held returns the bytes at the end of the text that belong to a character that is not complete yet.
func (v *voice) Held() string {
	if v == nil {
		return ""
	}
	return v.stream.Held()
}

// Read decodes the tokens of a prompt. The text of a token consists of the characters that the token
// completes. The text of a control token is its name. Later calls of say continue after the prompt.
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

// restart sets the bytes of the incomplete character, which the next token continues. `held` is an earlier
// result of Held.
func (v *voice) restart(held string) {
	if v != nil {
		v.stream.Restart(held)
	}
}
