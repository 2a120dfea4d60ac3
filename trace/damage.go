package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gpuscope/trace/internal/lexer"
)

// DamagedError is the error for a stream with a record that is not valid JSON. A record without an end is
// damaged only if more records follow. Without them, the stream was truncated and can be opened.
type DamagedError struct {
	Line  int // line of the record, from 1
	After int // number of records after it; -1 if not known
	Err   error

	packed bool // the file is compressed
}

func (e *DamagedError) Error() string {
	after, decompress := "more records follow it", ""
	if e.After >= 0 {
		after = fmt.Sprintf("%d records follow it", e.After)
	}
	if e.After == 1 {
		after = "1 record follows it"
	}
	if e.packed {
		decompress = "decompress the file and "
	}
	return fmt.Sprintf("line %d is damaged, and %s: %v. To keep the records before it, %sremove line %d and "+
		"all lines after it", e.Line, after, e.Err, decompress, e.Line)
}

// Unwrap returns what is wrong with the record.
func (e *DamagedError) Unwrap() error { return e.Err }

var errNoEnd = errors.New("the record has no end")

// damaged returns a DamagedError if an error of decodeEach means that a record is damaged, else nil. between
// is set if the file ends between two records.
func (d *decoder) damaged(err error, between bool) error {
	e := &DamagedError{Line: d.json.Line, Err: fitting(err), packed: d.in.file.packed}
	_, rest, _ := bytes.Cut(d.failed, []byte("\n"))
	invalid, syntax := lexer.InvalidError{}, new(json.SyntaxError)
	switch {
	case between:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF): // the value takes the rest of the file
		if len(bytes.TrimSpace(rest)) == 0 {
			return nil
		}
		e.Err, e.After = errNoEnd, lines(rest)
	case errors.Is(err, errLong) && len(rest) > 0:
		e.Err, e.After = errNoEnd, -1
	case errors.As(err, &invalid), errors.As(err, &syntax):
		e.After = d.json.Ends - (e.Line - 1) + d.json.LinesLeft()
	default:
		return nil
	}
	return e
}

// lines returns the number of lines in a text that are not blank.
func lines(text []byte) (n int) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
	}
	return n
}
