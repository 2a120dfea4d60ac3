// Package export has the write-only formats of a trace, for other programs. They do not keep all of a trace,
// so gpuscope does not open them again. `gpuscope trace convert`, `--trace` and export from the screen write
// them.
//
// To add a format, add a row to rows and a file with its writer.
package export

import "gpuscope/trace"

// rows are the formats, one row each.
var rows = []trace.Export{}

func init() {
	for _, r := range rows {
		trace.RegisterExport(r)
	}
}
