package session

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
)

// Break is a breakpoint: a run pauses after the step that meets its condition.
type Break struct {
	On string `json:"on"`           // name of the condition: the Word of a BreakKind
	Of string `json:"of,omitempty"` // argument of the condition
}

// BreakKind describes one kind of breakpoint.
type BreakKind struct {
	Word  string
	Takes string // name of the argument, in brackets if it is optional; "" if there is none
	Doc   string
	check func(of string) error
}

// Breaks lists all kinds of breakpoints.
var Breaks = []BreakKind{
	{
		"kernel", "PATTERN",
		"a kernel named PATTERN or re:REGEXP runs; pauses mid-step", nil,
	},
	{"op", "PATTERN", "an operator of name or kind PATTERN runs; pauses mid-step", nil},
	{"grid", "[OP]", "a grid changes though the token count is the same", nil},
	{"route", "[OP]", "an operator's route changes", nil},
	{"nan", "", "an operator produces NaN or Inf (slow)", nil},
	{
		"time", "TIMES", "a step or a timed dispatch takes over TIMES × its median",
		func(of string) error {
			if k, err := strconv.ParseFloat(of, 64); err != nil || !(k > 1) || k > 1e9 {
				return Refusef("breakpoint time %.20q: want a factor above 1; the limit is this factor times the median", of)
			}
			return nil
		},
	},
	{
		"position", "N", "the run reaches position N",
		func(of string) error {
			if n, err := strconv.Atoi(of); err != nil || n < 1 {
				return Refusef("breakpoint position %.20q: want a position, 1 or more", of)
			}
			return nil
		},
	},
}

// BreakWords lists the kinds of breakpoints and their arguments for an error message.
func BreakWords() string {
	words := make([]string, len(Breaks))
	for i, k := range Breaks {
		words[i] = strings.TrimSpace(k.Word + " " + k.Takes)
	}
	return strings.Join(words, ", ")
}

// Matcher returns a function that reports whether a text matches the pattern of the breakpoint. An empty
// pattern matches every text.
func (b Break) Matcher() (func(text string) bool, error) {
	expression, ok := strings.CutPrefix(b.Of, "re:")
	if !ok {
		return func(text string) bool { return strings.Contains(text, b.Of) }, nil
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, Refusef("breakpoint %s: %w", b.On, err)
	}
	return re.MatchString, nil
}

// longestBreak is the maximum length in bytes of a breakpoint's argument.
const longestBreak = 200

// Check returns an error if the breakpoint is invalid.
func (b Break) Check() error {
	i := slices.IndexFunc(Breaks, func(k BreakKind) bool { return k.Word == b.On })
	if i < 0 {
		return Refusef("breakpoint %.20q: want %s", b.On, BreakWords())
	}
	k := &Breaks[i]
	switch {
	case k.Takes == "" && b.Of != "":
		return Refusef("breakpoint %s: unexpected argument %.20q", k.Word, b.Of)
	case b.Of == "" && k.Takes != "" && !strings.HasPrefix(k.Takes, "["):
		return Refusef("breakpoint %s: want %s %s", k.Word, k.Word, k.Takes)
	case len(b.Of) > longestBreak:
		return Refusef("breakpoint %s: the pattern has %d bytes, but the maximum is %d", k.Word, len(b.Of),
			longestBreak)
	case k.check != nil:
		return k.check(b.Of)
	}
	_, err := b.Matcher()
	return err
}

// CheckIn checks the breakpoint against the model of a trace. It returns an error if no kernel or operator of
// the graph matches the pattern, or if the position is after the end of the context.
func (b Break) CheckIn(t *trace.Trace) error {
	has, err := b.Matcher()
	if err != nil {
		return err
	}
	g, what, met := &t.Graph, "operator", false
	switch b.On {
	case "position":
		if n, _ := strconv.Atoi(b.Of); n > t.Model.Dims["context"] {
			return Refusef("breakpoint %s: want a position from 1 to %d", b, t.Model.Dims["context"])
		}
		return nil
	case "kernel":
		what = "kernel"
		met = slices.ContainsFunc(g.Kernels, func(k trace.Kernel) bool { return has(k.Name) })
	case "op", "grid", "route":
		in := func(d trace.Dispatch) bool { return InDispatch(has, g, &d) }
		met = slices.ContainsFunc(g.Dispatches, in)
	default:
		return nil
	}
	if !met {
		return Refusef("breakpoint %s: no such %s in the graph", b, what)
	}
	return nil
}

// InDispatch reports whether a dispatch matches a pattern. `has` reports whether a text matches the pattern
// (see Matcher). The text is the kind of the dispatch's operator, or the name of the dispatch, such as
// "layers.3.attn.sdpa.split".
func InDispatch(has func(text string) bool, g *trace.Graph, d *trace.Dispatch) bool {
	o := &g.Ops[d.Op]
	return has(d.Named(o.Name)) || has(o.Kind)
}

// ParseBreak parses a breakpoint as a user types it: "kernel gemv", "time 3", "nan".
func ParseBreak(text string) (Break, error) {
	word, of, _ := strings.Cut(strings.TrimSpace(text), " ")
	b := Break{word, strings.TrimSpace(of)}
	return b, b.Check()
}

// String returns the breakpoint in the syntax that ParseBreak reads.
func (b Break) String() string { return strings.TrimSpace(fmt.Sprintf("%s %s", b.On, b.Of)) }
