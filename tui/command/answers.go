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

// DeviceParts say what the device is.
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

// ErrEnded is the reason of a session that has none.
var ErrEnded = errors.New("the session ended without a reason")

// ReasonOf is why a session whose events have ended is over.
func ReasonOf(s session.Session) error {
	return cmp.Or(s.Close(), ErrEnded)
}

// IsRecorded is why what needs a session is refused on a recorded trace.
const IsRecorded = "this is a recorded trace; start gpuscope with a model"

// Own is the graph's kernel that a name stands for: itself, or the one in whose place it runs.
func Own(x *analyze.Index, name string) *trace.Kernel {
	k := x.Kernel(name)
	if k != nil && k.Of != "" {
		return x.Kernel(k.Of)
	}
	return k
}
