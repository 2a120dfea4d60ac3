package report

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// waits is a share of a step's wall time. The verdict is that the GPU waits for the CPU only if the wait
// takes at least this share.
const waits = 0.1

// Verdict says what limits the speed of a step. For a cold step with a warm repeat, Verdict describes the
// warm repeat, and the text begins by saying so.
func Verdict(r *analyze.StepSummary) string {
	x, step, u := r.Index, r.At, &r.Untimed
	s := &x.Trace.Steps[step]
	if x.Trace.Engine != "" {
		return importedVerdict(r)
	}
	one := []int{step}
	if !s.Cold || !analyze.TimedWhole(s) {
		return verdictOf(x, one, u)
	}
	if warm := x.UntimedAgain(s); warm.Split() {
		return "warm repeat of the step: " + verdictOf(x, one, &warm)
	}
	return "cold: " + verdictOf(x, one, u)
}

// VerdictOn says what limits the speed of the steps of a selection, which must not be empty. Like TimesLine,
// it is about the medians of the untimed steps or, if there are none, about the last step with untimed
// repeats. If there are no warm steps, the text names the step that it is about.
func VerdictOn(x *analyze.Index, selection analyze.Selection) string {
	last := selection.Last()
	said := func() string { return Verdict(x.Summary(last)) }
	if _, one := selection.One(); one || x.Trace.Engine != "" {
		return said()
	}
	if selection.AllCold {
		return fmt.Sprintf("of step s%d: %s", x.Trace.Steps[last].Index, said())
	}
	u, steps := x.UntimedOf(selection), x.RanUntimed(selection)
	if len(steps) > 0 {
		return verdictOf(x, steps, &u)
	}
	for _, step := range slices.Backward(selection.Steps) {
		if again := x.UntimedAgain(&x.Trace.Steps[step]); again.Known() {
			last = step
			break
		}
	}
	return verdictOf(x, []int{last}, &u)
}

// medianOver returns the median of a time in ns over some steps.
func medianOver(x *analyze.Index, steps []int, of func(*trace.Step) float64) float64 {
	list := make([]float64, len(steps))
	for i, step := range steps {
		list[i] = of(&x.Trace.Steps[step])
	}
	return analyze.StatsOf(list).Median
}

// verdictOf says what limits the speed of untimed steps that do the same kind of work. `u` holds the times of
// one step, or the medians of several. The text shows the deciding figure with its error. If it is not known
// what limits the steps, the text gives the reason: too few runs, or a figure that does not exceed its error.
func verdictOf(x *analyze.Index, steps []int, u *analyze.Untimed) string {
	const unknown = "bottleneck unknown: "
	step := steps[len(steps)/2] // the position, and with it the work, has its median here
	s := &x.Trace.Steps[step]
	wall, ok1 := u.Wall.NS()
	gpu, ok2 := u.GPU.NS()
	wait, off, told := u.Waits()
	gpuOff, _ := u.GPUOff.NS()
	switch {
	case !u.Known() && analyze.TimedWhole(s):
		return unknown + "the times of the step were not measured"
	case !u.Known():
		return unknown + "the step was only run with every " + string(s.Timing) + " timed"
	case !ok1 || wall <= 0:
		return unknown + "the wall time of the untimed step was not measured"
	case !ok2 || gpu <= 0:
		return unknown + "the GPU time of the untimed step was not measured"
	case u.FewSamples():
		return fmt.Sprintf("%s%s, but at least %d are needed",
			unknown, table.Plural(u.N, "untimed sample"), trace.FewestWithin)
	case !told:
		return unknown + "the error of the step's times is unknown"
	}
	share := float64(wait) / float64(wall)
	if share >= waits && wait > off {
		return idles(x, steps, u, off)
	}
	if share >= waits {
		return fmt.Sprintf("%sthe GPU waits %s of %s, but the error is larger than the wait", unknown,
			plusMinus(wait, off), Millis(u.Wall))
	}
	took := plusMinus(gpu, gpuOff)
	of := fmt.Sprintf("the GPU takes %s of %s", took, Millis(u.Wall))
	roof := medianOver(x, steps, x.RoofNS)
	switch {
	case x.Trace.Device.Software():
		return of + "; on a software device, compare only ratios of times"
	case roof == 0:
		return of + "; the device's ceilings were not measured, so what limits the GPU is unknown"
	}
	least := table.MillisBare(analyze.Whole(roof), true)
	switch {
	case math.Abs(2*roof-float64(gpu)) <= float64(gpuOff):
		return fmt.Sprintf("%s%s; at the device's ceilings the work would take ~%s ms", unknown, of, least)
	case 2*roof > float64(gpu):
		return fmt.Sprintf("GPU-bound: %s, and at the device's ceilings the work would take ~%s ms",
			of, least)
	}
	line := fmt.Sprintf("at the device's ceilings the work would take only ~%s of the %s ms that the GPU takes", least,
		took)
	if w := x.Wasted(s); 2*w.Groups() > w.Launched {
		return fmt.Sprintf("over-dispatched: %s of %s have no work; %s", percent(w.Groups(), w.Launched),
			table.Plural(w.Launched, "workgroup"), line)
	}
	line = "latency-bound: " + line
	if n := len(x.LevelStarts(step)); n > 0 {
		line += fmt.Sprintf(" in %s", table.Plural(n, "level"))
	}
	return line
}

// leastOff is the smallest displayed error in ns: one digit of a time in ms.
const leastOff = 10_000

// plusMinus formats a time and its error in ms without the unit: "0.52 ± 0.03".
func plusMinus(ns, off int64) string {
	return table.MillisBare(ns, true) + " ± " + table.MillisBare(max(off, leastOff), true)
}

// idles returns the verdict on a step in which the GPU waits for the CPU. It shows how much of the wait is
// the CPU's own work, which could overlap with the GPU's previous step. The rest of the wait is time in the
// driver and the system, which reordering cannot remove. `off` is the error of the wait in ns.
func idles(x *analyze.Index, steps []int, u *analyze.Untimed, off int64) string {
	s := &x.Trace.Steps[steps[0]]
	wall, _ := u.Wall.NS()
	gpu, _ := u.GPU.NS()
	wait := wall - gpu
	share, shareOff := 100*float64(wait)/float64(wall), math.Ceil(100*float64(off)/float64(wall))
	known := true
	own := analyze.Whole(medianOver(x, steps, func(s *trace.Step) float64 {
		ns, ok := analyze.OwnNS(s)
		known = known && ok
		return float64(ns)
	}))
	waited := fmt.Sprintf("%s of %s", table.MillisBare(wait, true), Millis(u.Wall))
	line := fmt.Sprintf("the GPU waits for the CPU in %.0f ± %.0f %% of the step: %s", share, shareOff,
		waited)
	switch {
	case known && 2*own < wait:
		line = fmt.Sprintf("the GPU is idle in %.0f ± %.0f %% of the step: %s, of which the CPU's own work is at most "+
			"%s and the rest is spent in the driver and the system", share, shareOff, waited,
			Millis(trace.Measured(own)))
	case share-shareOff > 50:
		line = "CPU-bound: " + line
	}
	const worth = 0.01 // smallest reported gain, as a share of the wall time
	least := max(gpu, own, wall-own)
	gains := known && float64(wall-least) > max(worth*float64(wall), float64(off))
	if tokens := analyze.Progress(s); gains && s.Phase == trace.Decode {
		now, digits := u.TokensPerS(tokens), 0
		if now < 100 { // low rates may look equal without a decimal
			digits = 1
		}
		line += fmt.Sprintf(". Overlapping the CPU's own work with the GPU would raise the speed from %.*f to %.*f "+
			"tok/s at the same GPU time", digits, now, digits, float64(tokens)*1e9/float64(least))
		if rest := least - gpu; rest >= leastOff { // the headline models a step without this time too
			line += fmt.Sprintf("; %s of idle time would remain", table.Millis(rest, true))
		}
	}
	return line
}
