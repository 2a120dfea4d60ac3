package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"slices"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// Damage in the middle of a recording must not look like a cut, because the steps after it would be lost.
func TestDamageInTheMiddleOfAStreamIsRefused(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	var file bytes.Buffer
	if err := trace.WriteStream(&file, tracetest.Llama(2, 300)); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(file.Bytes()))
	if len(lines) < 600 {
		t.Fatalf("only %d lines: want several batches", len(lines))
	}
	with := func(at int, line string) []byte {
		changed := slices.Clone(lines)
		changed[at-1] = []byte(line)
		return bytes.Join(changed, nil)
	}
	for name, change := range map[string]func(line string) string{
		"no end":             func(line string) string { return line[:len(line)-4] + "\n" },
		"half":               func(line string) string { return line[:len(line)/2] + "\n" },
		"joined":             func(line string) string { return line[:len(line)-3] },
		"one bracket more":   func(line string) string { return line[:len(line)-1] + "}\n" },
		"wrong character":    func(line string) string { return line[:8] + "?" + line[9:] },
		"words":              func(string) string { return "some other text\n" },
		"an open quote":      func(line string) string { return line[:len(line)-2] + "\"}\n" },
		"zeros":              func(line string) string { return string(make([]byte, len(line)-1)) + "\n" },
		"windows line break": func(line string) string { return line[:len(line)-4] + "\r\n\r\n" },
	} {
		for _, at := range []int{2, 3, 255, 257, 300, len(lines) - 1} {
			text := with(at, change(string(lines[at-1])))
			after := len(lines) - at
			if name == "joined" { // with the line after it
				after--
			}
			_, err := trace.Read(bytes.NewReader(text))
			damaged := new(trace.DamagedError)
			switch {
			case name == "joined" && at == len(lines)-1:
				if err != nil {
					t.Errorf("%s, line %d: %v", name, at, err) // the file now ends in this line
				}
				continue
			case !errors.As(err, &damaged) || damaged.Line != at || damaged.After != after:
				t.Errorf("%s, line %d: %v, want a damaged line with %d after it", name, at, err, after)
			case at == 300:
				golden.Error(name, err)
			}
		}
	}
	if _, err := trace.Read(bytes.NewReader(bytes.Join(lines[:299], nil))); err != nil {
		t.Errorf("cut before the damaged line: %v", err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(with(300, "{\"step\":{\n")); err != nil || z.Flush() != nil {
		t.Fatal(err)
	}
	_, err := trace.Read(&packed)
	golden.Error("compressed, and cut", err)
}

func TestADamagedLastRecordIsDropped(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	if err := trace.WriteStream(&file, tracetest.Llama(1, 4)); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", "\n", "\r\n", "\n\n \n\t"} {
		got, err := trace.Read(bytes.NewReader(append(file.Bytes()[:file.Len()-4:file.Len()-4], end...)))
		if err != nil {
			t.Errorf("%q at the end: %v", end, err)
			continue
		}
		if e := got.Events[len(got.Events)-1]; e.Kind != trace.EventCut || len(got.Steps) != 3 {
			t.Errorf("%q at the end: %d steps, event %q", end, len(got.Steps), e.Text)
		}
	}
}
