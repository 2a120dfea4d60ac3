package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// These are the latencies that a test measures.
const (
	// FirstToken is the time from the start of the first step of a prompt until the host has read the token
	// that follows the prompt. There is one sample for each repetition of a prefill test.
	FirstToken = "first_token"
	// InterToken is the time from the moment at which the host has read a token to the moment at which it has
	// read the next one. There is one sample for each token of a decode test, except the first token of each
	// repetition.
	InterToken = "inter_token"
)

// Latency is the distribution of a latency over the counted repetitions of a test.
type Latency struct {
	Of string `json:"of"` // FirstToken or InterToken
	N  int    `json:"n"`  // number of samples, at least 1
	// Percentiles in ns. Each is 0 if there are too few samples for it (see FewestFor).
	P50NS int64 `json:"p50_ns,omitempty"`
	P90NS int64 `json:"p90_ns,omitempty"`
	P99NS int64 `json:"p99_ns,omitempty"`
}

// FewestFor returns how many samples a percentile needs: so many that one of them is expected to exceed it.
// It is 2 for the 50th percentile, 10 for the 90th and 100 for the 99th.
func FewestFor(percentile int) int { return (100 + 99 - percentile) / (100 - percentile) }

// percentiles lists the percentiles with their fields.
func (l *Latency) percentiles() []struct {
	p  int
	ns *int64
} {
	return []struct {
		p  int
		ns *int64
	}{{50, &l.P50NS}, {90, &l.P90NS}, {99, &l.P99NS}}
}

// LatencyOf returns the distribution of samples in ns, or nil if there are none. It sorts the samples.
func LatencyOf(of string, samples []int64) *Latency {
	if len(samples) == 0 {
		return nil
	}
	slices.Sort(samples)
	l := &Latency{Of: of, N: len(samples)}
	for _, f := range l.percentiles() {
		if l.N >= FewestFor(f.p) {
			*f.ns = max(1, int64(math.Round(trace.Quantile(samples, float64(f.p)/100))))
		}
	}
	return l
}

// check returns an error if the percentiles contradict each other or the number of samples.
func (l *Latency) check() error {
	if l.Of != FirstToken && l.Of != InterToken || l.N < 1 {
		return fmt.Errorf("latency: invalid kind %q or number of samples (%d)", l.Of, l.N)
	}
	least := int64(1)
	for _, f := range l.percentiles() {
		switch enough := l.N >= FewestFor(f.p); {
		case !enough && *f.ns != 0:
			return fmt.Errorf("latency: p%d is set for %d samples, but it needs at least %d samples",
				f.p, l.N, FewestFor(f.p))
		case enough && *f.ns < least:
			return fmt.Errorf("latency: p%d is %d ns; expected at least %d", f.p, *f.ns, least)
		case enough:
			least = *f.ns
		}
	}
	return nil
}

// latencyColumns returns the columns of the latency of a test.
func latencyColumns(of table.Columns[Test]) []table.Column {
	known := of.Where(func(t *Test) bool { return t.Latency != nil })
	percentile := func(p int, ns func(*Latency) int64) table.Column {
		name := fmt.Sprintf("p%d", p)
		return known.Cell(80, table.Measured, name+"_ms", name+" ms", "ms",
			fmt.Sprintf("%d %% of the samples are at most this long; given from %d samples on", p,
				FewestFor(p)),
			func(t *Test) table.Cell {
				if n := ns(t.Latency); n > 0 {
					return table.Cell{Text: table.MillisBare(n, true), Number: float64(n) / 1e6, Has: true}
				}
				return table.Missing()
			})
	}
	return []table.Column{
		known.Text(80, "latency", "latency",
			"first token: from the start of the prompt until its token is read; inter token: from one token to "+
				"the next",
			func(t *Test) string { return strings.ReplaceAll(t.Latency.Of, "_", " ") }),
		known.Int(80, "samples", "samples", "samples", "number of samples of the latency",
			func(t *Test) int64 { return int64(t.Latency.N) }),
		percentile(50, func(l *Latency) int64 { return l.P50NS }),
		percentile(90, func(l *Latency) int64 { return l.P90NS }),
		percentile(99, func(l *Latency) int64 { return l.P99NS }),
	}
}

// latencyTable returns the table of latencies for the Markdown format. It returns nil if no latency was
// measured, as in older results.
func (r *Result) latencyTable() *table.Table {
	if !slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Latency != nil }) {
		return nil
	}
	of, named := table.ColumnsOf(r.Tests), r.testTable()
	columns := named.Columns[:2:2] // test and mode
	if r.traced() {
		columns = named.Columns[:3:3] // and timing
	}
	return table.New("latency", append(columns, latencyColumns(of)...), named.Rows)
}
