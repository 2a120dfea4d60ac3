package analyze

import "gpuscope/trace/analyze/join"

// join finds the counterparts of each launch in the baseline.
func (c *comparison) join(now, then []Launch) {
	a, b := joinSide(c.x, now), joinSide(c.baseline, then)
	pairs := join.Join(&a, &b)
	c.Joined, c.Of = pairs.How, make([][]*Launch, len(now))
	for i, list := range pairs.Of {
		for _, k := range list {
			c.Of[i] = append(c.Of[i], &then[k])
		}
	}
	for _, k := range pairs.Gone {
		c.Gone = append(c.Gone, &then[k])
	}
}

// joinSide returns the launches of a selection in the form in which package join pairs them.
func joinSide(x *Index, launches []Launch) join.Side {
	s := join.Side{Trace: x.Trace, Items: make([]join.Item, len(launches)), Readers: x.Consumers}
	for i := range launches {
		l := &launches[i]
		s.Items[i] = join.Item{ID: l.ID, Kernel: l.Plan.Kernel, Tokens: l.Tokens, FLOPs: l.flops}
	}
	return s
}
