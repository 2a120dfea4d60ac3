package trace

import "slices"

// The trace of a long run has millions of small objects. This file reduces their memory after decoding: it
// stores equal strings only once, and it removes the spare capacity of long lists.

// texts maps each string to the one copy of it that is kept.
type texts map[string]string

// mostTexts is the maximum number of remembered strings. Remembering strings that differ in every record
// would double the memory.
const mostTexts = 1 << 12

// share makes each string use the memory of an equal string that was read before, if there is one.
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
