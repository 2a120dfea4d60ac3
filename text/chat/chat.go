// Package chat renders the chat template of a model file. It turns the messages of a conversation into the
// text that the model was trained to continue. Templates are written in Jinja and behave as in Hugging
// Face's transformers: Jinja 2.11 or later with trim_blocks and lstrip_blocks, loop controls, and Python's
// values and methods.
//
//	t, err := chat.Parse("model.gguf", source)
//	text, err := t.Render(chat.Context{Messages: messages, Generate: true, Special: tokens.Named})
//
// The package does not use a library because no Go library is sufficient. gonja ends the process when a
// macro calls itself, cannot parse (a if b else c), and has unordered dicts. minijinja-go lacks the Python
// methods that templates call. Neither library can limit the work of a template.
//
// A template comes with the model and is not trusted. The package counts the work of a template (see
// state.spend), so a template that loops, recurses or produces gigabytes of text ends with an error. A
// template can only access its context.
//
// Each error is one line with the file, the line of the template and the reason. Inside the package errors
// are panics because any expression may fail. Parse and Render convert these panics to errors.
package chat

import (
	"maps"
	"strings"
	"time"

	"gpuscope/text/chat/internal/raise"
	"gpuscope/text/chat/internal/scan"
)

// Limits of a template. Rendering counts units of work: evaluated parts and output bytes. A rendering may use
// mostSpent units plus mostTimes units for each byte of the messages, but at most mostInAll units. This
// suffices for a context of millions of tokens. mostSource limits the bytes of the source, mostDepth the
// nesting of parts and macros, and mostInRange the length of a range.
const (
	mostSource  = 1 << 20
	mostDepth   = 100
	mostSpent   = 1 << 22
	mostTimes   = 64
	mostInAll   = 1 << 28
	mostInRange = 100_000 // same limit as in Jinja's sandbox
)

// Template is a parsed chat template. It is immutable, so several goroutines may render it at the same
// time.
type Template struct {
	name string
	body []stmt
}

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, user, assistant
	Content string
}

// Context holds the input of a template.
type Context struct {
	Messages []Message
	Generate bool              // add_generation_prompt: append the start of the model's turn
	Special  map[string]string // texts of special tokens by variable name, such as bos_token
	Extra    []string          // special tokens that have no variable of their own
	Now      time.Time         // the current time for strftime_now
}

// Parse parses a template. `name` is the template's file, for error messages.
func Parse(name, source string) (t *Template, err error) {
	defer raise.Guard(name, &err)
	if len(source) > mostSource {
		raise.At(1, "the template has %d bytes, but the maximum is %d", len(source), mostSource)
	}
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	p := parser{tokens: scan.Split(strings.TrimSuffix(source, "\n"))}
	body, _ := p.body()
	return &Template{name, body}, nil
}

// Render returns the text of a conversation.
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
