package phases

import (
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func init() {
	report.Register(report.Table{
		Name: "speed", Takes: report.WholeRun,
		Doc: "tokens per second of each phase, and the wall time of its steps",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			p, err := rates.Of(ctx, x, o.Selection)
			if err != nil {
				return nil, err
			}
			return Speed(p), nil
		},
	})
}

// Speed returns the table of the rates: a row for each phase, timing level and mode. Its notes are other
// facts about the speed of the run.
func Speed(p *rates.Profile) *table.Table {
	of := table.ColumnsOf(p.Rates)
	rate := func(perS float64) table.Cell {
		if perS <= 0 {
			return table.Missing()
		}
		return table.Number(perS, 1)
	}
	millis := func(r *rates.Rate, ns float64) table.Cell {
		if r.Timed == 0 {
			return table.Missing()
		}
		return table.Number(ns/1e6, 2)
	}
	untimed := table.Unseen
	for i := range p.Rates {
		if p.Rates[i].Timing.InDetail() {
			untimed = 80
		}
	}
	t := table.New("speed", []table.Column{
		of.Text(80, "phase", "phase", "phase of the steps",
			func(r *rates.Rate) string { return string(r.Phase) }),
		of.Text(80, "mode", "mode",
			"stepped: each step began after the host had read the previous token; pipelined: each step began before that",
			func(r *rates.Rate) string { return r.Mode }),
		of.Text(80, "timing", "timing", "timing level of the steps",
			func(r *rates.Rate) string { return string(r.Timing) }),
		of.Int(80, "steps", "steps", "steps", "number of steps from which the rate is computed",
			func(r *rates.Rate) int64 { return int64(r.Steps) }),
		of.Cell(80, table.Exact, "tokens", "tokens", "tokens", "number of tokens that the steps processed",
			func(r *rates.Rate) table.Cell {
				if r.Tokens == 0 {
					return table.Missing()
				}
				return table.Count(r.Tokens)
			}),
		of.Cell(80, table.Measured, "tokens_per_s", "tokens/s", "tokens/s",
			"tokens divided by the sum of the wall times of the steps: the rate of a step of mean duration",
			func(r *rates.Rate) table.Cell { return rate(r.TokensPerS) }),
		of.Cell(untimed, table.Measured, "untimed_per_s", "tokens/s untimed", "tokens/s",
			"tokens per second that these steps reach if neither their blocks nor their dispatches are timed",
			func(r *rates.Rate) table.Cell { return rate(r.Untimed) }),
		of.Cell(80, table.Measured, "ms", "mean ms", "ms", "mean wall time of a step",
			func(r *rates.Rate) table.Cell { return millis(r, float64(r.WallNS)/float64(max(r.Timed, 1))) }),
		of.Cell(80, table.Measured, "median_ms", "median", "ms",
			"median wall time of a step; unlike the mean, it is hardly changed by a few slow steps",
			func(r *rates.Rate) table.Cell { return millis(r, float64(r.MedianNS)) }),
		of.Cell(110, table.Measured, "least_ms", "fastest", "ms", "wall time of the fastest step",
			func(r *rates.Rate) table.Cell { return millis(r, float64(r.LeastNS)) }),
		of.Cell(110, table.Measured, "most_ms", "slowest", "ms", "wall time of the slowest step",
			func(r *rates.Rate) table.Cell { return millis(r, float64(r.MostNS)) }),
		of.Text(80, "cold", "cold steps", "all: every step is cold; N excluded: N cold steps are not in the numbers",
			func(r *rates.Rate) string {
				switch {
				case r.OnlyCold:
					return "all"
				case r.Cold > 0:
					return fmt.Sprintf("%d excluded", r.Cold)
				}
				return ""
			}),
	}, table.Flat(len(p.Rates), func(i int) string {
		r := &p.Rates[i]
		return fmt.Sprintf("%s/%s/%s", r.Phase, r.Timing, r.Mode)
	}))
	t.Title = []table.Line{table.Title(table.Say(0, "speed of each phase"))}
	t.Notes = notes(p)
	return t
}

// notes describes the repeated prompt and the overhead of timing, if they were measured.
func notes(p *rates.Profile) (lines []string) {
	if w, ok := p.Warm(); ok {
		cold := map[bool]string{true: " cold"}[w.Cold]
		lines = append(lines, fmt.Sprintf(
			"prefill repeated: %s in %s when warm (%.1f tokens/s, median of %d); the recorded prefill took %s%s",
			table.Plural(w.Tokens, "token"), report.Millis(w.WallNS), w.TokensPerS(), w.N,
			report.Millis(w.Was), cold))
	}
	o := p.Trace.Observer
	if o == nil || !p.Index.Observes(o, p.Steps) {
		return lines
	}
	untimed, ok1 := o.UntimedNS.NS()
	timed, ok2 := o.TimedNS.NS()
	if !ok1 || !ok2 || untimed <= 0 {
		return lines
	}
	more := fmt.Sprintf("%+.0f%%", 100*float64(timed-untimed)/float64(untimed))
	if off, known := o.UntimedOff.NS(); !known || max(timed-untimed, untimed-timed) <= off {
		more = "no significant difference"
	}
	return append(lines, fmt.Sprintf(
		"timing overhead: %s takes %s untimed and %s timed (%s, medians of %s)", observed(p),
		report.Millis(o.UntimedNS), report.Millis(o.TimedNS), more, table.Plural(o.N, "repeat")))
}

// costSteps says in which steps the costs of the kernels were measured.
func costSteps(p *rates.Profile) (lines []string) {
	for _, c := range p.Costs {
		lines = append(lines, fmt.Sprintf("%s: the costs of the kernels come from step s%d, %s",
			c.Step.Phase, c.Step.Index, trace.Rounds(c.Step.Costs)))
	}
	return lines
}
