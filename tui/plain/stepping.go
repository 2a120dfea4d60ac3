package plain

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// asked lists kinds of events that plain mode does not print: they only repeat what the user has just typed.
var asked = []string{"prompt", "edit", "reset", "set_back", "repeat", "plan"}

func runCommand(p *front, to string) (session.Command, error) {
	c := session.Command{Kind: session.Run}
	if to != "" {
		var err error
		if c, err = command.ParseTarget(to, p.mirror.Trace); err != nil {
			return c, err
		}
	}
	return p.breaks.Runs(c), nil
}

// upto is called after a run. If the run is paused inside a step, upto prints the dispatch after which it is
// paused. Events have already reported any other outcome.
func (p *front) upto(session.Reply) {
	if id := p.mirror.State.Upto; id != nil {
		p.say("step %d is paused after dispatch %d: type s to finish the step", p.mirror.State.Step, *id)
	}
}

// addBreak adds a breakpoint. Without a condition it lists the breakpoints and the possible conditions.
func (p *front) addBreak(condition string) {
	if condition != "" {
		if err := p.breaks.Add(condition, p.mirror.Trace); err != nil {
			p.fail(err)
			return
		}
		p.say("%s", widget.Plural(len(p.breaks), "breakpoint"))
		return
	}
	for i, b := range p.breaks {
		p.say("breakpoint %d: %s", i+1, b)
	}
	if len(p.breaks) == 0 {
		p.say("no breakpoints")
	}
	for _, l := range command.BreakHelp() {
		p.say("b %s %s", strings.TrimSpace(l[0]), l[1])
	}
}

func (p *front) removeBreak(which string) {
	n, err := strconv.Atoi(strings.TrimSpace(which))
	if err != nil || n < 1 || n > len(p.breaks) {
		p.fail(session.Refusef("B %.20q: no such breakpoint; the list has %s", which, widget.Plural(len(p.breaks), "breakpoint")))
		return
	}
	p.say("breakpoint removed: %s", p.breaks[n-1])
	p.breaks.Remove(n - 1)
}

func repeatCommand(_ *front, step string) (session.Command, error) {
	c := session.Command{Kind: session.Repeat, N: command.Repeats}
	if step == "" {
		return c, nil
	}
	n, err := command.ParseCount("step", step)
	c.Step = &n
	return c, err
}

func editCommand(_ *front, rest string) (session.Command, error) {
	keep, text, _ := strings.Cut(rest, " ")
	n, err := command.ParseCount("tokens to keep", keep)
	return session.Command{Kind: session.Edit, N: n, Text: text}, err
}

func chunkCommand(_ *front, n string) (session.Command, error) {
	size, err := command.ParseCount("chunk", n)
	return session.Command{Kind: session.Chunk, N: size}, err
}

func timingCommand(_ *front, level string) (session.Command, error) {
	return session.Command{Kind: session.Timing, Level: trace.Timing(strings.TrimSpace(level))}, nil
}

// costCommand measures the cost of each row of the current step, or of the named rows together.
func costCommand(p *front, names string) (session.Command, error) {
	c := session.Command{Kind: session.Cost}
	last, err := p.lastStep("c")
	if err != nil {
		return c, err
	}
	parts, err := p.index.CostParts(p.ctx, last)
	if names != "" {
		var one trace.Part
		one, err = p.index.Named(p.ctx, last, names)
		parts = []trace.Part{one}
	}
	c.Parts = append(c.Parts, parts...)
	return c, err
}

// lastStep returns the index of the current step in the trace. The error names the command that needs the
// step.
func (p *front) lastStep(asker string) (int, error) {
	if p.mirror.Trace == nil || p.mirror.State.Step < 0 {
		return 0, session.Refusef("%s: no step has run yet; type p TEXT to send a prompt", asker)
	}
	last := slices.IndexFunc(p.mirror.Trace.Steps,
		func(s trace.Step) bool { return s.Index == p.mirror.State.Step })
	if last < 0 {
		return 0, session.Refusef("%s: step %d is no longer in the trace", asker, p.mirror.State.Step)
	}
	return last, nil
}

// verifyCommand compares the current step, or the named dispatches of the step, with the references.
func verifyCommand(p *front, names string) (session.Command, error) {
	c := session.Command{Kind: session.Verify}
	last, err := p.lastStep("a")
	if err != nil || names == "" {
		return c, err
	}
	part, err := p.index.Named(p.ctx, last, names)
	c.Parts = []trace.Part{part}
	return c, err
}
