package compress

import (
	"bytes"
	"io"
	"testing"
)

// What each method compresses is recognized without a name, and can be read up to the last flush.
func TestCompressedDataIsReadBack(t *testing.T) {
	t.Parallel()
	for _, m := range Methods {
		var b bytes.Buffer
		w, err := m.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "a trace"); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		flushed := bytes.Clone(b.Bytes())
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for whole, data := range map[bool][]byte{true: b.Bytes(), false: flushed} {
			r, by, err := NewReader(bytes.NewReader(data))
			if err != nil || by != m {
				t.Fatalf("%s: recognized as %v, %v", m.Name, by, err)
			}
			if text, err := io.ReadAll(r); string(text) != "a trace" || (err == nil) != whole {
				t.Errorf("%s, whole %t: %q, %v", m.Name, whole, text, err)
			}
		}
		if name, by := CutSuffix("a.json" + m.Suffix); name != "a.json" || by != m {
			t.Errorf("a.json%s is %s with %v", m.Suffix, name, by)
		}
	}
	r, by, err := NewReader(bytes.NewReader([]byte("plain")))
	if text, _ := io.ReadAll(r); err != nil || by != nil || string(text) != "plain" {
		t.Errorf("plain text: %q, %v, %v", text, by, err)
	}
}
