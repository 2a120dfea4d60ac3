package trace

import "unsafe"

// size returns the approximate memory of a plan in bytes.
func (p *Plan) size() int64 {
	n := int64(unsafe.Sizeof(*p)) + textSize(p.Params, p.Reason, p.Kernel, p.Route)
	if p.Grid != nil {
		n += int64(unsafe.Sizeof(*p.Grid)) + listSize(p.Grid.Terms)
		for i := range p.Grid.Terms {
			n += textSize(p.Grid.Terms[i].Name)
		}
	}
	return n
}

// size returns the approximate memory of a step in bytes.
func (s *Step) size() int64 {
	n := int64(unsafe.Sizeof(*s)) + textSize(s.Text) + pointerSize(s.Token) + pointerSize(s.Whole) +
		pointerSize(s.GPU) + 64*int64(len(s.SymInts)) + treeSize(s.Sampling) + listSize(s.Tokens) +
		listSize(s.Dims) + listSize(s.Levels) + listSize(s.Waits) + listSize(s.Top) +
		listSize(s.Dispatches) + costsSize(s.Costs) + listSize(s.Blocks) + listSize(s.CPU.Compiled)
	n += listSize(s.Experts)
	for i := range s.Experts {
		n += listSize(s.Experts[i].Tokens)
	}
	for i := range s.Dims {
		n += listSize(s.Dims[i].Dims)
	}
	for i := range s.Top {
		n += textSize(s.Top[i].Text)
	}
	for i := range s.CPU.Compiled {
		n += textSize(s.CPU.Compiled[i].Kernel)
	}
	for i := range s.Blocks {
		n += textSize(s.Blocks[i].Name)
	}
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		n += listSize(d.Samples)
		if d.Error != nil {
			n += d.Error.size()
		}
	}
	return n + s.Resize.size()
}

func (r *Resize) size() int64 {
	n := listSize(r.Passes)
	for i := range r.Passes {
		p := &r.Passes[i]
		n += listSize(p.Dirty) + listSize(p.Hooks)
		for j := range p.Hooks {
			h := &p.Hooks[j]
			n += listSize(h.Triggers) + listSize(h.Changed) + listSize(h.Plans)
			for _, c := range h.Changed {
				n += listSize(c.From) + listSize(c.To)
			}
			for _, c := range h.Plans {
				n += pointerSize(c.From) + pointerSize(c.To)
			}
		}
	}
	return n
}

// size returns the approximate memory of a numeric error in bytes.
func (g *NumericError) size() int64 {
	return int64(unsafe.Sizeof(*g)) + textSize(g.Reference, g.Tolerance) + pointerSize(g.Value) +
		pointerSize(g.Run)
}

func costsSize(costs []Cost) int64 {
	n := listSize(costs)
	for i := range costs {
		n += textSize(costs[i].Name) + listSize(costs[i].Dispatches)
	}
	return n
}

func textSize(texts ...string) (n int64) {
	for _, s := range texts {
		n += int64(len(s))
	}
	return n
}

func pointerSize[T any](p *T) int64 {
	if p == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*p))
}

func listSize[T any](list []T) int64 {
	var e T
	return int64(cap(list)) * int64(unsafe.Sizeof(e))
}

// treeSize returns the approximate memory in bytes of a value that was decoded from arbitrary JSON.
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
