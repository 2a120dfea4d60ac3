package fleet

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"gpuscope/trace"
)

// CSV writes the table dispatches as comma-separated values, with the names of the columns in the first line.
// A value that is NULL is empty.
func CSV(w io.Writer, t *trace.Trace) error {
	out := csv.NewWriter(w)
	fields := make([]string, len(dispatchColumns))
	for i := range dispatchColumns {
		fields[i] = dispatchColumns[i].name
	}
	if err := out.Write(fields); err != nil {
		return err
	}
	for r := range newRun(t).dispatches() {
		for i := range dispatchColumns {
			fields[i] = dispatchColumns[i].field(r)
		}
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// field returns the column of a row as text.
func (c *column) field(r *row) string {
	v := c.of(r)
	switch {
	case !v.known:
		return ""
	case c.kind == text:
		return v.s
	case c.kind == float:
		return strconv.FormatFloat(v.f, 'g', -1, 64)
	case c.kind == truth:
		return strconv.FormatBool(v.n != 0)
	case c.kind == instant:
		return time.UnixMicro(v.n).UTC().Format(time.RFC3339Nano)
	}
	return strconv.FormatInt(v.n, 10)
}
