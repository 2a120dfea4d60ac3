// Package all registers every table of a trace. A program that imports it can find each table by name in
// package report.
package all

import (
	_ "gpuscope/trace/report/classes"
	_ "gpuscope/trace/report/costtable"
	_ "gpuscope/trace/report/deviation"
	_ "gpuscope/trace/report/experts"
	_ "gpuscope/trace/report/kernels"
	_ "gpuscope/trace/report/outline"
	_ "gpuscope/trace/report/phases"
	_ "gpuscope/trace/report/roofs"
	_ "gpuscope/trace/report/slopes"
	_ "gpuscope/trace/report/storage"
)
