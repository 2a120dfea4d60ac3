package trace

import "slices"

// A trace of a long run is millions of small things. When it is read, what a decoder has left is put in
// order: a text that many records say is kept once, and the long lists have no room for more.

// texts are texts by what they say.
type texts map[string]string

// mostTexts is how many are remembered: what differs from record to record would fill the memory twice.
const mostTexts = 1 << 12

// share makes each text the one that was read before it, where there is one.
func (t texts) share(list ...*string) {
	for _, s := range list {
		if same, ok := t[*s]; ok {
			*s = same
		} else if len(t) < mostTexts {
			t[*s] = *s
		}
	}
}

func (p *Plan) keepUnknown(u *Unknown) { p.Unknown = u }

func (s *Step) keepUnknown(u *Unknown) { s.Unknown = u }

func (p *Plan) compact(t texts) {
	t.share(&p.Kernel, &p.Route, &p.Reason)
	if p.Grid != nil {
		t.share(&p.Grid.Rule)
		for i := range p.Grid.Terms {
			t.share(&p.Grid.Terms[i].Name)
		}
		p.Grid.Terms = slices.Clone(p.Grid.Terms)
	}
}

func (s *Step) compact(t texts) {
	t.share((*string)(&s.Phase), (*string)(&s.Timing), &s.Resize.Order)
	s.Dispatches = slices.Clone(s.Dispatches)
	for i := range s.Resize.Passes {
		p := &s.Resize.Passes[i]
		p.Hooks = slices.Clone(p.Hooks)
	}
}
