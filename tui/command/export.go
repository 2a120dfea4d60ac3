package command

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// largeExport is the size of a trace as JSON, in bytes, from which the question for the file name shows it.
const largeExport = 10 << 20

// ExportTo returns the question for the file to which a trace is exported, when path has been typed as its
// name. If the file will be large, the question says how large. If the suffix chooses a format that cannot be
// opened again, the question names the format.
func ExportTo(t *trace.Trace, path string) string {
	label := "export to"
	if n := t.EstimateJSON(); n >= largeExport {
		label = fmt.Sprintf("export (about %s as JSON) to", table.Bytes(n))
	}
	return label + WriteOnly(path)
}

// WriteOnly returns " parquet (cannot be opened again)" if the suffix of a path chooses the format parquet.
// It returns "" if the suffix chooses a format that can be opened again.
func WriteOnly(path string) string {
	if f, _, err := trace.FormatOf(path); err == nil && !f.Opens() {
		return " " + f.Name + " (cannot be opened again)"
	}
	return ""
}
