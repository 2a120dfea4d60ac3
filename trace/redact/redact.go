// Package redact removes the texts of a run from its trace, so that a trace can be given away without the
// prompt and what the model generated. The functions return copies and leave their arguments unchanged.
//
// What remains is what the profile consists of: the number of tokens of each step, shapes, plans, times, and
// how routers divided the tokens among experts.
package redact

import (
	"slices"
	"strings"

	"gpuscope/trace"
)

// Left is the string that replaces each text in the command line of a run.
const Left = "…"

// Trace returns a trace without texts. Unknown fields of a later version of the format are removed too,
// because they may contain texts.
func Trace(t *trace.Trace) *trace.Trace {
	out := Head(t)
	out.Steps = slices.Clone(t.Steps)
	for i := range out.Steps {
		step(&out.Steps[i])
	}
	return out
}

// Head returns a trace whose head and events have no texts. Its steps are unchanged.
func Head(t *trace.Trace) *trace.Trace {
	out := *t
	out.NoText, out.Unknown, out.Command = true, nil, command(t.Command)
	out.Events = slices.Clone(t.Events)
	for i := range out.Events {
		out.Events[i].Prompt = ""
	}
	return &out
}

// Record returns a record of a stream without texts.
func Record(r trace.Record) trace.Record {
	if r.Step != nil {
		s := *r.Step
		step(&s)
		r.Step = &s
	}
	if r.Event != nil {
		e := *r.Event
		e.Prompt = ""
		r.Event = &e
	}
	return r
}

// step removes the text and the token ids of a step. The number of its tokens remains, because the plans
// depend on it.
func step(s *trace.Step) {
	s.Text, s.Token, s.Top, s.Unknown = "", nil, nil, nil
	if len(s.Tokens) > 0 {
		s.Tokens = make([]int, len(s.Tokens))
	}
}

// texts lists the flags of the command line whose values are texts or token ids.
var texts = []string{"--prompt", "--ids", "--system"}

// command returns a command line in which the values of flags with a text are replaced.
func command(words []string) []string {
	out := slices.Clone(words)
	for i := 0; i < len(out); i++ {
		name, _, joined := strings.Cut(out[i], "=")
		switch {
		case out[i] == "--":
			return out
		case slices.Contains(texts, name) && joined:
			out[i] = name + "=" + Left
		case slices.Contains(texts, name) || out[i] == "-p":
			if i++; i < len(out) {
				out[i] = Left
			}
		case strings.HasPrefix(out[i], "-p"): // -pTEXT
			out[i] = "-p" + Left
		}
	}
	return out
}
