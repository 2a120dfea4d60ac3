package tuitest

import (
	"fmt"
	"hash/crc32"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
)

// Broken is a word that makes a kernel source invalid: the simulated compiler reports it in line 3.
const Broken = "broken"

// Stray is a word that marks a source as writing values that the original kernel does not write.
const Stray = "stray"

// Right is a word that marks a source whose results equal those of the original kernel. For a source without
// this word, some elements differ and one is not written.
const Right = "right"

// EditedName returns the name that the session gives to an edited version of a kernel.
func EditedName(kernel string) string { return kernel + "+3fa21b07" }

// NameOf returns the name that the session gives to a source. Each source with the word Right gets its own
// name. All other sources of a kernel get the name EditedName.
func NameOf(e *session.KernelEdit) string {
	if strings.Contains(e.Text, Right) {
		return fmt.Sprintf("%s+%08x", e.Kernel, crc32.ChecksumIEEE([]byte(e.Text)))
	}
	return EditedName(e.Kernel)
}

// try simulates an edited kernel that is a little faster than the original and slightly wrong.
func (p *Session) try(c session.Command) error {
	s, err := p.stepOf(c.Step)
	if err != nil {
		return err
	}
	if strings.Contains(c.Edit.Text, Broken) {
		return session.Refusef("%s.wgsl:3:5: parsing error: expected ';', found 'broken'\n  ┌─ wgsl:3:5",
			c.Edit.Kernel)
	}
	spread := func(ns int64) session.Spread { return session.Spread{NS: ns, Q1NS: ns - 100, Q3NS: ns + 100} }
	turns := func(was, is int64) *session.InTurns {
		return &session.InTurns{Own: spread(was), New: spread(is), Gain: spread(was - is), N: 30}
	}
	p.tried = &session.Tried{
		Kernel: c.Edit.Kernel, Name: NameOf(c.Edit), Step: s.Index, Dispatch: c.Edit.Dispatch,
		Dispatches: 16, Alone: turns(10_300, 9_100), Whole: turns(1_280_000, 1_262_000),
		Gap: &trace.NumericError{
			Share: 0.25, MaxAbs: 2e-6,
			Tolerance: "2e-05: 2048 products summed in f32",
		},
		Stray: strings.Contains(c.Edit.Text, Stray),
	}
	if c.Edit.Dispatch == nil {
		p.tried.Alone, p.tried.Whole, p.tried.Gap, p.tried.Dispatches = nil, nil, nil, 0
		return nil
	}
	for _, v := range p.recorded.Graph.Dispatches[*c.Edit.Dispatch].Writes {
		w := session.Rewritten{Value: v, Elements: 2048}
		if !strings.Contains(c.Edit.Text, Right) {
			w.Differ, w.Unwritten, w.MaxAbs, w.Element, w.Own, w.New = 3, 1, 0.5, 7, 1.5, 1
		}
		p.tried.Outputs = append(p.tried.Outputs, w)
	}
	p.event(s.Index, string(c.Kind))
	return nil
}

// use updates the state to show that an edited kernel replaces the original, or that the original is
// restored.
func (p *Session) use(e *session.KernelEdit) {
	p.state.Edited = nil
	if e.Text != "" {
		p.state.Edited = []string{NameOf(e)}
	}
	p.event(max(p.state.Step, 0), string(session.Kernel))
}
