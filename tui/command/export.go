package command

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// largeExport is the minimum size in bytes, as JSON, of a trace whose size is shown when the user exports it.
const largeExport = 10 << 20

// ExportTo returns the question for the name of the file to export a trace to. `path` is the name typed so
// far. The question shows the size of a large trace. It warns if the suffix of `path` chooses a format that
// gpuscope cannot open again.
func ExportTo(t *trace.Trace, path string) string {
	label := "export to"
	if n := t.EstimateJSON(); n >= largeExport {
		label = fmt.Sprintf("export (about %s as JSON) to", table.Bytes(n))
	}
	return label + WriteOnly(path)
}

// WriteOnly returns a warning, such as " parquet (cannot be opened again)", if gpuscope cannot open the
// format that the suffix of the path chooses. Otherwise it returns "".
func WriteOnly(path string) string {
	if f, _, err := trace.FormatOf(path); err == nil && !f.Opens() {
		return " " + f.Name + " (cannot be opened again)"
	}
	return ""
}
