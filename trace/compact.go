package trace

import "slices"

// The trace of a long run has millions of small objects. This file reduces the memory that they use after
// decoding: equal strings share their memory, and long lists lose their spare capacity.

// texts holds one copy of each string. All equal strings share the memory of this copy. Key and value of an
// entry are the same string.
type texts map[string]string

// mostTexts is the maximum number of strings in a map of type texts. Without a maximum, strings that are
// different in every record would double the memory.
const mostTexts = 1 << 12

// share lets each string use the memory of an equal string in t. If there is none, it adds the string to t.
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
