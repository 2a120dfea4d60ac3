package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuscope/model/chat"
	"gpuscope/model/session"
	"gpuscope/model/tokenizer"
)

// A conversation is a text like any other: what the model's chat template writes around its turns is in it,
// and the cache holds it. So a turn of the user needs only what the template writes behind the model's
// answer, whatever came before: it is found by having the template write a conversation with an answer that
// is known. It goes behind the tokens that came out, so that of a long conversation only the new is run.

// answered stands for the model's answer in the template's text. No template cuts or changes it.
const answered = "gpuscope-6f1c-answer"

// said is the transcript of a text with what the user says behind it, or of a conversation that begins.
func (m *Model) said(was *transcript, c session.Command) (transcript, error) {
	if m.tokens == nil {
		return transcript{}, session.Refusef("%w", m.noText)
	}
	if c.Text == "" {
		return transcript{}, session.Refusef("the turn is empty: say something")
	}
	all := was.all()
	var messages []chat.Message
	if m.options.System != "" {
		messages = append(messages, chat.Message{Role: "system", Content: m.options.System})
	}
	if len(all) > 0 {
		messages = append(messages, chat.Message{Role: "user", Content: "?"},
			chat.Message{Role: "assistant", Content: answered})
	}
	text, err := m.render(append(messages, chat.Message{Role: "user", Content: c.Text}))
	if err != nil {
		return transcript{}, err
	}
	if len(all) > 0 {
		i := strings.LastIndex(text, answered)
		if i < 0 {
			return transcript{}, session.Refusef("%s: its chat template leaves out what the model has said: "+
				"a conversation has one turn", m.file.Name())
		}
		text = text[i+len(answered):]
		if last := all[len(all)-1]; was.given > 0 && m.tokens.IsEnd(last) {
			all = all[:len(all)-1] // the template ends the answer itself
		}
	}
	// What begins a text is in the template, where the model wants it.
	ids, err := m.tokens.Encode(text, tokenizer.Options{Special: true})
	if err != nil {
		return transcript{}, session.Refusef("%w", err)
	}
	return m.goesOn(was, slices.Concat(all, ids), c)
}

// render writes messages by the model's chat template, up to where the model's turn begins. A template that
// fails is the file's fault.
func (m *Model) render(messages []chat.Message) (string, error) {
	source := m.tokens.Template()
	if source == "" {
		return "", session.Refusef("%s has no chat template: leave out --chat, and write the prompt as the model wants it",
			m.file.Name())
	}
	var text string
	template, err := chat.Parse(m.file.Name(), source)
	if err == nil {
		special := m.tokens.SpecialTokens()
		text, err = template.Render(chat.Context{
			Messages: messages, Generate: true, Special: special.Named, Extra: special.Extra, Now: time.Now(),
		})
	}
	if err != nil {
		return "", fmt.Errorf("%w: run without --chat, and write the prompt as the model wants it", err)
	}
	return text, nil
}
