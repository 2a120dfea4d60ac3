package importer

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"gpuscope/internal/compress"
	"gpuscope/trace"
)

const onnxCut = `[
{"cat":"Session","pid":1,"tid":1,"dur":1,"ts":0,"ph":"X","name":"model_loading","args":{}},
{"cat":"Node","pid":1,"tid":1,"dur":1,"ts":5,"ph":"X","name":"a_kernel_time","args":{"op_name":"Add"}},
{"cat":"Node","pid":1,"tid":1,"dur":1,"ts":7,"ph":"X","name":"b_kernel_time","args":{"op_name":"Mul"}}`

// packed returns a text as a compressed file.
func packed(t *testing.T, by *compress.Method, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	z, err := by.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) { // so that a cut file keeps whole lines
		if _, err := z.Write([]byte(line)); err != nil || z.Flush() != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestCompressedProfilesAreImported(t *testing.T) {
	for _, by := range compress.Methods {
		file := packed(t, by, vulkanDecode)
		if _, err := Read(bytes.NewReader(file), Run{}); err != nil {
			t.Errorf("%s: %v", by.Name, err)
		}
		for _, n := range []int{5, len(file) / 2, len(file) - 3} {
			if _, err := Read(bytes.NewReader(file[:n]), Run{}); !errors.Is(err, trace.ErrTruncated) {
				t.Errorf("%s, cut after %d of %d bytes: %v", by.Name, n, len(file), err)
			}
		}
	}
}

// A profile that was cut keeps its complete events, and the trace says so.
func TestACutProfileIsMarked(t *testing.T) {
	zipped := packed(t, compress.Gzip, onnxCut+",\n"+strings.Repeat("{}", 99))
	for name, c := range map[string]struct {
		file  []byte
		steps int
		cut   bool
	}{
		"complete":              {[]byte(onnxCut + "]"), 1, false},
		"no bracket":            {[]byte(onnxCut), 1, true},
		"in an event":           {[]byte(onnxCut[:len(onnxCut)-9]), 1, true},
		"compressed":            {zipped[:len(zipped)-20], 1, true},
		"Chrome, in an event":   {[]byte(`[{"ph":"X","ts":1,"dur":2,"name":"a"},{"ph":"X",`), 1, true},
		"Chrome, in one object": {[]byte(`{"traceEvents":[{"ph":"X","ts":1,"dur":2,"name":"a"}]}`), 1, false},
	} {
		got, err := Read(bytes.NewReader(c.file), Run{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cut := len(got.Events) == 1 && got.Events[0].Kind == trace.EventCut
		if len(got.Steps) != c.steps || cut != c.cut {
			t.Errorf("%s: %d steps, events %v", name, len(got.Steps), got.Events)
		}
	}
}

func TestTextAfterTheProfileIsRefused(t *testing.T) {
	llama := llamaJSON(`{"type": 0, "name": "ADD", "split_id": 0, "duration_ns": 1}`)
	for name, text := range map[string]string{"object": llama, "list": onnxCut + "]"} {
		valid := map[string]bool{"": true, " \n\n": true, "x": false, "{}": false, "]": false}
		for end, valid := range valid {
			if _, err := Read(strings.NewReader(text+end), Run{}); (err == nil) != valid {
				t.Errorf("%s and %q: %v", name, end, err)
			}
		}
	}
}
