// Package chat renders the chat template of a model file: the messages of a conversation become the text that
// the model was trained to go on from. Templates are written in Jinja, and mean what they mean in Hugging
// Face's transformers: Jinja 2.11 or later with trim_blocks and lstrip_blocks, loop controls, and the values
// and methods of Python.
//
//	t, err := chat.Parse("model.gguf", source)
//	text, err := t.Render(chat.Context{Messages: messages, Generate: true, Special: tokens.Named})
//
// No library is used for it, because none that there is in Go does what this needs: gonja ends the process at
// a macro that calls itself, cannot read (a if b else c) and has no order in its dicts; minijinja-go has none
// of the methods of Python that templates call, and neither can be told how much it may take.
//
// A template comes with the model and is not trusted: what it does is counted (see state.spend), so that one
// that loops, recurses or makes gigabytes of text ends in an error. It reaches nothing but its context.
//
// Errors are one line with the file, the line of the template, and the reason. Inside the package they are
// panics, which Parse and Render turn into errors: an expression may fail anywhere.
package chat

import (
	"maps"
	"strings"
	"time"

	"gpuscope/text/chat/internal/raise"
	"gpuscope/text/chat/internal/scan"
)

// Limits of a template: its source, how deep its parts and its macros nest, and what rendering it may take,
// in evaluated parts and bytes made: so much, and so many times the messages' bytes, up to what a context of
// millions of tokens takes.
const (
	mostSource  = 1 << 20
	mostDepth   = 100
	mostSpent   = 1 << 22
	mostTimes   = 64
	mostInAll   = 1 << 28
	mostInRange = 100_000 // as in Jinja's sandbox
)

// Template is a chat template that has been read. It does not change; any goroutine may render it.
type Template struct {
	name string
	body []stmt
}

// Message is a turn of a conversation.
type Message struct {
	Role    string // system, user, assistant
	Content string
}

// Context is what a template is given.
type Context struct {
	Messages []Message
	Generate bool              // add_generation_prompt: end with the beginning of the model's turn
	Special  map[string]string // texts of the special tokens by their variables, such as bos_token
	Extra    []string          // those that have no variable of their own
	Now      time.Time         // for strftime_now
}

// Parse reads a template. name is the template's file, for error messages.
func Parse(name, source string) (t *Template, err error) {
	defer raise.Guard(name, &err)
	if len(source) > mostSource {
		raise.At(1, "it has %d bytes, want at most %d", len(source), mostSource)
	}
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	p := parser{tokens: scan.Split(strings.TrimSuffix(source, "\n"))}
	body, _ := p.body()
	return &Template{name, body}, nil
}

// Render gives the text of a conversation.
func (t *Template) Render(c Context) (text string, err error) {
	defer raise.Guard(t.name, &err)
	s := &state{out: &strings.Builder{}, vars: &scope{vars: map[string]any{}}}
	messages := &list{}
	s.most = mostSpent
	for _, m := range c.Messages {
		s.most = min(s.most+mostTimes*len(m.Content), mostInAll)
		d := &dict{}
		s.set(d, "role", m.Role)
		s.set(d, "content", m.Content)
		messages.items = append(messages.items, d)
	}
	vars := s.vars.vars
	maps.Copy(vars, globals(c.Now))
	for name, token := range c.Special {
		vars[name] = token
	}
	if c.Extra != nil {
		extra := &list{}
		for _, token := range c.Extra {
			extra.items = append(extra.items, token)
		}
		vars["additional_special_tokens"], vars["extra_special_tokens"] = extra, extra
	}
	vars["messages"], vars["add_generation_prompt"] = messages, c.Generate
	vars["tools"], vars["documents"] = nil, nil
	s.vars = &scope{map[string]any{}, s.vars}
	s.run(t.body)
	return s.out.String(), nil
}
