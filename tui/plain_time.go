package tui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/session"
	"gpuscope/trace/inspect"
)

// plainTimeOp is the command to time an operator, named by its name or its number: at the lengths that are
// said, or where its route changes.
func plainTimeOp(p *plainText, rest string) (session.Command, error) {
	c := session.Command{Kind: session.TimeOp}
	words := strings.Fields(rest)
	if len(words) == 0 || p.mirror.Trace == nil {
		return c, errors.New("which operator? o OP [M ...], by its name: o layers.0.attn.q 1 16 17")
	}
	g := &p.mirror.Trace.Graph
	for i := range g.Ops {
		if g.Ops[i].Name == words[0] || strconv.Itoa(i) == words[0] {
			c.Op = &g.Ops[i].ID
		}
	}
	if c.Op == nil {
		return c, fmt.Errorf("there is no operator %q; d operators lists them", printable.Short(words[0], 40))
	}
	for _, word := range words[1:] {
		m, err := strconv.Atoi(word)
		if err != nil {
			return c, fmt.Errorf("a length of %q tokens: want a number", printable.Short(word, 40))
		}
		c.Lengths = append(c.Lengths, m)
	}
	for i := range g.Dispatches {
		if g.Dispatches[i].Op == *c.Op && len(c.Lengths) == 0 {
			c.Lengths = p.index.Crossings(g.Dispatches[i].ID)
		}
	}
	return c, nil
}

// trials prints what operators took that were timed.
func (p *plainText) trials(session.Reply) {
	if err := p.index.Print(p.ctx, p.out, "trials", "text", mainWidth, inspect.Options{}); err != nil {
		p.fail(err)
	}
}
