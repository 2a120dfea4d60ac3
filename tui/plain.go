package tui

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"gpuscope/internal/printable"
	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
)

// plainHelp is what can be typed in plain mode.
const plainHelp = "Type a command and enter: s next token, S previous, r run, p TEXT prompt, X reset, d dispatches, x FILE export, q quit."

// runPlain is the program without a screen: a line for each event, commands by line. It serves screen
// readers, logs and dumb terminals.
func runPlain(ctx context.Context, o Options, open func(context.Context) openedMsg) error {
	in := o.Input
	if in == nil {
		in = os.Stdin
	}
	p := &plainText{ctx: ctx, out: o.output()}
	m := open(ctx)
	switch {
	case m.err != nil:
		return m.err
	case m.trace != nil:
		p.mirror.Trace = m.trace
		p.index = p.index.Next(m.trace)
		for i := range m.trace.Steps {
			p.step(i)
		}
		return p.err
	}
	return p.run(ctx, m.session, in, o.Prompt)
}

// run reads commands until there are no more, each when the one before it has ended; the first one when the
// model is open. Then it leaves: with the reason of a session that ended by itself, of a first prompt that
// was refused, or where the commands come from no person, of the first one that failed.
func (p *plainText) run(ctx context.Context, s session.Session, in io.Reader, prompt string) error {
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	lines := make(chan string)
	var unread error
	go func() { // ends with the process: nothing can wake a read of the terminal
		defer close(lines)
		unread = readLines(ctx, in, lines)
	}()
	type result struct {
		of    session.CommandKind
		reply session.Reply
		err   error
	}
	results := make(chan result, 1)
	busy := false
	do := func(c session.Command) {
		busy = true
		go func() {
			reply, err := s.Do(ctx, c)
			results <- result{c.Kind, reply, err}
		}()
	}
	var first *session.Command // the prompt of the command line, until it is taken in
	if prompt != "" {
		first = &session.Command{Kind: session.Prompt, Text: prompt}
	}
	events := s.Events()
	for p.err == nil {
		var typed <-chan string // nil while something is under way
		switch {
		case p.mirror.Trace == nil || busy:
		case first != nil:
			do(*first)
		default:
			typed = lines
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-signals:
			return &Interrupted{sig}
		case e, ok := <-events:
			if !ok && p.mirror.Trace == nil { // it never had a model
				return reasonOf(s)
			}
			if !ok {
				return fmt.Errorf("the engine has gone: %w", reasonOf(s))
			}
			p.event(e)
		case r := <-results:
			busy = false
			p.drain(events) // what the command caused is said before what went wrong
			switch {
			case errors.Is(r.err, session.ErrClosed): // the end of the events has the reason
			case r.err != nil && first != nil:
				return r.err
			case r.err != nil:
				p.fail(r.err)
			case r.reply.Step < 0:
				p.say("before the first step")
			case r.of == session.Previous:
				p.say("back at step %d, position %d", r.reply.Step, r.reply.Position)
			}
			first = nil
		case line, ok := <-typed:
			if !ok {
				return cmp.Or(p.err, unread, p.failed(in))
			}
			if line == "q" {
				return cmp.Or(p.err, p.failed(in))
			}
			c, known := p.command(line)
			if c.Kind != "" {
				do(c)
			} else if !known {
				p.say("%s", plainHelp)
			}
		}
	}
	return p.err
}

// longestLine is how many bytes a typed line may have: more than any prompt that fits a context.
const longestLine = 4 << 20

// readLines hands on lines until they end. Its error, of what cannot be read, stands when lines is closed.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, longestLine)
	for scan.Scan() {
		select {
		case lines <- scan.Text():
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a command has more than %d bytes: give a prompt that fits the context",
			longestLine)
	}
	return scan.Err()
}

// plainText writes events as lines.
type plainText struct {
	out      io.Writer
	mirror   session.Mirror
	ctx      context.Context
	index    *inspect.Index
	failures int   // commands that failed
	failure  error // of the first
	err      error // of writing
}

func (p *plainText) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, printable.Clean(fmt.Sprintf(format, args...)))
	}
}

// fail says that a command failed.
func (p *plainText) fail(err error) {
	p.say("error: %v", err)
	if p.failures++; p.failure == nil {
		p.failure = err
	}
}

// failed is what a script is told when it ends. A person has read it.
func (p *plainText) failed(in io.Reader) error {
	if f, ok := in.(*os.File); p.failure == nil || ok && term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return fmt.Errorf("%s failed, the first: %w", plural(p.failures, "command"), p.failure)
}

// drain says the events that are there now.
func (p *plainText) drain(events <-chan session.Event) {
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

func (p *plainText) event(e session.Event) {
	if err := p.mirror.Apply(e); err != nil {
		p.say("error: not recorded: %v", err)
	}
	if p.mirror.Trace != nil {
		p.index = p.index.Next(p.mirror.Trace)
	}
	switch {
	case e.Progress != nil:
		p.say("loading: %s %d of %d", e.Progress.Phase, e.Progress.Done, e.Progress.Total)
	case e.Opened != nil:
		p.say("open: %s on %s", e.Opened.Model.Name, deviceTexts(&e.Opened.Device)[0])
		p.say("%s", plainHelp)
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

// record says what the trace has gained.
func (p *plainText) record(r *trace.Record) {
	switch {
	case r.Step != nil:
		p.step(len(p.mirror.Trace.Steps) - 1)
	case r.Samples != nil:
		p.say("repeated: step %d", r.Samples.Step)
	case r.Event != nil:
		p.say("note: %s", r.Event.Text)
	}
}

// step says what a step did and cost.
func (p *plainText) step(i int) {
	s := &p.mirror.Trace.Steps[i]
	token := ""
	if s.Token != nil {
		token = fmt.Sprintf(", token %q", s.Text)
	}
	p.say("step %d: %s at position %d, %s%s. %s", s.Index, s.Phase, s.Position,
		plural(len(s.Tokens), "token"), token,
		costText(p.index.Summary(i)))
}

// costText is where a step's time went, in one line for the ear.
func costText(s *inspect.StepSummary) string {
	line := s.Title()
	line.Separator = ", "
	return line.String()
}

// command reads a line. What it can do itself it does; then the command has no kind.
func (p *plainText) command(line string) (c session.Command, known bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	last := -1
	if p.mirror.Trace != nil {
		last = len(p.mirror.Trace.Steps) - 1
	}
	switch word {
	case "s":
		return session.Command{Kind: session.Next}, true
	case "S":
		return session.Command{Kind: session.Previous}, true
	case "r":
		return session.Command{Kind: session.Run}, true
	case "R":
		return session.Command{Kind: session.Repeat, N: repeats}, true
	case "X":
		return session.Command{Kind: session.Reset}, true
	case "p":
		return session.Command{Kind: session.Prompt, Text: rest}, true
	case "d":
		if last < 0 {
			p.say("no step was run yet")
			return c, true
		}
		if err := p.index.Print(p.ctx, p.out, "dispatches", "text", mainWidth,
			inspect.Options{Scope: p.index.Step(last)}); err != nil {
			p.fail(err)
		}
		return c, true
	case "x":
		if last < 0 || rest == "" {
			p.say("x FILE, after a step was run")
			return c, true
		}
		if err := trace.WriteFile(rest, p.mirror.Trace); err != nil {
			p.fail(err)
		} else {
			p.say("wrote %s", rest)
		}
		return c, true
	}
	return c, word == ""
}
