package program

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
)

// Count is a name and the number of times that it occurs.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"count"`
}

type counts map[string]int

func (c *counts) add(name string) {
	if *c == nil {
		*c = counts{}
	}
	(*c)[name]++
}

// sorted returns the counts, largest first.
func (c counts) sorted() []Count {
	list := make([]Count, 0, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, Count{name, c[name]})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	return list
}

// countsText joins counts: "aten.foo.default (3), aten.bar.default (1)".
func countsText(list []Count) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = fmt.Sprintf("%s (%d)", printable.Short(c.Name, 80), c.N)
	}
	return strings.Join(parts, ", ")
}

// UnknownOperators is the error for a delegate with operators that gpuscope cannot run.
type UnknownOperators struct{ Operators []Count }

func (e *UnknownOperators) Error() string {
	return "gpuscope does not implement these operators (number of uses in parentheses): " +
		countsText(e.Operators) +
		". gpuscope graph shows the program without running it"
}

// HostError is the error for a method that gpuscope cannot run because it contains instructions other than
// calls of Vulkan delegates and copies after these calls. Instructions lists the unsupported instructions.
// The list is empty if the method calls no delegate.
type HostError struct{ Instructions []Count }

func (e *HostError) Error() string {
	if len(e.Instructions) == 0 {
		return "the method calls no Vulkan delegate. gpuscope runs only the delegates of ExecuTorch's " +
			"Vulkan partitioner"
	}
	const format = "gpuscope cannot run these host instructions: %s. It runs Vulkan delegates and, after them, " +
		"only copies (%s)"
	return fmt.Sprintf(format, countsText(e.Instructions), copyOperator)
}

// OperatorError is an error about one operator of the file.
type OperatorError struct {
	ID   uint32 // number of the operator in the file
	Name string // such as "aten.add.Tensor"
	Err  error
}

func (e *OperatorError) Error() string {
	return fmt.Sprintf("operator %d (%s): %v", e.ID, printable.Short(e.Name, 80), e.Err)
}

func (e *OperatorError) Unwrap() error { return e.Err }

// TypeError is the error for an element type that the engine does not support.
type TypeError struct{ Type pte.Type }

func (e *TypeError) Error() string {
	return fmt.Sprintf("element type %s is not supported, want f32, f16, f64, int32, int64, int8, uint8 or bool",
		e.Type)
}

// ErrInput is wrapped by the errors for inputs that do not fit the method: a wrong number of inputs, a
// wrong type or shape, or an integer that does not fit 32 bits.
var ErrInput = errors.New("wrong input")

func inputError(i int, format string, args ...any) error {
	return fmt.Errorf("%w %d: %w", ErrInput, i, fmt.Errorf(format, args...))
}
