package plain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/report"
	_ "gpuscope/trace/report/all" // registers the tables
	"gpuscope/tui/widget"
)

// timeOpCommand parses the command that times an operator. `rest` begins with the operator's name, as in
// tables, or id. The numbers of tokens for which to time the operator may follow; by default, these are the
// numbers of tokens at which the operator's route changes.
func timeOpCommand(p *front, rest string) (session.Command, error) {
	c := session.Command{Kind: session.TimeOp}
	words := strings.Fields(rest)
	if len(words) == 0 || p.mirror.Trace == nil {
		return c, errors.New("the command \"o\" needs the name of an operator, for example \"o attn.q 1 16 17\"")
	}
	named := 1 // number of words in the operator's name, because the name may contain blanks
	for named < len(words) && !isNumber(words[named]) {
		named++
	}
	op, said, err := p.index.OpNamed(len(p.mirror.Trace.Steps)-1, strings.Join(words[:named], " "))
	if err != nil {
		return c, err
	}
	if said != "" {
		p.say("%s", said)
	}
	c.Op = &op
	for _, word := range words[named:] {
		m, err := strconv.Atoi(word)
		if err != nil {
			return c, fmt.Errorf("number of tokens %q: not a whole number", printable.Short(word, 40))
		}
		c.Lengths = append(c.Lengths, m)
	}
	g := &p.mirror.Trace.Graph
	for i := range g.Dispatches {
		if g.Dispatches[i].Op == *c.Op && len(c.Lengths) == 0 {
			c.Lengths = curves.Crossings(p.index, g.Dispatches[i].ID)
		}
	}
	return c, nil
}

func isNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// trials prints the times of the operators that were timed.
func (p *front) trials(session.Reply) {
	if err := report.Print(p.ctx, p.index, p.out, "trials", "text", widget.MainWidth,
		analyze.Options{}); err != nil {
		p.fail(err)
	}
}
