package command

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// largeExport is the size of a trace as JSON, in bytes, from which the question for the file name shows it.
const largeExport = 10 << 20

// ExportTo returns the question for the file to which a trace is exported. If the file will be large, the
// question says how large.
func ExportTo(t *trace.Trace) string {
	if n := t.EstimateJSON(); n >= largeExport {
		return fmt.Sprintf("export (about %s as JSON) to", table.Bytes(n))
	}
	return "export to"
}
