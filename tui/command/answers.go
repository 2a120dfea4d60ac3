package command

import (
	"cmp"
	"errors"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
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
	session.Kernel: "changing a kernel",
}
