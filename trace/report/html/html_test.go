package html_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/analyzetest"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/report"
	"gpuscope/trace/report/advice"
	"gpuscope/trace/report/html"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

var ctx = context.Background()

// fataler is a test or a property test.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func write(t fataler, tr *trace.Trace, o html.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.Write(ctx, &b, analyze.NewIndex(tr), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// costed returns a run on a GPU with costs in its last step.
func costed(t *testing.T, layers, steps int) *trace.Trace {
	t.Helper()
	tr := tracetest.Llama(layers, steps)
	if err := analyzetest.Cost(tr, len(tr.Steps)-1); err != nil {
		t.Fatal(err)
	}
	return tr
}

// element is a parsed element of a page.
type element struct {
	XMLName  xml.Name
	ID       string    `xml:"id,attr"`
	Class    string    `xml:"class,attr"`
	Label    string    `xml:"aria-label,attr"`
	Value    *string   `xml:"data-v,attr"`
	Children []element `xml:",any"`
	Text     string    `xml:",chardata"`
}

var scripts = regexp.MustCompile(`(?s)<(script|style)\b[^>]*>(.*?)</(script|style)>`)

// parse returns the body of a page. Scripts and styles are left out.
func parse(t fataler, page string) *element {
	t.Helper()
	page = page[strings.Index(page, "<body>"):]
	d := xml.NewDecoder(strings.NewReader(scripts.ReplaceAllString(page, "")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	body := new(element)
	if err := d.Decode(body); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return body
}

// find returns the elements for which a condition holds.
func (e *element) find(is func(*element) bool) (list []*element) {
	if is(e) {
		list = append(list, e)
	}
	for i := range e.Children {
		list = append(list, e.Children[i].find(is)...)
	}
	return list
}

func named(name string) func(*element) bool {
	return func(e *element) bool { return e.XMLName.Local == name }
}

func classed(class string) func(*element) bool {
	return func(e *element) bool { return slices.Contains(strings.Fields(e.Class), class) }
}

// text returns the text of an element and of all elements inside it.
func (e *element) text() string {
	text := e.Text
	for i := range e.Children {
		text += e.Children[i].text()
	}
	return text
}

// tableOf returns the cells of a table of the page: its headings, then its rows.
func tableOf(t fataler, body *element, name string) (cells [][]*element) {
	t.Helper()
	boxes := body.find(func(e *element) bool { return e.Label == "Table "+name })
	if len(boxes) != 1 {
		t.Fatal(len(boxes), "tables are called", name)
	}
	for _, row := range boxes[0].find(named("tr")) {
		cells = append(cells, row.find(func(e *element) bool {
			return e.XMLName.Local == "td" || e.XMLName.Local == "th"
		}))
	}
	return cells
}

func TestTablesAreThoseOfTheCommands(t *testing.T) {
	t.Parallel()
	tr := costed(t, 2, 6)
	x, body := analyze.NewIndex(tr), parse(t, write(t, tr, html.Options{}))
	for _, name := range []string{"cost", "cost-groups", "steps", "profile", "memory"} {
		kind, err := report.TableNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		o := analyze.Options{}
		if kind.Takes == report.OneStep {
			o.Selection = x.Step(len(tr.Steps) - 1)
		}
		want, err := kind.Of(ctx, x, o)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := want.Select(ctx, table.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		cells := tableOf(t, body, name)
		if len(cells) != len(rows)+1 {
			t.Fatalf("%s has %d rows, want %d", name, len(cells)-1, len(rows))
		}
		for k, head := range cells[0] {
			title, _, _ := strings.Cut(head.text(), " µs")
			col := slices.IndexFunc(want.Columns, func(c table.Column) bool {
				return c.Title == head.text() || c.Title == title || strings.HasPrefix(head.text(), c.Title+" ")
			})
			if col < 0 {
				t.Errorf("%s has a column %q", name, head.text())
				continue
			}
			for i, row := range rows {
				cell, got := want.Cell(row, col), cells[i+1][k]
				if got.text() != cell.Text {
					t.Errorf("%s, row %d, %s: %q, want %q", name, i, head.text(), got.text(), cell.Text)
				}
				if got.Value == nil {
					continue
				}
				if v, err := strconv.ParseFloat(*got.Value, 64); err != nil ||
					math.Abs(v-cell.Number) > 1e-5*math.Abs(cell.Number) {
					t.Errorf("%s, row %d, %s: sorted by %s, want %g", name, i, head.text(), *got.Value,
						cell.Number)
				}
			}
		}
	}
}

// The slopes of a slow device are shown in ms or s, but the numbers of their cells are in µs.
func TestSlopesOfASlowDeviceSortByTheirNumbers(t *testing.T) {
	t.Parallel()
	for slow, unit := range map[int64]string{1: "µs", 1e4: "ms", 1e7: "s"} {
		tr := tracetest.Llama(2, 40)
		for i := range tr.Steps {
			s := &tr.Steps[i]
			times := []*trace.Time{&s.GPU.BusyNS, &s.GPU.SpanNS, &s.CPU.TotalNS}
			for k := range s.Dispatches {
				times = append(times, &s.Dispatches[k].GPUNS)
			}
			for _, at := range times {
				if ns, ok := at.NS(); ok {
					*at = trace.Measured(slow * ns)
				}
			}
		}
		kind, err := report.TableNamed("slope")
		if err != nil {
			t.Fatal(err)
		}
		want, err := kind.Of(ctx, analyze.NewIndex(tr), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cells := tableOf(t, parse(t, write(t, tr, html.Options{})), "slope")
		for _, c := range []struct{ name, heading string }{
			{"slope_us", unit + "/1k pos"},
			{"error_us", "± " + unit},
		} {
			k := slices.IndexFunc(cells[0], func(e *element) bool { return e.text() == c.heading })
			if k < 0 {
				t.Errorf("times × %d: no column has the heading %q", slow, c.heading)
				continue
			}
			for row := range want.Rows {
				cell, got := want.Cell(row, want.Column(c.name)), cells[row+1][k]
				if !cell.Has {
					continue
				}
				by, off := got.text(), 0.501
				if got.Value != nil {
					by, off = *got.Value, 0.001*max(1, math.Abs(cell.Number))
				}
				v, err := strconv.ParseFloat(by, 64)
				if err != nil || math.Abs(v-cell.Number) > off {
					t.Errorf("times × %d, %s of %s: sorted by %q, want %g", slow, c.name,
						want.Rows[row].Key, by, cell.Number)
				}
			}
		}
	}
}

func TestHeadlineIsThatOfTheAnalysis(t *testing.T) {
	t.Parallel()
	tr := costed(t, 15, 4) // with few layers, the idle time would be first
	x := analyze.NewIndex(tr)
	h, err := headline.Of(ctx, x, headline.Steps(x))
	if err != nil {
		t.Fatal(err)
	}
	body := parse(t, write(t, tr, html.Options{}))
	if got := body.find(classed("first"))[0].text(); got != advice.Of(h).First {
		t.Errorf("the headline is %q, want %q", got, advice.Of(h).First)
	}
	var rates []string
	for _, b := range body.find(classed("rates"))[0].find(named("b")) {
		rates = append(rates, b.text())
	}
	want := []string{
		table.Digits(h.Rate), "~" + table.Digits(h.First.Twice), "~" + table.Digits(h.First.AtLimit),
	}
	if h.First.Twice <= h.Rate || !slices.Equal(rates, want) {
		t.Errorf("rates %v, want %v", rates, want)
	}
}

// On a narrow screen, the name in the headline breaks between its words.
func TestNameInTheHeadlineBreaksBetweenWords(t *testing.T) {
	t.Parallel()
	for _, layers := range []int{1, 15} { // with few layers, the headline begins with the idle time in ms
		page := write(t, tracetest.Llama(layers, 4), html.Options{})
		first := parse(t, page).find(classed("first"))[0].text()
		_, rest, _ := strings.Cut(page, `<p class="first">`)
		line, _, _ := strings.Cut(rest, "</p>")
		parts := strings.Split(strings.ReplaceAll(line, "&#43;", "+"), "<wbr/>")
		if len(parts) < 2 || strings.Join(parts, "") != strings.ReplaceAll(first, "'", "&#39;") {
			t.Errorf("parts %q of %q", parts, first)
		}
		for _, part := range parts {
			if regexp.MustCompile(`[+.][a-z]`).MatchString(part) {
				t.Errorf("%q can break only elsewhere", part)
			}
		}
	}
}

func TestPageHasEverySection(t *testing.T) {
	t.Parallel()
	base := diff.Side{Index: analyze.NewIndex(tracetest.Llama(2, 6)), Name: "base"}
	now := diff.Side{Index: analyze.NewIndex(costed(t, 2, 6)), Name: "now"}
	base.Selection, now.Selection = base.Index.Phase(trace.Decode), now.Index.Phase(trace.Decode)
	d, err := diff.Of(ctx, base, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"headline", "summary", "timeline", "roofline", "cost", "growth", "waste", "resize", "tables", "diff",
	}
	for _, o := range []html.Options{{Diff: d}, {}} {
		body := parse(t, write(t, now.Index.Trace, o))
		var got []string
		for _, s := range body.find(named("section")) {
			got = append(got, s.ID)
		}
		if o.Diff == nil {
			want = want[:len(want)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("sections %v, want %v", got, want)
		}
	}
}

// data is the data of the timeline.
type data struct {
	End                    int64
	Names, Patterns        []string
	Tones                  []int
	Count, Lanes, Max      int
	Steps, Host, GPU       string
	steps, host, gpu       *bytes.Reader
	begin, hostEnd, gpuEnd int64
}

func timelineOf(t fataler, page string) *data {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<script type="application/json" id="timeline-data">`)
	text, _, closed := strings.Cut(rest, "</script>")
	if !ok || !closed {
		t.Fatal("the page has no timeline")
	}
	var d data
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	d.steps, d.host, d.gpu = stream(t, d.Steps), stream(t, d.Host), stream(t, d.GPU)
	return &d
}

func stream(t fataler, text string) *bytes.Reader {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b)
}

func number(t fataler, r *bytes.Reader) int64 {
	t.Helper()
	v, err := binary.ReadUvarint(r)
	if err != nil {
		t.Fatal(err)
	}
	return int64(v)
}

func signed(t fataler, r *bytes.Reader) int64 {
	t.Helper()
	v, err := binary.ReadVarint(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// slice is a decoded slice.
type slice struct {
	from, to, ns int64
	name         string
	lane, count  int
}

// next returns the slices of the next step.
func (d *data) next(t fataler) (index int64, phase string, host, gpu []slice) {
	t.Helper()
	index, phase = number(t, d.steps), d.Names[number(t, d.steps)]
	number(t, d.steps)
	d.begin += signed(t, d.steps)
	number(t, d.steps)
	for n := number(t, d.host); n > 0; n-- {
		s := slice{from: d.hostEnd + signed(t, d.host), count: 1}
		s.to = s.from + number(t, d.host)
		s.ns = s.to - s.from + number(t, d.host)
		s.name = d.Names[number(t, d.host)]
		if d.hostEnd = s.to; len(host) == 0 && s.name == phase {
			d.hostEnd = s.from
		}
		host = append(host, s)
	}
	n, pattern := number(t, d.gpu), number(t, d.gpu)
	var names *bytes.Reader
	if pattern > 0 {
		names = stream(t, d.Patterns[pattern-1])
	}
	for range n {
		s := slice{from: d.gpuEnd + signed(t, d.gpu), count: 1}
		s.to = s.from + number(t, d.gpu)
		word := uint64(number(t, d.gpu))
		off := word / timeline.MaxLanes
		s.lane, s.ns = int(word%timeline.MaxLanes), s.to-s.from+(int64(off>>1)^-int64(off&1))
		if names != nil {
			s.name = d.Names[number(t, names)]
		} else {
			s.name, s.count = d.Names[number(t, d.gpu)], int(number(t, d.gpu))
		}
		d.gpuEnd = s.to
		gpu = append(gpu, s)
	}
	return index, phase, host, gpu
}

func TestTimelineOfAnyTraceHasEverySlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		page := write(r, tr, html.Options{})
		// Numbers of drawings must be finite. Cells may show NaN, because a model may compute NaN.
		for _, path := range paths.FindAllStringSubmatch(page, -1) {
			if strings.ContainsAny(path[1], "aIf") {
				r.Fatalf("a path is not finite: %s", path[1])
			}
		}
		if len(tr.Steps) == 0 {
			return
		}
		d, index := timelineOf(r, page), analyze.NewIndex(tr)
		for s := range timeline.New(index).Steps(0) {
			at, phase, host, gpu := d.next(r)
			if at != int64(s.Index) || phase != string(s.Phase) {
				r.Fatalf("step %d %s, want %d %s", at, phase, s.Index, s.Phase)
			}
			want := s.GPU
			if len(want) > 1 && want[0].Kind == timeline.SpanSlice {
				want = want[1:]
			}
			if len(host) != len(s.Host) || len(gpu) != len(want) {
				r.Fatalf("%d and %d slices, want %d and %d", len(host), len(gpu), len(s.Host), len(want))
			}
			for i := range gpu {
				g, w := gpu[i], want[i]
				if g.from != w.From || g.to != w.To || g.lane != w.Lane || g.ns != w.NS && w.NS < 1<<46 {
					r.Fatalf("slice %+v, want %+v", g, w)
				}
				if w.Kind != timeline.DispatchSlice {
					continue
				}
				plan := &tr.Plans[s.Dispatches[w.At].Plan]
				want := [2]string{index.Name(plan.Dispatch), plan.Kernel}
				for k, line := range strings.Split(g.name, "\n") {
					if k > 1 || line != printable.Short(printable.Clean(want[k]), 200) {
						r.Fatalf("the slice is named %q, want the lines %q", g.name, want)
					}
				}
			}
			for i := range host {
				if g, w := host[i], s.Host[i]; g.from != w.From || g.to != w.To {
					r.Fatalf("slice %+v of the host, want %+v", g, w)
				}
			}
		}
		if d.gpu.Len()+d.host.Len()+d.steps.Len() > 0 {
			r.Fatal("the timeline has more slices than the trace")
		}
	})
}

// A dispatch runs one kernel in a prefill and another one in a decode step.
func TestSlicesHaveTheKernelOfTheirStep(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	d, kernels := timelineOf(t, write(t, tr, html.Options{})), map[string][]string{}
	for i := range tr.Steps {
		s := &tr.Steps[i]
		_, _, _, gpu := d.next(t)
		if len(gpu) != len(s.Dispatches) {
			t.Fatalf("step %d has %d slices of %d dispatches", i, len(gpu), len(s.Dispatches))
		}
		for k := range gpu {
			op, kernel, _ := strings.Cut(gpu[k].name, "\n")
			if want := tr.Plans[s.Dispatches[k].Plan].Kernel; kernel != want {
				t.Errorf("step %d, %s: kernel %q, want %q", i, op, kernel, want)
			}
			if !slices.Contains(kernels[op], kernel) {
				kernels[op] = append(kernels[op], kernel)
			}
		}
	}
	if len(kernels["layers.0.mlp.down"]) != 2 {
		t.Errorf("kernels %v, want two of layers.0.mlp.down", kernels)
	}
}

func TestPageOf200StepsIsSmall(t *testing.T) {
	t.Parallel()
	tr := costed(t, 15, 200)
	page := write(t, tr, html.Options{})
	if n := len(tr.Steps[199].Dispatches); n < 300 {
		t.Fatalf("a step has only %d dispatches", n)
	}
	if len(page) > 3_000_000 {
		t.Errorf("the page has %d bytes, want at most 3 MB", len(page))
	}
	if again := write(t, tr, html.Options{}); again != page {
		t.Error("the same trace gave other bytes")
	}
}

func TestLongRunsAreMerged(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(10, 5)
	for len(tr.Steps) < 1000 {
		s := tr.Steps[3]
		s.Index = len(tr.Steps)
		tr.Steps = append(tr.Steps, s)
	}
	page := write(t, tr, html.Options{})
	d, all := timelineOf(t, page), 0
	for range 1000 {
		_, _, _, gpu := d.next(t)
		count := 0
		for _, s := range gpu {
			count += s.count
		}
		if count < 190 || len(gpu) > 150 {
			t.Fatalf("%d slices for %d dispatches", len(gpu), count)
		}
		all += len(gpu)
	}
	if all > 150_000 || len(page) > 6_000_000 {
		t.Errorf("%d slices, %d bytes", all, len(page))
	}
}

// Blocks that are merged have the color of other work, not that of what to fix first.
func TestMergedBlocksHaveNoColorOfTheirOwn(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(10, 5)
	s := tr.Steps[3]
	s.Timing, s.Blocks = trace.TimingBlock, nil
	s.Dispatches = slices.Clone(s.Dispatches)
	for i := range s.Dispatches {
		s.Dispatches[i].GPUNS, s.Dispatches[i].StartNS = trace.Time{}, trace.Time{}
		block := trace.Block{Name: "block", Dispatches: 1, GPUNS: trace.Measured(1000)}
		s.Blocks = append(s.Blocks, block)
	}
	for tr.Steps = tr.Steps[:0]; len(tr.Steps) < 1000; {
		s.Index = len(tr.Steps)
		tr.Steps = append(tr.Steps, s)
	}
	d := timelineOf(t, write(t, tr, html.Options{}))
	_, _, _, gpu := d.next(t)
	if len(gpu) == 0 || gpu[0].count < 2 {
		t.Fatalf("%d slices, want merged blocks", len(gpu))
	}
	if at := slices.Index(d.Names, "block"); at < 0 || d.Tones[at] != 3 {
		t.Errorf("the tones are %v of %q", d.Tones, d.Names)
	}
}

func TestTextOfATraceIsNeverMarkup(t *testing.T) {
	t.Parallel()
	const attack = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'&` + "\x1b[31m\u2028"
	tr := costed(t, 1, 4)
	tr.Model.Name, tr.Device.Name, tr.Created, tr.Command = attack, attack, attack, []string{attack}
	for i := range tr.Plans {
		tr.Plans[i].Kernel += attack
		tr.Plans[i].Reason = attack
	}
	for i := range tr.Graph.Ops {
		tr.Graph.Ops[i].Name += attack
	}
	for i := range tr.Steps {
		tr.Steps[i].Text = attack
	}
	tr.Events = append(tr.Events, trace.Event{Kind: attack, Text: attack})
	page := write(t, tr, html.Options{Name: attack})
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, "\x1b") {
		t.Error("text of the trace became markup")
	}
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want 2", n)
	}
	if len(parse(t, page).find(named("section"))) != 9 {
		t.Error("sections are missing")
	}
}

func TestPolicyAllowsOnlyThePagesOwnCode(t *testing.T) {
	t.Parallel()
	page := write(t, costed(t, 1, 4), html.Options{})
	blocks := scripts.FindAllStringSubmatch(page, -1)
	if len(blocks) != 3 { // the style, the data of the timeline, the script
		t.Fatalf("%d scripts and styles", len(blocks))
	}
	_, rest, _ := strings.Cut(page, `Content-Security-Policy" content="`)
	policy, _, _ := strings.Cut(rest, `">`)
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	for _, i := range []int{0, 2} {
		sum := sha256.Sum256([]byte(blocks[i][2]))
		hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if !strings.Contains(policy, hash) {
			t.Errorf("the policy %s does not allow %s %d", policy, blocks[i][1], i)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	markup := scripts.ReplaceAllString(page, "")
	for _, no := range []string{" style=", " onclick=", "http:", "https:", " src=", "<link"} {
		if strings.Contains(markup, no) {
			t.Errorf("the page has %q", no)
		}
	}
}

var paths = regexp.MustCompile(`<path [^>]*\bd="([^"]*)"`)

func BenchmarkWrite(b *testing.B) {
	x := analyze.NewIndex(tracetest.Llama(15, 200))
	n := int64(0)
	for b.Loop() {
		var page bytes.Buffer
		if err := html.Write(ctx, &page, x, html.Options{}); err != nil {
			b.Fatal(err)
		}
		n = int64(page.Len())
	}
	b.ReportMetric(float64(n), "bytes")
}
