package tui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
)

// plainHelp is what can be typed in plain mode.
const plainHelp = "Type a command and enter: s next token, S previous, r run, p TEXT prompt, X reset, d dispatches, x FILE export, q quit."

// runPlain is the program without a screen: a line for each event, commands by line. It serves screen
// readers, logs and dumb terminals.
func runPlain(ctx context.Context, o Options, open func(context.Context) openedMsg) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := o.Input
	if in == nil {
		in = os.Stdin
	}
	p := &plainText{out: o.output(), index: &inspect.Index{}}
	m := open(ctx)
	switch {
	case m.err != nil:
		return m.err
	case m.trace != nil:
		p.mirror.Trace = m.trace
		p.index.Sync(m.trace)
		for i := range m.trace.Steps {
			p.step(i)
		}
		return p.err
	}
	s := m.session
	defer s.Close()
	lines := make(chan string)
	go func() { // ends with the process: nothing can wake a read of the terminal
		defer close(lines)
		scan := bufio.NewScanner(in)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	results := make(chan error, 1)
	busy := false
	do := func(c session.Command) {
		busy = true
		go func() {
			_, err := s.Do(ctx, c)
			results <- err
		}()
	}
	if o.Prompt != "" {
		do(session.Command{Kind: session.Prompt, Text: o.Prompt})
	}
	events := s.Events()
	for {
		var typed <-chan string // nil while busy
		if !busy {
			typed = lines
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-events:
			if !ok && p.mirror.Trace == nil { // it never had a model
				return reasonOf(s)
			}
			if !ok {
				return fmt.Errorf("the engine has gone: %w", reasonOf(s))
			}
			p.event(e)
		case err := <-results:
			busy = false
			for drained := false; !drained; { // what the command caused is said before what went wrong
				select {
				case e, ok := <-events:
					if drained = !ok; ok {
						p.event(e)
					}
				default:
					drained = true
				}
			}
			if err != nil {
				p.say("error: %v", err)
			}
		case line, ok := <-typed:
			if !ok || line == "q" {
				return p.err
			}
			c, known := p.command(line)
			if c.Kind != "" {
				do(c)
			} else if !known {
				p.say("%s", plainHelp)
			}
		}
		if p.err != nil {
			return p.err
		}
	}
}

// plainText writes events as lines.
type plainText struct {
	out    io.Writer
	mirror session.Mirror
	index  *inspect.Index
	err    error
}

func (p *plainText) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, printable.Clean(fmt.Sprintf(format, args...)))
	}
}

func (p *plainText) event(e session.Event) {
	if err := p.mirror.Apply(e); err != nil {
		p.say("error: not recorded: %v", err)
	}
	if p.mirror.Trace != nil {
		p.index.Sync(p.mirror.Trace)
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
		strings.ReplaceAll(costTexts(p.index.Summary(i))[2], " │ ", ", "))
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
		t := p.index.Dispatches(last, inspect.DispatchOptions{}).Table()
		rows, err := t.Select(table.Selection{})
		if err == nil {
			err = t.Print(p.out, "text", rows, mainWidth)
		}
		if err != nil {
			p.say("error: %v", err)
		}
		return c, true
	case "x":
		if last < 0 || rest == "" {
			p.say("x FILE, after a step was run")
			return c, true
		}
		if err := trace.WriteFile(rest, p.mirror.Trace); err != nil {
			p.say("error: %v", err)
		} else {
			p.say("wrote %s", rest)
		}
		return c, true
	}
	return c, word == ""
}
