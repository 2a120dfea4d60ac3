package command

import "strings"

// Signs lists the signs on the screens and in tables, with their meanings, for the help and the glossary.
var Signs = [][2]string{
	{"┌ ├ └", "these dispatches form one level: no barrier separates them"},
	{"▸ ▾", "a closed row or an opened row: {open} opens and closes it; in Step, ▸ begins the verdict about the step"},
	{"▌ ›", "the selected row or part: ▌, or › while the keys act on the detail"},
	{"█ ▇ ▅ ▉ ▊ ▋ ▍ ▏", "bar: the share of the time of the step; in a chart, a higher bar is a larger value"},
	{"░ ▒ █", "before a number: at least 5 % (░), 10 % (▒) or 25 % (█) of the whole; colors show the same"},
	{"▄ ▀", "in a chart: one measured point"},
	{"·", "in a chart: the fitted line; elsewhere · separates texts"},
	{"▲", "below a chart: the shown step or cursor; below a heat map: the columns whose numbers are shown"},
	{"▒ ░", "Step: in the chart, ▒ is a prefill step; in the tracks, ▒ is busy time and ░ is idle time"},
	{"▒ ░ –", "Timeline: work (▒), waiting (░) and time that was not measured (–); a stretch that has a name is a single slice"},
	{"▁ ▂ ▃ ▆", "Timeline: a cell with several slices; the height of the bar is the share of the cell's time during which slices ran"},
	{"/", "Timeline: a long pause between two steps, shortened"},
	{"▓", "heat map of a value: · ░ ▒ ▓ █ are small to large elements; blank: 0; N: NaN; ∞: infinite"},
	{"◆", "a grid or a route changed in this step; {next event} goes to the next event"},
	{"↑ ↓", "beside a column title: ↑ smallest values first, ↓ largest first; above a chart: ↑ the bar is cut off"},
	{"✓ ✗ !", "✓ right or passed; ✗ wrong or failed; ! a warning"},
	{"±", "the error of the number on its left"},
	{"Σ", "a sum over all dispatches of a row"},
	{"…", "text that was cut for lack of space"},
	{"⏎", "a line break in the text"},
	{"┬ ┤ ┘", "Graph: a line leads from the operator that writes a value to the operators that read it"},
	{"n/m", "n of the m rows inside this row match the filter; sums include all m rows"},
	{"•", "a marked row; in a text: a line that contains the searched text"},
	{"▎ “”", "▎ marks a line of source that contains text generated from the kernel's constants; without colors, “” enclose this text"},
	{"→", "from the old value to the new one; in Graph: from the operator that writes a value to the one that reads it"},
	{"←", "in the lane of events: the user stepped back"},
	{"~", "modelled from shapes, not measured"},
	{"–", "not measured; does not mean 0"},
	{"‹", "shorter than two ticks of the GPU timer"},
	{"=", "not significant: smaller than the noise, the timer resolution or the error of the cost"},
	{"?", "error of the cost is unknown: too few rounds were measured"},
	{"isolated", "time of a dispatch while no other dispatch runs; Σ is the sum over a row's dispatches"},
	{"(s63 ×8)", "the figures are medians of 8 untimed runs of step 63"},
	{"(2.4×)", "the timed step takes 2.4 times as long as the untimed step"},
	{"drift", "a time changes with the position although the plan stays the same: the clock or the device became slower or faster"},
	{"≈floor", "the dispatch takes about as long as the floor, an empty timed pass"},
	{"Δ 48→96 r p", "what differs from the baseline: the grid (old→new), the route (r) or the params (p); a group shows only letters, with g for the grid"},
	{"Δµs = +3.1", "=: the difference from the baseline is not significant; ?: too few samples to know"},
	{"Δ + - %", "compared with the baseline, the row was added (+) or removed (-), or its time changed (%)"},
	{"|Δ| relative", "opened value: |Δ| is the absolute difference from the baseline; relative is the norm of all differences divided by the norm of the baseline"},
	{"n", "number of samples in a median; {repeat} adds samples"},
	{"clk", "GPU clock: how fast a fixed kernel runs, relative to its speed after the warm-up when the model was loaded"},
}

// Top lists the words in the three lines at the top of the screen, with their meanings.
var Top = [][2]string{
	{"step 24", "number of the shown step; then its phase and its position"},
	{"newest", "number of the last step of the run, if another step is shown"},
	{"token", "the token that the step generated"},
	{"cold", "the step was the first after idle time, used a route or a kernel for the first time, or ran at a lowered GPU clock, so it took longer"},
	{"[PAUSED]", "state of the program: paused, running, measuring, or [TRACE] for a recorded trace"},
	{"showing", "the selected steps; {selection} chooses others"},
	{"timing", "what is timed: the whole step, each block or each dispatch; {timing} chooses"},
	{"n=20, 1 sample", "how often each dispatch of the step was timed; {repeat} adds samples"},
	{"timer resolution", "the smallest time difference that the GPU can measure"},
	{"step 1.04 ms", "time of the step if its dispatches are not timed; for several steps, the median and the range"},
	{"timed step", "the step never ran without timing, so its times include what timing adds"},
	{"GPU, idle", "GPU: from the first dispatch of the step to the end of the last; idle: the rest of the step"},
	{"(s24)", "the times are those of step 24, one of the selected steps"},
	{"(5 of 23 steps)", "only 5 of the 23 selected steps ran without timing"},
	{"timing adds 18 %", "the step takes 18 % longer if every dispatch is timed; shown in yellow, because the profiler adds this time"},
	{"untimed", "without timing of the dispatches"},
	{"Σgpu, isolated", "the profile of another engine has only times of dispatches; Σgpu is their sum"},
	{"stated", "the time of the whole step as the profile of another engine states it"},
}

// Terms lists the terms used on the screens that need a definition.
var Terms = [][2]string{
	{"baseline", "the steps that tables are compared with; {baseline} sets it"},
	{"block", "consecutive dispatches of the same part of a layer, such as attention or MLP"},
	{"ceiling", "the highest rate measured on this device: bytes or operations per second"},
	{"cost", "the time that an untimed step saves when this dispatch is skipped; {cost} measures it"},
	{"dispatch", "one launch of a kernel with a grid of workgroups"},
	{"error", "difference from the float64 reference; SNR is the ratio of the values to this difference, in dB"},
	{
		"excess",
		"measured time minus the time that the device needs, at its ceilings, for the bytes and operations of the dispatch",
	},
	{"floor", "the time of an empty timed pass: shorter times cannot be measured"},
	{"grid", "how many workgroups a dispatch launches, in x, y and z"},
	{"idle", "time during which the GPU runs nothing"},
	{"kernel", "a compiled shader; its constants are part of its source"},
	{"level", "dispatches that run without a barrier between them"},
	{"live shape", "the shape of a value in this step; memory is reserved for its maximum shape"},
	{"operator", "a node of the graph, executed by one dispatch, by several or by none"},
	{"over-dispatch", "workgroups that are launched but not needed for the shapes of the step"},
	{"params", "the small numbers that a kernel reads at run time, such as the number of tokens"},
	{"phase", "prefill (reads the prompt) or decode (generates a token)"},
	{"plan", "the grids, params and routes of a step, computed before it runs"},
	{"position", "number of tokens in the KV cache"},
	{"re-planned", "an operator is re-planned if its plan is computed again because an input's shape or a SymInt changed"},
	{"resize", "the passes over the graph that re-plan operators after shapes have changed"},
	{"route", "the way an operator is computed: which kernel it uses, and why"},
	{"round", "one of the repeated runs from which a cost is computed"},
	{"selection", "the steps that tables cover; {selection} chooses them"},
	{"slot", "memory that values with disjoint lifetimes share"},
	{"step", "one run of the graph: a chunk of the prompt, or one decoded token"},
	{"SymInt", "an integer in the graph that changes between steps, such as the position"},
	{"tokens", "number of tokens that a step processes; M in a kernel's formula"},
	{"untimed", "an untimed step runs at full speed: neither its blocks nor its dispatches are timed"},
	{"value", "a tensor or a SymInt of the graph"},
	{"warm", "a step is cold if it is the first after idle time, uses a route or a kernel for the first time, or runs at a lowered GPU clock; otherwise it is warm"},
}

// GlossaryDoc returns the text of docs/guide/glossary.md, built from Terms and Signs.
func GlossaryDoc() string {
	var b strings.Builder
	b.WriteString("# Glossary\n\nMade from `tui/command/glossary.go` by `go test ./tui -run Glossary -update`. " +
		"Do not edit.\n\nThe help (`?`) shows the same. Keys are the default ones.\n")
	section := func(name, first string, list [][2]string) {
		b.WriteString("\n## " + name + "\n\n| " + first + " | meaning |\n| --- | --- |\n")
		for _, row := range list {
			b.WriteString("| " + row[0] + " | " + keyedIn(row[1]) + " |\n")
		}
	}
	section("Terms", "term", Terms)
	section("The three lines at the top", "words", Top)
	section("Signs", "sign", Signs)
	return b.String()
}

// keyedIn replaces each {command} in a sentence with the key of that command, formatted as code in Markdown.
func keyedIn(s string) string {
	return braced.ReplaceAllStringFunc(s, func(name string) string { return "`" + Keyed(name) + "`" })
}
