package graph

// InputData is the data of a graph input for one step.
type InputData struct {
	Value ValueID
	Dims  []int
	Data  []byte  // little-endian words of the tensor with the live dims
	Host  []int64 // the same data as integers; needed if an operator reads host integers
	// From, if not nil, is an output of the previous step that is still on the device. The first bytes of the
	// output are used in place of Data.
	From *ValueID
}

// SymIntValue is the value of a SymInt for one step.
type SymIntValue struct {
	Value ValueID
	Int   int64
}

// StepInput is the input of a step and the list of outputs to read back.
type StepInput struct {
	Inputs  []InputData
	SymInts []SymIntValue
	Read    []ValueID
}
