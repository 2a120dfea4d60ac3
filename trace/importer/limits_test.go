package importer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"gpuscope/trace"
)

// repeated returns a profile of n times the same text.
func repeated(start, again, end string, n int) io.Reader {
	readers := []io.Reader{strings.NewReader(start)}
	for block := strings.Repeat(again, 1000); n > 0; n -= 1000 {
		readers = append(readers, strings.NewReader(block[:len(again)*min(n, 1000)]))
	}
	return io.MultiReader(append(readers, strings.NewReader(end))...)
}

const (
	oneRow     = vulkanMark + "\nADD: 1 x 1 us = 1 us\nTotal time: 1 us.\n"
	execution  = `{"commands":[{"kernel":"k","grid":[1,1,1]}]}`
	executions = `{"executions":[` + execution
)

// A profile whose trace could not be opened again is refused before it uses much memory.
func TestProfilesWithTooLargeTracesAreRefused(t *testing.T) {
	defer func(was int64) { maxMemory = was }(maxMemory)
	maxMemory = 16 << 20
	for name, profile := range map[string]io.Reader{
		"many rows in a small file": strings.NewReader(vulkanMark + "\nADD: 900000 x 1 us\n"),
		"many steps of one row":     repeated("", oneRow, "", 40_000),
		"many short executions":     repeated(executions, ","+execution, "]}", 40_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(profile, Run{})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrTooLarge) || used > 512<<20 {
			t.Errorf("%s: %v, after %d MiB were allocated", name, err, used>>20)
		}
	}
}

// Reading a name takes more memory if it contains commas and brackets.
func TestNamesOfCommasMayMakeTheTraceTooLarge(t *testing.T) {
	line := fmt.Sprintf("%s\n%s: 40000 x 1 us\n", vulkanMark, strings.Repeat(",", 190))
	_, err := Read(strings.NewReader(line), Run{})
	if wrong := new(trace.SizeError); !errors.Is(err, ErrTooLarge) || !errors.As(err, &wrong) {
		t.Errorf("error %v", err)
	}
}

// A trace that is nearly as large as the limits allow opens again, even from a compressed file.
func TestLargestImportsOpenAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	for _, c := range []struct {
		profile io.Reader
		write   func(io.Writer, *trace.Trace) error
	}{
		{strings.NewReader(vulkanMark + "\nADD: 230000 x 1 us = 1 us\n"), trace.Write},
		{repeated("", oneRow, "", 260_000), trace.WriteStream},
	} {
		got, err := Read(c.profile, Run{})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		z, _ := gzip.NewWriterLevel(&file, gzip.BestSpeed) // cannot fail: a valid level
		if err := c.write(z, got); err != nil {
			t.Fatal(err)
		}
		z.Close()
		steps := len(got.Steps)
		if _, err := trace.Read(&file); err != nil {
			t.Errorf("%d steps: %v", steps, err)
		}
	}
}
