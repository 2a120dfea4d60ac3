package comparison

import (
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/settings"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// Subject names what differs between the two sides, as the subject of a sentence about the second side:
// "Fusion", "KV cache f16 instead of f32", "s23 against s3". The result `short` has no values.
func Subject(d *diff.Diff) (long, short string) {
	var parts, names []string
	for _, c := range settings.Changes(d) {
		all, name := subject(d, c)
		parts, names = append(parts, all), append(names, name)
	}
	if other := otherPositions(d); other != "" && len(parts) > 0 {
		parts, names = append(parts, other), append(names, "Other positions")
	}
	switch n := len(parts); {
	case n == 0 && d.Base.Index == d.Now.Index:
		return d.Now.Selection.Called() + " against " + d.Base.Selection.Called(),
			d.Now.Selection.Short() + " against " + d.Base.Selection.Short()
	case n == 0:
		return sameSettings(d)
	case n > 1:
		short = fmt.Sprintf("%d settings", n)
		if n > 3 {
			return fmt.Sprintf("%s, %d more settings", strings.Join(parts[:2], ", "), n-2), short
		}
		return strings.Join(parts, ", "), short
	}
	return parts[0], names[0]
}

// sameSettings returns the subject of a comparison in which no known setting differs. It names the positions
// if the two sides have none in common. A trace that was imported from a profile does not have all settings,
// and may not name its model.
func sameSettings(d *diff.Diff) (long, short string) {
	unnamed, imported := 0, false
	for _, side := range []*diff.Side{&d.Base, &d.Now} {
		t := side.Index.Trace
		imported = imported || t.Device.Name == trace.ImportedDevice
		if t.Model.Name == "" {
			unnamed++
		}
	}
	switch {
	case unnamed == 1:
		return "Possibly another model (one side does not name it)", "Possibly another model"
	case unnamed == 2:
		return "Possibly another model (neither side names it)", "Possibly another model"
	case imported:
		return "No known setting differs", "No known setting differs"
	}
	if other := otherPositions(d); other != "" {
		return "Same settings, " + other, "Other positions"
	}
	return "Same settings", "Same settings"
}

// otherPositions names the positions of both sides if they have none in common. It returns "" if they have,
// or if one side is the profile of another engine, whose positions are not known.
func otherPositions(d *diff.Diff) string {
	now, base := positions(&d.Now), positions(&d.Base)
	if d.Now.Index.Trace.Engine != "" || d.Base.Index.Trace.Engine != "" ||
		now[1] >= base[0] && base[1] >= now[0] {
		return ""
	}
	return fmt.Sprintf("positions %d–%d instead of %d–%d", now[0], now[1], base[0], base[1])
}

// positions returns the first and the last position of the compared steps of a side.
func positions(s *diff.Side) [2]int {
	t := s.Index.Trace
	first := t.Steps[s.Selection.Steps[0]].Position
	of := [2]int{first, first}
	for _, step := range s.Selection.Steps {
		p := t.Steps[step].Position
		of = [2]int{min(of[0], p), max(of[1], p)}
	}
	return of
}

// subject names one setting that differs, with its values and without them.
func subject(d *diff.Diff, c settings.Change) (long, short string) {
	words := map[settings.Kind][2]string{
		settings.Fusion: {"Fusion", "No fusion"}, settings.Static: {"Static grids", "Dynamic grids"},
	}[c.Kind]
	switch {
	case words[0] != "" && c.Base == settings.Off:
		return words[0], words[0]
	case words[1] != "" && c.Now == settings.Off:
		return words[1], words[1]
	case c.Kind == settings.Fusion:
		return "Fusion rules " + c.Now + " instead of " + c.Base, "Other fusion rules"
	case c.Kind == settings.Kernels:
		return "Another source of " + c.Now, "Another kernel source"
	case c.Kind == settings.Routes:
		return "Routes " + given(c.Now) + " instead of " + given(c.Base), "Other routes"
	case c.Kind == settings.Cache:
		return fmt.Sprintf("%s %s instead of %s", c.Kind, c.Now, c.Base), fmt.Sprintf("%s %s", c.Kind, c.Now)
	}
	long = fmt.Sprintf("%s %s instead of %s", title(string(c.Kind)), c.Now, c.Base)
	if c.Kind == settings.Model && c.Now == c.Base {
		long = "Model " + c.Now + " with " + sizes(d)
	}
	return long, "Another " + string(c.Kind)
}

// sizes lists the sizes in which two models of one name differ: at most two, and the number of the others.
func sizes(d *diff.Diff) string {
	list := settings.ModelSizes(&d.Base.Index.Trace.Model, &d.Now.Index.Trace.Model)
	var parts []string
	for _, s := range list[:min(2, len(list))] {
		parts = append(parts, report.SizeInstead(s))
	}
	if more := len(list) - len(parts); more > 0 {
		parts = append(parts, table.Plural(more, "more size"))
	}
	return strings.Join(parts, ", ")
}

// given returns the value of an optional setting, or "by default" if it is not set.
func given(value string) string {
	if value == "" {
		return "by default"
	}
	return value
}

// Outcome says in one sentence what the difference between the two sides changed in total, and where:
// "Fusion: 5.10 ms faster (513 → 508 ms a decode step), 96 of 412 dispatches fewer; most in mlp.gate+up, -3.2
// ms". If an operator differs significantly but the total does not, the operator comes first: "Another source
// of gemv.4: mlp.gate+up +34.7 µs (+21 %); step: no significant difference (1.54 → 1.59 ms)". It returns the
// sentence in several lengths, longest first.
func Outcome(d *diff.Diff) []string {
	long, short := Subject(d)
	total, where, fewer := totalWords(d), places(d), count(d)
	if where.found && total.noise != "" {
		part, step := ": "+where.part, "; step: "+total.said+" ("+total.times
		return []string{
			long + part + step + rates(d) + total.noise + ")" + fewer,
			long + part + step + total.noise + ")" + fewer,
			long + part + step + ")", long + part, short + part, short + ": " + where.name,
		}
	}
	result, brief := long+": "+total.said, short+": "+total.said
	if total.times == "" {
		return []string{result + fewer + where.long, result + where.short, result, brief}
	}
	times := " (" + total.times + ")"
	list := []string{
		result + " (" + total.times + rates(d) + total.noise + ")" + fewer + where.long,
		result + " (" + total.times + total.noise + ")" + fewer + where.long,
		result + " (" + total.times + total.noise + ")" + fewer + where.short,
		result + times + fewer + where.short,
	}
	if !where.found { // both times say more than that no operator differs
		return append(list, result+times+fewer, result+times, brief+times, brief+total.timed)
	}
	return append(list, result+times+where.short, result+total.timed+where.short,
		brief+total.timed+where.short, brief+total.timed)
}

// totalText says how the time of a step changed.
type totalText struct {
	said  string // "5.10 ms faster"
	times string // "513 → 508 ms a decode step"; "" if the times were not compared
	noise string // "; noise ± 6.1 ms" if the difference is not significant
	timed string // " with timing" if timing made the steps longer, for texts without `times`
}

func totalWords(d *diff.Diff) totalText {
	total := d.Step()
	switch {
	case total == nil && d.Isolated.Both():
		t := textOf(&d.Isolated, "")
		t.times += " of isolated times"
		return t
	case total == nil:
		return totalText{said: "step times not measured on both sides"}
	case total.Why != "":
		return totalText{said: "step times not compared, because " + total.Why}
	}
	of := ""
	if total.Measure == diff.Span {
		of = " on the GPU"
	}
	t := textOf(&total.Times, of)
	step := "step"
	switch phase := phaseOf(d); phase {
	case "":
	case trace.Execute:
		step = "execution"
	default:
		step = string(phase) + " step"
	}
	if total.Timed {
		step, t.timed = "timed "+step, " with timing"
	}
	article := " a "
	if strings.HasPrefix(step, "e") {
		article = " an "
	}
	t.times += article + step
	return t
}

// phaseOf returns the phase of the selected steps, or "" if they have several.
func phaseOf(d *diff.Diff) (phase trace.Phase) {
	for _, side := range []*diff.Side{&d.Base, &d.Now} {
		for _, step := range side.Selection.Steps {
			of := side.Index.Trace.Steps[step].Phase
			if phase != "" && phase != of {
				return ""
			}
			phase = of
		}
	}
	return phase
}

// textOf compares two times. `of` says what they are times of, unless it is whole steps.
func textOf(t *diff.Times, of string) (text totalText) {
	from, to := table.MillisBare(int64(t.Base.NS), true), table.Millis(int64(t.Now.NS), true)
	text.times = from + " → " + to
	switch {
	case !t.Known:
		text.said = "too few times to compare" + of
	case !t.Significant:
		text.said, text.noise = "no significant difference"+of, "; noise ± "+millis(t.NoiseNS)
	default:
		text.said = millis(math.Abs(t.DeltaNS)) + " " + Verdict(t) + of
	}
	return text
}

// millis formats a time in ns in ms or, if it is short, in µs.
func millis(ns float64) string {
	if ns < 1e5 {
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return table.Millis(int64(ns), true)
}

// rates returns the rates of both sides in tokens per second, or "".
func rates(d *diff.Diff) string {
	t := d.Total(diff.Selected, diff.Wall)
	if t == nil || t != d.Step() {
		return ""
	}
	base, now, ok := t.TokensPerS()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %s → %s tokens/s", table.Digits(base), table.Digits(now))
}

// count says by how many dispatches the second side has fewer or more than the first. It returns "" if both
// have the same number.
func count(d *diff.Diff) string {
	switch base, now := d.Dispatches(); {
	case now < base:
		return fmt.Sprintf(", %d of %d dispatches fewer", base-now, base)
	case now > base:
		return fmt.Sprintf(", %s more than %d", table.Plural(now-base, "dispatch"), base)
	}
	return ""
}

// place says where most of a difference is: with figures and without.
type place struct {
	long, short string
	found       bool   // an operator is named
	name, part  string // the name of this operator, and the name with its difference; "" if none is named
}

// nowhere says that no operator differs significantly. If some operators are on one side only, it says how
// many were compared. The sign is that of the difference of the whole step, or 0.
func nowhere(d *diff.Diff, sign float64) place {
	ops, both, compared := d.GroupsBy(diff.ByOp), 0, 0
	for _, g := range ops {
		if g.Base > 0 && g.Now > 0 {
			both++
		}
		if g.Times.Known {
			compared++
		}
	}
	differs := " differs"
	if sign != 0 {
		differs = map[bool]string{true: " is faster", false: " is slower"}[sign < 0]
	}
	none, short := "; no operator", "; no operator exceeds the noise"
	switch {
	case len(ops) > 0 && both == 0:
		return place{long: "; no operator is on both sides", short: "; no operator on both sides"}
	case compared == 0:
		return place{} // too few times of every operator
	case both < len(ops):
		none = "; of " + table.Plural(compared, "compared operator") + ", none"
		short = "; no compared operator exceeds the noise"
	}
	return place{long: none + differs + " by more than the noise", short: short}
}

// places names the operator with the largest significant difference.
func places(d *diff.Diff) place {
	if !d.Isolated.Both() {
		return place{long: "; where is unknown: dispatches not timed on both sides", short: "; dispatches not timed"}
	}
	whole, sign := &d.Isolated, 0.0
	if d.Isolated.Significant {
		sign = d.Isolated.DeltaNS
	}
	if total := d.Step(); total != nil && total.Times.Significant {
		whole, sign = &total.Times, total.Times.DeltaNS
	}
	g := d.Most(sign)
	if g == nil {
		return nowhere(d, sign)
	}
	// If one side has fewer dispatches, its GPU is idle for less time. Most of the difference is then idle
	// time, and no operator has much of it.
	where := "; largest in "
	if math.Abs(g.Times.DeltaNS) >= math.Abs(whole.DeltaNS)/2 {
		where = "; most in "
	}
	difference := Difference(&g.Times)
	if g.Base != g.Now {
		difference += fmt.Sprintf(", %d → %d dispatches", g.Base, g.Now)
	}
	text := where + g.Name + ", " + difference
	if whole != &d.Isolated && math.Abs(d.Isolated.DeltaNS) < math.Abs(whole.DeltaNS)/2 {
		text += "; all isolated times together " + Difference(&d.Isolated)
	}
	return place{text, where + g.Name, true, g.Name, g.Name + " " + difference}
}
