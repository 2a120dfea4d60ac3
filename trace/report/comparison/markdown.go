package comparison

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/expr"
	"gpuscope/trace/table"
)

// Condition returns the result of a condition as a sentence: "decode.p50>+5%: +7.1 %, failed".
func Condition(r *expr.Result) string {
	c := &r.Condition
	value := fmt.Sprintf("%g", r.Value)
	switch {
	case c.Unit == expr.Percent:
		value = Percent(r.Value)
	case c.Unit == expr.NS && c.Change:
		value = fmt.Sprintf("%+.1f µs", r.Value/1e3)
	case c.Unit == expr.NS:
		value = fmt.Sprintf("%.1f µs", r.Value/1e3)
	case r.Times != nil:
		value = fmt.Sprintf("%.4g tokens/s", r.Value)
	}
	result := "passed"
	switch {
	case r.Failed():
		result = "failed"
	case r.NotJudged != "":
		result = "not judged (" + r.NotJudged + "), so it cannot fail"
	case r.Holds:
		result = "passed, because this is not significant"
	}
	return fmt.Sprintf("%s: %s, %s", printable.Clean(c.Text), value, result)
}

// Markdown writes a comparison as the text of a comment on a pull request.
func Markdown(ctx context.Context, w io.Writer, d *diff.Diff, conditions []expr.Result, all bool) error {
	var b bytes.Buffer
	escape := strings.NewReplacer("|", "\\|", "*", "\\*", "_", "\\_", "<", "&lt;", "`", "\\`",
		"[", "\\[").Replace
	fmt.Fprintf(&b, "**%s**\n\n", escape(printable.Clean(Headline(d))))
	for _, s := range Sentences(d) {
		if s != Headline(d) {
			fmt.Fprintf(&b, "- %s\n", escape(printable.Clean(s)))
		}
	}
	for i := range conditions {
		mark := "✅"
		switch {
		case conditions[i].Failed():
			mark = "❌"
		case conditions[i].NotJudged != "":
			mark = "⚠️"
		}
		fmt.Fprintf(&b, "- %s %s\n", mark, escape(Condition(&conditions[i])))
	}
	b.WriteString("\n")
	t := Of(d, all)
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	if err := t.Print(ctx, &b, "md", rows, 0); err != nil {
		return err
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", escape(n))
	}
	_, err = w.Write(b.Bytes())
	return err
}
