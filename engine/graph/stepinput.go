package graph

// InputData is a step's data for a graph input.
type InputData struct {
	Value ValueID
	Dims  []int
	Data  []byte  // little-endian words, in the live dims
	Host  []int64 // the same as integers, if an operator reads them
	// From, if not nil, is an output whose first bytes the previous step left on the device. They are used in
	// place of Data.
	From *ValueID
}

// SymIntValue is a step's value for a SymInt.
type SymIntValue struct {
	Value ValueID
	Int   int64
}

// StepInput is the input of a step, and the outputs to read back.
type StepInput struct {
	Inputs  []InputData
	SymInts []SymIntValue
	Read    []ValueID
}
