package graph

// InputData is the data of a graph input for one step.
type InputData struct {
	Value ValueID
	Dims  []int
	Data  []byte  // little-endian words of the tensor with the live dims
	Host  []int64 // the same data as integers; needed if a plan reads them
	// From, if not nil, is an output of the previous step that is still on the device. The step then copies
	// the input from the start of this output, and ignores Data.
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

// inputState holds the live dims, SymInts and host integers of a graph's inputs, which determine all live
// shapes of the graph. Each list holds the numbers of all inputs, one input after another.
type inputState struct {
	dims []int
	ints []int64
	host []int64
}

// take copies the current state of the inputs from l.
func (s *inputState) take(l *Live) {
	s.dims, s.ints, s.host = s.dims[:0], s.ints[:0], s.host[:0]
	for _, v := range l.G.inputs {
		switch val := &l.G.Values[v]; {
		case val.Kind == SymInt:
			s.ints = append(s.ints, l.now.ints[v])
		default:
			s.dims = append(s.dims, l.now.dims[v]...)
			s.host = append(s.host, l.now.host[v]...)
		}
	}
}

func (s *inputState) copyFrom(t *inputState) {
	s.dims, s.ints = append(s.dims[:0], t.dims...), append(s.ints[:0], t.ints...)
	s.host = append(s.host[:0], t.host...)
}

// give applies the state to the inputs of l, as changes of a resize. The caller then calls Propagate or
// Discard.
func (s *inputState) give(l *Live) error {
	dims, ints, host := s.dims, s.ints, s.host
	for _, v := range l.G.inputs {
		val := &l.G.Values[v]
		if val.Kind == SymInt {
			if err := l.SetInt(v, ints[0]); err != nil {
				return err
			}
			ints = ints[1:]
			continue
		}
		rank := len(val.MaxDims)
		if err := l.SetDims(v, dims[:rank]...); err != nil {
			return err
		}
		if val.HostRead {
			n := Numel(dims[:rank])
			if err := l.SetHost(v, host[:n]); err != nil {
				return err
			}
			host = host[n:]
		}
		dims = dims[rank:]
	}
	return nil
}

// moveTo resizes l so that its inputs have the given state, and commits the resize. After an error l is
// unchanged.
func (l *Live) moveTo(s *inputState) error {
	if err := s.give(l); err != nil {
		l.Discard()
		return err
	}
	err := l.Propagate()
	if err == nil {
		l.Commit()
	}
	return err
}
