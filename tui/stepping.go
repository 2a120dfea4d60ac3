package tui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

func (pi *pilot) askBreaks() {
	pi.dialog = &widget.Chooser{
		Title: "Add a breakpoint", Line: &widget.InputLine{}, More: command.BreakHelp(), Keep: true,
		None: "no breakpoints: a run continues to the end of the text",
		Rows: func() []string {
			var list []string
			for _, b := range pi.breaks {
				list = append(list, b.String()+"   (delete removes this breakpoint)")
			}
			return list
		},
		Take: func(_ int, typed string) error {
			err := pi.breaks.Add(typed, pi.mirror.Trace)
			if err == nil {
				pi.log.Add("info", "breakpoint "+typed)
			}
			return err
		},
		Remove: func(row int) {
			pi.log.Add("info", "breakpoint removed: "+pi.breaks[row].String())
			pi.breaks.Remove(row)
		},
	}
}

// showPosition shows the recorded step that processed the token at a position. For the position after the
// last token, it shows the last step.
func (sel *selection) showPosition(to int) error {
	steps := sel.index.Trace.Steps
	end := func(i int) int { return steps[i].Position + len(steps[i].Tokens) }
	for i := range steps {
		if end(i) > to || i == len(steps)-1 && end(i) == to {
			sel.lookAt(i)
			return nil
		}
	}
	return fmt.Errorf("no step of this trace reaches position %d", to)
}

func (pi *pilot) askTarget() {
	if pi.isTrace {
		pi.dialog = &widget.Chooser{
			Title: "Show position", Line: &widget.InputLine{}, Rows: func() []string { return nil },
			None: "shows the step that contains this position",
			Take: func(_ int, typed string) error {
				n, err := command.ParseCount("position", typed)
				if err == nil {
					err = pi.showPosition(n)
				}
				return err
			},
		}
		return
	}
	title, none := "Run to", "a position, dispatch N of this step (d N), or a condition:"
	if pi.mirror.Trace.Device.None() {
		title, none = "Plan to", "a position, a step of any shape as TOKENS,POSITION (such as 512,0), or a condition:"
	}
	pi.dialog = &widget.Chooser{
		Title: title, Line: &widget.InputLine{}, Rows: func() []string { return nil }, None: none,
		More: command.BreakHelp(),
		Take: func(_ int, typed string) error {
			c, err := command.ParseTarget(typed, pi.mirror.Trace)
			if err == nil {
				pi.goOn(pi.breaks.Runs(c))
			}
			return err
		},
	}
}

func (pi *pilot) askChunk() {
	q := &question{label: fmt.Sprintf("prompt tokens per step, from 1 to %s; 0 for the maximum",
		widget.Count(pi.mirror.State.MaxChunk))}
	q.line.Set(strconv.Itoa(pi.mirror.State.Chunk))
	q.take = func(s string) {
		n, err := command.ParseCount("chunk", s)
		if err != nil {
			pi.say(err.Error())
			return
		}
		if most := pi.mirror.State.MaxChunk; n > most {
			pi.say(fmt.Sprintf("a chunk of %d tokens is too large: the maximum is %d", n, most))
			return
		}
		pi.command(session.Command{Kind: session.Chunk, N: n})
		pi.report("the next prompts are processed " + chunkText(n))
	}
	pi.ask(q)
}

func chunkText(n int) string {
	if n == 0 {
		return "with the largest possible steps"
	}
	return widget.Plural(n, "token") + " per step"
}

// levelDocs describes what each timing level measures.
var levelDocs = map[trace.Timing]string{
	trace.TimingOff:      "measures only the wall time",
	trace.TimingStep:     "times the GPU with two timestamps around the step; almost no overhead",
	trace.TimingBlock:    "times the attention and MLP of each layer in separate passes",
	trace.TimingDispatch: "times each dispatch in a separate pass; dispatches do not overlap",
}

func (pi *pilot) askTiming() {
	levels := trace.TimingLevels
	pi.dialog = &widget.Chooser{
		Title:  "Timing of the next steps",
		Picker: widget.Picker{Cursor: max(0, slices.Index(levels, pi.mirror.State.Timing))},
		Rows: func() []string {
			var list []string
			for _, level := range levels {
				now := "  "
				if level == pi.mirror.State.Timing {
					now = widget.MarkOK + " "
				}
				list = append(list, now+widget.Fit(string(level), 10)+levelDocs[level])
			}
			return list
		},
		Take: func(row int, _ string) error {
			pi.command(session.Command{Kind: session.Timing, Level: levels[row]})
			pi.report("timing " + string(levels[row]) + " from the next step on")
			return nil
		},
	}
}

// askEdit asks for new text to replace the text after the shown step.
func (pi *pilot) askEdit() {
	all := slices.Concat(pi.mirror.Text.Prompt, pi.mirror.Text.Given)
	keep := len(all)
	if s := pi.step(); s != nil {
		if keep = s.Position; s.Token != nil {
			keep += len(s.Tokens)
		}
	}
	keep = min(keep, len(all))
	for keep > 0 && all[keep-1].Text == "" { // do not cut in the middle of a character
		keep--
	}
	var text strings.Builder
	for _, tok := range all[keep:] {
		text.WriteString(tok.Text)
	}
	q := &question{label: fmt.Sprintf("replace the text from token %d on", keep)}
	q.line.Set(text.String())
	q.take = func(s string) {
		pi.goOn(session.Command{Kind: session.Edit, N: keep, Text: s})
	}
	pi.ask(q)
}

// repeat runs the shown step again several times, which adds samples to its times.
func (pi *pilot) repeat() {
	c := session.Command{Kind: session.Repeat, N: command.Repeats}
	if s := pi.step(); s != nil && s.Index != pi.mirror.State.Step {
		c.Step = &s.Index
	}
	pi.command(c)
}

// steers lists the commands that move through the text. At the start or the end of the text, the session
// rejects such a command; the screen shows this as a note, not as an error.
var steers = []session.CommandKind{
	session.Next, session.Previous, session.Run, session.Repeat, session.Upto,
}

// refused tells the user why the session rejected a command. Usually, the reason is an error that stays on
// the screen. If a key that is held down can cause the rejection, the reason is a note that fades.
func (pi *pilot) refused(c session.Command, err error) {
	if errors.Is(err, session.ErrUsage) && slices.Contains(steers, c.Kind) {
		pi.log.Add("warn", err.Error())
		pi.show(err.Error())
		return
	}
	pi.fail(c.Kind, fmt.Errorf("%s: %w", c.Kind, err))
}

// paused shows the breakpoint at which a run has paused.
func (pi *pilot) paused(hit *trace.Event) {
	if pi.hit = hit; hit != nil {
		pi.leaveScope() // the user wants to see this step
		pi.announce(widget.Accent, hit.Text)
	}
}

// standing returns the label of a model that is paused at a dispatch inside a step or at a breakpoint, else
// "".
func (m *model) standing() string {
	switch upto := m.mirror.State.Upto; {
	case upto != nil:
		return fmt.Sprintf("[AFTER DISPATCH %d]", *upto)
	case m.hit != nil:
		return "[BREAKPOINT]"
	}
	return ""
}

// busyWord returns the label for the running command.
func (m *model) busyWord() string {
	switch c := m.job.command; c.Kind {
	case session.Repeat:
		step := m.mirror.State.Step
		if c.Step != nil {
			step = *c.Step
		}
		return fmt.Sprintf("[REPEATING s%d]", step)
	case session.Prompt, session.Edit:
		if !m.mirror.State.Program {
			return "[READING]"
		}
	case session.Observe, session.Ceilings, session.TimeOp:
		return "[MEASURING" + m.progress() + "]"
	case session.Cost, session.Lab:
		return "[MEASURING" + m.measuring() + "]"
	case session.Verify:
		return "[VERIFYING" + m.measuring() + "]"
	}
	return "[RUNNING]"
}
