package model

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/source"
	"gpuscope/session"
)

// talking returns the tiny model with a chat template.
func talking(template string) *gguftest.Builder {
	b := tiny()
	b.Set("tokenizer.chat_template", template)
	return b
}

// turns is a chat template that marks each turn with one letter and ends answers with the end token.
const turns = `{% for m in messages %}{{ m.role[0]|upper }}:{{ m.content }}` +
	`{% if m.role == "assistant" %}{{ eos_token }}{% endif %};{% endfor %}` +
	`{% if add_generation_prompt %}A:{% endif %}`

func conversation(t *testing.T, system string) *rig {
	return newRigOn(t, Options{System: system}, talking(turns), fake.Options{NoLog: true})
}

func says(text string) session.Command {
	return session.Command{Kind: session.Prompt, Text: text, Chat: true}
}

// fed returns the tokens that the steps took as input, as text. It starts with step number from.
func (r *rig) fed(from int) string {
	var ids []int
	for _, s := range r.mirror.Trace.Steps[from:] {
		ids = append(ids, s.Tokens...)
	}
	return r.s.m.tokens.Decode(ids)
}

func (r *rig) promptText() string {
	var b strings.Builder
	for _, tok := range r.mirror.Text.Prompt {
		b.WriteString(tok.Text)
	}
	return b.String()
}

// A new turn extends the cache: the session runs only the new tokens.
func TestAConversationGoesOnTurnByTurn(t *testing.T) {
	r := conversation(t, "be brief")
	r.do(says("hi"))
	if got := r.promptText(); got != "S:be brief;U:hi;A:" {
		t.Errorf("the first turn is %q", got)
	}
	at := r.mirror.State.Position
	r.token = func(position int, _ []int) int {
		if position == at+1 {
			return tinyEnd
		}
		return 'x'
	}
	r.do(session.Command{Kind: session.Run})
	if s := r.mirror.State; !s.Ended {
		t.Fatalf("the model's turn has not ended: %s", r.stand())
	}
	n := len(r.mirror.Trace.Steps)
	before := r.promptText() + r.answer()
	r.do(says("and?"))
	if got := r.fed(n); got != "<|end|>;U:and?;A:" {
		t.Errorf("the second turn ran %q", got)
	}
	if got := r.promptText(); got != before+"<|end|>;U:and?;A:" {
		t.Errorf("the text is %q", got)
	}
	if r.mirror.State.Ended {
		t.Error("the second turn starts as ended")
	}
}

// answer returns the generated text.
func (r *rig) answer() string {
	var b strings.Builder
	for _, tok := range r.mirror.Text.Given {
		b.WriteString(tok.Text)
	}
	return b.String()
}

// The template ends an answer that was cut short or stepped back into.
func TestATurnMayCutTheAnswerShort(t *testing.T) {
	r := conversation(t, "")
	r.do(says("hi"))
	r.do(session.Command{Kind: session.Run, N: 4})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Previous})
	n := len(r.mirror.Trace.Steps)
	kept := r.answer()
	r.do(says("no"))
	// The token that was generated last has not been run yet.
	if got, want := r.fed(n), kept[len(kept)-1:]+"<|end|>;U:no;A:"; got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
	if got, want := r.promptText(), "U:hi;A:"+kept+"<|end|>;U:no;A:"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

func TestAnEngineThatGoesOnKeepsTheConversation(t *testing.T) {
	r := conversation(t, "")
	r.do(says("hi"))
	r.do(session.Command{Kind: session.Run, N: 2})
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, Options{}, talking(turns), fake.Options{NoLog: true}, m)
	next.reply(session.Command{Kind: session.Resume, Left: left})
	next.do(says("no"))
	if got := next.promptText(); !strings.HasPrefix(got, "U:hi;A:") || !strings.HasSuffix(got, "<|end|>;U:no;A:") {
		t.Errorf("the text is %q", got)
	}
}

// A template that fails is not a usage error: the file is at fault, and the model runs without the template.
func TestATemplateThatFailsIsTheFilesFault(t *testing.T) {
	golden := wordingtest.New(t)
	for _, template := range []string{
		"{{ messages[0].x.y }}", "{% if %}", "{{ raise_exception('no users') }}",
	} {
		r := newRigOn(t, Options{}, talking(template), fake.Options{NoLog: true})
		err := r.try(context.Background(), says("hi"))
		if errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", template, err)
		}
		golden.Text(template, inFolder(err, filepath.Dir(r.s.m.options.Path)))
		r.do(session.Command{Kind: session.Prompt, Tokens: []int{1}})
	}
}

func TestTurnsThatCannotBeAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	none := newRigOn(t, Options{}, talking(""), fake.Options{NoLog: true})
	err := none.try(context.Background(), says("hi"))
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("no template: %v", err)
	}
	golden.Text("no template", inFolder(err, filepath.Dir(none.s.m.options.Path)))
	one := newRigOn(t, Options{}, talking("{{ messages[-1].content }}"), fake.Options{NoLog: true})
	one.do(says("hi"))
	err = one.try(context.Background(), says("again"))
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("a template of one turn: %v", err)
	}
	golden.Text("a template of one turn", inFolder(err, filepath.Dir(one.s.m.options.Path)))
	if err := one.try(context.Background(), says("")); !errors.Is(err, session.ErrUsage) {
		t.Errorf("an empty turn: %v", err)
	}
}

// rewritten returns the number of events that report that the template changed earlier turns.
func (r *rig) rewritten() (n int) {
	for _, e := range r.mirror.Trace.Events {
		if e.Kind == "rewritten" {
			n++
		}
	}
	return n
}

// systemLast puts the system message into the last turn of the user.
const systemLast = `{% for m in messages %}{% if m.role == "user" %}` +
	`{% if loop.last and messages[0].role == "system" %}[{{ messages[0].content }}]{% endif %}U:{{ m.content }};` +
	`{% elif m.role == "assistant" %}A:{{ m.content }};{% endif %}{% endfor %}A:`

func TestSystemMessageOfTheLastTurnMovesOn(t *testing.T) {
	r := newRigOn(t, Options{System: "be brief"}, talking(systemLast), fake.Options{NoLog: true})
	r.token = func(int, []int) int { return 'x' }
	r.do(says("hi"))
	r.do(session.Command{Kind: session.Run, N: 2})
	if got := r.promptText(); got != "[be brief]U:hi;A:" || r.rewritten() != 0 {
		t.Errorf("the first turn is %q, %d rewritten", got, r.rewritten())
	}
	reply := r.reply(says("and?"))
	if got := r.promptText(); got != "U:hi;A:xxx;[be brief]U:and?;A:" || reply.Note == nil {
		t.Errorf("the second turn is %q, %v", got, reply.Note)
	}
	r.do(session.Command{Kind: session.Run, N: 1})
	n := len(r.mirror.Trace.Steps)
	reply = r.reply(says("so?"))
	if got := r.promptText(); got != "U:hi;A:xxx;U:and?;A:xx;[be brief]U:so?;A:" || reply.Note == nil {
		t.Errorf("the third turn is %q, %v", got, reply.Note)
	}
	if got := r.fed(n); got != "U:and?;A:xx;[be brief]U:so?;A:" {
		t.Errorf("the third turn ran %q, but the first turn should stay in the cache", got)
	}
	if r.rewritten() != 2 {
		t.Errorf("%d events, want 2", r.rewritten())
	}
}

// The template removes the thoughts from finished answers, as Qwen 3's template does.
func TestAnAnswerThatIsOverLosesItsThoughts(t *testing.T) {
	r := newRigOn(t, Options{}, talking(`{% for m in messages %}{{ m.role[0] }}:`+
		`{{ m.content.split("/")[-1] }};{% endfor %}a:`), fake.Options{NoLog: true})
	given := "?/yes"
	r.token = func(position int, _ []int) int { return int(given[min(max(position-6, 0), len(given)-1)]) }
	r.do(says("hi"))
	r.do(session.Command{Kind: session.Run, N: 4})
	if got := r.promptText() + r.answer(); got != "u:hi;a:?/yes" {
		t.Fatalf("the first turn is %q", got)
	}
	n := len(r.mirror.Trace.Steps)
	reply := r.reply(says("so"))
	if got := r.promptText(); got != "u:hi;a:yes;u:so;a:" || reply.Note == nil {
		t.Errorf("the second turn is %q, %v", got, reply.Note)
	}
	if got := r.fed(n); got != "yes;u:so;a:" {
		t.Errorf("ran %q", got)
	}
}

func TestAConversationOfAnotherEngineIsRenderedWhole(t *testing.T) {
	r := newRigOn(t, Options{System: "x"}, talking(systemLast), fake.Options{NoLog: true})
	r.do(says("hi"))
	r.do(says("and?"))
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, Options{System: "x"}, talking(systemLast), fake.Options{NoLog: true}, m)
	next.reply(session.Command{Kind: session.Resume, Left: left})
	next.do(says("no"))
	if got := next.promptText(); strings.Count(got, "[x]") != 1 || !strings.HasSuffix(got, "[x]U:no;A:") {
		t.Errorf("the text is %q", got)
	}
}

// Text that an edit puts at the beginning of an answer is part of the answer.
func TestAnEditedAnswerIsRenderedAsItReads(t *testing.T) {
	r := newRigOn(t, Options{System: "x"}, talking(systemLast), fake.Options{NoLog: true})
	r.do(says("hi"))
	at := len(r.mirror.Text.Prompt)
	r.do(session.Command{Kind: session.Edit, N: at, Text: "yes"})
	given := r.answer()
	r.do(says("no"))
	if got, want := r.promptText(), "U:hi;A:yes"+given+";[x]U:no;A:"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

// Text that is not a conversation stays unchanged before the first turn.
func TestTurnFollowsTextOutsideAConversation(t *testing.T) {
	r := newRigOn(t, Options{}, talking(turns), fake.Options{NoLog: true})
	r.do(session.Command{Kind: session.Prompt, Text: "once"})
	before := r.promptText() + r.answer()
	r.do(says("no"))
	if got, want := r.promptText(), before+"<|end|>;U:no;A:"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

// TestTemplatesOfFoldersAreGivenTheirTokens renders the templates of the shared cases with the special tokens
// of their folders.
func TestTemplatesOfFoldersAreGivenTheirTokens(t *testing.T) {
	for name, c := range map[string]struct{ system, want string }{
		"chat-pad":         {"", "[<pad>]hi"},
		"chat-system-last": {"sys", "UhiAyesUandAno[sys]UsoA"},
	} {
		path := filepath.Join("..", "..", "shared", "cases", name)
		if _, err := os.Stat(path); err != nil && os.Getenv("CI") != "true" {
			t.Skip("the shared cases are missing: ", err)
		}
		file, err := source.Open(source.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		m := &Model{file: file, options: Options{System: c.system}}
		if m.tokens, err = file.Tokenizer(); err != nil {
			t.Fatal(err)
		}
		talk, user := []session.Exchange{{User: "hi", Answer: "yes"}, {User: "and", Answer: "no"}}, "so"
		if c.system == "" {
			talk, user = nil, "hi"
		}
		if got, err := m.render(m.messages(talk, user)); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}
