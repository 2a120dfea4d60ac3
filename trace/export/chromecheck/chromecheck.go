// Package chromecheck validates files in Chrome JSON (Trace Event Format). It checks what trace viewers need
// to show a file as it was meant. Perfetto, chrome://tracing, speedscope and HolisticTraceAnalysis read such
// files differently. If an event breaks a Rule, they show no error. Instead, they drop the event or show it
// in the wrong place.
package chromecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gpuscope/internal/compress"
	"gpuscope/trace"
)

// Rule is a rule that an event or a file can break.
type Rule string

// The rules.
const (
	// RuleTime is broken by a time that is not a number in µs with at most 3 decimals, or that is too large
	// to be exact to the ns in double precision, such as a time since 1970.
	RuleTime Rule = "time"
	// RuleNesting is broken by two slices of a thread that are neither nested nor 1 ns apart. A child must
	// end 1 ns before its parent, because viewers compute ends in floating-point arithmetic.
	RuleNesting Rule = "nesting"
	// RuleLength is broken by a complete event (X) with a duration of 0 or less.
	RuleLength Rule = "length"
	// RuleID is broken by a process or thread id that is not an integer from 1 to 2^32 - 1.
	RuleID Rule = "id"
	// RuleMember is broken by an event in which a member is missing or has a value that viewers do not
	// support.
	RuleMember Rule = "member"
	// RuleFlow is broken by an arrow without one of its ends, or by an end outside of any slice.
	RuleFlow Rule = "flow"
	// RuleFile is broken by a file that is incomplete or has another structure.
	RuleFile Rule = "file"
	// RuleText is broken by text that is not escaped as JSON requires, or that is not UTF-8.
	RuleText Rule = "text"
)

// Violation is a rule that is broken at one place.
type Violation struct {
	Rule  Rule
	Event int // number of the event in the file, from 0; -1 for the whole file
	Text  string
}

func (v Violation) String() string {
	if v.Event < 0 {
		return fmt.Sprintf("%s: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("event %d: %s: %s", v.Event, v.Rule, v.Text)
}

// Summary says what a file contains.
type Summary struct {
	Events     int // all events
	Slices     int // events with a duration
	Threads    int // threads with at least one slice
	Flows      int // complete arrows
	Violations int
}

// maxEvent is the maximum size of an event in bytes.
const maxEvent = 16 << 20

// maxMemory is the maximum memory in bytes of what is kept of a file. It keeps the memory of a check below
// 1 GiB: while a list grows, the old and the new list need memory. It is a variable because tests lower it.
var maxMemory = 192 << 20

// These are the bytes that are kept of the parts of a file.
const (
	sliceBytes  = 24
	flowBytes   = 40  // an end of an arrow
	nameBytes   = 160 // the id, category and name of an arrow, in a map
	threadBytes = 192
)

// ErrTooLarge is wrapped by the error for a file that exceeds a limit of this package.
var ErrTooLarge = errors.New("the file is too large to be checked")

// Sniff reports whether a file may be Chrome JSON. start is the beginning of the decompressed file.
func Sniff(start []byte) bool {
	start = bytes.TrimLeft(start, " \t\r\n")
	if len(start) == 0 {
		return false
	}
	return start[0] == '[' || start[0] == '{' && bytes.Contains(start, []byte(`"traceEvents"`))
}

// IsChrome reports whether the content of a regular file, which may be compressed, looks like Chrome JSON.
func IsChrome(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	r, _, err := compress.NewReader(f)
	if err != nil {
		return false
	}
	start, _ := r.Peek(r.Size())
	return Sniff(start)
}

// Check reads a file, which may be compressed, and calls report for each violation. Violations of RuleNesting
// and RuleFlow come last, because they need all events. The error is that of the reader, or wraps
// ErrTooLarge or, if the end of a compressed file is missing, trace.ErrTruncated. What is kept of a file has
// at most 192 MiB, which is 8,388,608 slices.
func Check(in io.Reader, report func(Violation)) (Summary, error) {
	r, _, err := compress.NewReader(in)
	if err != nil {
		return Summary{}, truncated(err)
	}
	c := &checker{report: report, threads: map[thread]*track{}, in: &reader{in: r, left: maxEvent}}
	err = c.file()
	if c.in.err != nil && !errors.Is(c.in.err, io.EOF) {
		return c.Summary, truncated(c.in.err)
	}
	if err != nil {
		return c.Summary, err
	}
	if c.in.invalid {
		c.violate(RuleText, -1, "the text at byte %d is not UTF-8", c.in.invalidAt)
	}
	if !c.stopped {
		c.tracks()
	}
	return c.Summary, nil
}

// truncated returns a clearer error for compressed data whose end is missing.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed file is %w: its end is missing", trace.ErrTruncated)
	}
	return err
}

// thread identifies a track.
type thread struct{ pid, tid int64 }

type checker struct {
	Summary
	report  func(Violation)
	in      *reader
	dec     *json.Decoder
	threads map[thread]*track
	flows   []flow
	names   map[flowName]int32
	begun   int  // number of beginnings (ph B) without an end so far
	stopped bool // a syntax error ended the check
}

func (c *checker) violate(rule Rule, event int, format string, args ...any) {
	c.Violations++
	c.report(Violation{rule, event, fmt.Sprintf(format, args...)})
}

// file reads all events. It reports syntax errors as violations and returns other errors.
func (c *checker) file() error {
	c.dec = json.NewDecoder(c.in)
	first, err := c.dec.Token()
	switch {
	case err != nil:
		return c.syntax(err)
	case first == json.Delim('['):
		if err := c.events(true); err != nil || c.stopped {
			return err
		}
		return c.end()
	case first != json.Delim('{'):
		c.violate(RuleFile, -1, "the file is neither an object nor an array of events")
		return nil
	}
	found := false
	for {
		key, err := c.dec.Token()
		if err != nil {
			return c.syntax(err)
		}
		if key == json.Delim('}') {
			break
		}
		if key != "traceEvents" {
			var skip json.RawMessage
			if err := c.decode(&skip); err != nil {
				return c.syntax(err)
			}
			continue
		}
		if found {
			c.violate(RuleFile, -1, "traceEvents is in the file twice")
		}
		found = true
		if open, err := c.dec.Token(); err != nil {
			return c.syntax(err)
		} else if open != json.Delim('[') {
			c.violate(RuleFile, -1, "traceEvents is not an array")
			return nil
		}
		if err := c.events(false); err != nil || c.stopped {
			return err
		}
	}
	if !found {
		c.violate(RuleFile, -1, "the object has no traceEvents")
	}
	return c.end()
}

// end checks that nothing follows after the JSON value.
func (c *checker) end() error {
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		c.violate(RuleFile, -1, "there is more text after the end of the JSON value")
	}
	return nil
}

// decode reads the next value. An event must not be larger than maxEvent.
func (c *checker) decode(v any) error {
	c.in.left = maxEvent
	return c.dec.Decode(v)
}

// events reads the elements of an array up to its closing bracket. If the array is the whole file (`whole`),
// the closing bracket may be missing.
func (c *checker) events(whole bool) error {
	for c.dec.More() {
		var e event
		err := c.decode(&e)
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind):
			c.violate(RuleFile, c.Events, "the event is not an object")
		case whole && errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.syntax(err)
		default:
			c.event(&e)
		}
		c.Events++
		if c.kept() > maxMemory {
			return fmt.Errorf("%w: its first %d events, with %d slices and %d ends of arrows, need more "+
				"memory than the limit of %d MiB. Check a shorter part of the trace", ErrTooLarge,
				c.Events, c.Slices, len(c.flows), maxMemory>>20)
		}
	}
	_, err := c.dec.Token()
	if whole && errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return c.syntax(err)
	}
	if c.Events == 0 {
		c.violate(RuleFile, -1, "there are no events")
	}
	return nil
}

// kept returns about how many bytes are kept of the events so far.
func (c *checker) kept() int {
	return sliceBytes*(c.Slices+c.begun) + flowBytes*len(c.flows) + nameBytes*len(c.names) +
		threadBytes*len(c.threads)
}

// syntax reports text that is not JSON.
func (c *checker) syntax(err error) error {
	c.stopped = true
	var wrong *json.SyntaxError
	at := c.Events
	switch {
	case errors.Is(err, ErrTooLarge):
		return err
	case c.in.err != nil && !errors.Is(c.in.err, io.EOF): // the file cannot be read, which Check returns
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.violate(RuleFile, -1, "the file is cut off after %d events", at)
	case errors.As(err, &wrong):
		c.violate(RuleText, at, "not JSON near byte %d: %v. Quotes, backslashes and control characters in "+
			"names must be escaped", wrong.Offset, wrong)
	default:
		c.violate(RuleFile, at, "%v", err)
	}
	return nil
}
