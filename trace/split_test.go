package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"gpuscope/trace/internal/lexer"
)

// anyJSON draws a random JSON value, in the form that json.Unmarshal returns.
func anyJSON(t *rapid.T, depth int) any {
	text := rapid.StringOf(rapid.RuneFrom([]rune("a \\\"{}[],:\n€")))
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "len"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	case kind == 1 && depth > 0:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			object[text.Draw(t, "name")] = anyJSON(t, depth-1)
		}
		return object
	case kind == 2:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "word")
	case kind == 3:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	}
	return text.Draw(t, "text")
}

// cutter returns a Splitter that reads text at once or byte by byte.
func cutter(t *rapid.T, text []byte) *lexer.Splitter {
	var r io.Reader = bytes.NewReader(text)
	if rapid.Bool().Draw(t, "byte by byte") {
		r = iotest.OneByteReader(r)
	}
	return &lexer.Splitter{In: &source{r: r, file: &file{}, bounds: usualBounds}}
}

// The splitter cuts consecutive JSON values exactly at the end of each value.
func TestValuesAreCutWhereTheyEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		var want [][]byte
		for range rapid.IntRange(0, 4).Draw(t, "values") {
			b, err := json.Marshal(anyJSON(t, 3))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, b)
			text.Write(b)
			text.WriteString("\n")
		}
		s := cutter(t, text.Bytes())
		for _, w := range want {
			if raw, err := s.Value(nil); err != nil || !bytes.Equal(raw, w) {
				t.Fatalf("%q (%v), want %q", raw, err, w)
			}
		}
		if raw, err := s.Value(nil); !errors.Is(err, io.EOF) {
			t.Fatalf("%q (%v) after the last value", raw, err)
		}
	})
}

// Invalid text between values is an error that names the invalid character. A value without an end is an
// error too.
func TestTextBetweenValuesIsChecked(t *testing.T) {
	t.Parallel()
	const head = `{"schema":"gpuscope.trace/1","plans":[{"id":0}`
	for in, want := range map[string]string{
		head + `{"id":1}]}`: `invalid character '{'; expected ','`,
		head + `,]}`:        `invalid character ']'; expected a value`,
		head + `}`:          `invalid character '}'; expected ','`,
		head + `],}`:        `invalid character '}'; expected a value`,
		head + `] "x":1}`:   `invalid character '"'; expected ','`,
		head + `],1:1}`:     "expected a quoted field name",
		head + `],"x" 1}`:   `invalid character '1'; expected ':'`,
		head + `],"x":[}]}`: "invalid character '}'",
		head + `,tru]}`:     "incomplete JSON value",
		head + `],"x":tru`:  "invalid character ' ' in literal true",
		head + `],"x":"`:    "truncated",
		head + `]}tru `:     "incomplete JSON value",
		head + `]}]`:        `invalid character ']'; expected a value`,
	} {
		if _, err := readWithin(strings.NewReader(in), &file{}, usualBounds); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

// Values are decoded concurrently but appended in order. Decoding stops at the first wrong value. The error
// gives the place of that value, and all earlier values are kept.
func TestFirstWrongValueIsReported(t *testing.T) {
	t.Parallel()
	const n = 3*batchValues + 7
	rapid.Check(t, func(t *rapid.T) {
		wrong := rapid.IntRange(0, n-1).Draw(t, "wrong")
		also := rapid.IntRange(wrong, n-1).Draw(t, "also")
		var b strings.Builder
		at := make([]int, n)
		b.WriteString(`{"schema":"gpuscope.trace/1","plans":[`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			at[i] = b.Len()
			id := fmt.Sprint(i)
			if i == wrong || i == also {
				id = `"x"`
			}
			fmt.Fprintf(&b, `{"id":%s,"new":%d}`, id, i)
		}
		b.WriteString("]}")
		s := &source{r: strings.NewReader(b.String()), file: &file{}, bounds: usualBounds}
		d := &decoder{in: s, json: lexer.Splitter{In: s}, t: &Trace{}, texts: texts{}}
		err := d.object()
		want := fmt.Sprintf(`"plans" (about byte %d): [%d]: `, at[wrong], wrong)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
		for i, p := range d.t.Plans {
			if p.ID != PlanID(i) || string((*p.Unknown)["/new"]) != fmt.Sprint(i) {
				t.Fatalf("plan %d is %d with %v", i, p.ID, p.Unknown)
			}
		}
		if len(d.t.Plans) != wrong {
			t.Fatalf("%d plans before the wrong one, want %d", len(d.t.Plans), wrong)
		}
	})
}
