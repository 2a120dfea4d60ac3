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

	"gpuscope/internal/compress"
	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Run has the facts that a profile does not contain: the model that was profiled, and its operators in the
// order of the model file.
type Run struct {
	Model trace.Model
	Ops   []trace.Op
	// Values are the inputs and outputs of Ops. Formats that join rows by their shape need them. Without
	// values, the ids in Ops must be absent too.
	Values []trace.Value
}

// format is a format of profiles.
type format struct {
	name, doc string
	// sniff reports whether a profile may have this format. start is the beginning of the file.
	sniff func(start []byte) bool
	// read adds the steps of a profile to a trace whose model and operators are set.
	read func(in io.Reader, t *trace.Trace) error
}

var formats = []format{executorch, attestation, llamacpp, llamacppVulkan, onnxruntime, kineto}

// ErrFormat is wrapped by the error for a file that is not a profile in a known format.
var ErrFormat = errors.New("not a profile in a known format")

// ErrNoKernels is wrapped by the error for a profile that has events, but no kernel that belongs to a step.
var ErrNoKernels = errors.New("no step of the profile has kernels")

// ErrTooLarge is wrapped by the error for a profile that exceeds a limit of this package.
var ErrTooLarge = errors.New("the profile is too large")

const (
	sniffed = 1 << 16 // number of bytes at the beginning of a file that show its format
	maxLine = 1 << 16 // maximum length of a line in bytes

	maxNames = 32 << 20 // maximum size of all names of a profile in bytes
	maxFile  = 1 << 30  // maximum size of a profile in bytes, after decompression
	maxValue = 4 << 20  // maximum size in bytes of an element of a list in a JSON profile
)

// These limits are variables because tests lower them: an import of so many dispatches takes seconds.
var (
	maxRows = 1 << 20 // maximum number of dispatches of all steps together

	// maxMemory is the maximum memory in bytes that trace.Read needs for the trace. The recorder estimates
	// this memory before it uses memory itself. An import needs less than 1 GiB.
	maxMemory int64 = trace.MemoryLimit
)

// Read makes a trace from a profile. A profile that is compressed with gzip or zstd is decompressed. The
// fields Producer, Created and Command of the trace are left to the caller. What the profile does not contain
// is absent in the trace. If the end of a list of events is missing, the trace has an event of the kind
// trace.EventCut.
//
// The error wraps ErrFormat for a file of no known format. It wraps ErrNoKernels for a profile in Chrome JSON
// without a kernel in a step. It wraps ErrTooLarge for a profile that exceeds a limit, or whose trace would
// exceed a limit of trace.Read. So trace.Read accepts the result, in every storage format and compression.
func Read(in io.Reader, run Run) (*trace.Trace, error) {
	buffered, err := uncompressed(in)
	if err != nil {
		return nil, err
	}
	start, err := buffered.Peek(sniffed)
	cut := errors.Is(err, trace.ErrTruncated)
	if err != nil && !errors.Is(err, io.EOF) && !cut {
		return nil, err
	}
	for _, f := range formats {
		if !f.sniff(start) {
			continue
		}
		t := &trace.Trace{
			Schema: trace.Schema, Model: run.Model, Graph: trace.Graph{Ops: run.Ops, Values: run.Values},
			Device: trace.Device{Name: trace.ImportedDevice, AdapterType: trace.AdapterUnknown},
		}
		if err := f.read(buffered, t); err != nil {
			return nil, err
		}
		if err := t.Check(); err != nil {
			return nil, err
		}
		if err := t.CheckSize(); err != nil {
			return nil, fmt.Errorf("%w: %w. Import fewer steps", ErrTooLarge, err)
		}
		return t, nil
	}
	if cut {
		return nil, err
	}
	return nil, fmt.Errorf("%w; known: %s", ErrFormat, names())
}

// uncompressed returns a reader of a profile that may be compressed. It fails with ErrTooLarge after maxFile
// bytes, and with trace.ErrTruncated if the end of the compressed data is missing.
func uncompressed(in io.Reader) (*bufio.Reader, error) {
	plain, by, err := compress.NewReader(in)
	if err != nil {
		return nil, truncated(err)
	}
	from := io.Reader(plain)
	if by != nil {
		from = whole{plain}
	}
	return bufio.NewReaderSize(&limited{in: from, left: maxFile}, sniffed), nil
}

// whole reads compressed data, whose end must not be missing.
type whole struct{ in io.Reader }

func (w whole) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	return n, truncated(err)
}

// truncated makes the error for compressed data whose end is missing clearer.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed file is %w: its end is missing", trace.ErrTruncated)
	}
	return err
}

// limited reads at most `left` bytes, and then fails with ErrTooLarge.
type limited struct {
	in   io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: the maximum is %d MiB for the file and %d MiB for one list element",
			ErrTooLarge, maxFile>>20, maxValue>>20)
	}
	n, err := l.in.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// Formats returns the name and the description of each known format.
func Formats() [][2]string {
	var list [][2]string
	for _, f := range formats {
		list = append(list, [2]string{f.name, f.doc})
	}
	return list
}

// names returns the names of the known formats for a message.
func names() string {
	var list []string
	for _, f := range formats {
		list = append(list, f.name)
	}
	return printable.Choice(list)
}

// LineError is the error for a line of a profile that cannot be read.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }
