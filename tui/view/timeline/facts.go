package timeline

import (
	"fmt"
	"regexp"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// duration formats a time with three significant digits, in the unit that suits it.
func duration(ns int64) string {
	switch v := float64(ns); {
	case ns < 0:
		return "-" + duration(-max(ns, -timeline.AxisEnd))
	case ns < 1000:
		return fmt.Sprintf("%d ns", ns)
	case ns < 999_500:
		return table.Digits(v/1e3) + " µs"
	case ns < 999_500_000:
		return table.Digits(v/1e6) + " ms"
	default:
		return table.Digits(v/1e9) + " s"
	}
}

// instant formats a time since the start of the axis, exact to the µs.
func instant(ns int64) string {
	if ns >= 100e9 {
		return fmt.Sprintf("%.6f s", float64(ns)/1e9)
	}
	return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
}

// figure matches a number and its unit.
var figure = regexp.MustCompile(`([0-9]) (ns|µs|ms|s|%)`)

// wrapped breaks a line into lines of w cells. It does not separate a number from its unit.
func wrapped(l string, w int) []string {
	const noBreak = "\u00a0"
	lines := widget.WrapIndented(figure.ReplaceAllString(printable.Clean(l), "$1"+noBreak+"$2"), w)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], noBreak, " ")
	}
	return lines
}

// facts returns lines about the cursor. The first line names its item.
func (p *Page) facts(o *timeline.Overview) []string {
	if p.at.Step < 0 || p.at.Step >= len(p.now.Trace.Steps) {
		return nil
	}
	var lines []string
	switch it := &p.at.Item; {
	case p.at.Idle:
		lines = p.idle(o, it)
	case it.Unmeasured:
		lines = p.unmeasured(it)
	default:
		lines = []string{p.describe(o, it)}
		if it.Track == timeline.GPUSteps {
			lines = append(lines, p.idleBefore(o, it)...)
		}
	}
	if said := p.inCell(o); said != "" {
		lines = append(lines, said)
	}
	for i := range lines {
		lines[i] = printable.Clean(lines[i])
	}
	return lines
}

// stepName returns the number and the phase of a step.
func (p *Page) stepName(step int) string {
	s := &p.now.Trace.Steps[step]
	return fmt.Sprintf("s%d %s", s.Index, s.Phase)
}

// describe returns a line about an item whose time was measured.
func (p *Page) describe(o *timeline.Overview, it *timeline.Item) string {
	s := &p.now.Trace.Steps[it.Step]
	parts := []string{"", "starts at " + instant(o.Real(it.From))}
	if it.Assumed {
		parts[1] = "start not measured"
	}
	switch it.Track {
	case timeline.HostSteps:
		parts[0] = fmt.Sprintf("%s on the CPU: %s", p.stepName(it.Step), duration(it.NS))
		if s.Token != nil {
			parts = append(parts, fmt.Sprintf("token %q", s.Text))
		}
	case timeline.HostPhases:
		parts[0] = fmt.Sprintf("s%d %s on the CPU: %s", s.Index, it.Name, duration(it.NS))
	case timeline.GPUSteps:
		parts[0] = fmt.Sprintf("%s on the GPU: %s", p.stepName(it.Step), duration(it.To-it.From))
		if s.Timing == trace.TimingDispatch || s.Timing == trace.TimingBlock {
			parts[0] += ", busy " + duration(it.NS)
		}
		parts = append(parts, widget.Plural(it.Slices, "dispatch"))
	case timeline.GPULayers:
		parts[0] = fmt.Sprintf("s%d %s: %s", s.Index, it.Name, duration(it.To-it.From))
		if s.Timing == trace.TimingDispatch {
			parts[0] += ", busy " + duration(it.NS)
		}
		parts = append(parts, widget.Plural(it.Slices, "dispatch"))
	case timeline.GPUDispatches:
		id := p.dispatch(it)
		parts[0] = fmt.Sprintf("s%d %s: %s", s.Index, p.now.Index.Name(id), duration(it.NS))
		plan := &p.now.Trace.Plans[s.Dispatches[it.At].Plan]
		parts = append(parts, "kernel "+plan.Kernel, "grid "+table.Grid(plan.Workgroups),
			fmt.Sprintf("#%d", id))
	}
	return strings.Join(parts, " · ")
}

// unmeasured returns lines about a period in which the work on the item's track was not measured.
func (p *Page) unmeasured(it *timeline.Item) []string {
	s := &p.now.Trace.Steps[it.Step]
	how := "record with --timing dispatch to place them on the axis"
	if p.now.Live {
		how = command.Keyed("press {timing} and choose dispatch, then run a step, to place them on the axis")
	}
	n := it.Slices
	if n == 0 {
		n = len(s.Dispatches)
	}
	switch {
	case !it.Track.OnGPU():
		return []string{p.stepName(it.Step) + ": not measured on the CPU"}
	case p.now.Trace.Device.None():
		return []string{p.stepName(it.Step) + ": planned, not run"}
	case it.Track == timeline.GPUSteps:
		return []string{fmt.Sprintf("%s: not measured on the GPU (timing level %s)", p.stepName(it.Step),
			s.Timing)}
	}
	return []string{
		fmt.Sprintf("%s: %s, not timed one by one (timing level %s)", p.stepName(it.Step),
			widget.Plural(n, "dispatch"), s.Timing),
		how,
	}
}

// idle returns lines about the idle time before an item.
func (p *Page) idle(o *timeline.Overview, it *timeline.Item) []string {
	what := "GPU idle"
	if !it.Track.OnGPU() {
		what = "no recorded work on the CPU"
	}
	before, after := "", p.stepName(it.Step)
	for step := it.Step; step >= max(0, it.Step-1) && before == ""; step-- {
		list := p.items(o, step)
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].To > it.From {
				continue
			}
			if before = p.stepName(step); step == it.Step {
				before = p.nameOf(&list[i])
				for k := range list {
					if list[k].At == it.At {
						after = p.nameOf(&list[k])
					}
				}
			}
			break
		}
	}
	length := duration(o.Real(it.To) - o.Real(it.From))
	lines := []string{fmt.Sprintf("%s for %s before %s", what, length, after)}
	if before != "" {
		lines[0] = fmt.Sprintf("%s for %s between %s and %s", what, length, before, after)
	}
	if it.Track.OnGPU() {
		lines = append(lines, p.meanwhile(o, it.Step, it.From, it.To))
	}
	return lines
}

// nameOf returns the name of an item inside a step.
func (p *Page) nameOf(it *timeline.Item) string {
	if it.Track == timeline.GPUDispatches && !it.Unmeasured {
		return p.now.Index.Name(p.dispatch(it))
	}
	return it.Name
}

// idleBefore returns lines about the idle time of the GPU before a step.
func (p *Page) idleBefore(o *timeline.Overview, it *timeline.Item) []string {
	if it.Step == 0 {
		return nil
	}
	list := p.lists.of(o, it.Step-1, timeline.GPUSteps)
	if len(list) == 0 || list[0].Unmeasured || list[0].To >= it.From {
		return nil
	}
	from := list[0].To
	said := "GPU idle before it: " + duration(o.Real(it.From)-o.Real(from))
	if it.Assumed || list[0].Assumed {
		return nil
	}
	return []string{said + ". " + p.meanwhile(o, it.Step, from, it.From)}
}

// meanwhile says what the CPU did between two instants. It lists the recorded phases of the given step and
// of the steps before and after it.
func (p *Page) meanwhile(o *timeline.Overview, step int, from, to int64) string {
	var parts []string
	length := o.Real(to) - o.Real(from)
	rest, known := length, false
	for k := max(0, step-1); k <= min(step+1, o.Steps()-1); k++ {
		var of []string
		for _, it := range p.lists.of(o, k, timeline.HostPhases) {
			known = known || !it.Unmeasured
			if ns := min(it.To, to) - max(it.From, from); ns > 0 && !it.Unmeasured {
				of = append(of, it.Name+" "+duration(ns))
				rest -= ns
			}
		}
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf("s%d %s", p.now.Trace.Steps[k].Index, strings.Join(of, ", ")))
		}
	}
	if !known {
		return "What the CPU did meanwhile was not recorded."
	}
	if rest > length/50 {
		parts = append(parts, "outside of recorded phases "+duration(rest))
	}
	return "CPU meanwhile: " + strings.Join(parts, "; ")
}

// inCell says what else is in the cell of the cursor, summed by layer.
func (p *Page) inCell(o *timeline.Overview) string {
	w := p.windowOf(o)
	c := w.CellOf(p.spot(o))
	row := min(int(p.at.Track)+p.at.Lane, len(w.Rows)-1)
	if c < 0 || c >= len(w.Rows[row].Cells) || p.at.Idle {
		return ""
	}
	cell := &w.Rows[row].Cells[c]
	if cell.Slices < 2 || p.at.To-p.at.From >= timeline.Least*p.cell(o) {
		return ""
	}
	what := map[timeline.Track]string{
		timeline.HostSteps: "step", timeline.HostPhases: "phase", timeline.GPUSteps: "step",
		timeline.GPULayers: "layer", timeline.GPUDispatches: "dispatch",
	}[p.at.Track]
	length := w.Bound(c+1) - w.Bound(c)
	said := fmt.Sprintf("This cell (%s) has %s", duration(length), widget.Plural(cell.Slices, what))
	if cell.BusyNS > 0 {
		said += ": busy " + percent(cell.BusyNS, length)
	}
	if p.at.Track == timeline.GPULayers || p.at.Track == timeline.GPUDispatches {
		var of []string
		for i, s := range w.Sums(timeline.GPULayers, c, c+1) {
			if i == 4 {
				of = append(of, "…")
				break
			}
			of = append(of, s.Name+" "+percent(s.NS, length))
		}
		said += " (" + strings.Join(of, ", ") + ")"
	}
	return said + command.Keyed(". Press {closer} to zoom in.")
}

// percent returns a share in whole percent.
func percent(part, of int64) string {
	v := 100 * float64(part) / float64(max(1, of))
	if v > 0 && v < 1 {
		return "<1 %"
	}
	return fmt.Sprintf("%.0f %%", v)
}

// sums returns at most n lines that summarize the drawn part: the busy shares of the GPU and the CPU and,
// if there is room, the kernels and layers with their times.
func (p *Page) sums(t *widget.Theme, w *timeline.Window, width, n int) []string {
	length := w.To - w.From
	for _, pause := range p.job.Value.Pauses {
		length -= max(0, min(pause.To, w.To)-max(pause.From, w.From))
	}
	var lines []string
	add := func(s string) {
		if len(lines) < n {
			lines = append(lines, widget.Cut(s, width))
		}
	}
	phases := w.Sums(timeline.HostPhases, 0, p.width)
	spans, _ := w.Rows[timeline.GPUSteps].Total()
	busy, _ := w.Rows[timeline.GPULayers].Total()
	gpu := []string{"GPU: in steps " + percent(spans, length)}
	if busy > 0 {
		gpu = append(gpu, "busy "+percent(busy, length))
	}
	if spans == 0 {
		gpu = []string{"GPU: not measured"}
	}
	cpu := []string{}
	rest := length
	for _, s := range phases {
		cpu = append(cpu, s.Name+" "+percent(s.NS, length))
		rest -= s.NS
	}
	if len(cpu) > 0 && rest > length/100 {
		cpu = append(cpu, "outside of recorded phases "+percent(rest, length))
	}
	if len(cpu) == 0 {
		cpu = []string{"not measured"}
	}
	shown := "Shown: "
	if length < w.To-w.From {
		shown = "Shown, without pauses: "
	}
	said := wrapped(shown+strings.Join(gpu, ", ")+" · CPU: "+strings.Join(cpu, ", "), width-2)
	if n > len(said)+1 {
		add("")
	} else {
		said = said[:1]
	}
	for _, l := range said {
		add(" " + l)
	}
	if n-len(lines) < 4 {
		return lines
	}
	add("")
	head := []string{"Kernels in the shown part", "Layers and other operators"}
	left, right, of := w.Kernels, w.Sums(timeline.GPULayers, 0, p.width), [2]int64{busy, busy}
	if busy == 0 { // no dispatch was timed
		head, left, right, of = []string{"CPU in the shown part", ""}, phases, nil, [2]int64{length, 1}
	}
	half := width/2 - 2
	if width < 100 {
		half, right = width-2, nil
	}
	title := t.Put(widget.Strong, widget.Fit(" "+head[0], half))
	if right != nil {
		title += "  " + t.Put(widget.Strong, head[1])
	}
	add(title)
	for i := 0; len(lines) < n && i < max(len(left), len(right)); i++ {
		l := " " + bar(t, left, i, of[0], half-1)
		if right != nil {
			l += "  " + bar(t, right, i, of[1], half-1)
		}
		add(l)
	}
	return lines
}

// bar returns a line of a list: a name, its time, its share and a bar; w cells in all.
func bar(t *widget.Theme, list []timeline.Sum, i int, of int64, w int) string {
	if i >= len(list) {
		return widget.Blank(w)
	}
	s := &list[i]
	const most = 16
	filled := int(float64(s.NS)/float64(max(1, list[0].NS))*most + 0.5)
	figures := widget.FitLeft(duration(s.NS), 9) + widget.FitLeft(percent(s.NS, of), 6) + " "
	name := widget.Fit(printable.Clean(s.Name), max(8, w-most-widget.Width(figures)))
	return name + figures + t.Put(widget.GraphA, strings.Repeat("█", filled)) + widget.Blank(most-filled)
}
