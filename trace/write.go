package trace

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Write writes a trace as one JSON object with one line for each plan and for each step.
func Write(w io.Writer, t *Trace) error {
	out := bufio.NewWriterSize(w, 1<<16)
	head := *t
	head.Plans, head.Steps = nil, nil
	b, err := encodeRecord(&head, t.Unknown)
	if err != nil {
		return err
	}
	out.Write(bytes.TrimSuffix(fieldLines(b), []byte("}"))) // no error check: Flush returns the first error
	out.WriteString(",\n\"plans\":[")
	for i := range t.Plans {
		b, err := encodeRecord(&t.Plans[i], t.Plans[i].Unknown)
		if err != nil {
			return fmt.Errorf("plan %d: %w", i, err)
		}
		writeElement(out, i, b)
	}
	out.WriteString("],\n\"steps\":[")
	for i := range t.Steps {
		b, err := encodeRecord(&t.Steps[i], t.Steps[i].Unknown)
		if err != nil {
			return fmt.Errorf("step %d: %w", t.Steps[i].Index, err)
		}
		writeElement(out, i, b)
	}
	out.WriteString("]}\n")
	return out.Flush()
}

// fieldLines puts each field of a JSON object on its own line, but not the fields of objects inside.
func fieldLines(object []byte) []byte {
	out := make([]byte, 0, len(object)+64)
	depth, quoted := 0, false
	for i, c := range object {
		out = append(out, c)
		switch {
		case c == '"' && !escaped(object[:i]):
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			out = append(out, '\n')
		}
	}
	return out
}

// escaped reports whether the byte after b is escaped: b ends with an odd number of backslashes.
func escaped(b []byte) bool { return (len(b)-len(bytes.TrimRight(b, "\\")))%2 == 1 }

func writeElement(out *bufio.Writer, i int, b []byte) {
	if i > 0 {
		out.WriteByte(',')
	}
	out.WriteByte('\n')
	out.Write(b)
}

// encodeRecord returns v as one line of JSON, without the newline at the end. The unknown fields are added at
// their places.
func encodeRecord(v any, unknown *Unknown) ([]byte, error) {
	step, marked := withoutDispatches(v)
	if step != nil {
		v = marked
	}
	line, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	if step != nil {
		if line, err = putDispatches(line, step); err != nil {
			return nil, err
		}
	}
	if unknown == nil {
		return line, nil
	}
	return unknown.PutBack(line)
}
