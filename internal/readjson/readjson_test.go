package readjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"gpuscope/internal/wordingtest"
)

// inner parses itself, so that its errors come from a nested call.
type inner struct{ Vocab map[string]int }

func (i *inner) UnmarshalJSON(data []byte) error {
	type plain inner
	return json.Unmarshal(data, (*plain)(i))
}

type sample struct {
	Name   string    `json:"name"`
	Shape  []uint64  `json:"shape"`
	Factor float64   `json:"factor"`
	Tied   *bool     `json:"tied"`
	Model  inner     `json:"model"`
	Deep   []*sample `json:"deep"`
}

func TestErrorsLocateInvalidJSON(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	var s sample
	if err := Unmarshal([]byte(`{"name": "x", "shape": [1, 2]}`), &s); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		`{"name": "x"`,
		"",
		" \n",
		`{"factor": NaN}`,
		"{\n \"factor\": nan\n}",
		`{"factor": -Infinity}`,
		`{"name" "x"}`,
		`{} {}`,
		"{\"name\": \"a\nb\"}",
		`{"factor": é}`,
		strings.Repeat("[", 20_000),
		`[]`,
		`{"name": 3}`,
		`{"shape": [1.5]}`,
		`{"shape": {}}`,
		`{"factor": "8"}`,
		`{"tied": "no"}`,
		`{"model": {"vocab": {"a": true}}}`,
		`{"deep": [{"deep": [{"factor":[]}]}]}`,
	} {
		var s sample
		golden.Error(fmt.Sprintf("%.40q", text), Unmarshal([]byte(text), &s))
	}
}

func TestErrorsOfOthersStay(t *testing.T) {
	t.Parallel()
	if own := errors.New("merge 3 is no pair"); Error(own, nil) != own || Error(nil, nil) != nil {
		t.Error("an error of another kind became another one")
	}
}

func TestCheckIsOfTheWhole(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{`{"a": 1}`: true, "3": true, "{} x": false, "": false} {
		if err := Check([]byte(text)); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzErrors looks for input whose error is not one short line.
func FuzzErrors(f *testing.F) {
	f.Add([]byte(`{"deep": [{"factor": NaN}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		if err := Unmarshal(data, &s); err != nil {
			if text := err.Error(); len(text) > 300 || !utf8.ValidString(text) ||
				strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%q", text)
			}
		}
	})
}

func TestPythonsNumbersAreReadAsStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": [NaN, -Infinity, Infinity, 1]}`: `{"a": ["NaN", "-Infinity", "Infinity", 1]}`,
		`{"NaN": "a \\\" Infinity", "b": NaN}`: `{"NaN": "a \\\" Infinity", "b": "NaN"}`,
		`{"a": -1}`:                            `{"a": -1}`,
		`"NaN\`:                                `"NaN\`,
		`[nan]`:                                `[nan]`,
	} {
		if got := string(Python([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
