package html

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report/advice"
	_ "gpuscope/trace/report/all" // registers the tables
	"gpuscope/trace/report/comparison"
	"gpuscope/trace/table"
)

//go:embed page.tmpl
var pageText string

//go:embed page.css
var css string

//go:embed page.js
var script string

// page returns the template of the page. It is parsed when first needed, because most commands write no page.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(pageText))
})

// Page is the content of a report.
type Page struct {
	Title    string
	Subtitle string // device, steps and date
	Policy   string // Content-Security-Policy
	Style    template.CSS
	Script   template.JS

	Headline headlineView
	Facts    []fact
	Speed    []string // rates of each phase, and what limits a step
	Timeline *timelineView
	// Roofline has a chart for each phase. NoRoofline is the reason why there is no chart.
	Roofline   []*chart
	NoRoofline string
	Cost       *tableView
	Growth     growthView
	Waste      wasteView
	Resize     resizeView
	Tables     []*tableView
	Diff       *tableView // nil without a comparison

	places places
}

// section is a section of the page.
type section struct{ ID, Name string }

// Sections lists the sections of the page in order.
func (p *Page) Sections() []section {
	list := []section{
		{"headline", "Fix first"},
		{"summary", "Summary"},
		{"timeline", "Timeline"},
		{"roofline", "Roofline"},
		{"cost", "Cost"},
		{"growth", "Growth"},
		{"waste", "Waste"},
		{"resize", "Resize"},
		{"tables", "Tables"},
	}
	if p.Diff != nil {
		list = append(list, section{"diff", "Diff"})
	}
	return list
}

// fact is a line of the summary.
type fact struct{ Name, Value string }

// headlineView is the headline with its numbers as text.
type headlineView struct {
	advice.Advice
	Steps string // the steps that the headline is about: "decode, 199 steps"
	Rates []rateView
	Share *bar // share of the row to fix first; nil if not known
}

// Parts returns First in parts. A line may end after each part: at the ends of the words of a name such as
// "mlp.gate+up".
func (v *headlineView) Parts() []string {
	return strings.Split(joint.ReplaceAllString(v.First, "$1\n$2"), "\n")
}

// joint matches the places between the words of a name. A decimal point is not one.
var joint = regexp.MustCompile(`([+.])(\pL)`)

// rateView is a speed in the headline.
type rateView struct{ Label, Value, Unit string }

// bar is a bar whose length is a share. Class is the CSS class that sets the length.
type bar struct{ Class, Text string }

// Options says what a report contains besides the trace.
type Options struct {
	// Name is what the page calls the trace, usually the name of its file.
	Name string
	// Diff is a comparison of the trace with another one, which the page shows. It may be nil.
	Diff *diff.Diff
}

// Write writes the report of a trace.
func Write(ctx context.Context, w io.Writer, x *analyze.Index, o Options) error {
	p, err := newPage(ctx, x, o)
	if err != nil {
		return err
	}
	return p.write(w)
}

func (p *Page) write(w io.Writer) error {
	style := css + p.places.css()
	p.Style, p.Script = template.CSS(style), template.JS(script)
	// The hashes allow exactly this style and this script. The page loads nothing.
	p.Policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hash(style) +
		"; script-src " + hash(script)
	var b bytes.Buffer
	if err := page().Execute(&b, p); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// hash returns the source expression of a Content-Security-Policy that allows an inline style or script.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func newPage(ctx context.Context, x *analyze.Index, o Options) (*Page, error) {
	t := x.Trace
	p := &Page{Title: clean(cmp.Or(t.Model.Name, o.Name)), places: places{}}
	p.Subtitle = strings.Join(nonEmpty(clean(t.Device.Name), steps(t), date(t), clean(o.Name)), " · ")
	p.Facts = facts(x)
	selection := headline.Steps(x)
	var first *headline.Headline
	if len(selection.Steps) > 0 {
		var err error
		if first, err = headline.Of(ctx, x, selection); err != nil {
			return nil, err
		}
	}
	p.headline(first)
	for _, add := range []func(context.Context, *analyze.Index, *headline.Headline) error{
		p.speed, p.timeline, p.roofline, p.cost, p.growth, p.waste, p.resize, p.tables,
	} {
		if err := add(ctx, x, first); err != nil {
			return nil, err
		}
	}
	if o.Diff == nil {
		return p, nil
	}
	made := comparison.Of(o.Diff, false)
	var err error
	if p.Diff, err = p.viewOf(ctx, made, ""); err != nil {
		return nil, err
	}
	if p.Diff == nil { // no row differs
		p.Diff = &tableView{Name: made.Name, Notes: cleaned(made.Notes)}
		for _, l := range made.Title {
			p.Diff.Lines = append(p.Diff.Lines, l.String())
		}
	}
	return p, nil
}

// clean makes a text from a trace safe to show: without control characters and not too long.
func clean(s string) string { return printable.Short(printable.Clean(s), 200) }

// cleaned returns a list of texts without control characters.
func cleaned(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = printable.Clean(s)
	}
	return out
}

func nonEmpty(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func steps(t *trace.Trace) string { return table.Plural(len(t.Steps), "step") }

// firstPrompt returns the start of the first prompt of the run.
func firstPrompt(t *trace.Trace) string {
	const most = 300 // characters
	for _, e := range t.Events {
		if e.Prompt != "" {
			return printable.Short(e.Prompt, most)
		}
	}
	return ""
}

// date returns the day of the recording.
func date(t *trace.Trace) string {
	day, _, _ := strings.Cut(t.Created, "T")
	return clean(day)
}

// headline fills in the headline. h is nil if the trace has no steps.
func (p *Page) headline(h *headline.Headline) {
	if h == nil {
		p.Headline.First = "The trace has no steps, so there is nothing to fix."
		return
	}
	v := &p.Headline
	v.Advice = advice.Of(h)
	v.First, v.Basis = printable.Clean(v.First), cleaned(v.Basis)
	v.Steps = h.Selection.Called()
	if n := len(h.Selection.Steps); n > 1 {
		v.Steps += ", " + table.Plural(n, "warm step")
	}
	add := func(label, mark string, rate float64) {
		if rate > 0 && h.Rate > 0 {
			v.Rates = append(v.Rates, rateView{label, mark + table.Digits(rate), h.Pace.Unit()})
		}
	}
	add("now, measured", "", h.Rate)
	wall, _ := h.Pace.Wall.NS()
	switch f := h.First; {
	case h.Idle != nil:
		add("with no idle time, modelled", "~", h.Idle.Rate)
		v.share(p.places, "the GPU's idle time", float64(h.Idle.NS)/float64(max(1, wall)))
	case f != nil:
		twice := "twice as fast there, modelled"
		if f.TwiceBeyondCeilings() {
			twice += ", beyond the ceilings"
		}
		add(twice, "~", f.Twice)
		add("at the device's ceilings there, modelled", "~", f.AtLimit)
		v.share(p.places, clean(f.Name), f.Share)
	}
}

// share adds the bar of the row to fix first. The argument `share` is the row's share of a step.
func (v *headlineView) share(p places, what string, share float64) {
	if share > 0 {
		v.Share = &bar{p.width(share), fmt.Sprintf("%s: %.0f %% of a step", what, 100*share)}
	}
}

// facts lists what ran, where and when.
func facts(x *analyze.Index) (list []fact) {
	t := x.Trace
	add := func(name string, values ...string) {
		if v := strings.Join(nonEmpty(values...), ", "); v != "" {
			list = append(list, fact{name, clean(v)})
		}
	}
	parameters, layers := "", ""
	if t.Model.Parameters > 0 {
		parameters = table.Scaled(float64(t.Model.Parameters), "") + " parameters"
	}
	if t.Model.Layers > 0 {
		layers = table.Plural(t.Model.Layers, "layer")
	}
	add("model", t.Model.Name, t.Model.Architecture, strings.Replace(parameters, "  ", " ", 1), layers,
		t.Model.Quantization)
	add("device", t.Device.Name, t.Device.Backend, t.Device.Driver, string(t.Device.AdapterType))
	add("engine", t.Engine)
	add("host", t.Host.OS+"/"+t.Host.Arch, table.Plural(t.Host.CPUs, "CPU"))
	add("recorded", t.Created)
	add("by", strings.TrimSpace(t.Producer.Name+" "+t.Producer.Version))
	add("command", strings.Join(t.Command, " "))
	add("prompt", firstPrompt(t))
	add("graph", table.Plural(len(t.Graph.Ops), "operator"), table.Plural(len(t.Graph.Dispatches), "dispatch slot"))
	if n := len(t.Steps); n > 0 {
		s := &t.Steps[n-1]
		add("memory", table.Memory(s.Memory.AllocatedBytes)+" allocated on the device",
			table.Memory(s.Memory.LiveBytes)+" needed in the last step")
	}
	if t.DroppedSteps > 0 {
		add("missing", "the first "+table.Plural(t.DroppedSteps, "step")+" of the run were not kept")
	}
	return list
}
