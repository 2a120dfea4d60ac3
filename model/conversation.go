package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/text/chat"
	"gpuscope/text/tokenizer"
)

// A conversation is a text together with its list of messages. At each turn of the user the chat template
// renders all messages again. A new message may change how the template renders the earlier messages. Some
// templates move the system message to the last turn. Others remove the reasoning from complete answers. The
// start of the new rendering usually equals the start of the existing text. The tokens of this common part
// are kept, and only the rest is encoded. Then goesOn keeps the cache positions whose tokens did not change.

// said returns the transcript after the user has sent another message, c.Text. This may be the first message
// of a conversation.
func (m *Model) said(was *run.Transcript, c session.Command) (run.Transcript, error) {
	if m.noText != nil {
		return run.Transcript{}, session.Refusef("%w", m.noText)
	}
	if c.Text == "" {
		return run.Transcript{}, session.Refusef("the turn is empty; type a message")
	}
	all := was.All()
	if n := len(all); n > 0 && was.Given > 0 && m.tokens.IsEnd(all[n-1]) {
		all = all[:n-1] // the template writes the end token of the answer itself
	}
	if len(was.Talk) == 0 && len(all) > 0 {
		return m.afterPlain(was, all, c)
	}
	talk := m.finished(was.Talk, all)
	if err := m.checkHistory(talk, c.Text); err != nil {
		return run.Transcript{}, err
	}
	text, err := m.render(m.messages(talk, c.Text))
	if err != nil {
		return run.Transcript{}, err
	}
	kept, rest := m.common(talk, all, text)
	ids, err := m.encodeAfter(kept, rest)
	if err != nil {
		return run.Transcript{}, err
	}
	t, err := m.goesOn(was, ids, c)
	t.Talk = append(within(talk, len(kept)), session.Exchange{User: c.Text, From: len(ids), To: -1})
	return t, err
}

// finished returns a copy of the exchanges, with the answer of the last exchange filled in. The answer is the
// text that the model generated after the user's last message.
func (m *Model) finished(talk []session.Exchange, all []int) []session.Exchange {
	talk = slices.Clone(talk)
	if n := len(talk); n > 0 {
		last := &talk[n-1]
		last.Answer, last.To = m.tokens.Text(all[last.From:], true), len(all)
	}
	return talk
}

// within returns the exchanges after the text has been cut to its first n tokens. The From or To of an
// exchange becomes -1 if it is greater than n.
func within(talk []session.Exchange, n int) []session.Exchange {
	talk = slices.Clone(talk)
	for i := range talk {
		if talk[i].From > n {
			talk[i].From = -1
		}
		if talk[i].To > n {
			talk[i].To = -1
		}
	}
	return talk
}

// upTo returns the exchanges that remain if an edit keeps only the first n tokens of the text. The last of
// them is the exchange whose answer was edited.
func upTo(talk []session.Exchange, n int) []session.Exchange {
	for i, e := range slices.Backward(talk) {
		if e.From >= 0 && e.From <= n {
			return within(talk[:i+1], n)
		}
	}
	return nil
}

// messages returns the messages of a conversation, including the next turn of the user.
func (m *Model) messages(talk []session.Exchange, user string) (list []chat.Message) {
	if m.options.System != "" {
		list = append(list, chat.Message{Role: "system", Content: m.options.System})
	}
	for _, e := range talk {
		list = append(list, chat.Message{Role: "user", Content: e.User},
			chat.Message{Role: "assistant", Content: e.Answer})
	}
	return append(list, chat.Message{Role: "user", Content: user})
}

// answered is a placeholder for an answer of the model. It contains only characters that no chat template
// trims or changes.
const answered = "gpuscope-6f1c-answer"

// checkHistory returns an error if the chat template leaves the model's earlier answers out of the rendering.
func (m *Model) checkHistory(talk []session.Exchange, user string) error {
	if len(talk) == 0 {
		return nil
	}
	talk = slices.Clone(talk)
	talk[len(talk)-1].Answer = answered
	_, err := m.afterAnswer(talk, user)
	return err
}

// afterAnswer renders the messages and returns the part after the last answer. The last answer in `talk`
// must be the constant `answered`.
func (m *Model) afterAnswer(talk []session.Exchange, user string) (string, error) {
	text, err := m.render(m.messages(talk, user))
	if err != nil {
		return "", err
	}
	i := strings.LastIndex(text, answered)
	if i < 0 {
		return "", session.Refusef("%s: the chat template leaves out the model's answers, "+
			"so a conversation can have only one turn", m.file.Name())
	}
	return text[i+len(answered):], nil
}

// common compares a new rendering with the existing text and finds how much they have in common at the start.
// It returns the tokens of the common part and the rest of the rendering. The common part always ends where
// an answer begins or ends; at any other place the tokenizer might split the text differently.
func (m *Model) common(talk []session.Exchange, all []int, text string) (kept []int, rest string) {
	for _, e := range slices.Backward(talk) {
		for _, n := range []int{e.To, e.From} {
			if n < 0 {
				continue
			}
			if rest, ok := strings.CutPrefix(text, m.tokens.Text(all[:n], true)); ok {
				return all[:n], rest
			}
		}
	}
	return nil, text
}

// afterPlain appends a message of the user to a plain text, which was not started as a conversation, and
// returns the transcript.
func (m *Model) afterPlain(was *run.Transcript, all []int, c session.Command) (run.Transcript, error) {
	rest, err := m.afterAnswer([]session.Exchange{{User: "?", Answer: answered}}, c.Text)
	if err != nil {
		return run.Transcript{}, err
	}
	ids, err := m.encodeAfter(all, rest)
	if err != nil {
		return run.Transcript{}, err
	}
	return m.goesOn(was, ids, c)
}

// encodeAfter encodes a rendered text and appends its tokens to the given tokens. It adds no
// beginning-of-sequence token: if the model needs one, the chat template writes it.
func (m *Model) encodeAfter(before []int, text string) ([]int, error) {
	ids, err := m.tokens.Encode(text, tokenizer.Options{Special: true, Continues: len(before) > 0})
	if err != nil {
		return nil, session.Refusef("%w", err)
	}
	return slices.Concat(before, ids), nil
}

// render applies the model's chat template to the messages, up to the point where the model's answer
// begins. An error of the template is reported as an error of the file.
func (m *Model) render(messages []chat.Message) (string, error) {
	source := m.tokens.Template()
	if source == "" {
		return "", session.Refusef("%s has no chat template; omit --chat and write the prompt in the model's format",
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
		return "", fmt.Errorf("%w. Run without --chat and write the prompt in the model's format", err)
	}
	return text, nil
}
