package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"gpuscope/trace/internal/unknown"
)

// Number is a float64 that JSON can store even if it is NaN or infinite. This is needed because a trace must
// also be written when a model computes NaN, so that people can find the cause.
type Number float64

// Finite reports whether f is a finite number: not NaN and not infinite.
func (f Number) Finite() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// MarshalJSON writes a number. It writes NaN and the infinities as the strings "NaN", "Infinity" and
// "-Infinity".
func (f Number) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number or one of the strings that MarshalJSON writes.
func (f *Number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*f = Number(math.NaN())
	case `"Infinity"`:
		*f = Number(math.Inf(1))
	case `"-Infinity"`:
		*f = Number(math.Inf(-1))
	case "null":
	default:
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf("%s is not a number", b)
		}
		*f = Number(v)
	}
	return nil
}

type candidate struct {
	ID    int    `json:"id"`
	Text  string `json:"text,omitempty"`
	Logit Number `json:"logit"`
	P     Number `json:"p,omitempty"`
}

// MarshalJSON writes the candidate. If its logit or probability is NaN or infinite, it is written as a
// string, as in Number.
func (c Candidate) MarshalJSON() ([]byte, error) {
	return json.Marshal(candidate{c.ID, c.Text, Number(c.Logit), Number(c.P)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Candidate) UnmarshalJSON(b []byte) error {
	var v candidate
	err := unknown.Strict(b, &v)
	*c = Candidate{v.ID, v.Text, float64(v.Logit), float64(v.P)}
	return err
}
