package report

import (
	"fmt"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// Divided reports whether the wall time is to be divided into GPU time and the rest. The parts of a single
// run add up. Medians of repeats are divided only if the rest is larger than its error.
func Divided(u *analyze.Untimed) bool {
	wait, off, known := u.Waits()
	return u.Split() && (u.From == "" || known && wait > off)
}

// untimedPart returns the title segment with the untimed step time: "step 1.80 ms = 0.52 CPU + 1.28 GPU".
func untimedPart(u *analyze.Untimed) table.Segment {
	switch {
	case !u.Known():
		return table.Segment{}
	case !analyze.Measured(u.Wall):
		return table.Segment{Text: "untimed step " + Millis(u.GPU) + " GPU"}
	case !Divided(u):
		return table.Segment{Text: "step " + Millis(u.Wall)}
	}
	return table.Segment{
		Text: fmt.Sprintf("step %s = %s CPU + %s GPU", Millis(u.Wall), table.MillisBare(u.CPU().NS()),
			table.MillisBare(u.GPU.NS())),
		Short: "step " + Millis(u.Wall),
	}
}

// untimedParts returns the segments with the untimed step time, the overhead of timing, and the step in
// which these two were measured. This step is always shown, because it may differ from the step of the
// other times in the title. The result is empty if no untimed time is known.
func untimedParts(u *analyze.Untimed) []table.Segment {
	if !u.Known() {
		return nil
	}
	parts := []table.Segment{untimedPart(u)}
	if u.Cost != "" {
		parts = append(parts, table.Segment{Rank: 0, With: true, Text: "(timing " + u.Cost + ")"})
	}
	if u.From != "" {
		step, _, _ := strings.Cut(u.From, " ")
		parts = append(parts, table.Segment{With: true, Text: "(" + u.From + ")", Short: "(" + step + ")"})
	}
	return parts
}
