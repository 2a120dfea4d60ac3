// Package command holds what the screen and plain mode share: the table of commands, the parsing of typed
// input into session commands, and the lines that describe the results.
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

// ParseTarget parses the target of a run: a position, a dispatch of the current step ("d 37") or a condition.
// Without a device, the target can also be the tokens and the position of a step to plan ("512,0").
// ParseTarget returns an error if the model of the trace can never meet the condition.
func ParseTarget(text string, t *trace.Trace) (session.Command, error) {
	text = strings.TrimSpace(text)
	if tokens, position, ok := session.ParseShape(text); ok {
		return session.Command{Kind: session.Plan, N: tokens, Until: position}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 {
			return session.Command{}, session.Refusef("run to position %d: the position must be 1 or more", n)
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
			fmt.Errorf("run to: %w; or type a position like 128, or a dispatch like d12", err)
	}
	// Parse the condition "position N" like the number N, so that the session rejects a position that the
	// text has already passed.
	if b.On == "position" {
		return ParseTarget(b.Of, t)
	}
	return session.Command{Kind: session.Run, Breaks: []session.Break{b}}, b.CheckIn(t)
}

// ParseCount parses a count of 0 or more. `name` names the count in the error.
func ParseCount(name, text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, session.Refusef("%s %.20q: must be a whole number, 0 or more", name, text)
	}
	return n, nil
}

// Breakpoints are the conditions at which every run pauses.
type Breakpoints []session.Break

// Add parses a condition and adds it as a breakpoint. It returns an error if the model of the trace can
// never meet the condition.
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

// Remove removes the breakpoint at an index.
func (b *Breakpoints) Remove(at int) { *b = slices.Delete(slices.Clone(*b), at, at+1) }

// Runs adds the breakpoints to a run command. It returns other commands unchanged.
func (b Breakpoints) Runs(c session.Command) session.Command {
	if c.Kind == session.Run {
		c.Breaks = slices.Concat(b, c.Breaks)
	}
	return c
}

// BreakHelp returns the syntax and the meaning of each condition.
func BreakHelp() [][2]string {
	var list [][2]string
	for _, k := range session.Breaks {
		list = append(list, [2]string{widget.Fit(widget.Joined(" ", k.Word, k.Takes), 16), k.Doc})
	}
	return list
}

// Expand returns a typed path without surrounding blanks, with a leading ~/ replaced by the user's home
// folder.
func Expand(path string) string {
	path = strings.TrimSpace(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	return path
}

// Repeats is the number of samples that one repeat command adds.
const Repeats = 10

// Prompt returns the command for a typed prompt, or for the user's turn in a chat.
func Prompt(text string, chat bool) session.Command {
	return session.Command{Kind: session.Prompt, Text: text, Chat: chat}
}

// PromptLabel returns the question for a prompt. `program` is true for programs that are not language models.
func PromptLabel(chat, program bool) string {
	switch {
	case program:
		return "live dims, such as 0.1=7 for dim 1 of input 0"
	case chat:
		return "your turn"
	}
	return "prompt"
}

// ResetNote returns what the screen shows after a reset.
func ResetNote(program bool) string {
	if program {
		return session.ExecutionsResetText
	}
	return session.ResetText + "; press {prompt} to type a prompt"
}

// First returns the first command of a new session. With a prompt, the command sends the prompt. Without a
// prompt and without a device, the command plans a prefill step of max_chunk tokens, or of half the context
// if half the context is less. With a device but no prompt, First returns nil.
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
