// Package plain runs the program without a screen: it prints a line of text for each event and reads
// commands line by line. It is meant for screen readers, logs and dumb terminals.
package plain

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/redact"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Options are the options of plain mode.
type Options struct {
	Prompt        string    // prompt to send when the model is open
	DefaultPrompt bool      // the user did not choose the prompt; it may be rejected
	Chat          bool      // each prompt is the user's turn in a conversation
	NoText        bool      // leave texts and token ids out of exported traces
	Budget        int64     // memory limit in bytes for the steps that are kept; 0 means trace.DefaultBudget
	Input         io.Reader // nil: os.Stdin
	Output        io.Writer
}

// Opened is an open session, a loaded trace, or the error of opening either.
type Opened struct {
	Session session.Session
	Trace   *trace.Trace
	Err     error
}

// Run runs the program without a screen until the commands end.
func Run(ctx context.Context, o Options, open func(context.Context) Opened) error {
	in := o.Input
	if in == nil {
		in = os.Stdin
	}
	p := &front{ctx: ctx, out: o.Output, opts: o}
	p.mirror.Budget = o.Budget
	m := open(ctx)
	switch {
	case m.Err != nil:
		return m.Err
	case m.Trace != nil:
		p.mirror.Trace = m.Trace
		p.index = p.index.Next(m.Trace)
		for i := range m.Trace.Steps {
			p.step(i)
		}
		for i := range m.Trace.Events {
			p.record(&trace.Record{Event: &m.Trace.Events[i]})
		}
		p.recorded = true
		p.help()
		return p.run(ctx, nil, in)
	}
	return p.run(ctx, m.Session, in)
}

// run executes commands, one after the other, until the input ends. s is nil for a recorded trace. run
// returns the reason if the session ends by itself, and the error if the session rejects a first prompt that
// the user chose. If commands of a script failed, run returns a Failure.
func (p *front) run(ctx context.Context, s session.Session, in io.Reader) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	// The next two deferred calls run after the deferred Close, so that a second signal does not end the
	// program during Close: some senders signal a process and then its group.
	defer signal.Stop(signals)
	defer signal.Ignore(syscall.SIGQUIT)
	var events <-chan session.Event // nil for a trace, which has no events
	if !p.recorded {
		defer s.Close()
		events = s.Events()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	var unread error
	go func() { // may run until the process ends, because nothing can interrupt a read of the terminal
		defer close(lines)
		unread = readLines(ctx, in, lines)
	}()
	type result struct {
		said  func(*front, session.Reply)
		reply session.Reply
		err   error
	}
	results := make(chan result, 1)
	busy := false
	do := func(c session.Command, said func(*front, session.Reply)) {
		busy = true
		go func() {
			reply, err := s.Do(ctx, c)
			results <- result{said, reply, err}
		}()
	}
	var first *session.Command // the session's first command; nil once it has been executed
	begun := p.recorded
	for p.err == nil {
		var typed <-chan string // nil while a command runs
		switch {
		case p.mirror.Trace == nil || busy:
		case !begun:
			begun, first = true, command.First(p.opts.Prompt, p.opts.Chat, p.mirror.Trace)
			if first != nil {
				do(*first, nil)
			}
			continue
		default:
			typed = lines
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-signals:
			return &Interrupted{sig}
		case e, ok := <-events:
			if !ok && p.mirror.Trace == nil { // the model was never opened
				return command.ReasonOf(s)
			}
			if !ok {
				return fmt.Errorf("the engine crashed: %w", command.ReasonOf(s))
			}
			p.event(e)
		case r := <-results:
			busy = false
			p.drain(events) // print the events that the command caused before its error
			switch {
			case errors.Is(r.err, session.ErrClosed): // the closed event stream reports the reason
			case r.err != nil && first != nil && p.opts.DefaultPrompt && errors.Is(r.err, session.ErrUsage):
				p.say("warn: starting without a prompt: %v", r.err)
			case r.err != nil && first != nil:
				return r.err
			case r.err != nil:
				p.fail(r.err)
			case r.said != nil:
				r.said(p, r.reply)
			}
			first = nil
		case line, ok := <-typed:
			if !ok {
				return cmp.Or(p.err, unread, p.failed(in))
			}
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch row := commandOf(word); {
			case row == nil && word != "":
				p.fail(fmt.Errorf("unknown command %q; %s lists the commands", printable.Short(word, 40),
					helpWord))
			case row == nil:
			case p.recorded && !row.Plain.Recorded:
				p.fail(errors.New(command.IsRecorded))
			case row.Plain.Takes == "" && rest != "":
				p.fail(fmt.Errorf("%s takes no argument, got %q: type one command per line", word,
					printable.Short(rest, 40)))
			case row.Plain.Word == helpWord:
				p.help()
			case deeds[row.Name].of != nil:
				if c, err := deeds[row.Name].of(p, rest); err != nil {
					p.fail(err)
				} else {
					do(c, deeds[row.Name].said)
				}
			case deeds[row.Name].do != nil:
				deeds[row.Name].do(p, rest)
			default: // quit
				return cmp.Or(p.err, p.failed(in))
			}
		}
	}
	return p.err
}

// LongestLine is the maximum length of a typed line in bytes. Every prompt that fits into a context is
// shorter.
const LongestLine = 4 << 20

// readLines sends lines to the channel until the input ends. It returns the error of reading the input.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, LongestLine)
	for scan.Scan() {
		select {
		case lines <- scan.Text():
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("command longer than %d bytes: shorten the prompt",
			LongestLine)
	}
	return scan.Err()
}

// front prints events as lines and holds the state of plain mode.
type front struct {
	out        io.Writer
	opts       Options
	mirror     session.Mirror
	ctx        context.Context
	index      *analyze.Index
	recorded   bool   // a recorded trace is open, not a session
	phase      string // phase whose progress was printed last
	phaseSaid  time.Time
	phaseLines int
	breaks     command.Breakpoints
	of         spokenOf
	inTurns    session.KernelEdit // the edited source that ran last, alternately with the original kernel
	wrong      string             // why the result of inTurns is wrong; "" if right or after a warning
	failures   int                // commands that failed
	failure    error              // error of the first failed command
	err        error              // error of writing the output
}

func (p *front) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, printable.Clean(fmt.Sprintf(format, args...)))
	}
}

// fail prints the error of a command and counts it.
func (p *front) fail(err error) {
	p.say("error: %v", err)
	if p.failures++; p.failure == nil {
		p.failure = err
	}
}

// failed returns a Failure if commands of a script failed. At a terminal it returns nil, because the user
// has seen each error.
func (p *front) failed(in io.Reader) error {
	if f, ok := in.(*os.File); p.failure == nil || ok && term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Failure{p.failures, p.failure}
}

// Failure is the error that Run returns when commands of a script failed. It does not wrap the errors of the
// commands, so that the exit status is always 1.
type Failure struct {
	Commands int // number of commands that failed
	First    error
}

func (e *Failure) Error() string {
	return fmt.Sprintf("%s failed; the first error: %v", widget.Plural(e.Commands, "command"), e.First)
}

// drain prints the events that have already arrived.
func (p *front) drain(events <-chan session.Event) {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			p.event(e)
		default:
			return
		}
	}
}

func (p *front) event(e session.Event) {
	if err := p.mirror.Apply(e); err != nil {
		p.say("error: event not recorded: %v", err)
	}
	if p.mirror.Trace != nil {
		p.index = p.index.Next(p.mirror.Trace)
	}
	switch {
	case e.Progress != nil:
		p.progress(e.Progress)
	case e.Opened != nil:
		p.say("open: %s on %s", e.Opened.Model.Name, table.Title(command.DeviceParts(&e.Opened.Device)...))
		p.help()
	case e.Records != nil:
		for i := range e.Records {
			p.record(&e.Records[i])
		}
	case e.Log != nil:
		p.say("%s: %s", e.Log.Level, e.Log.Text)
	case e.State != nil && e.State.Ended:
		p.say("ended: position %d of %d", e.State.Position, e.State.Context)
	}
}

// progress prints the progress of a phase: when the phase begins, then at most once a second, and at the end
// if more than one line was printed. It prints few lines because a screen reader reads every line.
func (p *front) progress(to *session.Progress) {
	at, ends := time.Now(), to.Done == to.Total
	if to.Phase != p.phase {
		p.phase, p.phaseLines = to.Phase, 0
	}
	if p.phaseLines == 0 || at.Sub(p.phaseSaid) >= time.Second || ends && p.phaseLines > 1 {
		p.phaseSaid = at
		p.phaseLines++
		what := to.Phase + ":"
		if p.mirror.Trace == nil {
			what = "loading: " + to.Phase
		}
		p.say("%s %s", what, strings.Replace(to.Amount(), "/", " of ", 1))
	}
	if ends { // the next progress event begins a new phase, even one of the same name
		p.phase = ""
	}
}

// record prints a record that was added to the trace.
func (p *front) record(r *trace.Record) {
	switch {
	case r.Step != nil:
		p.step(len(p.mirror.Trace.Steps) - 1)
	case r.Samples != nil:
		p.say("repeated step %d", r.Samples.Step)
	case r.Event != nil && !slices.Contains(asked, r.Event.Kind):
		p.say("note: %s", r.Event.Text)
	}
}

// step prints what a step did and how long it took.
func (p *front) step(i int) {
	s := &p.mirror.Trace.Steps[i]
	token := ""
	if s.Token != nil {
		token = fmt.Sprintf(", token %q", s.Text)
	}
	what := ""
	if s.Phase != trace.Execute {
		what = fmt.Sprintf(" at position %d, %s", s.Position, widget.Plural(len(s.Tokens), "token"))
	}
	p.say("step %d: %s%s%s. %s", s.Index, s.Phase, what, token, costText(p.index.Summary(i)))
}

// costText returns how the time of a step was spent, in one line for a screen reader.
func costText(s *analyze.StepSummary) string {
	line := report.TimesLine(s.Index, s.Index.Step(s.At))
	line.Separator = ", "
	return line.String()
}

// deed is the implementation of a command in plain mode: either `of`, which returns a command for the
// session, or `do`, which does the work itself.
type deed struct {
	of func(p *front, rest string) (session.Command, error)
	do func(p *front, rest string)
	// said prints the result after the session has executed the command. It is nil if events already show the
	// result.
	said func(*front, session.Reply)
}

// deeds maps the name of each command in plain mode to its implementation. help and quit are missing because
// the loop in run handles them.
var deeds = map[string]deed{
	"token":             {of: just(session.Command{Kind: session.Next})},
	"back":              {of: just(session.Command{Kind: session.Previous}), said: (*front).back},
	"run":               {of: runCommand, said: (*front).upto},
	"breakpoints":       {do: (*front).addBreak},
	"remove breakpoint": {do: (*front).removeBreak},
	"repeat":            {of: repeatCommand},
	"prompt":            {of: promptCommand},
	"edit":              {of: editCommand},
	"chunk":             {of: chunkCommand},
	"timing":            {of: timingCommand},
	"tokens":            {of: tokenizeCommand, said: (*front).tokens},
	"cost": {of: costCommand, said: func(p *front,
		_ session.Reply,
	) {
		p.printOf("cost", spokenOf{})
		p.printOf("cost-groups", spokenOf{})
	}},
	"verify": {of: verifyCommand, said: func(p *front,
		_ session.Reply,
	) {
		p.printOf("gaps", spokenOf{})
	}},
	"time":       {of: timeOpCommand, said: (*front).trials},
	"try kernel": {of: labCommand, said: (*front).tried},
	"use kernel": {of: useCommand},
	"ceilings":   {of: just(session.Command{Kind: session.Ceilings}), said: (*front).ceilings},
	"value":      {of: lookCommand, said: (*front).looked},
	"save value": {of: saveCommand, said: (*front).saved},
	"reset":      {of: just(session.Command{Kind: session.Reset}), said: (*front).back},
	"table":      {do: (*front).print},
	"why":        {do: (*front).why},
	"selection":  {do: (*front).setScope},
	"baseline":   {do: (*front).setBase},
	"filter":     {do: (*front).setFilter},
	"export":     {do: (*front).export},
}

const helpWord = "?"

// just returns an implementation for a command without an argument: it always sends c to the session.
func just(c session.Command) func(*front, string) (session.Command, error) {
	return func(*front, string) (session.Command, error) { return c, nil }
}

func promptCommand(p *front, text string) (session.Command, error) {
	return command.Prompt(text, p.opts.Chat), nil
}

func tokenizeCommand(_ *front, text string) (session.Command, error) {
	return session.Command{Kind: session.Tokenize, Text: text}, nil
}

// commandOf returns the command that a typed word stands for, or nil if there is no such command.
func commandOf(word string) *command.Row {
	if word == "help" {
		word = helpWord
	}
	i := slices.IndexFunc(command.Table, func(r command.Row) bool {
		return word != "" &&
			r.Plain.Word == word
	})
	if i < 0 {
		return nil
	}
	return &command.Table[i]
}

// help lists the commands that can be typed, one per line.
func (p *front) help() {
	p.say("Type a command and press enter:")
	for i := range command.Table {
		line := &command.Table[i].Plain
		if line.Word == "" || p.recorded && !line.Recorded {
			continue
		}
		p.say("  %s", strings.TrimSpace(line.Word+" "+line.Takes)+": "+line.Doc)
	}
}

// ceilings prints the highest rates of the device.
func (p *front) ceilings(session.Reply) {
	for _, line := range report.CeilingFacts(p.mirror.Trace.Device.Ceilings) {
		p.say("%s", line)
	}
}

// back prints the step and position that the session went back to.
func (p *front) back(r session.Reply) {
	if r.Step < 0 {
		p.say("went back to the state before the first step")
	} else {
		p.say("went back to step %d, position %d", r.Step, r.Position)
	}
}

func (p *front) tokens(r session.Reply) {
	var list []string
	for _, tok := range r.Tokens {
		list = append(list, fmt.Sprintf("%d %q", tok.ID, tok.Text))
	}
	p.say("%s", strings.Join(append([]string{widget.Plural(len(list), "token")}, list...), ", "))
}

// export writes the trace recorded so far to a new file.
func (p *front) export(path string) {
	if len(p.mirror.Trace.Steps) == 0 {
		p.fail(p.noStep())
		return
	}
	if path = command.Expand(path); path == "" {
		p.fail(errors.New("x FILE: file name missing"))
		return
	}
	t := p.mirror.Trace
	if p.opts.NoText {
		t = redact.Trace(t)
	}
	err := command.Absent(path)
	if err == nil {
		if size := command.ExportSize(path, t); size >= command.LargeExport {
			p.say("writing about %s to %s", table.Bytes(size), path)
		}
		err = trace.WriteFile(path, t)
	}
	if err != nil {
		p.fail(fmt.Errorf("export: %w", err))
		return
	}
	p.say("wrote%s %s", command.WriteOnly(path), path)
}

// Interrupted is the error that Run returns when a signal ended the program.
type Interrupted struct{ Signal os.Signal }

func (e *Interrupted) Error() string { return "ended by signal: " + e.Signal.String() }
