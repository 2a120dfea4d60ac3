package command

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// DeviceParts returns the segments of a title that describe the device.
func DeviceParts(d *trace.Device) []table.Segment {
	if d.None() {
		return []table.Segment{{Rank: 0, Text: "no device: planned, not run", Short: "no device"}}
	}
	if d.Software() {
		name, _, _ := strings.Cut(d.Name, " (")
		return []table.Segment{
			table.Say(0, "software device (%s)", name), {Rank: 3, Text: "compare ratios only"},
		}
	}
	return []table.Segment{{Rank: 3, Text: d.Name + " " + d.Backend, Short: d.Name}}
}

// ErrEnded is the error of a session that ended without giving a reason.
var ErrEnded = errors.New("the session ended without giving a reason")

// ReasonOf closes a session whose event stream has ended, and returns the reason why the session ended.
func ReasonOf(s session.Session) error {
	return cmp.Or(s.Close(), ErrEnded)
}

// IsRecorded is the message for a command that needs a session, but is used with a recorded trace.
const IsRecorded = "this is a recorded trace; start gpuscope with a model"

// Own returns the kernel with the given name or, if this kernel is an edited version, the original kernel
// that it replaces.
func Own(x *analyze.Index, name string) *trace.Kernel {
	k := x.Kernel(name)
	if k != nil && k.Of != "" {
		return x.Kernel(k.Of)
	}
	return k
}

// BusyWith describes each command while the command runs.
var BusyWith = map[session.CommandKind]string{
	session.Prompt: "reading the prompt", session.Next: "decoding", session.Run: "running",
	session.Previous: "stepping back",
	session.Repeat:   "repeating", session.Reset: "resetting", session.Timing: "setting the timing level",
	session.Edit: "reading the edited text", session.Upto: "running up to the dispatch",
	session.Chunk: "setting the chunk size", session.Resume: "running the text again",
	session.Cost: "measuring costs", session.Verify: "verifying", session.Lab: "trying a kernel",
	session.Kernel: "changing a kernel", session.Save: "writing the value",
}

// TokenCounts lists numbers of tokens: "1, 16, 17 tokens".
func TokenCounts(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = table.Integer(n)
	}
	if len(list) == 1 {
		return table.Plural(list[0], "token")
	}
	return strings.Join(words, ", ") + " tokens"
}

// LastEvent returns the newest event that a command recorded, or nil if there is none.
func LastEvent(t *trace.Trace, kind session.CommandKind) *trace.Event {
	for i := len(t.Events) - 1; i >= 0; i-- {
		if e := &t.Events[i]; e.Kind == string(kind) {
			return e
		}
	}
	return nil
}

// VerifyVerdict returns the result of the last verification in one line, and the paint of the line. It
// returns "" if nothing was verified. A sign at the start of the line says the same as the paint.
func VerifyVerdict(t *trace.Trace) (line string, p widget.Paint) {
	e := LastEvent(t, session.Verify)
	switch {
	case e == nil:
		return "", widget.Plain
	case e.Dispatch != nil: // the first dispatch that diverges
		return widget.MarkFail + " " + e.Text, widget.Bad
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Index == e.Step && slices.ContainsFunc(s.Dispatches, notFinite) {
			return widget.MarkWarn + " " + e.Text, widget.Warn
		}
	}
	return widget.MarkOK + " " + e.Text, widget.Good
}

// notFinite reports whether a verification found NaN or Inf in the outputs of a dispatch.
func notFinite(d trace.StepDispatch) bool { return d.Error != nil && d.Error.NotFinite > 0 }
