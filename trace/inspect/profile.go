package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Profile is what a run cost, over all of its steps: tokens a second, and each kernel's part.
type Profile struct {
	Trace   *trace.Trace
	Rates   []Rate
	Kernels []KernelProfile // by phase, then by total, falling
}

// Rate is how fast the steps of one phase went that were timed alike. Cold steps are left out, unless there
// are no others.
type Rate struct {
	Phase  string
	Timing string // level; "stepped": the token of each step was read back before the next
	Steps  int    // that count
	Cold   int    // left out, or, where OnlyCold, the ones that count
	// OnlyCold says that there were none but cold steps.
	OnlyCold bool
	Tokens   int   // of the steps that count: in for prefill, one each for decode
	WallNS   int64 // their sum
	// least and largest; the steps are at different positions, so their median means nothing
	Wall       Spread
	TokensPerS float64 // 0 where no wall time was measured
}

// KernelProfile is a kernel in the steps of a phase that count.
type KernelProfile struct {
	Phase   string
	Kernel  string
	Count   int     // dispatches
	Timed   int     // of them, that were measured
	TotalNS float64 // of those
	Share   float64 // of the phase's total; 0 where not all dispatches of the phase were measured
}

// MeanNS is the mean of the dispatches that were measured.
func (k *KernelProfile) MeanNS() float64 {
	if k.Timed == 0 {
		return 0
	}
	return k.TotalNS / float64(k.Timed)
}

// counted picks the steps of one phase and timing level whose times mean something: all but the cold ones, or
// all where all are cold.
func counted(steps []*trace.Step) (count []*trace.Step, cold int, onlyCold bool) {
	for _, s := range steps {
		if s.Cold {
			cold++
		} else {
			count = append(count, s)
		}
	}
	if len(count) == 0 {
		return steps, cold, cold > 0
	}
	return count, cold, false
}

// progress is how many tokens a step made progress by.
func progress(s *trace.Step) int {
	switch {
	case s.Phase == "decode":
		return 1
	case s.Phase == "prefill":
		return len(s.Tokens)
	}
	return 0
}

// NewProfile computes a trace's profile.
func NewProfile(t *trace.Trace) *Profile {
	p := &Profile{Trace: t}
	type group struct{ phase, timing string }
	var order []group
	steps := map[group][]*trace.Step{}
	for i := range t.Steps {
		g := group{t.Steps[i].Phase, t.Steps[i].Timing}
		if steps[g] == nil {
			order = append(order, g)
		}
		steps[g] = append(steps[g], &t.Steps[i])
	}
	byPhase := map[string][]*trace.Step{}
	var phases []string
	for _, g := range order {
		count, cold, onlyCold := counted(steps[g])
		r := Rate{Phase: g.phase, Timing: g.timing, Steps: len(count), Cold: cold, OnlyCold: onlyCold}
		var walls []int64
		for _, s := range count {
			if ns, ok := s.CPU.TotalNS.NS(); ok {
				walls = append(walls, ns)
				r.WallNS += ns
				r.Tokens += progress(s)
			}
		}
		r.Wall = spreadOf(walls)
		if r.WallNS > 0 {
			r.TokensPerS = float64(r.Tokens) * 1e9 / float64(r.WallNS)
		}
		p.Rates = append(p.Rates, r)
		if byPhase[g.phase] == nil {
			phases = append(phases, g.phase)
		}
		byPhase[g.phase] = append(byPhase[g.phase], count...)
	}
	for _, phase := range phases {
		p.Kernels = append(p.Kernels, kernelProfiles(t, phase, byPhase[phase])...)
	}
	return p
}

func kernelProfiles(t *trace.Trace, phase string, steps []*trace.Step) []KernelProfile {
	index := map[string]int{}
	var list []KernelProfile
	total, all := 0.0, true
	for _, s := range steps {
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			name := t.Plans[d.Plan].Kernel
			k, ok := index[name]
			if !ok {
				k = len(list)
				index[name] = k
				list = append(list, KernelProfile{Phase: phase, Kernel: name})
			}
			list[k].Count++
			time := timeOf(d)
			if !time.Measured() {
				all = false
				continue
			}
			list[k].Timed++
			list[k].TotalNS += time.Median
			total += time.Median
		}
	}
	for k := range list {
		if all && total > 0 {
			list[k].Share = list[k].TotalNS / total
		}
	}
	slices.SortStableFunc(list, func(a, b KernelProfile) int {
		return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Kernel, b.Kernel))
	})
	return list
}

// Rate is the rate of a phase; of several timing levels the one with the most steps. Nil where no step was of
// the phase.
func (p *Profile) Rate(phase string) *Rate {
	var best *Rate
	for i := range p.Rates {
		if r := &p.Rates[i]; r.Phase == phase && (best == nil || r.Steps > best.Steps) {
			best = r
		}
	}
	return best
}

// Lines says the rates in words, and what timing cost.
func (p *Profile) Lines() []string {
	var lines []string
	for i := range p.Rates {
		lines = append(lines, p.Rates[i].line())
	}
	if o := p.Trace.Observer; o != nil {
		untimed, ok1 := o.UntimedNS.NS()
		timed, ok2 := o.TimedNS.NS()
		if ok1 && ok2 && untimed > 0 {
			lines = append(lines,
				fmt.Sprintf("timing cost: a decode step takes %s untimed and %s timed (%+.0f%%, medians of %d)",
					ms(o.UntimedNS), ms(o.TimedNS), 100*float64(timed-untimed)/float64(untimed), o.N))
		}
	}
	return lines
}

func (r *Rate) line() string {
	what := fmt.Sprintf("%s: %s", r.Phase, plural(r.Steps, "step"))
	if r.Tokens > 0 {
		what = fmt.Sprintf("%s: %s in %s", r.Phase, plural(r.Tokens, "token"), plural(r.Steps, "step"))
	}
	parts := []string{what}
	if r.TokensPerS > 0 {
		parts = append(parts, fmt.Sprintf("%.1f tokens/s, stepped", r.TokensPerS))
	}
	parts = append(parts, "timing "+r.Timing)
	if r.Wall.Measured() {
		mean := fmt.Sprintf("%.2f ms a step", float64(r.WallNS)/float64(r.Wall.N)/1e6)
		if r.Wall.N > 1 {
			mean += fmt.Sprintf(" (%.2f–%.2f)", r.Wall.Min/1e6, r.Wall.Max/1e6)
		}
		parts = append(parts, mean)
	}
	switch {
	case r.OnlyCold:
		parts = append(parts, "cold")
	case r.Cold > 0:
		parts = append(parts, fmt.Sprintf("%s left out", plural(r.Cold, "cold step")))
	}
	return strings.Join(parts, " · ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// profileRow is a kernel of a phase, or the phase.
type profileRow struct {
	table.Row
	KernelProfile
}

// Table is the kernels of each phase.
func (p *Profile) Table() *table.Table {
	var rows []profileRow
	phase := -1
	for _, k := range p.Kernels {
		if phase < 0 || rows[phase].Phase != k.Phase {
			phase = len(rows)
			rows = append(rows,
				profileRow{
					table.Row{Key: k.Phase, Parent: -1, Group: true, Open: true},
					KernelProfile{Phase: k.Phase},
				})
		}
		rows = append(rows, profileRow{table.Row{Key: k.Phase + "/" + k.Kernel, Parent: phase, Depth: 1}, k})
		all := &rows[phase].KernelProfile
		all.Count += k.Count
		all.Timed += k.Timed
		all.TotalNS += k.TotalNS
		all.Share += k.Share
	}
	decimals := table.DecimalsOfUS(p.Trace.Clock.QuantumNS)
	measured := func(k *profileRow, ns float64) table.Cell {
		if k.Timed == 0 {
			return table.Cell{Text: table.Unmeasured}
		}
		return table.Number(ns/1e3, decimals)
	}
	at := table.By(rows)
	places := make([]table.Row, len(rows))
	for i := range places {
		places[i] = rows[i].Row
	}
	t := table.New("profile", []table.Column{
		{
			Name: "kernel", Title: "kernel", Width: 80, Tree: true,
			Of: at(func(k *profileRow) table.Cell { return table.Text(cmp.Or(k.Kernel, k.Phase)) }),
		},
		{
			Name: "count", Title: "count", Unit: "dispatches", Right: true, Width: 80,
			Of: at(func(k *profileRow) table.Cell { return table.Count(k.Count) }),
		},
		{
			Name: "total_us", Title: "total µs", Unit: "us", Right: true, Width: 80,
			Doc: "GPU time of all dispatches that were measured",
			Of:  at(func(k *profileRow) table.Cell { return measured(k, k.TotalNS) }),
		},
		{
			Name: "mean_us", Title: "mean µs", Unit: "us", Right: true, Width: 80,
			Doc: "of a dispatch that was measured",
			Of: at(func(k *profileRow) table.Cell {
				if k.Group {
					return table.Cell{}
				}
				return measured(k, k.MeanNS())
			}),
		},
		{
			Name: "share", Title: "%", Unit: "%", Right: true, Width: 80, Doc: "part of the phase",
			Of: at(func(k *profileRow) table.Cell {
				if k.Share == 0 {
					return table.Cell{Text: table.Unmeasured}
				}
				return table.Number(100*k.Share, 1)
			}),
		},
	}, places)
	t.Title = p.Lines()
	return t
}
