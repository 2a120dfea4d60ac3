package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 that can be written to JSON even if it is NaN or infinite. If a model computes NaN,
// people need a trace to inspect.
type Number float64

// Finite reports whether f is neither NaN nor infinite.
func (f Number) Finite() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// MarshalJSON writes NaN and infinities as the strings "NaN", "Infinity" and "-Infinity".
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

// MarshalJSON writes a NaN or infinite logit or probability as a string, like Number.
func (c Candidate) MarshalJSON() ([]byte, error) {
	return json.Marshal(candidate{c.ID, c.Text, Number(c.Logit), Number(c.P)})
}

// UnmarshalJSON reads a candidate that MarshalJSON wrote.
func (c *Candidate) UnmarshalJSON(b []byte) error {
	var v candidate
	err := strictly(b, &v)
	*c = Candidate{v.ID, v.Text, float64(v.Logit), float64(v.P)}
	return err
}
