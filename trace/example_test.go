package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// A trace is written and read again, and its times are added up.
func Example() {
	var file bytes.Buffer
	if err := trace.Write(&file, tracetest.Llama(1, 3)); err != nil {
		fmt.Println(err)
		return
	}
	t, err := trace.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		timed := 0
		for _, d := range s.Dispatches {
			if _, ok := d.GPUNS.NS(); ok { // a time that was not measured is not 0
				timed++
			}
		}
		fmt.Printf("step %d, %s at position %d: %d dispatches, %d timed\n", s.Index, s.Phase, s.Position,
			len(s.Dispatches), timed)
	}
	// Output:
	// step 0, prefill at position 0: 27 dispatches, 27 timed
	// step 1, decode at position 42: 26 dispatches, 26 timed
	// step 2, decode at position 43: 26 dispatches, 26 timed
}

// A file that is not a trace is recognized by the error.
func ExampleRead() {
	_, err := trace.Read(strings.NewReader(`{"traceEvents": []}`))
	fmt.Println(errors.Is(err, trace.ErrNotTrace))
	// Output: true
}
