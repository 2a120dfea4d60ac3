package plain

import (
	"errors"
	"fmt"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// numbersShown is the number of elements of a value that are printed.
const numbersShown = 16

// lookCommand parses the command that reads a value: the id of the value and, optionally, the dispatch after
// which to read the value.
func lookCommand(_ *front, rest string) (session.Command, error) {
	words := strings.Fields(rest)
	if len(words) == 0 || len(words) > 2 {
		return session.Command{}, fmt.Errorf("v VALUE [DISPATCH]: want the id of one value from the values table, and at most one dispatch")
	}
	at := session.LookAt{Count: numbersShown, Statistics: true}
	n, err := command.ParseCount("value", strings.TrimPrefix(words[0], "v"))
	if err != nil {
		return session.Command{}, err
	}
	at.Value = trace.ValueID(n)
	if len(words) == 2 {
		n, err := command.ParseCount("dispatch", strings.TrimPrefix(words[1], "d"))
		if err != nil {
			return session.Command{}, err
		}
		id := trace.DispatchID(n)
		at.After = &id
	}
	return session.Command{Kind: session.Look, At: &at}, nil
}

// saveCommand parses the command that writes a value to a file: the id of the value, optionally the dispatch
// after which to read the value, and the path.
func saveCommand(_ *front, rest string) (session.Command, error) {
	value, path, _ := strings.Cut(strings.TrimSpace(rest), " ")
	after, last, more := strings.Cut(strings.TrimSpace(path), " ")
	if _, err := command.ParseCount("dispatch", strings.TrimPrefix(after, "d")); err == nil && more {
		value, path = value+" "+after, last
	}
	if path = command.Expand(strings.TrimSpace(path)); path == "" {
		return session.Command{}, errors.New("save VALUE [DISPATCH] FILE: no file given; its suffix must be .npy or .csv")
	}
	c, err := lookCommand(nil, value)
	if err != nil {
		return c, err
	}
	c.Kind, c.At.Count, c.At.Statistics = session.Save, 0, false
	c.Save = &session.SaveTo{Path: command.Absolute(path)}
	return c, nil
}

// saved prints the file that the session has written.
func (p *front) saved(r session.Reply) {
	if r.Saved != nil {
		p.say("%s", command.SavedNote(r.Saved))
	}
}

// looked prints the value that the session has read.
func (p *front) looked(r session.Reply) {
	t := r.Tensor
	if t == nil || p.mirror.Trace == nil || int(t.Value) >= len(p.mirror.Trace.Graph.Values) {
		return
	}
	where := "as stored in the model file"
	if t.Step != nil {
		where = fmt.Sprintf("from a re-run of step %d", *t.Step)
	}
	if t.After != nil {
		where += fmt.Sprintf(", right after dispatch %d", *t.After)
	}
	p.say("value %d, %s: %s %s, %s", t.Value, p.mirror.Trace.Graph.Values[t.Value].Name, t.DType,
		table.Shape(t.Dims), where)
	if s := t.Statistics; s != nil {
		text := fmt.Sprintf("%s, NaN %s, infinities %s, zeros %s", widget.Plural(s.Elements, "element"),
			widget.Count(s.NaN), widget.Count(s.PosInf+s.NegInf), widget.Count(s.Zeros))
		if s.Finite() > 0 {
			text += fmt.Sprintf(", min %s, max %s, mean %s, std %s", widget.Number(s.Min),
				widget.Number(s.Max),
				widget.Number(s.Mean), widget.Number(s.Std))
		}
		if s.FirstOdd != nil {
			text += fmt.Sprintf(", first NaN or Inf at element %d", *s.FirstOdd)
		}
		p.say("%s", text)
	}
	words := make([]string, len(t.Numbers))
	for i, n := range t.Numbers {
		words[i] = widget.Number(float64(n))
	}
	if len(words) > 0 {
		p.say("first elements: %s", strings.Join(words, " "))
	}
}
