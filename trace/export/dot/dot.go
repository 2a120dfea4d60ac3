// Package dot writes the graph of a trace for Graphviz.
package dot

import (
	"io"

	"gpuscope/trace"
	"gpuscope/trace/report/drawing"
)

// Format is the export of the graph. It is the same drawing as that of gpuscope graph --format dot.
var Format = trace.Export{
	Name: "dot", Doc: "for Graphviz: the graph of operators and values, without any step",
	Suffix: ".dot", Write: func(w io.Writer, t *trace.Trace) error { return drawing.DOT(w, &t.Graph) },
}
