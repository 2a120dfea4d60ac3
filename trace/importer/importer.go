// Package importer makes traces from the profiles of other engines. Their times can then be compared with
// those of a run of gpuscope. The caller provides the operators of the model that was profiled. A format
// joins the rows of a profile with these operators.
//
// To add a format, add a row to formats, and a file with its reader.
package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"gpuscope/trace"
)

// Run has the facts that a profile does not contain: the model that was profiled, and its operators in the
// order of the model file.
type Run struct {
	Model trace.Model
	Ops   []trace.Op
}

// format is a format of profiles.
type format struct {
	name, doc string
	// sniff reports whether a profile may have this format. start is the beginning of the file.
	sniff func(start []byte) bool
	// read adds the steps of a profile to a trace whose model and operators are set.
	read func(in io.Reader, t *trace.Trace) error
}

var formats = []format{executorch}

// ErrFormat is wrapped by the error for a file that is not a profile in a known format.
var ErrFormat = errors.New("not a profile in a known format")

// ErrTooLarge is wrapped by the error for a profile that exceeds a limit of this package.
var ErrTooLarge = errors.New("the profile is too large")

const (
	sniffed = 1 << 16 // number of bytes at the beginning of a file that show its format
	maxLine = 1 << 16 // maximum length of a line in bytes
	maxRows = 1 << 20 // maximum number of dispatches of all steps together
)

// Read makes a trace from a profile. The fields Producer, Created and Command of the trace are left to the
// caller. What the profile does not contain is absent in the trace.
func Read(in io.Reader, run Run) (*trace.Trace, error) {
	buffered := bufio.NewReaderSize(in, sniffed)
	start, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, f := range formats {
		if !f.sniff(start) {
			continue
		}
		t := &trace.Trace{
			Schema: trace.Schema, Model: run.Model, Graph: trace.Graph{Ops: run.Ops},
			Device: trace.Device{Name: trace.ImportedDevice, AdapterType: trace.AdapterUnknown},
		}
		if err := f.read(buffered, t); err != nil {
			return nil, err
		}
		return t, t.Check()
	}
	return nil, fmt.Errorf("%w; known: %s", ErrFormat, Formats())
}

// Formats describes the known formats in one line.
func Formats() string {
	var docs []string
	for _, f := range formats {
		docs = append(docs, f.doc)
	}
	return strings.Join(docs, "; ")
}

// LineError is the error for a line of a profile that cannot be read.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }
