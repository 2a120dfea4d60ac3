package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// secret is a text that no redacted trace may contain, and secretID a token id.
const (
	secret   = "zebra crossing"
	secretID = 77_123_457
)

// private returns a trace whose texts and token ids are all secret.
func private(t *trace.Trace) {
	t.Command = []string{
		"gpuscope", "run", "m.gguf", "-n", "4", "-p", secret, "--prompt=" + secret, "--system", secret,
		"-p" + secret,
	}
	for i := range t.Steps {
		s, id := &t.Steps[i], secretID
		for k := range s.Tokens {
			s.Tokens[k] = id
		}
		s.Token, s.Text = &id, secret
		s.Top = []trace.Candidate{{ID: id, Logit: 1}}
		e := trace.Event{Step: s.Index, Kind: "prompt", Text: "a prompt", Prompt: secret}
		t.Events = append(t.Events, e)
	}
}

func TestRedactedTracesHaveNoTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		private(tr)
		var before bytes.Buffer
		if err := json.NewEncoder(&before).Encode(tr); err != nil {
			r.Fatal(err)
		}
		got := Trace(tr)
		var b, after bytes.Buffer
		if err := trace.Write(&b, got); err != nil {
			r.Fatal(err)
		}
		if s := b.String(); strings.Contains(s, secret) || strings.Contains(s, "77123457") ||
			strings.Contains(s, "zebra") {
			r.Fatalf("the trace has a text: %s", s)
		}
		read, err := trace.Read(&b)
		if err != nil {
			r.Fatal(err)
		}
		if !read.NoText || len(read.Steps) != len(tr.Steps) || len(read.Events) < len(tr.Events) {
			r.Fatalf("no_text %v, %d steps, %d events", read.NoText, len(read.Steps), len(read.Events))
		}
		for i := range read.Steps {
			was, is := &tr.Steps[i], &read.Steps[i]
			if len(is.Tokens) != len(was.Tokens) || len(is.Dispatches) != len(was.Dispatches) ||
				is.CPU.TotalNS != was.CPU.TotalNS {
				r.Fatalf("step %d lost more than its texts", i)
			}
		}
		if err := json.NewEncoder(&after).Encode(tr); err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(before.Bytes(), after.Bytes()) {
			r.Fatal("the original changed")
		}
	})
}

func TestRecordsHaveNoTexts(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	private(tr)
	s := Record(trace.Record{Step: &tr.Steps[0]}).Step
	if s.Text != "" || s.Token != nil || s.Top != nil || len(s.Tokens) != 42 || slices.Max(s.Tokens) != 0 {
		t.Errorf("step %+v", s)
	}
	if e := Record(trace.Record{Event: &tr.Events[0]}).Event; e.Prompt != "" || e.Kind != tr.Events[0].Kind {
		t.Errorf("event %+v", e)
	}
	if tr.Steps[0].Text != secret {
		t.Error("the original changed")
	}
}

func TestCommandLinesKeepTheirOtherWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want []string }{
		{
			[]string{"gpuscope", "run", "-p", "a b", "-n", "3"},
			[]string{"gpuscope", "run", "-p", Left, "-n", "3"},
		},
		{[]string{"run", "-pa", "--prompt=b", "--pp", "4"}, []string{"run", "-p" + Left, "--prompt=" + Left, "--pp", "4"}},
		{[]string{"run", "--ids", "1,2", "--chat"}, []string{"run", "--ids", Left, "--chat"}},
		{[]string{"run", "--system"}, []string{"run", "--system"}},
		{[]string{"-p", "x", "--", "-p.gguf"}, []string{"-p", Left, "--", "-p.gguf"}},
		{nil, nil},
	} {
		if d := cmp.Diff(c.want, command(c.line)); d != "" {
			t.Errorf("%q:\n%s", c.line, d)
		}
	}
}
