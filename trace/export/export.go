// Package export contains the write-only formats of a trace, for other programs. These formats keep only a
// part of a trace, so gpuscope cannot open them again. They are written by `gpuscope trace convert`, by
// --trace, and by the screen's export.
//
// To add a format, add a row to rows and a file with its writer.
package export

import (
	"gpuscope/trace"
	"gpuscope/trace/export/chrome"
	"gpuscope/trace/export/dot"
	"gpuscope/trace/export/fleet"
	"gpuscope/trace/export/otlp"
	"gpuscope/trace/export/perfetto"
	"gpuscope/trace/export/pprof"
	"gpuscope/trace/export/speedscope"
)

// rows lists the export formats.
var rows = []trace.Export{
	chrome.Format,
	chrome.Kineto,
	chrome.HTA,
	perfetto.Format,
	pprof.Format,
	speedscope.Format,
	otlp.Traces,
	otlp.Profiles,
	fleet.Tables,
	fleet.Dispatches,
	dot.Format,
}

func init() {
	for _, r := range rows {
		trace.RegisterExport(r)
	}
}
