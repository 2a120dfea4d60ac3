package executions

import (
	"errors"
	"fmt"

	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
	"gpuscope/model/program/suite"
)

// Tolerance is the absolute and relative tolerance for expected outputs of a .bpte file. The file states no
// tolerance.
const Tolerance = 1e-3

// Cases contains the test cases of a method in a .bpte file, and the result of comparing outputs with the
// expected outputs.
type Cases struct {
	Inputs [][]*npy.Array // inputs of each case
	// Worst is the element with the largest error relative to its tolerance; nil if nothing was compared.
	Worst    *suite.Worst
	expected [][]*npy.Array
}

// ReadCases reads the test cases of a method. For a file without test cases, the returned Cases is empty.
func ReadCases(f *pte.File, method string) (*Cases, error) {
	c := &Cases{}
	for _, s := range f.Suites {
		if s.Method != method {
			continue
		}
		for i := range s.Cases {
			inputs, err := program.Arrays(s.Cases[i].Inputs)
			if err != nil {
				return nil, fmt.Errorf("%s: inputs of test case %d: %w", f.Name(), i, err)
			}
			outputs, err := program.Arrays(s.Cases[i].Outputs)
			if err != nil {
				return nil, fmt.Errorf("%s: expected outputs of test case %d: %w", f.Name(), i, err)
			}
			c.Inputs, c.expected = append(c.Inputs, inputs), append(c.expected, outputs)
		}
	}
	return c, nil
}

// Compare compares the outputs of execution n with the expected outputs of a test case. This is the test
// case whose inputs the execution had.
func (c *Cases) Compare(n int, outputs []*npy.Array) error {
	n %= len(c.expected)
	for k, want := range c.expected[n] {
		if k >= len(outputs) {
			return fmt.Errorf("test case %d expects %d outputs, but the method has %d", n, len(c.expected[n]),
				len(outputs))
		}
		o := suite.Output{Index: k, Atol: Tolerance, Rtol: Tolerance}
		worst, err := suite.Compare(outputs[k], want, &o)
		if err != nil {
			return fmt.Errorf("test case %d, output %d: %w", n, k, err)
		}
		worst.Run, worst.Output = n, k
		if c.Worst == nil || !(worst.OfTolerance <= c.Worst.OfTolerance) {
			c.Worst = &worst
		}
	}
	return nil
}

// ErrCase is wrapped by the error of a test case that fails.
var ErrCase = errors.New("test case failed")

// Failed returns an error that wraps ErrCase if an output was not as expected.
func (c *Cases) Failed() error {
	e := c.Worst
	if e == nil || e.OfTolerance <= 1 {
		return nil
	}
	return fmt.Errorf("%w: output %d of test case %d is %v in element %d, want %v (tolerance %g)", ErrCase,
		e.Output, e.Run, float64(e.Got), e.Element, float64(e.Want), Tolerance)
}
