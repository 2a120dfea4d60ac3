// Package command has what the screen and plain mode share: how what a person types becomes a command of the
// session, and the lines that answer it.
package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/widget"
)

// ParseTarget reads how far to go: a position, a dispatch of the current step ("d 37"), a condition, or
// without a device the shape of a step to plan ("512,0": its tokens and its position). A condition is one
// that the model of the trace can meet.
func ParseTarget(text string, t *trace.Trace) (session.Command, error) {
	text = strings.TrimSpace(text)
	if tokens, position, ok := session.ParseShape(text); ok {
		return session.Command{Kind: session.Plan, N: tokens, Until: position}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 {
			return session.Command{}, session.Refusef("run to position %d: want a position, 1 or more", n)
		}
		return session.Command{Kind: session.Run, Until: n}, nil
	}
	if id, ok := strings.CutPrefix(text, "d"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(id)); err == nil && n >= 0 {
			return session.Command{Kind: session.Upto, N: n}, nil
		}
	}
	b, err := session.ParseBreak(text)
	if err != nil {
		return session.Command{},
			fmt.Errorf("run to %w; or a position, or d and the id of a dispatch", err)
	}
	// as the number alone: one before the end of the text is refused, and no run would reach it
	if b.On == "position" {
		return ParseTarget(b.Of, t)
	}
	return session.Command{Kind: session.Run, Breaks: []session.Break{b}}, b.CheckIn(t)
}

// ParseCount reads a count that may be 0.
func ParseCount(what, text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, session.Refusef("%s %.20q: want a number, 0 or more", what, text)
	}
	return n, nil
}

// Breakpoints are the conditions at which every run pauses.
type Breakpoints []session.Break

// Add takes in a condition as a person types it, which the model of the trace can meet.
func (b *Breakpoints) Add(text string, t *trace.Trace) error {
	one, err := session.ParseBreak(text)
	if err == nil {
		err = one.CheckIn(t)
	}
	if err == nil && slices.Contains(*b, one) {
		err = fmt.Errorf("breakpoint %s exists already", one)
	}
	if err == nil {
		*b = append(slices.Clip(*b), one)
	}
	return err
}

// Remove drops the one at a place.
func (b *Breakpoints) Remove(at int) { *b = slices.Delete(slices.Clone(*b), at, at+1) }

// Runs is a run that pauses at the breakpoints, and at those of its own.
func (b Breakpoints) Runs(c session.Command) session.Command {
	if c.Kind == session.Run {
		c.Breaks = slices.Concat(b, c.Breaks)
	}
	return c
}

// BreakHelp explains the conditions.
func BreakHelp() [][2]string {
	var list [][2]string
	for _, k := range session.Breaks {
		list = append(list, [2]string{widget.Fit(widget.Joined(" ", k.Word, k.Takes), 16), k.Doc})
	}
	return list
}

// Expand is the path that was typed, with ~ for the person's home.
func Expand(path string) string {
	path = strings.TrimSpace(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	return path
}

// Repeats is how many samples one press of R adds.
const Repeats = 10

// Prompt is the command for what a person has typed as a prompt, or in a chat as their turn.
func Prompt(text string, chat bool) session.Command {
	return session.Command{Kind: session.Prompt, Text: text, Chat: chat}
}

// First is what a session begins with: the prompt, or without a device and a prompt the plan of a step
// of as many tokens as one takes, half of the context at most. It is nil for nothing.
func First(prompt string, chat bool, t *trace.Trace) *session.Command {
	switch {
	case prompt != "":
		c := Prompt(prompt, chat)
		return &c
	case t.Device.None():
		n := min(t.Model.Dims["max_chunk"], max(1, t.Model.Dims["context"]/2))
		return &session.Command{Kind: session.Plan, N: n}
	}
	return nil
}
