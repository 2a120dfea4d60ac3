package command

import (
	"strings"

	"gpuscope/tui/widget"
)

// Question is a question that users have, and the key presses that answer it. The keys work in any view.
type Question struct {
	Ask string
	// Do lists the key presses, separated by spaces: {name} is the key of a command, *text* is typed, and
	// any other word is a key.
	Do string
	// Answer says where on the screen the answer is then shown.
	Answer string
}

// Questions lists the questions of the dialog "How do I ...?", of the help and of docs/guide/manual.md.
var Questions = []Question{
	{"What should I fix first, and how much time would this save?", "{Dispatches} {cost}", "the line above the table; for each row, the columns ~save and ~if 2×"},
	{
		"Which kernel of decode takes longest, over all steps?",
		"{Dispatches} {selection} {group by} {group by} {sort} h", "the first row",
	},
	{
		"Why does dispatch 37 have this grid, and when does it change?",
		"{Dispatches} {filter} *#37* enter {why}",
		"the first and the last line, about the last step that runs the dispatch",
	},
	{
		"What changed from prefill to decode?", "{Dispatches} {previous selection} {baseline} {selection}",
		"the column Δ and the counts in the title; removed rows are at the end of the table",
	},
	{
		"What did fusion, or another setting, change in total, and where?",
		"{Dispatches} {baseline trace} tab enter {selection} {sort} d {reverse}",
		"the line below the tabs, and the rows in the order of what they save, with a total; first record a run with " +
			"the other setting in this folder (`gpuscope run --fuse off --timing dispatch --trace off.json`)",
	},
	{
		"How much time would fusing two rows save?",
		"{Dispatches} {filter} *add* enter {bottom} {mark row} {up} {up} {mark row} {cost of marked}",
		"the title, after *together cost*; {mark row} marks other rows",
	},
	{
		"How stable is the time of `k` across layers?", "{Dispatches} {repeat} {filter} *attn.k* enter",
		"the detail pane: median, variation and outlier",
	},
	{
		"Which change re-planned which operator?", "{Resize} {previous event}",
		"the operators in the order of their re-planning; the column triggers",
	},
	{"Does decode slow down with position? Which operator causes it?", "{Curves}", "the title"},
	{
		"At which prompt length does another kernel run?", "{Curves} {axis}",
		"the title, and the column of routes",
	},
	{
		"Where in the run did a grid change?", "{Step} {top} {next event} {next event}",
		"the lane of events; the first {next event} goes to the end of the prompt, each further " +
			"{next event} to the next change",
	},
	{
		"Did this step compute the right values?", "{Dispatches} {verify step}",
		"the result names the first dispatch that diverges; the detail pane shows the error of this dispatch",
	},
	{
		"What happens between two tokens?", "{Timeline}",
		"the line *idle before it*; {left} goes to the step before, {closer} zooms in",
	},
	{
		"Which kernels are limited by memory, and how far are they from the ceiling?",
		"{palette} *roof* enter", "the chart: points just below the slanted line; the column bound",
	},
	{
		"How do I get this table as a file?", "{export table} enter",
		".csv, .json, .md or .txt, chosen by the suffix",
	},
}

// Presses returns the key presses that answer the question.
func (q *Question) Presses() (keys []widget.Key) {
	for _, word := range strings.Fields(Keyed(q.Do)) {
		if text, typed := strings.CutPrefix(word, "*"); typed {
			for _, r := range strings.TrimSuffix(text, "*") {
				keys = append(keys, widget.Key{Name: string(r), Text: string(r)})
			}
			continue
		}
		k := widget.Key{Name: word}
		if len([]rune(word)) == 1 {
			k.Text = word
		}
		keys = append(keys, k)
	}
	return keys
}

// Line returns the keys and the question, for a list on the screen.
func (q *Question) Line() string {
	keys := strings.ReplaceAll(Keyed(q.Do), "*", "")
	return widget.Fit(keys, 22) + "  " + strings.ReplaceAll(q.Ask, "`", "")
}

// QuestionsDoc returns the table of questions in docs/guide/manual.md.
func QuestionsDoc() string {
	var b strings.Builder
	b.WriteString("| question | keys | answer |\n| --- | --- | --- |\n")
	for i := range Questions {
		q := &Questions[i]
		var keys []string
		for _, word := range strings.Fields(Keyed(q.Do)) {
			if !strings.HasPrefix(word, "*") {
				word = "`" + word + "`"
			}
			keys = append(keys, word)
		}
		b.WriteString("| " + q.Ask + " | " + strings.Join(keys, " ") + " | " + keyedIn(q.Answer) + " |\n")
	}
	return b.String()
}
