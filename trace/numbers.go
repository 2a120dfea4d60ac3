package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 that JSON can always hold: a model that went wrong gives NaN, and its trace is the one
// people need.
type Number float64

// Finite reports whether it is a number, and no infinity.
func (f Number) Finite() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// MarshalJSON writes numbers that are not finite as words.
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

// UnmarshalJSON reads what MarshalJSON writes.
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

// MarshalJSON writes numbers that are not finite as words.
func (c Candidate) MarshalJSON() ([]byte, error) {
	return json.Marshal(candidate{c.ID, c.Text, Number(c.Logit), Number(c.P)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Candidate) UnmarshalJSON(b []byte) error {
	var v candidate
	err := strictly(b, &v)
	*c = Candidate{v.ID, v.Text, float64(v.Logit), float64(v.P)}
	return err
}
