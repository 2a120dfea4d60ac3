package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gpuscope/internal/readjson"
	"gpuscope/trace"
)

// ElementError is the error for an element of a list of a JSON profile.
type ElementError struct {
	List  string // name of the list; "" if the profile is a list
	Index int    // counted from 0
	Err   error
}

func (e *ElementError) Error() string {
	if e.List == "" {
		return fmt.Sprintf("event %d: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("%s[%d]: %v", e.List, e.Index, e.Err)
}

func (e *ElementError) Unwrap() error { return e.Err }

// document reads a JSON profile element by element, so that memory is bounded by its largest element.
type document struct {
	in  *limited
	dec *json.Decoder

	list string // name of the list with the elements
	// each receives the elements of the list.
	each func(raw json.RawMessage) error
	// other receives the other members of the object. nil skips them.
	other func(name string, raw json.RawMessage) error
	// openEnd accepts a list without a closing bracket, which a killed program leaves.
	openEnd bool
	found   bool // the list was found
	n       int  // number of elements read
	cut     bool // the list has no closing bracket
}

// read reads the whole document: a list, or an object with the list. Nothing may follow it.
func (d *document) read(in io.Reader) error {
	if err := d.value(in); err != nil || d.cut {
		return err
	}
	d.refill()
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		if errors.Is(err, trace.ErrTruncated) || errors.Is(err, ErrTooLarge) {
			return err
		}
		return fmt.Errorf("there is more text after the end of the JSON value, at byte %d",
			d.dec.InputOffset())
	}
	return nil
}

// value reads the JSON value of the document.
func (d *document) value(in io.Reader) error {
	d.in = &limited{in: in}
	d.dec = json.NewDecoder(d.in)
	d.refill()
	first, err := d.dec.Token()
	if err != nil {
		return d.wrong(err)
	}
	switch first {
	case json.Delim('['):
		d.list = ""
		return d.elements(true)
	case json.Delim('{'):
	default:
		return fmt.Errorf("%w: it is neither a JSON list nor a JSON object", ErrFormat)
	}
	for d.dec.More() {
		d.refill()
		name, err := d.dec.Token()
		if err != nil {
			return d.wrong(err)
		}
		if name == d.list {
			if err := d.enter(); err != nil {
				return err
			}
			continue
		}
		var raw json.RawMessage
		if err := d.dec.Decode(&raw); err != nil {
			return d.wrong(err)
		}
		if d.other == nil {
			continue
		}
		if err := d.other(name.(string), raw); err != nil {
			return err
		}
	}
	_, err = d.dec.Token()
	return d.wrong(err)
}

// enter reads the opening bracket of the list with the records, and then the records.
func (d *document) enter() error {
	open, err := d.dec.Token()
	switch {
	case err != nil:
		return d.wrong(err)
	case open != json.Delim('['):
		return fmt.Errorf("%s: want a list", d.list)
	}
	return d.elements(false)
}

// elements reads the elements of a list whose bracket was read.
func (d *document) elements(top bool) error {
	d.found = true
	for d.dec.More() {
		d.refill()
		var raw json.RawMessage
		if err := d.dec.Decode(&raw); err != nil {
			return d.ended(top, err)
		}
		if err := d.each(raw); err != nil {
			if errors.Is(err, ErrTooLarge) {
				return err
			}
			return &ElementError{d.list, d.n, err}
		}
		d.n++
	}
	_, err := d.dec.Token()
	return d.ended(top, err)
}

// ended returns nil for an error that only says that the file ends inside a list, if openEnd accepts this.
func (d *document) ended(top bool, err error) error {
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, trace.ErrTruncated)
	if top && d.openEnd && d.n > 0 && cut {
		d.cut = true
		return nil
	}
	return d.wrong(err)
}

// note adds an event to the trace if the end of the profile is missing.
func (d *document) note(t *trace.Trace) {
	if !d.cut {
		return
	}
	t.Events = append(t.Events, trace.Event{
		Step: len(t.Steps) - 1, Kind: trace.EventCut,
		Text: fmt.Sprintf("the profile may be truncated: its list of events has no end. %d events were complete",
			d.n),
	})
}

// refill allows the next value its maximum size.
func (d *document) refill() { d.in.left = maxValue }

// wrong returns a readable error.
func (d *document) wrong(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil, errors.Is(err, ErrTooLarge), errors.Is(err, trace.ErrTruncated):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON ends unexpectedly at byte %d", d.dec.InputOffset())
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON near byte %d: %w", syntax.Offset, err)
	}
	return err
}

// unmarshal decodes an element with readable errors.
func unmarshal(raw json.RawMessage, into any) error { return readjson.Unmarshal(raw, into) }
