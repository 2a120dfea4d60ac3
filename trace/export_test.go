package trace

// Size returns the approximate number of bytes of memory that a step or a plan holds, as budgets count them.
func (s *Step) Size() int64 { return s.size() }

func (p *Plan) Size() int64 { return p.size() }
