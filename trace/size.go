package trace

import "unsafe"

// size is about how many bytes of memory a plan holds.
func (p *Plan) size() int64 {
	n := int64(unsafe.Sizeof(*p)) + int64(len(p.Params)+len(p.Reason)+len(p.Kernel)+len(p.Route))
	if p.Grid != nil {
		n += int64(unsafe.Sizeof(*p.Grid)) + listSize(p.Grid.Terms)
	}
	return n
}

// size is about how many bytes of memory a step holds.
func (s *Step) size() int64 {
	n := int64(unsafe.Sizeof(*s)) + listSize(s.Tokens) + listSize(s.Dims) + listSize(s.Levels) +
		listSize(s.Waits) +
		listSize(s.Top) + listSize(s.Dispatches) + listSize(s.Blocks) +
		int64(len(s.Text)) + 64*int64(len(s.SymInts)) + treeSize(s.Sampling) + listSize(s.CPU.Compiled)
	rawSize := func(raw *[2]string) int64 {
		if raw == nil {
			return 0
		}
		return int64(unsafe.Sizeof(*raw)) + int64(len(raw[0])+len(raw[1]))
	}
	for i := range s.Blocks {
		n += int64(len(s.Blocks[i].Name)) + rawSize(s.Blocks[i].Raw)
	}
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		n += listSize(d.Samples) + rawSize(d.Raw)
		if d.Gap != nil {
			n += int64(unsafe.Sizeof(*d.Gap))
		}
	}
	n += costsSize(s.Costs)
	if s.Whole != nil {
		n += int64(unsafe.Sizeof(*s.Whole))
	}
	for i := range s.Dims {
		n += listSize(s.Dims[i].Dims)
	}
	for i := range s.Resize.Passes {
		p := &s.Resize.Passes[i]
		n += int64(unsafe.Sizeof(*p)) + listSize(p.Dirty) + listSize(p.Hooks)
		for j := range p.Hooks {
			h := &p.Hooks[j]
			n += listSize(h.Triggers) + listSize(h.Changed) + listSize(h.Plans) + 8*int64(len(h.Plans))
			for _, c := range h.Changed {
				n += listSize(c.From) + listSize(c.To)
			}
		}
	}
	return n
}

func costsSize(costs []Cost) int64 {
	n := listSize(costs)
	for i := range costs {
		n += int64(len(costs[i].Name)) + listSize(costs[i].Dispatches)
	}
	return n
}

func listSize[T any](list []T) int64 {
	var e T
	return int64(cap(list)) * int64(unsafe.Sizeof(e))
}

// treeSize is about how many bytes a value takes that was JSON.
func treeSize(v any) int64 {
	n := int64(16)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case []any:
		for _, e := range v {
			n += treeSize(e)
		}
	case map[string]any:
		for k, e := range v {
			n += 64 + int64(len(k)) + treeSize(e)
		}
	}
	return n
}
