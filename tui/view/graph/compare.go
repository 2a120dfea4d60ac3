package graph

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// baseline returns the index of the step with which the value is compared: the last step of the baseline. If
// there is nothing to compare with, it returns the reason.
func (p *ValuePage) baseline() (step int, why string) {
	v, b := p.info(), p.at.Against
	switch {
	case v != nil && v.Role == trace.RoleConstant:
		return 0, "a constant is the same in every step"
	case p.at.Step < 0 || b == nil:
		return 0, command.Keyed("no baseline is set; press {baseline} on another step")
	case b.Index != p.at.Index:
		return 0, command.Keyed("the baseline is a trace file, which contains no tensor values; press {baseline} on another step of this run")
	}
	if _, isCache := p.at.Index.LiveRows(p.at.Step, p.shownValue()); isCache {
		return 0, "a KV cache still has the rows of earlier steps, so they do not differ"
	}
	if step = b.Selection.Last(); step == p.at.Step {
		return 0, command.Keyed("the baseline is this step; press {baseline} on another step")
	}
	return step, ""
}

// cannotCompare returns the reason that the value cannot be compared with the baseline, or "".
func (p *ValuePage) cannotCompare() string {
	if p.compares {
		return ""
	}
	if why := p.unreadable(); why != "" {
		return why
	}
	_, why := p.baseline()
	return why
}

// toggleCompare switches between the value and its difference from the baseline.
func (p *ValuePage) toggleCompare() {
	p.compares, p.stopped = !p.compares, nil
	p.keepInside()
}

// dims returns the live dimensions that the model reported or, before the model has answered, those in the
// trace. In a comparison, these are the dimensions of the common part.
func (p *ValuePage) dims() []int {
	key, why := p.key()
	if t := p.page.Value.t; t != nil && t.Value == p.shownValue() && p.page.Value.key.minus == key.minus {
		return t.Dims
	}
	if p.at.Step < 0 {
		if v := p.info(); v != nil {
			return v.MaxDims
		}
		return nil
	}
	dims := p.at.Index.Dims(p.at.Step, p.shownValue())
	if base, _ := p.baseline(); p.compares && why == "" {
		dims = slices.Clone(dims)
		for i, d := range p.at.Index.Dims(base, p.shownValue()) {
			dims[i] = min(dims[i], d)
		}
	}
	return dims
}

// minusWord returns what the title adds to the name of the value in a comparison.
func (p *ValuePage) minusWord() string {
	if key, why := p.key(); why == "" && key.minus >= 0 {
		return fmt.Sprintf(", s%d minus s%d", key.step, key.minus)
	}
	return ""
}

// comparedWith adds the two steps of a comparison to the source of the value, and the shapes if they differ.
func (p *ValuePage) comparedWith(t *session.Tensor, add func(text, short string)) {
	b := t.Baseline
	add(fmt.Sprintf("step %d minus the baseline, step %d; both from re-runs", *t.Step, b.Step),
		fmt.Sprintf("step %d minus step %d", *t.Step, b.Step))
	if !slices.Equal(b.Whole, b.Dims) {
		add(fmt.Sprintf("only the common part %s of %s and %s", table.Shape(t.Dims), table.Shape(b.Whole),
			table.Shape(b.Dims)), "common part "+table.Shape(t.Dims))
	}
}

// differences returns the two lines with the figures of a comparison.
func (p *ValuePage) differences(t *widget.Theme, s seen, w int) []string {
	d, told := s.t.Difference, s.t.Statistics
	var parts []table.Segment
	if s.key != p.page.Value.key && p.page.Value.t != nil {
		parts = append(parts, table.Segment{Rank: 0, Text: p.reading()})
	}
	if d.Differ == 0 {
		parts = append(parts, table.Say(0, "all %s elements are equal", widget.Count(d.Elements)))
		return []string{t.Put(widget.Good, " "+table.Title(parts...).Fit(w-2)), ""}
	}
	most := table.Say(0, "max |Δ| %s", widget.Number(d.MaxAbs))
	if d.MaxAt != nil {
		most.Short = most.Text
		most.Text += " at [" + strings.Join(indices(*d.MaxAt, s.t.Dims), ", ") + "]"
	}
	parts = append(parts, most, table.Say(1, "mean |Δ| %s", widget.Number(d.MeanAbs)))
	if d.Relative != nil {
		parts = append(parts, table.Say(1, "relative %s", percent(*d.Relative)))
	}
	if d.Cosine != nil {
		parts = append(parts, table.Segment{
			Rank: 1, Text: fmt.Sprintf("cosine %.6f", *d.Cosine), Short: fmt.Sprintf("cos %.4f", *d.Cosine),
		})
	}
	lines := []string{" " + table.Title(parts...).Fit(w-2)}
	second := []table.Segment{table.Say(0, "%s of %s elements differ", widget.Count(d.Differ),
		widget.Count(d.Elements))}
	paint := widget.Dim
	if d.NotFinite > 0 {
		paint = widget.Warn
		odd := table.Say(0, "%s NaN or Inf in %s", widget.MarkWarn, widget.Plural(d.NotFinite, "difference"))
		if told.FirstOdd != nil {
			odd.Short = odd.Text
			odd.Text += ", first at [" + strings.Join(indices(*told.FirstOdd, s.t.Dims), ", ") + "]"
		}
		second = append([]table.Segment{odd}, second...)
	}
	if told.Finite() > 0 {
		second = append(second,
			table.Say(1, "Δ from %s to %s", widget.Number(told.Min), widget.Number(told.Max)),
			table.Say(2, "mean %s", widget.Number(told.Mean)),
			table.Say(2, "std %s", widget.Number(told.Std)))
	}
	return append(lines, t.Put(paint, " "+table.Title(second...).Fit(w-2)))
}

// percent formats a ratio with three significant digits.
func percent(ratio float64) string {
	if ratio == 0 {
		return "0 %"
	}
	return threeDigits(100*ratio) + " %"
}
