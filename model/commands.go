package model

import (
	"context"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/model/session"
)

// command is a row of the table of all that a session does.
type command struct {
	kind  session.CommandKind
	doc   string
	takes []field // of session.Command; the others must not be there
	// begin checks the command against where the session stands; one that is refused has changed nothing.
	// Then it does what takes no time, and returns the work that does, nil where there is none.
	begin func(*live, session.Command) (work, error)
}

// work is the part of a command that takes time. It counts in the reply what it did.
type work func(context.Context, *session.Reply) error

// field is one of session.Command's, beside its kind.
type field struct {
	name  string
	given func(session.Command) bool
}

var (
	text   = field{"text", func(c session.Command) bool { return c.Text != "" }}
	tokens = field{"tokens", func(c session.Command) bool { return len(c.Tokens) > 0 }}
	chunks = field{"chunks", func(c session.Command) bool { return len(c.Chunks) > 0 }}
	count  = field{"n", func(c session.Command) bool { return c.N != 0 }}
	level  = field{"level", func(c session.Command) bool { return c.Level != "" }}
	at     = field{"at", func(c session.Command) bool { return c.At != nil }}
	parts  = field{"parts", func(c session.Command) bool { return len(c.Parts) > 0 }}
	fields = []field{text, tokens, chunks, count, level, at, parts}
)

var commands = []command{
	{
		session.Prompt, "Replace the text by a prompt and take it in, up to the first token that comes out.",
		[]field{text, tokens, chunks, count},
		(*live).beginPrompt,
	},
	{
		session.Next, "Decode one token, or take in the next piece of a prompt that was cancelled.", nil,
		func(s *live, _ session.Command) (work, error) { return s.step, s.canStep() },
	},
	{
		session.Run, "Decode n tokens; 0: until the end token or the context's end.",
		[]field{count},
		func(s *live, c session.Command) (work, error) {
			return func(ctx context.Context, r *session.Reply) error { return s.run(ctx, c.N, r) },
				s.canStep()
		},
	},
	{
		session.Previous, "Set the position back by one step.", nil,
		func(s *live, _ session.Command) (work, error) {
			if s.text.last() == nil {
				return nil, session.Refusef("there is no step before the first")
			}
			s.text.pop()
			return nil, nil
		},
	},
	{
		session.Repeat, "Run the current step again n times (0: once) where it was: more samples of its times.",
		[]field{count},
		func(s *live, c session.Command) (work, error) {
			return func(ctx context.Context, r *session.Reply) error { return s.repeat(ctx, max(c.N, 1), r) },
				s.canRepeat()
		},
	},
	{
		session.Observe, "Run the current step again with timing and without, in turns: what timing costs.",
		nil, func(s *live, _ session.Command) (work, error) { return s.observe, s.canRepeat() },
	},
	{
		session.Cost, "Run the current step with each part left out, n rounds (0: as many as 3 s hold, up to 30).",
		[]field{count, parts},
		(*live).beginCost,
	},
	{
		session.Reset, "Forget the text; the recorded steps stay.", nil,
		func(s *live, _ session.Command) (work, error) {
			s.text = transcript{}
			return nil, nil
		},
	},
	{
		session.Timing, "Time the steps to come at a level: " + engine.TimingNames() + ".",
		[]field{level},
		(*live).beginTiming,
	},
	{
		session.Tokenize, "Tell the tokens of a text as a prompt would have them; nothing runs.",
		[]field{text},
		func(s *live, c session.Command) (work, error) {
			ids, err := s.m.encode(c)
			return func(_ context.Context, r *session.Reply) error {
				r.Tokens = s.m.told(ids)
				return nil
			}, err
		},
	},
	{
		session.Look, "Tell the numbers in a value: a page of them, what they come to. The step runs again for it.",
		[]field{at},
		(*live).beginLook,
	},
}

// commandOf is the row of a command, what it was given checked.
func commandOf(c session.Command) (*command, error) {
	i := slices.IndexFunc(commands, func(row command) bool { return row.kind == c.Kind })
	if i < 0 {
		var names []string
		for _, row := range commands {
			names = append(names, string(row.kind))
		}
		return nil, session.Refusef("command %.40q: want one of %s", c.Kind, strings.Join(names, ", "))
	}
	if c.N < 0 {
		return nil, session.Refusef("%s: a count of %d, want 0 or more", c.Kind, c.N)
	}
	for _, f := range fields {
		taken := slices.ContainsFunc(commands[i].takes, func(t field) bool { return t.name == f.name })
		if f.given(c) && !taken {
			return nil, session.Refusef("%s: it takes no %s", c.Kind, f.name)
		}
	}
	return &commands[i], nil
}

// do runs one command.
func (s *live) do(ctx context.Context, c session.Command) (session.Reply, error) {
	var reply session.Reply
	row, err := commandOf(c)
	if err != nil {
		return s.stand(reply), err
	}
	todo, err := row.begin(s, c)
	if err != nil {
		return s.stand(reply), err
	}
	if c.Kind != session.Look {
		s.ran, s.looked = nowhere, replayed{step: nowhere}
	}
	if todo != nil {
		s.tell(true)
		err = todo(ctx, &reply)
		s.tellClock()
	}
	s.tell(false)
	s.teller.flush()
	return s.stand(reply), err
}

// stand completes a reply by where the session stands.
func (s *live) stand(r session.Reply) session.Reply {
	r.Step, r.Position = s.text.step(), s.text.position()
	return r
}

func (s *live) beginPrompt(c session.Command) (work, error) {
	t, err := s.m.prompt(c)
	if err != nil {
		return nil, err
	}
	s.text = t
	return s.prefill, nil
}

func (s *live) beginTiming(c session.Command) (work, error) {
	to, err := engine.ParseTiming(c.Level)
	if err != nil {
		return nil, session.Refusef("%w", err)
	}
	if to != engine.TimingOff && !s.runner.timed() {
		return nil, session.Refusef("timing level %s: this device has no timestamps", to)
	}
	s.timing = to
	return nil, nil
}
