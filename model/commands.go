package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// command describes one session command. The table commands has an entry for each.
type command struct {
	kind session.CommandKind
	doc  string
	// takes lists the fields of session.Command that the command accepts. The other fields must not be set.
	takes []field
	// begin checks whether the command is possible in the current state of the session. If it is not, begin
	// returns an error and changes nothing. Otherwise begin does the fast part of the command and returns the
	// slow part as a function, or nil if there is no slow part.
	begin func(*live, session.Command) (work, error)
}

// work is the slow part of a command. It fills in the reply.
type work func(context.Context, *session.Reply) error

// field is a field of session.Command other than Kind.
type field struct {
	name  string
	given func(session.Command) bool
}

var (
	text   = field{"text", func(c session.Command) bool { return c.Text != "" }}
	tokens = field{"tokens", func(c session.Command) bool { return len(c.Tokens) > 0 }}
	asTurn = field{"chat", func(c session.Command) bool { return c.Chat }}
	chunks = field{"chunks", func(c session.Command) bool { return len(c.Chunks) > 0 }}
	count  = field{"n", func(c session.Command) bool { return c.N != 0 }}
	level  = field{"level", func(c session.Command) bool { return c.Level != "" }}
	at     = field{"at", func(c session.Command) bool { return c.At != nil }}
	parts  = field{"parts", func(c session.Command) bool { return len(c.Parts) > 0 }}
	ofStep = field{"step", func(c session.Command) bool { return c.Step != nil }}
	until  = field{"until", func(c session.Command) bool { return c.Until != 0 }}
	breaks = field{"breaks", func(c session.Command) bool { return len(c.Breaks) > 0 }}
	left   = field{"left", func(c session.Command) bool { return c.Left != nil }}
	ofOp   = field{"op", func(c session.Command) bool { return c.Op != nil }}
	sizes  = field{"lengths", func(c session.Command) bool { return len(c.Lengths) > 0 }}
	edit   = field{"edit", func(c session.Command) bool { return c.Edit != nil }}
	fields = []field{
		text, tokens, asTurn, chunks, count, level, at, parts, ofStep, until, breaks, left, ofOp, sizes, edit,
	}
)

var commands = []command{
	{
		session.Prompt, "Replace the text with a prompt, or append a user message to it, and run the prefill up to the first output token. Pause at a breakpoint.",
		[]field{text, tokens, asTurn, chunks, count, breaks},
		(*live).beginPrompt,
	},
	{
		session.Next,
		"Run the next step: decode one token, or prefill the next chunk of a cancelled prompt. If the current step ran only up to a dispatch, finish this step instead.",
		nil,
		func(s *live, _ session.Command) (work, error) {
			if s.upto != nil {
				return s.finish, nil
			}
			return s.step, s.canStep()
		},
	},
	{
		session.Run,
		`Decode n tokens. If n is 0, decode until the end token or until the context is full. Pause at a breakpoint, or at the position given in the field "until".`,
		[]field{count, until, breaks},
		(*live).beginRun,
	},
	{
		session.Plan, `Plan a step of n tokens in a session without a device. The step starts at the position given in the field "until". The current text is discarded.`,
		[]field{count, until},
		(*live).beginPlan,
	},
	{
		session.Previous, "Step back: return to the position before the current step.", nil,
		func(s *live, _ session.Command) (work, error) {
			if s.text.Last() == nil {
				return nil, session.Refusef("cannot step back: the text has no steps")
			}
			was := *s.text.Last()
			s.text.Pop()
			s.upto = nil
			s.event(was.Index, "set_back", "stepped back to position %d", was.Position)
			return nil, nil
		},
	},
	{
		session.Repeat,
		"Run a step of the text n more times, at the position of this step, to get more samples of its GPU times. If n is 0, run it once more.",
		[]field{count, ofStep},
		(*live).beginRepeat,
	},
	{
		session.Upto, `Run the current step again, but only up to dispatch n. The command "next" then finishes the step.`,
		[]field{count},
		(*live).beginUpto,
	},
	{
		session.Edit,
		"Keep the first n tokens of the text, append other tokens, and prefill the new tokens.",
		[]field{text, tokens, count},
		(*live).beginEdit,
	},
	{
		session.Chunk, "Prefill later prompts with n tokens per step. 0 means the maximum.",
		[]field{count},
		func(s *live, c session.Command) (work, error) {
			if err := s.m.checkChunk("chunk: "+table.Plural(c.N, "token"), c.N, 0); err != nil {
				return nil, err
			}
			s.chunk = c.N
			return nil, nil
		},
	},
	{
		session.Observe, "Measure the overhead of timing by running the current step alternately with and without timing.",
		nil, func(s *live, _ session.Command) (work, error) {
			err := s.canRepeat()
			if err == nil {
				err = s.sameKernels(s.text.Last())
			}
			return s.observe, err
		},
	},
	{
		session.Cost,
		"Measure how much time a step saves when a part of it is skipped. In each of n rounds, run the whole step, and run the step without each part. If n is 0, run up to 30 rounds within 3 s.",
		[]field{count, parts, ofStep},
		(*live).beginCost,
	},
	{
		session.TimeOp,
		"Time an operator in isolation, n times for each combination of prompt length and route. If n is 0, 10 times.",
		[]field{count, ofOp, sizes},
		(*live).beginTimeOp,
	},
	{
		session.Ceilings, "Measure the ceilings of the device: the peak rates with which dispatches are compared.",
		nil,
		func(s *live, _ session.Command) (work, error) { return s.ceilings, s.canMeasure() },
	},
	{
		session.Reset, "Clear the text. The steps recorded so far stay in the trace.", nil,
		func(s *live, _ session.Command) (work, error) {
			was := s.text.Step()
			s.text, s.upto = run.Transcript{}, nil
			s.event(max(was, 0), "reset", session.ResetText)
			return nil, nil
		},
	},
	{
		session.Timing, "Set the timing level of later steps: " + engine.TimingNames() + ".",
		[]field{level},
		(*live).beginTiming,
	},
	{
		session.Tokenize, "Return the tokens that a text would have as a prompt. No step runs.",
		[]field{text},
		func(s *live, c session.Command) (work, error) {
			ids, err := s.m.encode(c, true)
			return func(_ context.Context, r *session.Reply) error {
				r.Tokens = s.m.told(ids)
				return nil
			}, err
		},
	},
	{
		session.Look, "Return elements or statistics of a value. The step runs again to compute the value.",
		[]field{at},
		(*live).beginLook,
	},
	{
		session.Verify,
		"Compare a step of the text, or parts of it, with float64 references. Each reference may use up to n GFLOP; 0 means 100.",
		[]field{count, parts, ofStep},
		(*live).beginVerify,
	},
	{
		session.Lab,
		"Compile the edited source of a kernel and compare the edited kernel with the original. In each of n rounds, run a step with both kernels. If n is 0, run up to 30 rounds within 3 s.",
		[]field{count, ofStep, edit},
		(*live).beginLab,
	},
	{
		session.Kernel, "Use the edited source of a kernel in all later steps. If no source is given, use the original source again.",
		[]field{edit},
		(*live).beginKernel,
	},
	{
		session.Resume, "Restore the state that an engine had before it crashed, by running its steps again. These runs are not recorded.",
		[]field{left},
		(*live).beginResume,
	},
}

// tracked lists the commands that keep live.ran and live.looked up to date themselves. For any other command,
// the session assumes that the device no longer holds the values of a known step.
var tracked = []session.CommandKind{
	session.Next, session.Run, session.Previous, session.Repeat, session.Upto, session.Observe, session.Chunk,
	session.Timing, session.Tokenize, session.Look, session.Cost,
	session.Verify, session.Lab, session.Kernel,
}

// withoutDevice lists the commands that work without a device.
var withoutDevice = []session.CommandKind{
	session.Prompt, session.Next, session.Run, session.Plan, session.Previous, session.Edit, session.Chunk,
	session.Reset, session.Tokenize,
}

// commandOf returns the entry for a command in the table commands. It returns an error if the command has
// fields that it must not have.
func commandOf(c session.Command) (*command, error) {
	i := slices.IndexFunc(commands, func(row command) bool { return row.kind == c.Kind })
	if i < 0 {
		var names []string
		for _, row := range commands {
			names = append(names, string(row.kind))
		}
		return nil, session.Refusef("unknown command %.40q: want one of %s",
			c.Kind, strings.Join(names, ", "))
	}
	if c.N < 0 {
		return nil, session.Refusef("%s: the count is %d; it must be 0 or more", c.Kind, c.N)
	}
	for _, f := range fields {
		taken := slices.ContainsFunc(commands[i].takes, func(t field) bool { return t.name == f.name })
		if f.given(c) && !taken {
			return nil, session.Refusef("%s: the field %s is not accepted", c.Kind, f.name)
		}
	}
	return &commands[i], nil
}

func (s *live) do(ctx context.Context, c session.Command) (session.Reply, error) {
	var reply session.Reply
	row, err := commandOf(c)
	if err != nil {
		return s.stand(reply), err
	}
	if !s.runner.Exec.Loaded() && !slices.Contains(withoutDevice, c.Kind) {
		return s.stand(reply), session.Refusef("%s: %w", c.Kind, errNothingRuns)
	}
	todo, err := row.begin(s, c)
	if err != nil {
		return s.stand(reply), err
	}
	if !slices.Contains(tracked, c.Kind) {
		s.forget()
	}
	if todo != nil {
		s.tell(true)
		err = todo(ctx, &reply)
		s.tellClock()
	}
	s.tell(false)
	s.sender.Flush()
	return s.stand(reply), err
}

// stand returns the reply with the current step and position filled in.
func (s *live) stand(r session.Reply) session.Reply {
	r.Step, r.Position = s.text.Step(), s.text.Position()
	return r
}

func (s *live) beginPrompt(c session.Command) (work, error) {
	if len(c.Chunks) == 0 && s.chunk > 0 {
		c.Chunks = []int{s.chunk}
	}
	read := s.m.prompt
	if c.Chat {
		read = func(c session.Command) (run.Transcript, error) { return s.m.said(&s.text, c) }
	}
	t, err := read(c)
	if err != nil {
		return nil, err
	}
	if err := s.watch.set(c.Breaks); err != nil {
		return nil, err
	}
	position := s.text.Position()
	s.begins(t, "prompt")
	prefill := s.prefill(c.Breaks)
	if !c.Chat || t.Kept >= position {
		return prefill, nil
	}
	rewritten := s.event(s.runner.Rec.Next(), "rewritten",
		"the chat template rewrote earlier turns: the cache keeps only %d of %s; prefilling %s",
		t.Kept, table.Plural(position, "position"), table.Plural(len(t.IDs)-t.Kept, "token"))
	return func(ctx context.Context, r *session.Reply) error {
		r.Rewritten = rewritten
		return prefill(ctx, r)
	}, nil
}

// begins replaces the text of the session by t and records an event of the given kind.
func (s *live) begins(t run.Transcript, kind string) {
	s.text, s.upto = t, nil
	kept := ""
	if t.Kept > 0 {
		kept = fmt.Sprintf("; the first %d tokens are already in the cache", t.Kept)
	}
	s.event(s.runner.Rec.Next(), kind, "the text has %d tokens%s", len(t.IDs), kept)
}

func (s *live) beginEdit(c session.Command) (work, error) {
	if s.text.Position() == 0 {
		return nil, session.Refusef("there is no text to edit; give a prompt first")
	}
	t, err := s.m.edited(&s.text, c, s.chunk)
	if err != nil {
		return nil, err
	}
	s.begins(t, "edit")
	return s.prefill(nil), nil
}

func (s *live) beginRun(c session.Command) (work, error) {
	switch at := s.text.Position(); {
	case c.Until < 0, c.Until > s.m.context:
		return nil, session.Refusef("run to position %d: the position must be between 1 and %d", c.Until,
			s.m.context)
	case c.Until > 0 && c.Until <= at:
		return nil, session.Refusef("run to position %d: the text is already at position %d. "+
			"Give a higher position, or step back first", c.Until, at)
	}
	if err := s.watch.set(c.Breaks); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error { return s.run(ctx, c, r) }, s.canStep()
}

func (s *live) beginTiming(c session.Command) (work, error) {
	to, err := s.timingOf(c.Level)
	if err == nil {
		s.timing = to
	}
	return nil, err
}

// timingOf parses the name of a timing level. It returns an error if the device does not support the level.
func (s *live) timingOf(level trace.Timing) (engine.Timing, error) {
	to, err := engine.ParseTiming(string(level))
	if err != nil {
		return to, session.Refusef("%w", err)
	}
	if to != engine.TimingOff && !s.runner.Timed() {
		return to, session.Refusef("timing level %s: not available: this device has no timestamps", to)
	}
	return to, nil
}
