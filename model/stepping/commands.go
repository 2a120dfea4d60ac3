package stepping

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gpuscope/engine"
	"gpuscope/session"
	"gpuscope/trace"
)

// Command describes one session command.
type Command struct {
	Kind session.CommandKind
	Doc  string
	// Takes lists the fields of session.Command that the command accepts. The other fields must not be set.
	Takes []Field
	// Begin checks whether the command is possible in the current state of the session. If it is not, Begin
	// returns an error and changes nothing. Otherwise Begin does the fast part of the command and returns the
	// slow part as a function, or nil if there is no slow part.
	Begin func(session.Command) (Work, error)
	// Tracked is true if the command itself keeps Session.Ran up to date. After any other command, the
	// session assumes that the values on the device do not belong to a known step.
	Tracked bool
	// Planned is true if the command works without a device.
	Planned bool
}

// Work is the slow part of a command. It fills in the reply.
type Work func(context.Context, *session.Reply) error

// ErrNothingRuns is the error of a command that needs a device, in a session without a device.
var ErrNothingRuns = errors.New("not available with --device none: steps are planned but not run")

// Field is a field of session.Command other than Kind.
type Field struct {
	name  string
	given func(session.Command) bool
}

var (
	Text   = Field{"text", func(c session.Command) bool { return c.Text != "" }}
	Tokens = Field{"tokens", func(c session.Command) bool { return len(c.Tokens) > 0 }}
	AsTurn = Field{"chat", func(c session.Command) bool { return c.Chat }}
	Chunks = Field{"chunks", func(c session.Command) bool { return len(c.Chunks) > 0 }}
	Count  = Field{"n", func(c session.Command) bool { return c.N != 0 }}
	level  = Field{"level", func(c session.Command) bool { return c.Level != "" }}
	at     = Field{"at", func(c session.Command) bool { return c.At != nil }}
	Parts  = Field{"parts", func(c session.Command) bool { return len(c.Parts) > 0 }}
	OfStep = Field{"step", func(c session.Command) bool { return c.Step != nil }}
	Until  = Field{"until", func(c session.Command) bool { return c.Until != 0 }}
	Breaks = Field{"breaks", func(c session.Command) bool { return len(c.Breaks) > 0 }}
	Left   = Field{"left", func(c session.Command) bool { return c.Left != nil }}
	OfOp   = Field{"op", func(c session.Command) bool { return c.Op != nil }}
	Sizes  = Field{"lengths", func(c session.Command) bool { return len(c.Lengths) > 0 }}
	edit   = Field{"edit", func(c session.Command) bool { return c.Edit != nil }}
	toFile = Field{"save", func(c session.Command) bool { return c.Save != nil }}
	toDir  = Field{"capture", func(c session.Command) bool { return c.Capture != nil }}
	// Fields lists all fields.
	Fields = []Field{
		Text, Tokens, AsTurn, Chunks, Count, level, at, Parts, OfStep, Until, Breaks, Left, OfOp, Sizes, edit,
		toDir, toFile,
	}
)

// Commands returns the commands that apply to any graph.
func (s *Session) Commands() []Command {
	return []Command{
		{
			Kind:  session.Repeat,
			Doc:   "Repeat a step n times at its own position, to get more samples of its GPU times. If n is 0, repeat it once.",
			Takes: []Field{Count, OfStep}, Begin: s.beginRepeat, Tracked: true,
		},
		{
			Kind: session.Upto, Doc: `Run the current step again, up to dispatch n. The command "next" then finishes the step.`,
			Takes: []Field{Count}, Begin: s.beginUpto, Tracked: true,
		},
		{
			Kind: session.Observe,
			Doc:  "Measure the overhead of timing by running the current step alternately with and without timing.",
			Begin: func(session.Command) (Work, error) {
				err := s.canRepeat()
				if err == nil {
					t, _ := s.host.Current()
					err = s.sameKernels(t)
				}
				return s.observe, err
			},
			Tracked: true,
		},
		{
			Kind:  session.Cost,
			Doc:   "Measure how much time a step saves when a part of it is skipped. In each of n rounds, run the whole step; then, for each part, run the step without this part. If n is 0, run up to 30 rounds within 3 s.",
			Takes: []Field{Count, Parts, OfStep}, Begin: s.beginCost, Tracked: true,
		},
		{
			Kind:  session.Ceilings,
			Doc:   "Measure the ceilings of the device: the peak rates with which dispatches are compared.",
			Begin: func(session.Command) (Work, error) { return s.ceilings, s.canMeasure() },
		},
		{
			Kind: session.Timing, Doc: "Set the timing level of later steps: " + engine.TimingNames() + ".",
			Takes: []Field{level}, Begin: s.beginTiming, Tracked: true,
		},
		{
			Kind:  session.Look,
			Doc:   "Return elements, statistics or a heat map of a value, or of the difference between its contents in two steps. The steps run again to compute the value.",
			Takes: []Field{at}, Begin: s.beginLook, Tracked: true,
		},
		{
			Kind:  session.Save,
			Doc:   "Write all elements of a value to a .npy or .csv file. The step runs again to compute the value.",
			Takes: []Field{at, toFile}, Begin: s.beginSave, Tracked: true,
		},
		{
			Kind:  session.Lab,
			Doc:   "Compile the edited source of a kernel and compare the edited kernel with the original. In each of n rounds, run a step once with each of the two kernels. If n is 0, run up to 30 rounds within 3 s.",
			Takes: []Field{Count, OfStep, edit}, Begin: s.beginLab, Tracked: true,
		},
		{
			Kind:  session.Capture,
			Doc:   "Write a dispatch of a step to a folder: its kernel, params, inputs and outputs. The step runs again.",
			Takes: []Field{OfStep, toDir}, Begin: s.beginCapture, Tracked: true,
		},
		{
			Kind:  session.Kernel,
			Doc:   "Use the edited source of a kernel in all later steps. If no source is given, use the original source again.",
			Takes: []Field{edit}, Begin: s.beginKernel, Tracked: true,
		},
	}
}

// commandOf returns the entry for a command in the table. It returns an error if the command sets fields that
// it does not accept.
func (s *Session) commandOf(c session.Command) (*Command, error) {
	i := slices.IndexFunc(s.table, func(row Command) bool { return row.Kind == c.Kind })
	if i < 0 {
		var names []string
		for _, row := range s.table {
			names = append(names, string(row.Kind))
		}
		return nil, session.Refusef("unknown command %.40q: want one of %s",
			c.Kind, strings.Join(names, ", "))
	}
	if c.N < 0 {
		return nil, session.Refusef("%s: the count is %d; it must be 0 or more", c.Kind, c.N)
	}
	for _, f := range Fields {
		taken := slices.ContainsFunc(s.table[i].Takes, func(t Field) bool { return t.name == f.name })
		if f.given(c) && !taken {
			return nil, session.Refusef("%s: this command does not accept the field %s", c.Kind, f.name)
		}
	}
	return &s.table[i], nil
}

func (s *Session) do(ctx context.Context, c session.Command) (session.Reply, error) {
	var reply session.Reply
	row, err := s.commandOf(c)
	if err != nil {
		return s.stand(reply), err
	}
	if !s.Exec.Loaded() && !row.Planned {
		return s.stand(reply), session.Refusef("%s: %w", c.Kind, ErrNothingRuns)
	}
	todo, err := row.Begin(c)
	if err != nil {
		return s.stand(reply), err
	}
	if !row.Tracked {
		s.Forget()
	}
	if c.At == nil {
		s.kept = nil
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
func (s *Session) stand(r session.Reply) session.Reply {
	r.Step, r.Position = s.stepIndex(), s.host.Position()
	return r
}

func (s *Session) beginTiming(c session.Command) (Work, error) {
	to, err := s.TimingOf(c.Level)
	if err == nil {
		s.Timing = to
	}
	return nil, err
}

// TimingOf parses the name of a timing level. It returns an error if the device does not support the level.
func (s *Session) TimingOf(level trace.Timing) (engine.Timing, error) {
	to, err := engine.ParseTiming(string(level))
	if err != nil {
		return to, session.Refusef("%w", err)
	}
	if to != engine.TimingOff && !s.Timed() {
		return to, session.Refusef("timing level %s: not available: this device has no timestamps", to)
	}
	return to, nil
}
