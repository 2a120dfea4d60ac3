package fake

import "fmt"

// Kind identifies a method of a device or of one of its objects.
type Kind uint8

// The kinds of calls.
const (
	NewBuffer Kind = iota
	NewPipeline
	NewBindGroup
	NewReadback
	NewTimestamps
	Write
	Flush
	Begin
	BeginPass
	Run // Encoder.Dispatch
	EndPass
	Timestamp
	Resolve
	Copy
	CopyOut
	Submit
	Discard
	Wait
	Read           // Readback.Read
	ReadTimestamps // Timestamps.Read
	kinds
)

// String returns the name of the method.
func (k Kind) String() string {
	return [...]string{
		"NewBuffer", "NewPipeline", "NewBindGroup", "NewReadback", "NewTimestamps", "Write",
		"Flush", "Begin",
		"BeginPass", "Dispatch", "EndPass",
		"Timestamp", "Resolve", "Copy", "CopyOut", "Submit", "Discard", "Wait", "Readback.Read",
		"Timestamps.Read", "?",
	}[min(k, kinds)]
}

// Call describes one call. Fields that have no meaning for a kind of call are zero.
type Call struct {
	Kind Kind
	// Label is the label of the object that the call creates, writes, reads or copies to. If the call does
	// none of this, Label is the label of the pass, the encoder or the pipeline.
	Label string
	// From is the label of the source of a copy, or of the bind group of a dispatch.
	From    string
	Offset  uint64 // offset in the object named by Label, or the timestamp slot
	Size    uint64 // in bytes, or the number of timestamps resolved or read
	X, Y, Z uint32
}

// String returns the call as one line of text.
func (c Call) String() string {
	s := c.Kind.String()
	if c.Label != "" {
		s += " " + c.Label
	}
	switch c.Kind {
	case NewBuffer, NewReadback:
		return fmt.Sprintf("%s: %d bytes", s, c.Size)
	case Write, Read:
		return fmt.Sprintf("%s: %d bytes at %d", s, c.Size, c.Offset)
	case Run:
		return fmt.Sprintf("%s [%d %d %d] with %s", s, c.X, c.Y, c.Z, c.From)
	case Copy, CopyOut:
		return fmt.Sprintf("%s: %d bytes at %d from %s", s, c.Size, c.Offset, c.From)
	case Timestamp:
		return fmt.Sprintf("%s: slot %d", s, c.Offset)
	case NewTimestamps, Resolve, ReadTimestamps:
		return fmt.Sprintf("%s: %d", s, c.Size)
	}
	return s
}

// call logs a call and returns the injected error, if there is one for this call.
func (d *Device) call(c Call) error {
	d.counts[c.Kind]++
	if d.Logging {
		d.Log = append(d.Log, c)
	}
	if f := &d.faults[c.Kind]; f.err != nil && d.counts[c.Kind] == f.n {
		return fmt.Errorf("%s %s: %w", c.Kind, c.Label, f.err)
	}
	if d.Fault != nil {
		if err := d.Fault(c); err != nil {
			return fmt.Errorf("%s %s: %w", c.Kind, c.Label, err)
		}
	}
	return nil
}

// fault makes a single call of its kind fail: the n-th call, with the error err.
type fault struct {
	n   int
	err error
}

// FailNth makes a single future call fail with an error that wraps err. This is the n-th call of the given
// kind from now on; if n is 1, it is the next one. Each kind can have only one such fault.
func (d *Device) FailNth(kind Kind, n int, err error) {
	d.faults[kind] = fault{n: d.counts[kind] + n, err: err}
}

// Count returns the number of calls of a kind, including failed calls.
func (d *Device) Count(kind Kind) int { return d.counts[kind] }

// ResetCounts sets all counts to zero and empties the log.
func (d *Device) ResetCounts() {
	for k := range d.faults {
		d.faults[k].n -= d.counts[k]
	}
	d.counts = [kinds]int{}
	d.Log = d.Log[:0]
}
