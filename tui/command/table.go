package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gpuscope/trace/inspect"
)

// Place says where the keys of a command work.
type Place int

const (
	Anywhere Place = iota // views and overlays
	InViews               // every view, or those that offer the command
	Moving                // lists and texts, in views and overlays
	Overlays              // what lies over a view
)

func (p Place) String() string {
	return [...]string{"Anywhere", "In every view", "Moving", "Over a view"}[p]
}

// Needs says what there must be before a command can be done.
type Needs int

const (
	Nothing Needs = iota
	Opened        // a session or a trace is open
	Steps         // a step was recorded
	Shown         // a step is shown
	View          // the view has something to show
	Rows          // the view has rows
	Session       // a session, not a recorded trace
	Text          // a session with a text
	Device        // a session whose steps run on a device
	Run           // a device, and a step that the session is at
)

// Commands that only some views offer are listed under one of these headings.
const (
	Opening      = "Where something opens"
	Parted       = "Where a part of a step opens"
	WithRows     = "Where there are rows"
	Folding      = "Where rows fold in several ways"
	Filtered     = "Where rows can be filtered"
	Explained    = "Where rows can be explained"
	SideBySide   = "Where steps stand side by side"
	Costed       = "Where rows can be left out of a step"
	WithDispatch = "With a dispatch under the cursor"
	WithCurves   = "With curves"
	InGraph      = "With an operator or a value under the cursor"
	WithLists    = "Where there are several lists"
)

// Headings are those in the order of docs/keys.md.
var Headings = []string{
	Opening, Parted, WithRows, Folding, Filtered, Explained, SideBySide, Costed,
	WithDispatch, WithCurves, InGraph, WithLists,
}

// Row is a command: one thing that a person can do. The table of rows assigns keys, and the hint line, the
// help, the palette, plain mode and docs/keys.md are made from it.
type Row struct {
	Keys  []string
	Name  string // in the hint line and the palette: a word or two
	Doc   string // in the help: a sentence
	In    []Place
	Of    string // of Headings: only views that offer the command have it; "": all
	Needs []Needs
	Hint  int    // place in the hint line, 0: not in it
	With  string // the command whose key stands before this one's in the hint line, for one word
	Word  string // in the hint line, in place of the name
	Plain Line   // in plain mode
}

// Line is a command as plain mode has it; without a word it has none.
type Line struct {
	Word, Takes, Doc string
	Recorded         bool // it works on a recorded trace too
}

// Action is what a command does where it is pressed.
type Action struct {
	Name string        // of the row
	Off  func() string // why it cannot be done now, "" where it can; may be nil
	Now  func() string // the word for the hint line where it is another one now; may be nil
	Miss func()        // what there is to do where it was asked for and cannot be done; may be nil
	Run  func()        // nil of a view: the program's own way to do it
}

// Table has the rows in the order of the help.
var Table = Default()

// Again is how long after a cancel another one quits.
const Again = 2 * time.Second

// Default is the table with its own keys; views are the rows that go to a view.
func Default(views ...Row) []Row {
	list := []Row{
		{
			Keys: []string{"s"}, Name: "token",
			Doc: "Next token: decode one. In a trace: the next step.",
			In:  []Place{InViews}, Hint: 1,
			Plain: Line{Word: "s", Takes: "", Doc: "next token"},
		},
		{
			Keys: []string{"S"}, Name: "back",
			Doc: "Previous token: set the position back by one step. In a trace: the step before.",
			In:  []Place{InViews}, Hint: 3,
			Plain: Line{Word: "S", Takes: "", Doc: "previous"},
		},
		{
			Keys: []string{"space"}, Name: "run",
			Doc: "Run until the end token or the context's end; again to pause.",
			In:  []Place{InViews}, Hint: 2,
			Plain: Line{Word: "r", Takes: "[TO]", Doc: "run, to the end or to a position, a condition or d and a dispatch; without a device also TOKENS,POSITION"},
		},
		{
			Keys: []string{"R"}, Name: "repeat",
			Doc: "Repeat the step that is shown in its place 10 times: medians get their samples.",
			In:  []Place{InViews}, Needs: []Needs{Run}, Hint: 9,
			Plain: Line{Word: "R", Takes: "[STEP]", Doc: "repeat the step, or an older one"},
		},
		{
			Keys: []string{"P"}, Name: "run to",
			Doc: "Run to a position or to a condition, or run this step up to a dispatch. In a trace: to a position. Without a device: plan a step of any shape.",
			In:  []Place{InViews}, Hint: 13,
		},
		{
			Keys: []string{"D"}, Name: "breakpoints",
			Doc: "Breakpoints: where every run pauses. Type one to add it, delete removes the selected.",
			In:  []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "b", Takes: "[CONDITION]", Doc: "add a breakpoint, or list them and what they may be"},
		},
		{Name: "remove breakpoint", Plain: Line{Word: "B", Takes: "N", Doc: "remove breakpoint N"}},
		{
			Keys: []string{"i"}, Name: "prompt",
			Doc: "Type a new prompt; it replaces the text. With --chat: type your next turn of the conversation.",
			In:  []Place{InViews}, Needs: []Needs{Session}, Hint: 14,
			Plain: Line{Word: "p", Takes: "TEXT", Doc: "prompt, or with --chat your turn"},
		},
		{
			Keys: []string{"I"}, Name: "edit",
			Doc: "Edit the text from the shown step on, and continue; what the cache holds of it is kept.",
			In:  []Place{InViews}, Needs: []Needs{Text},
			Plain: Line{
				Word: "e", Takes: "N TEXT",
				Doc: "keep N tokens of the text and put others after them",
			},
		},
		{
			Keys: []string{"K"}, Name: "chunk",
			Doc: "How many tokens a step of a prompt takes.",
			In:  []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "k", Takes: "N", Doc: "tokens a step of a prompt, 0 for as many as it takes"},
		},
		{
			Keys: []string{"X"}, Name: "reset",
			Doc: "Reset: no text, position 0. The recorded steps stay.",
			In:  []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "X", Takes: "", Doc: "reset"},
		},
		{
			Keys: []string{"r"}, Name: "restart",
			Doc: "Start an engine that has gone again, at the same model, prompt and position.",
			In:  []Place{InViews, Overlays}, Hint: 1,
		},
		{
			Keys: []string{"T"}, Name: "timing",
			Doc: "How closely the steps to come are timed: off, step, block, dispatch.",
			In:  []Place{InViews}, Needs: []Needs{Device},
			Plain: Line{Word: "T", Takes: "LEVEL", Doc: "timing level"},
		},
		{Name: "tokens", Plain: Line{Word: "t", Takes: "TEXT", Doc: "tokens of a text"}},
		{
			Keys: []string{"L"}, Name: "ceilings",
			Doc: "Measure what the device can do at best: limits, ~lost and verdicts are drawn from it.",
			In:  []Place{InViews}, Needs: []Needs{Device},
			Plain: Line{Word: "L", Takes: "", Doc: "measure what the device can do at best"},
		},
		{Name: "value", Plain: Line{Word: "v", Takes: "VALUE [DISPATCH]", Doc: "what the numbers in a value come to, by its number in table values, after a dispatch"}},
		{
			Keys: []string{"f"}, Name: "follow",
			Doc: "Follow the newest step, or stay on the one that is shown.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{","}, Name: "step before",
			Doc: "Show the recorded step before, without moving the model.",
			In:  []Place{InViews}, Needs: []Needs{Steps},
		},
		{
			Keys: []string{"."}, Name: "step after",
			Doc: "Show the recorded step after.",
			In:  []Place{InViews}, Needs: []Needs{Steps},
		},
		{
			Keys: []string{"]"}, Name: "next event",
			Doc: "Show the next step at which something happened: another phase or token count, a grid or route that changed, a cold or slow step. In Resize: the next step in which a grid changed. In Curves: the next change of the row's grid. In an opened value: the next dispatch that writes its memory.",
			In:  []Place{InViews}, Needs: []Needs{Shown}, Hint: 8, With: "event before", Word: "event",
		},
		{
			Keys: []string{"["}, Name: "event before",
			Doc: "Show the step before at which something happened. In Resize: in which a grid changed. In Curves: the change of the row's grid before. In an opened value: the dispatch before that writes its memory.",
			In:  []Place{InViews}, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"v"}, Name: "scope",
			Doc: "What tables speak of: this step, all warm decode steps, the prefill, the marked steps. What asks for a step goes back to this step.",
			In:  []Place{InViews}, Hint: 7,
			Plain: Line{Word: "scope", Takes: "[STEPS]", Doc: "tables are of these steps: " + inspect.ScopeWords + "", Recorded: true},
		},
		{
			Keys: []string{"V"}, Name: "scope back",
			Doc: "What tables speak of, the other way round.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"b"}, Name: "base",
			Doc: "Compare with what is shown now: this step or the scope; on the base itself: with the step before.",
			In:  []Place{InViews}, Needs: []Needs{Shown}, Hint: 8,
			Plain: Line{Word: "base", Takes: "[STEPS or FILE]", Doc: "tables are compared with these, or with another trace", Recorded: true},
		},
		{
			Keys: []string{"B"}, Name: "base trace",
			Doc: "Compare with the same kind of steps in another trace, by the name of its file; empty: with this one.",
			In:  []Place{InViews}, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"m"}, Name: "mark step",
			Doc: "Mark the step as one end of a range, the next as the other.",
			In:  []Place{InViews}, Of: SideBySide, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"enter"}, Name: "open",
			Doc: "Open or close the row; a value: its numbers; one without rows: go to its detail.",
			In:  []Place{InViews}, Of: Opening, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"enter"}, Name: "zoom in",
			Doc: "Open a part of the GPU's track, a layer with its dispatches; again to close it.",
			In:  []Place{InViews}, Of: Parted, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"F"}, Name: "fold",
			Doc: "Fold by layer, op, kernel, or not at all.",
			In:  []Place{InViews}, Of: Folding, Needs: []Needs{View}, Hint: 7,
		},
		{
			Keys: []string{"o"}, Name: "sort",
			Doc: "Sort by a column: its letter follows, the same again turns the order round.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows}, Hint: 10,
		},
		{
			Keys: []string{"O"}, Name: "reverse",
			Doc: "Turn the order round.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{View},
		},
		{
			Keys: []string{"/"}, Name: "filter",
			Doc: "Show rows that match: text, !text, re:pattern, column:text, column:=text, us:>10, #37.",
			In:  []Place{InViews}, Of: Filtered, Needs: []Needs{View}, Hint: 6,
			Plain: Line{Word: "filter", Takes: "[WORDS]", Doc: "tables have the rows that match, such as norm or us:>10", Recorded: true},
		},
		{
			Keys: []string{"n"}, Name: "next match",
			Doc: "To the next row that the filter finds; without one, that the last filter found.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"N"}, Name: "match before",
			Doc: "To the row before that the filter finds.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"u"}, Name: "undo",
			Doc: "Take back a change of the view: order, fold, opened row, filter, scope, base, split, zoom, view.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"w"}, Name: "why",
			Doc: "Why is this grid what it is, or runs no more: the chain back to the token count. Of a value: all it reaches.",
			In:  []Place{InViews}, Of: Explained, Needs: []Needs{View}, Hint: 5,
			Plain: Line{
				Word: "w", Takes: "NAME",
				Doc: "why a dispatch has its grid, or what a value reaches", Recorded: true,
			},
		},
		{Name: "table", Plain: Line{
			Word: "d", Takes: "[TABLE]", Doc: "dispatches, or another table",
			Recorded: true,
		}},
		{
			Keys: []string{"c"}, Name: "cost",
			Doc: "Measure what the rows on the screen cost the step: it runs without each, in turns. Again adds rounds.",
			In:  []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows}, Hint: 5,
			Plain: Line{Word: "c", Takes: "[NAMES]", Doc: "cost of each row, or of those with the names N,.. together"},
		},
		{
			Keys: []string{"C"}, Name: "cost of marked",
			Doc: "Measure what the marked rows cost together, or the selected one: the most that fusing them gives.",
			In:  []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
		},
		{
			Keys: []string{"a"}, Name: "verify",
			Doc: "Hold the marked rows, or the selected one, to their float64 references: the kernels' own error.",
			In:  []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
			Plain: Line{Word: "a", Takes: "[NAMES]", Doc: "how far each dispatch, or those with the names N,.., is from its reference"},
		},
		{
			Keys: []string{"A"}, Name: "verify step",
			Doc: "Hold every dispatch of the step to float64 references: its own error, and what it has inherited.",
			In:  []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
		},
		{
			Keys: []string{"m"}, Name: "mark row",
			Doc: "Mark the row, or take its mark away.",
			In:  []Place{InViews}, Of: WithDispatch, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"e"}, Name: "WGSL",
			Doc: "Edit the kernel's text: once saved it runs in turns with the kernel. In a trace: show it.",
			In:  []Place{InViews}, Of: WithDispatch, Needs: []Needs{View}, Hint: 12,
		},
		{Name: "try kernel", Plain: Line{Word: "l", Takes: "FILE", Doc: "run the text in NAME.wgsl in turns with kernel NAME"}},
		{
			Keys: []string{"U"}, Name: "use kernel",
			Doc: "Have the steps to come run the text that was tried last, or the kernel's own again.",
			In:  []Place{InViews}, Of: WithDispatch,
			Plain: Line{Word: "u", Takes: "FILE or NAME", Doc: "steps to come run the text in NAME.wgsl, or kernel NAME itself"},
		},
		{
			Keys: []string{"a"}, Name: "axis",
			Doc: "Against the position of decode steps, or the length of a prompt.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"t"}, Name: "time",
			Doc: "Time the operator alone on each of its routes, at the cursor and where the plan changes route.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{Device, View}, Hint: 4,
			Plain: Line{Word: "o", Takes: "OP [M ...]", Doc: "time an operator alone on each route, at some prompt lengths"},
		},
		{
			Keys: []string{"d"}, Name: "draw",
			Doc: "Draw the time, the grid, the bytes or the waste.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"-"}, Name: "wider",
			Doc: "Draw more of the axis, up to all of it.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"+", "="}, Name: "closer",
			Doc: "Draw less of the axis, around the cursor.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 6,
		},
		{
			Keys: []string{"p"}, Name: "producers",
			Doc: "The operators that give what the selected one takes.",
			In:  []Place{InViews}, Of: InGraph, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"c"}, Name: "consumers",
			Doc: "The operators that take what the selected one gives.",
			In:  []Place{InViews}, Of: InGraph, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"a"}, Name: "list",
			Doc: "Another list of the graph: operators, values, memory, who has a slot when.",
			In:  []Place{InViews}, Of: WithLists, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"A"}, Name: "mark by",
			Doc: "Mark operators by time alone, cost, waste or gap.",
			In:  []Place{InViews}, Of: WithLists, Needs: []Needs{View},
		},
		{
			Keys: []string{"x"}, Name: "export",
			Doc: "Write the trace to a file: .json, .json.gz or .jsonl.",
			In:  []Place{InViews, Overlays}, Needs: []Needs{Steps}, Hint: 11,
			Plain: Line{Word: "x", Takes: "FILE", Doc: "export", Recorded: true},
		},
		{
			Keys: []string{"E"}, Name: "export table",
			Doc: "Write the table on the screen to a file, as it is filtered, folded, sorted and scoped.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"y"}, Name: "copy",
			Doc: "Copy the selected row, or the text that lies over the view, to the clipboard (OSC 52, also over ssh; in tmux with set-clipboard on).",
			In:  []Place{InViews, Overlays},
		},
		{
			Keys: []string{"down", "j"}, Name: "down",
			Doc: "Down. In Step: the step after; where a part is open, the next part.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"up", "k"}, Name: "up",
			Doc: "Up. In Step: the step before; where a part is open, the part before.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"left", "h"}, Name: "left",
			Doc: "Close the row, or go to the one it stands in. In Step: the step before.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"right", "l"}, Name: "right",
			Doc: "Open the row. In Step: the step after.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"g", "home"}, Name: "top",
			Doc: "To the first.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"G", "end"}, Name: "bottom",
			Doc: "To the last.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"pgup"}, Name: "page up",
			Doc: "A page up.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"pgdown"}, Name: "page down",
			Doc: "A page down.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"ctrl+u"}, Name: "half up",
			Doc: "Half a page up.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"ctrl+d"}, Name: "half down",
			Doc: "Half a page down.",
			In:  []Place{Moving},
		},
	}
	list = append(list, views...)
	return append(list, []Row{
		{
			Keys: []string{"`"}, Name: "last view",
			Doc: "Back to the view before.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"tab", "shift+tab"}, Name: "pane",
			Doc: "To the other pane: list or detail.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"z"}, Name: "zoom",
			Doc: "The pane alone on the screen, and back.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"<"}, Name: "less list",
			Doc: "Move the split: more detail.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{">"}, Name: "more list",
			Doc: "Move the split: more list.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{":"}, Name: "palette",
			Doc: "Find an action by its name.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"M"}, Name: "mouse",
			Doc: "Mouse on or off. While it is on, hold shift to select text.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"?"}, Name: "help",
			Doc: "What the keys do here.",
			In:  []Place{InViews}, Hint: 15,
			Plain: Line{Word: "?", Takes: "", Doc: "list the commands, as help does", Recorded: true},
		},
		{
			Keys: []string{"esc"}, Name: "back out",
			Doc: "Dismiss the error, or leave the filter, the zoom, the pane.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"q"}, Name: "quit",
			Doc: "Quit; close what was opened over a view.",
			In:  []Place{InViews}, Hint: 16,
			Plain: Line{Word: "q", Takes: "", Doc: "quit", Recorded: true},
		},
		{
			Keys: []string{"/"}, Name: "find",
			Doc: "Find a text: lines that have it are marked.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"n"}, Name: "next found",
			Doc: "To the next line that was found.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"N"}, Name: "found before",
			Doc: "To the line before that was found.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"]"}, Name: "later",
			Doc: "Why: the next change of this grid in the run.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"["}, Name: "earlier",
			Doc: "Why: the change of this grid before.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"U"}, Name: "use text",
			Doc: "Of a kernel that was tried: have the steps to come run the text, or its own again.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"enter"}, Name: "unfold",
			Doc: "Why: open the chain, or close it. Elsewhere: close what lies over the view.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"esc", "q", "?"}, Name: "close",
			Doc: "Close what lies over the view.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{`ctrl+\`}, Name: "timings",
			Doc: "What the screen itself takes: frames, messages, jobs; again hides it.",
			In:  []Place{Anywhere},
		},
		{
			Keys: []string{"ctrl+c"}, Name: "cancel",
			Doc: fmt.Sprintf("Cancel what is running; again within %.0f s: quit.", Again.Seconds()),
			In:  []Place{Anywhere},
		},
		{
			Keys: []string{"ctrl+z"}, Name: "suspend",
			Doc: "Suspend; fg brings it back.",
			In:  []Place{Anywhere},
		},
	}...)
}

// Where is a place at which keys are pressed.
type Where struct {
	In     []Place
	Offers func(name string) bool // whether the view there offers a command; nil: it offers none
}

// Holds says whether the command works at a place.
func (r *Row) Holds(at Where) bool {
	return slices.ContainsFunc(r.In, func(p Place) bool {
		able := p != InViews || r.Of == "" || at.Offers != nil && at.Offers(r.Name)
		return able && slices.Contains(at.In, p)
	})
}

// Find finds the command of a key at a place, nil for none.
func Find(key string, at Where) *Row {
	for i := range Table {
		if slices.Contains(Table[i].Keys, key) && Table[i].Holds(at) {
			return &Table[i]
		}
	}
	return nil
}

// Here are the commands of a place, those of the hint line alone and in its order when hinted is set.
func Here(at Where, hinted bool) []*Row {
	var out []*Row
	for i := range Table {
		if r := &Table[i]; r.Holds(at) && (!hinted || r.Hint > 0) {
			out = append(out, r)
		}
	}
	if hinted {
		slices.SortStableFunc(out, func(a, b *Row) int { return a.Hint - b.Hint })
	}
	return out
}

// Under are the commands that a person finds under a heading: of a place, and of some views or all ("").
func Under(in Place, of func(heading string) bool) []*Row {
	var out []*Row
	for i := range Table {
		if r := &Table[i]; slices.Contains(r.In, in) && of(r.Of) {
			out = append(out, r)
		}
	}
	return out
}

// General is the heading of commands that all views have.
func General(heading string) bool { return heading == "" }

// Key is the first key of a command; one that has none is found by its name.
func (r *Row) Key() string {
	if len(r.Keys) == 0 {
		return ":" + r.Name
	}
	return r.Keys[0]
}

// KeyNames are how the keys of a command are shown.
func (r *Row) KeyNames() string { return strings.Join(r.Keys, " ") }

// Named is the row of a name. Prose takes the keys that it names from here, so that none is missing.
func Named(name string) *Row {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	panic("command: none is named " + name)
}

// KeyOf is the first key of a command by its name.
func KeyOf(name string) string { return Named(name).Key() }

// Keyed puts keys into a sentence: "{prompt}" is the key of the command of that name. No sentence names a key
// itself, so that none is wrong when a key is another.
func Keyed(s string) string {
	return braced.ReplaceAllStringFunc(s, func(name string) string { return KeyOf(name[1 : len(name)-1]) })
}

var braced = regexp.MustCompile(`\{[^{}]+\}`)
