package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"gpuscope/internal/compress"
	"gpuscope/internal/printable"
	"gpuscope/trace/internal/lexer"
	"gpuscope/trace/internal/unknown"
)

// ReadFile reads a trace from a file in any of Formats.
func ReadFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		err = ErrFolder
		if form, _, unknown := FormatOf(path); unknown == nil && form.Folder() {
			err = writeOnly(form)
		}
		return nil, fileError("read", path, err)
	}
	t, err := Read(f)
	if err != nil {
		form, _, unknown := FormatOf(path)
		if unknown == nil && !form.Opens() && form.begins(path) {
			err = writeOnly(form)
		}
		return nil, fileError("read", path, err)
	}
	return t, nil
}

// writeOnly returns the error for opening a file or a folder in a write-only format.
func writeOnly(f Format) error {
	return fmt.Errorf("%s: %w. Open the original trace instead", f.Name, ErrWriteOnly)
}

// Read reads a trace in any of Formats, compressed or not. It detects the format from the first bytes. The
// returned trace has passed Check. Fields that this version does not define are kept for Write.
func Read(r io.Reader) (*Trace, error) {
	t, err := read(r)
	if err != nil { // the error may contain a very long value from the file
		return nil, printable.Error(err, 300)
	}
	return t, nil
}

func read(r io.Reader) (*Trace, error) {
	raw := &file{r: r}
	in, by, err := compress.NewReader(raw)
	raw.packed = by != nil
	if err != nil {
		return nil, err
	}
	start, err := beginning(in)
	if err != nil {
		return nil, err
	}
	form := sniffed(start)
	switch {
	case len(start) == 0:
		if some, _ := in.Peek(1); len(some) > 0 {
			return nil, fmt.Errorf("%w: the beginning of the file is only white space", ErrNotTrace)
		}
		return nil, fmt.Errorf("%w: the file is empty", ErrNotTrace)
	case form == nil:
		return nil, fmt.Errorf("%w: the file begins with %q, not with a JSON object", ErrNotTrace,
			start[:min(len(start), 16)])
	}
	t, err := form.read(in, raw)
	if err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// beginning returns the first bytes of a file, without the white space before them.
func beginning(in *bufio.Reader) ([]byte, error) {
	start, err := in.Peek(256)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && len(start) == 0:
		return nil, fmt.Errorf("compressed file: %w: it ends before any data could be decompressed",
			ErrTruncated)
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	}
	return bytes.TrimLeft(start, " \t\r\n"), nil
}

// readObjects reads either a trace in one JSON object, or a stream of lines (see StreamWriter), which is an
// object followed by records. The stream may be truncated after its first line. The trace then has an event
// of kind EventCut.
func readObjects(in io.Reader, raw *file) (*Trace, error) { return readWithin(in, raw, usualBounds) }

func readWithin(in io.Reader, raw *file, b bounds) (*Trace, error) {
	from := &source{r: in, file: raw, bounds: b}
	d := &decoder{in: from, json: lexer.Splitter{In: from}, t: &Trace{}, texts: texts{}}
	if err := d.object(); err != nil {
		return nil, err
	}
	return d.t, d.records()
}

// ErrTruncated is the error for a file whose end is missing.
var ErrTruncated = errors.New("truncated")

// ErrNotTrace is the error for a file that is not a trace.
var ErrNotTrace = errors.New("not a gpuscope trace")

// decoder reads the first JSON object of a file and the records that follow. It decodes plans, steps and
// records in batches, so that only one or two batches are in memory besides the trace.
type decoder struct {
	in   *source
	json lexer.Splitter
	t    *Trace
	used int64 // bytes of memory that t uses
	// texts holds strings that occur in many records. Each of them is stored only once.
	texts  texts
	failed []byte // text of a value whose end was not found
}

// object reads the first object: the whole trace, or the head of a stream.
func (d *decoder) object() error {
	head := map[string]json.RawMessage{}
	name := "trace"
	err := d.json.Fields(func(field string) (err error) {
		switch name = strconv.Quote(printable.Short(field, 80)); field {
		case "plans":
			err = decodeList(d, &d.t.Plans)
		case "steps":
			err = decodeList(d, &d.t.Steps)
		default:
			if _, twice := head[field]; twice {
				return fmt.Errorf("duplicate field %s", name)
			}
			head[field], err = d.field()
		}
		if err == nil && field == "schema" {
			if err = json.Unmarshal(head[field], &d.t.Schema); err == nil {
				err = checkSchema(d.t.Schema)
			}
		}
		return err
	})
	if err != nil {
		return d.wrap(name, err)
	}
	if d.t.Schema == "" {
		if _, ok := head["traceEvents"]; ok {
			return fmt.Errorf("%w: the file is a Chrome trace", ErrNotTrace)
		}
		return fmt.Errorf("%w: the \"schema\" field is missing", ErrNotTrace)
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return err
	}
	plans, steps := d.t.Plans, d.t.Steps
	d.t.Unknown, err = unknown.Decode(raw, d.t)
	d.t.Plans, d.t.Steps = plans, steps
	return fitting(err)
}

// field returns the raw JSON of a field of the head.
func (d *decoder) field() (raw json.RawMessage, err error) {
	text, err := d.json.Value(nil)
	if err != nil {
		return nil, err
	}
	if err := d.fits(text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	return raw, d.spend(estimate(raw))
}

// fitting makes the error for a JSON value of the wrong type clearer. The new error names the field, the
// value and the type that was expected.
func fitting(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: the JSON value (%s) does not fit type %s", cmp.Or(e.Field, "the value"),
			e.Value, e.Type)
	}
	return err
}

// versionOf returns the parts of the name of a schema: the format, the major version and the minor version.
// For "gpuscope.trace/1.1" these are "gpuscope.trace", "1" and "1".
func versionOf(schema string) (format, major, minor string) {
	format, version, _ := strings.Cut(schema, "/")
	major, minor, _ = strings.Cut(version, ".")
	return format, major, minor
}

// checkSchema returns an error if a schema differs from Schema in the format or the major version. The minor
// versions may differ.
func checkSchema(s string) error {
	format, major, _ := versionOf(s)
	ourFormat, ourMajor, _ := versionOf(Schema)
	if n, err := strconv.Atoi(major); format != ourFormat || err != nil || n < 1 {
		return fmt.Errorf("%w: schema is %q; expected %q", ErrNotTrace, s, Schema)
	}
	if major != ourMajor {
		return fmt.Errorf("schema is %s, but this gpuscope reads %s/%s. Use a newer gpuscope", s,
			ourFormat, ourMajor)
	}
	return nil
}

// listed is the constraint for the element types of the trace's two long lists, plans and steps.
type listed[T any] interface {
	*T
	size() int64
	keepUnknown(*Unknown)
	compact(texts)
}

// decodeList reads a JSON list or null.
func decodeList[T any, P listed[T]](d *decoder, list *[]T) error {
	if c, err := d.json.Peek(); err == nil && c != '[' {
		if raw, err := d.json.Value(nil); string(raw) != "null" {
			return cmp.Or(err, fmt.Errorf("expected a list, got %s", raw))
		}
		return nil
	}
	if err := d.json.Mark('['); err != nil {
		return err
	}
	another := func(n int) (bool, error) { return d.json.Another(n, ']') }
	n, err := decodeEach(d, another, func(_ []byte, e *T, unknown *Unknown) error {
		p := P(e)
		p.keepUnknown(unknown)
		p.compact(d.texts)
		// counted twice: while append grows the list, the old and the new list need memory
		if err := d.spend(p.size() + int64(unsafe.Sizeof(*e)) + unknown.Size()); err != nil {
			return err
		}
		*list = append(*list, *e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("[%d]: %w", n, err)
	}
	return nil
}

// These kinds of events say that something is missing in a trace.
const (
	EventCut     = "cut"      // a stream was truncated
	EventLeftOut = "left_out" // a part of an imported profile is not in the trace
)

// records reads the records after the first object. It stops at the end of the file, which may be truncated.
func (d *decoder) records() error {
	d.failed = nil
	between := false // the file ends between two records but its compressed data is incomplete
	another := func(int) (bool, error) {
		_, err := d.json.Peek()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		between = err != nil
		return err == nil, err
	}
	_, err := decodeEach(d, another, func(raw []byte, r *Record, unknown *Unknown) error {
		switch {
		case r.Plan != nil:
			r.Plan.compact(d.texts)
		case r.Step != nil:
			r.Step.compact(d.texts)
		}
		kept := d.kept(r, unknown, raw)
		if kept == 0 {
			d.in.ignored(len(raw))
		}
		return cmp.Or(d.spend(kept), d.t.apply(r, unknown))
	})
	line := d.json.Line
	switch damaged := d.damaged(err, between); {
	case damaged != nil:
		return damaged
	case errors.Is(err, io.ErrUnexpectedEOF):
		e := Event{
			Kind: EventCut,
			Text: fmt.Sprintf("truncated stream: its last record (line %d) is incomplete and was dropped",
				line),
		}
		if between {
			e.Text = "truncated compressed file: its end is missing. All records before that point are complete"
		}
		if k := len(d.t.Steps); k > 0 {
			e.Step = d.t.Steps[k-1].Index
		}
		d.t.Events = append(d.t.Events, e)
	case err != nil:
		return d.wrap(fmt.Sprintf("line %d", line), err)
	}
	return nil
}

// kept returns about how many bytes a record adds to the trace. If this version knows none of the fields of
// the record, kept returns 0.
func (d *decoder) kept(r *Record, unknown *Unknown, raw []byte) int64 {
	if *r == (Record{}) {
		return 0
	}
	n := unknown.Size()
	switch {
	case r.Plan != nil:
		n += r.Plan.size() + int64(unsafe.Sizeof(*r.Plan))
	case r.Step != nil:
		n += r.Step.size() + int64(unsafe.Sizeof(*r.Step))
	default:
		n += estimate(raw)
	}
	if r.Samples != nil { // the list of dispatches is copied when samples are added
		if s := d.t.Step(r.Samples.Step); s != nil {
			n += listSize(s.Dispatches)
		}
	}
	if r.Gaps != nil { // the list is also copied when numeric errors are added
		if s := d.t.Step(r.Gaps.Step); s != nil {
			n += listSize(s.Dispatches)
		}
	}
	if r.Costs != nil { // the list of costs is copied when costs are added
		if s := d.t.Step(r.Costs.Step); s != nil {
			n += listSize(s.Costs)
		}
	}
	return n
}

// wrap adds to an error the place in the JSON text at which it occurred.
func (d *decoder) wrap(what string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w: the file ends %s", what, ErrTruncated, d.in.place("at", d.in.read))
	}
	return fmt.Errorf("%s (%s): %w", what, d.in.place("about", d.json.At), fitting(err))
}
