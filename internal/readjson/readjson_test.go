package readjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
	for text, want := range map[string]string{
		`{"name": "x", "shape": [1, 2]}`:        "",
		`{"name": "x"`:                          "the JSON ends unexpectedly at byte 12",
		"":                                      "the input is empty, not JSON",
		" \n":                                   "the input is empty, not JSON",
		`{"factor": NaN}`:                       `invalid JSON at byte 11: "NaN"`,
		"{\n \"factor\": nan\n}":                `invalid JSON at line 2: "nan"`,
		`{"factor": -Infinity}`:                 `invalid JSON at byte 11: "-Infinity"`,
		`{"name" "x"}`:                          `invalid JSON at byte 8: "\""`,
		`{} {}`:                                 `invalid JSON at byte 3: "{"`,
		"{\"name\": \"a\nb\"}":                  `invalid JSON at byte 11: "⏎"`,
		`{"factor": é}`:                         `invalid JSON at byte 11: "é"`,
		strings.Repeat("[", 20_000):             "lists and objects of the JSON are nested too deep",
		`[]`:                                    "a list where an object is wanted",
		`{"name": 3}`:                           "name: a number where a string is wanted",
		`{"shape": [1.5]}`:                      "shape: 1.5 where an integer of at least 0 is wanted",
		`{"shape": {}}`:                         "shape: an object where a list is wanted",
		`{"factor": "8"}`:                       "factor: a string where a number is wanted",
		`{"tied": "no"}`:                        "tied: a string where true or false is wanted",
		`{"model": {"vocab": {"a": true}}}`:     "model.Vocab: true or false where an integer is wanted",
		`{"deep": [{"deep": [{"factor":[]}]}]}`: "deep.deep.factor: a list where a number is wanted",
	} {
		var s sample
		err := Unmarshal([]byte(text), &s)
		if want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
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
