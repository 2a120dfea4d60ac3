package graph

// InputData is what a step gives a graph input.
type InputData struct {
	Value ValueID
	Dims  []int
	Data  []byte  // little-endian words, of the live dims
	Host  []int64 // the same as integers, where an operator reads them
	// From, where it is not nil, is an output whose first bytes are taken in place of Data, as the step
	// before leaves them on the device.
	From *ValueID
}

// SymIntValue is what a step sets a SymInt to.
type SymIntValue struct {
	Value ValueID
	Int   int64
}

// StepInput is what a step is given, and the outputs to read back.
type StepInput struct {
	Inputs  []InputData
	SymInts []SymIntValue
	Read    []ValueID
}
