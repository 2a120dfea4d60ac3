package command

import (
	"fmt"

	"gpuscope/trace/analyze"
)

// Table lists all commands in the order of the help.
var Table = Default()

// Default returns the table with the default keys. `views` are the commands that switch to a view.
func Default(views ...Row) []Row {
	list := []Row{
		{
			Keys: []string{"s"}, Name: "token",
			Doc:  "Decodes the next token. In a trace: shows the next step.",
			Also: "decode generate next step",
			In:   []Place{InViews}, Hint: 1,
			Plain: Line{Word: "s", Takes: "", Doc: "next token"},
		},
		{
			Keys: []string{"S"}, Name: "back",
			Doc: "Goes back by one step. In a trace: shows the previous step.",
			In:  []Place{InViews}, Hint: 3,
			Plain: Line{Word: "S", Takes: "", Doc: "go back by one step"},
		},
		{
			Keys: []string{"space"}, Name: "run",
			Doc:  "Runs until the end token or the end of the context. The same key pauses.",
			Also: "play continue start pause stop",
			In:   []Place{InViews}, Hint: 2,
			Plain: Line{Word: "r", Takes: "[TO]", Doc: "run to the end, to a position, to dispatch N (d N), or until a condition is met; without a device: plan a step of any shape (TOKENS,POSITION)"},
		},
		{
			Keys: []string{"R"}, Name: "repeat",
			Doc:  "Repeats the shown step 10 times, to compute medians from more samples.",
			Also: "samples median again rerun",
			In:   []Place{InViews}, Needs: []Needs{Run}, Hint: 9,
			Plain: Line{Word: "R", Takes: "[STEP]", Doc: "repeat the current step, or step STEP"},
		},
		{
			Keys: []string{"P"}, Name: "run to",
			Doc:  "Runs to a position, until a condition is met, or up to a dispatch of this step. In a trace: shows the step at a position. Without a device: plans a step of any number of tokens at any position.",
			Also: "goto position until",
			In:   []Place{InViews}, Hint: 13,
		},
		{
			Keys: []string{"D"}, Name: "breakpoints",
			Doc:  "Lists the breakpoints. A run pauses when it reaches a breakpoint. Type a condition to add a breakpoint; delete removes the selected breakpoint.",
			Also: "NaN inf stop pause condition watch debug",
			In:   []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "b", Takes: "[CONDITION]", Doc: "add a breakpoint, or list breakpoints and possible conditions"},
		},
		{Name: "remove breakpoint", Plain: Line{Word: "B", Takes: "N", Doc: "remove breakpoint N"}},
		{
			Keys: []string{"i"}, Name: "prompt",
			Doc:  "Asks for a new prompt, which replaces the text. With --chat: asks for your next turn of the conversation.",
			Also: "text chat input message",
			In:   []Place{InViews}, Needs: []Needs{Session}, Hint: 14,
			Plain: Line{Word: "p", Takes: "TEXT", Doc: "set the prompt; with --chat: your turn"},
		},
		{
			Keys: []string{"I"}, Name: "edit",
			Doc: "Edits the text from the shown step on and continues. Earlier tokens stay in the KV cache.",
			In:  []Place{InViews}, Needs: []Needs{Text},
			Plain: Line{
				Word: "e", Takes: "N TEXT",
				Doc: "keep the first N tokens of the text and continue with TEXT",
			},
		},
		{
			Keys: []string{"K"}, Name: "chunk",
			Doc:  "Sets how many tokens of a prompt one step processes.",
			Also: "prefill batch",
			In:   []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "k", Takes: "N", Doc: "set how many tokens of a prompt one step processes; 0 for the maximum"},
		},
		{
			Keys: []string{"X"}, Name: "reset",
			Doc:  "Clears the text and goes to position 0. Recorded steps are kept.",
			Also: "clear new",
			In:   []Place{InViews}, Needs: []Needs{Session},
			Plain: Line{Word: "X", Takes: "", Doc: "reset"},
		},
		{
			Keys: []string{"r"}, Name: "restart",
			Doc:  "Restarts the crashed engine with the same model, prompt and position.",
			Also: "crash reload",
			In:   []Place{InViews, Overlays}, Hint: 1,
		},
		{
			Keys: []string{"T"}, Name: "timing",
			Doc:  "Sets the timing level of the next steps: off, step, block or dispatch.",
			Also: "timestamps overhead measure",
			In:   []Place{InViews}, Needs: []Needs{Device},
			Plain: Line{Word: "T", Takes: "LEVEL", Doc: "set the timing level: off, step, block or dispatch"},
		},
		{Name: "tokens", Plain: Line{Word: "t", Takes: "TEXT", Doc: "show the tokens of a text"}},
		{
			Keys: []string{"L"}, Name: "ceilings",
			Doc:  "Measures the highest rates of the device (its ceilings). Bounds, excess and verdicts are computed from the ceilings.",
			Also: "roofline peak bandwidth flops limit",
			In:   []Place{InViews}, Needs: []Needs{Device},
			Plain: Line{Word: "L", Takes: "", Doc: "measure the ceilings of the device"},
		},
		{Name: "value", Plain: Line{Word: "v", Takes: "VALUE [DISPATCH]", Doc: "print statistics of a value at the end of the step, or right after the dispatch with the id DISPATCH; the table `values` lists the ids of values"}},
		{Name: "save value", Plain: Line{
			Word: "save", Takes: "VALUE [DISPATCH] FILE",
			Doc: "write all elements of a value, at the end of the step or right after DISPATCH, to a .npy or .csv file",
		}},
		{
			Keys: []string{"f"}, Name: "follow",
			Doc:  "Switches between following the newest step and staying on the shown step.",
			Also: "live newest",
			In:   []Place{InViews},
		},
		{
			Keys: []string{","}, Name: "previous step",
			Doc: "Shows the previous recorded step. The position of the model does not change.",
			In:  []Place{InViews}, Needs: []Needs{Steps},
		},
		{
			Keys: []string{"."}, Name: "next step",
			Doc: "Shows the next recorded step.",
			In:  []Place{InViews}, Needs: []Needs{Steps},
		},
		{
			Keys: []string{"]"}, Name: "next event",
			Doc:  "Goes to the next step with an event: its phase, its number of tokens, a grid or a route changed, or the step is cold or slow. In Resize: goes to the next step in which a grid changed. In Curves: goes to the next change of the row's grid. In an opened value: goes to the next dispatch that writes the value's memory.",
			Also: "jump outlier cold",
			In:   []Place{InViews}, Needs: []Needs{Shown}, Hint: 8, With: "previous event", Word: "event",
		},
		{
			Keys: []string{"["}, Name: "previous event",
			Doc: "Goes to the previous step with an event. In Resize: goes to the previous step in which a grid changed. In Curves: goes to the previous change of the row's grid. In an opened value: goes to the previous dispatch that writes the value's memory.",
			In:  []Place{InViews}, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"v"}, Name: "selection",
			Doc:  "Chooses which steps tables cover: this step, all warm decode steps, the prefill, or the marked steps. A command that goes to a step, such as {token}, selects only that step.",
			Also: "range scope steps phase",
			In:   []Place{InViews}, Word: "steps", Hint: 7,
			Plain: Line{
				Word: "scope", Takes: "[STEPS]",
				Doc: "choose the steps that tables cover: " + analyze.SelectionWords, Recorded: true,
			},
		},
		{
			Keys: []string{"V"}, Name: "previous selection",
			Doc: "Goes through the selections of steps in reverse order.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"b"}, Name: "baseline",
			Doc:  "Makes the shown step or selection the baseline that tables are compared with. If this baseline is set already: removes it, so that tables are compared with the previous step again.",
			Also: "diff compare delta difference before",
			In:   []Place{InViews}, Needs: []Needs{Shown}, Hint: 8,
			Plain: Line{Word: "base", Takes: "[STEPS or FILE]", Doc: "compare tables with these steps, or with another trace", Recorded: true},
		},
		{
			Keys: []string{"B"}, Name: "baseline trace",
			Doc:  "Compares tables with the steps of the same phase in another trace. The tab key completes the typed path; if nothing is typed, it offers the traces in the current folder, newest first. Leave the file name empty to compare with steps of this trace again.",
			Also: "diff compare delta difference file run",
			In:   []Place{InViews}, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"m"}, Name: "mark step",
			Doc:  "Marks the step as one end of a range of steps. Mark another step to set the other end and to select the range.",
			Also: "range select",
			In:   []Place{InViews}, Of: SideBySide, Needs: []Needs{Shown},
		},
		{
			Keys: []string{"enter"}, Name: "open",
			Doc: "Opens or closes the row. On a value: shows its numbers. On a row that contains no other rows: goes to the detail pane.",
			In:  []Place{InViews}, Of: Opening, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"enter"}, Name: "zoom in",
			Doc: "Opens a part of the GPU track, such as a layer with its dispatches. The same key closes the part.",
			In:  []Place{InViews}, Of: Parted, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"F"}, Name: "group by",
			Doc:  "Groups rows by layer, by operator, by kernel, or not at all.",
			Also: "fold kernel layer",
			In:   []Place{InViews}, Of: Folding, Needs: []Needs{View}, Hint: 7,
		},
		{
			Keys: []string{"o"}, Name: "sort",
			Doc:  "Sorts by a column: type the letter of the column. Choosing the same column again reverses the order.",
			Also: "order",
			In:   []Place{InViews}, Of: WithRows, Needs: []Needs{Rows}, Hint: 10,
		},
		{
			Keys: []string{"O"}, Name: "reverse",
			Doc: "Reverses the order.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{View},
		},
		{
			Keys: []string{"/"}, Name: "filter",
			Doc:  "Shows only the rows that match a filter: text, !text, re:pattern, column:text, column:=text, us:>10, #37.",
			Also: "search find grep",
			In:   []Place{InViews}, Of: Filtered, Needs: []Needs{View}, Hint: 6,
			Plain: Line{Word: "filter", Takes: "[WORDS]", Doc: "show only matching rows, such as norm or us:>10", Recorded: true},
		},
		{
			Keys: []string{"n"}, Name: "next match",
			Doc: "Goes to the next row that matches the filter. If no filter is set, uses the last filter.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"N"}, Name: "previous match",
			Doc: "Goes to the previous row that matches the filter.",
			In:  []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"u"}, Name: "undo",
			Doc:  "Undoes the last change of what is shown: order, grouping, opened row, filter, selection, baseline, split, zoom or view.",
			Also: "back revert",
			In:   []Place{InViews},
		},
		{
			Keys: []string{"w"}, Name: "why",
			Doc:  "Explains the grid of the dispatch: shows the chain of changes from an input of the graph, such as the tokens, to this grid. On a value: lists all operators that can be re-planned when the value changes.",
			Also: "explain grid reason resize",
			In:   []Place{InViews}, Of: Explained, Needs: []Needs{View}, Hint: 5,
			Plain: Line{
				Word: "w", Takes: "NAME",
				Doc:      "explain the grid of a dispatch, or list the operators that can be re-planned when a value changes",
				Recorded: true,
			},
		},
		{Name: "table", Plain: Line{
			Word: "d", Takes: "[TABLE]", Doc: "print the table of dispatches, or another table",
			Recorded: true,
		}},
		{
			Keys: []string{"c"}, Name: "cost",
			Doc:  "Measures the cost of each visible row: runs the step many times, with and without the row's dispatches. Stops when it is certain which rows cost most, or after 10 s (30 s on a software device). {back out} stops early and keeps the results. The same key measures more rounds.",
			Also: "profile slow bottleneck optimize speed gain measure",
			In:   []Place{InViews}, Of: Costed, Needs: []Needs{Run}, Hint: 5,
			Plain: Line{Word: "c", Takes: "[NAMES]", Doc: "measure the cost of each row, or of the named rows together"},
		},
		{
			Keys: []string{"C"}, Name: "cost of marked",
			Doc:  "Measures the cost of the marked rows together or, if none is marked, of the selected row. Fusing the rows cannot save more than this cost.",
			Also: "fuse fusion profile together",
			In:   []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
		},
		{
			Keys: []string{"a"}, Name: "verify",
			Doc:  "Compares the marked rows, or the selected row, with float64 references, to find the error of the kernels themselves.",
			Also: "check correct accuracy reference error float64",
			In:   []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
			Plain: Line{Word: "a", Takes: "[NAMES]", Doc: "compare each dispatch, or each named dispatch, with its float64 reference"},
		},
		{
			Keys: []string{"A"}, Name: "verify step",
			Doc:  "Compares every dispatch of the step with float64 references, to find the error of each kernel itself and the error inherited from its inputs.",
			Also: "NaN inf check correct accuracy reference error wrong",
			In:   []Place{InViews}, Of: Costed, Needs: []Needs{Run, Rows},
		},
		{
			Keys: []string{"m"}, Name: "mark row",
			Doc: "Marks the row, or removes its mark.",
			In:  []Place{InViews}, Of: WithDispatch, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"e"}, Name: "WGSL",
			Doc:  "Edits the kernel's source. After each save, runs the new source and the original kernel alternately and compares their times. In a trace: shows the source.",
			Also: "edit source shader code lab kernel",
			In:   []Place{InViews}, Of: WithDispatch, Needs: []Needs{View}, Hint: 12,
		},
		{Name: "try kernel", Plain: Line{Word: "l", Takes: "FILE", Doc: "compare the source in NAME.wgsl with kernel NAME: run both alternately and time them"}},
		{
			Keys: []string{"U"}, Name: "use kernel",
			Doc:  "Switches between the source that was tried last and the original kernel. The switch applies from the next step on.",
			Also: "lab shader source apply",
			In:   []Place{InViews}, Of: WithDispatch,
			Plain: Line{Word: "u", Takes: "FILE or NAME", Doc: "with a file NAME.wgsl: run kernel NAME from this source; with the NAME of a kernel: run the original kernel again"},
		},
		{
			Keys: []string{"W"}, Name: "variants",
			Doc:  "Lists the edited sources that were tried, with their verdicts, times, errors and changes.",
			Also: "lab shader source edited history kernels",
			In:   []Place{InViews, Overlays}, Of: WithDispatch,
		},
		{
			Keys: []string{"W"}, Name: "write variant",
			Doc:  "Writes the source of the variant to a file.",
			Also: "save export source shader",
			In:   []Place{InViews}, Of: InVariants, Needs: []Needs{Rows}, Hint: 6,
		},
		{
			Keys: []string{"a"}, Name: "axis",
			Doc: "Switches the x axis between the position of decode steps and the number of tokens in a prompt.",
			In:  []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"t"}, Name: "time",
			Doc:  "Times the operator in isolation on each of its routes: for the number of tokens at the cursor, and for each number of tokens at which the plan changes the route.",
			Also: "benchmark route isolated",
			In:   []Place{InViews}, Of: WithCurves, Needs: []Needs{Device, View}, Hint: 4,
			Plain: Line{Word: "o", Takes: "OP [M ...]", Doc: "time operator OP in isolation on each route, for M tokens; without M: for each number of tokens at which the plan changes the route"},
		},
		{
			Keys: []string{"d"}, Name: "draw",
			Doc:  "Chooses what the curves show: time, grid, bytes, waste or a roofline of the kernels. In models with recurrent layers also: state, which compares the recurrent state with the part of the KV cache that is in use.",
			Also: "plot chart roofline",
			In:   []Place{InViews}, Of: WithCurves, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"-"}, Name: "wider",
			Doc: "Zooms out along the x axis, at most to the whole axis.",
			In:  []Place{InViews}, Of: WithAxis, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"+", "="}, Name: "closer",
			Doc: "Zooms in along the x axis. The cursor stays in its place.",
			In:  []Place{InViews}, Of: WithAxis, Needs: []Needs{View}, Hint: 6,
		},
		{
			Keys: []string{"enter"}, Name: "go to",
			Doc: "Shows the dispatch in the view Dispatches. On a step, a layer or idle time: zooms to it.",
			In:  []Place{InViews}, Of: OnTimeline, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"/"}, Name: "search",
			Doc:  "Finds dispatches by a part of their name or kernel, or by #id, and marks them.",
			Also: "find grep filter",
			In:   []Place{InViews}, Of: OnTimeline, Needs: []Needs{View}, Hint: 7,
		},
		{
			Keys: []string{"n"}, Name: "next hit",
			Doc: "Goes to the next dispatch that the search found.",
			In:  []Place{InViews}, Of: OnTimeline, Needs: []Needs{View},
		},
		{
			Keys: []string{"N"}, Name: "previous hit",
			Doc: "Goes to the previous dispatch that the search found.",
			In:  []Place{InViews}, Of: OnTimeline, Needs: []Needs{View},
		},
		{
			Keys: []string{"p"}, Name: "producers",
			Doc:  "Shows the operators whose outputs the selected operator reads.",
			Also: "inputs neighbors",
			In:   []Place{InViews}, Of: InGraph, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"c"}, Name: "consumers",
			Doc:  "Shows the operators that read the outputs of the selected operator.",
			Also: "outputs readers neighbors",
			In:   []Place{InViews}, Of: InGraph, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"d"}, Name: "heat map",
			Doc:  "Draws the whole value as a heat map: each cell shows the largest absolute value of a block of elements. The same key shows the numbers again.",
			Also: "draw picture image outlier",
			In:   []Place{InViews}, Of: InValue, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"c"}, Name: "compare",
			Doc:  "Shows the difference between the value in this step and in the baseline's step: its size, its elements and its heat map. The same key shows the value again.",
			Also: "diff baseline delta difference",
			In:   []Place{InViews}, Of: InValue, Needs: []Needs{View}, Hint: 5,
		},
		{
			Keys: []string{"E"}, Name: "export value",
			Doc:  "Writes all elements of the value, as they are after the shown dispatch, to a .npy file (NumPy) or a .csv file with one line for each row.",
			Also: "save csv npy numpy file tensor",
			In:   []Place{InViews}, Of: InValue, Needs: []Needs{View}, Hint: 6,
		},
		{
			Keys: []string{"a"}, Name: "list",
			Doc:  "Shows another list of the graph: operators, values, memory by role, or memory slots and the values that share them.",
			Also: "memory values",
			In:   []Place{InViews}, Of: WithLists, Needs: []Needs{View}, Hint: 4,
		},
		{
			Keys: []string{"A"}, Name: "mark by",
			Doc:  "Colors operators by isolated time, cost, waste or error.",
			Also: "color heat",
			In:   []Place{InViews}, Of: WithLists, Needs: []Needs{View},
		},
		{
			Keys: []string{"x"}, Name: "export",
			Doc:  "Exports the trace to a file, also in formats of other programs. In the question, tab changes the format.",
			Also: "save write file perfetto chrome json record",
			In:   []Place{InViews, Overlays}, Needs: []Needs{Steps}, Hint: 11,
			Plain: Line{Word: "x", Takes: "FILE", Doc: "export", Recorded: true},
		},
		{
			Keys: []string{"E"}, Name: "export table",
			Doc:  "Writes the shown table to a file, filtered, grouped and sorted as on the screen.",
			Also: "save csv markdown json file",
			In:   []Place{InViews}, Of: WithRows, Needs: []Needs{Rows},
		},
		{
			Keys: []string{"y"}, Name: "copy",
			Doc:  "Copies the selected row, or the text over the view, to the clipboard. Uses OSC 52, which also works over ssh, and in tmux if set-clipboard is on.",
			Also: "clipboard yank",
			In:   []Place{InViews, Overlays},
		},
		{
			Keys: []string{"down", "j"}, Name: "down",
			Doc: "Goes down. In Step: goes to the next step or, if a part of the GPU track is open, to the next part. In Timeline: goes to the track below.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"up", "k"}, Name: "up",
			Doc: "Goes up. In Step: goes to the previous step or, if a part of the GPU track is open, to the previous part. In Timeline: goes to the track above.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"left", "h"}, Name: "left",
			Doc: "Closes the row. If it is not open: goes to the row that contains it. In Step: goes to the previous step. In Timeline: goes to the previous item on the same track, at least one cell away.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"right", "l"}, Name: "right",
			Doc: "Opens the row. In Step: goes to the next step. In Timeline: goes to the next item on the same track, at least one cell away.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"g", "home"}, Name: "top",
			Doc: "Goes to the first row.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"G", "end"}, Name: "bottom",
			Doc: "Goes to the last row.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"pgup"}, Name: "page up",
			Doc: "Goes up by a page. In Timeline: moves the shown part to the left by its length.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"pgdown"}, Name: "page down",
			Doc: "Goes down by a page. In Timeline: moves the shown part to the right by its length.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"ctrl+u"}, Name: "half up",
			Doc: "Goes up by half a page.",
			In:  []Place{Moving},
		},
		{
			Keys: []string{"ctrl+d"}, Name: "half down",
			Doc: "Goes down by half a page.",
			In:  []Place{Moving},
		},
	}
	list = append(list, views...)
	return append(list, []Row{
		{
			Keys: []string{"`"}, Name: "last view",
			Doc: "Goes back to the previous view.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"tab", "shift+tab"}, Name: "pane",
			Doc: "Goes to the other pane: list or detail.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"z"}, Name: "zoom",
			Doc:  "Shows only this pane, or both panes again.",
			Also: "maximize full",
			In:   []Place{InViews},
		},
		{
			Keys: []string{"<"}, Name: "less list",
			Doc: "Makes the detail pane larger and the list smaller.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{">"}, Name: "more list",
			Doc: "Makes the list larger and the detail pane smaller.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{":"}, Name: "palette", Word: "commands",
			Doc: "Finds a command by its name or by what it does.",
			In:  []Place{InViews}, Hint: 16,
		},
		{
			Name: "roofline",
			Doc:  "Shows the roofline: the kernels as points under the measured ceilings of the device. It is also the last chart of the view Curves.",
			Also: "roof ceilings memory compute bound intensity",
			In:   []Place{InViews}, Needs: []Needs{Steps},
		},
		{
			Keys: []string{"H"}, Name: "how do I",
			Doc:  "Lists common questions. When you choose one, the program presses the keys that answer it.",
			Also: "question guide tutorial answer",
			In:   []Place{InViews, Overlays},
		},
		{
			Keys: []string{"M"}, Name: "mouse",
			Doc:  "Turns the mouse on or off. While the mouse is on, hold shift to select text.",
			Also: "pointer click",
			In:   []Place{InViews},
		},
		{
			Keys: []string{"?"}, Name: "help",
			Doc:  "Explains the keys of this view, and the symbols and terms on the screen.",
			Also: "keys manual glossary",
			In:   []Place{InViews}, Hint: 17,
			Plain: Line{Word: "?", Takes: "", Doc: "list the commands, as help does", Recorded: true},
		},
		{
			Keys: []string{"esc"}, Name: "back out",
			Doc: "Does the first of these that is possible: ends the measurement of costs and keeps its results, dismisses the error, leaves the detail pane, clears the filter, ends the zoom, closes the opened view.",
			In:  []Place{InViews},
		},
		{
			Keys: []string{"q"}, Name: "quit",
			Doc:  "Quits the program. In a text over a view: closes the text.",
			Also: "exit close",
			In:   []Place{InViews}, Hint: 15,
			Plain: Line{Word: "q", Takes: "", Doc: "quit", Recorded: true},
		},
		{
			Keys: []string{"/"}, Name: "find",
			Doc: "Finds a text and marks the lines that contain it.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"n"}, Name: "next found",
			Doc: "Goes to the next line that contains the text.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"N"}, Name: "previous found",
			Doc: "Goes to the previous line that contains the text.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"]"}, Name: "later",
			Doc: "While a grid is explained: shows the next change of the grid in the run.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"["}, Name: "earlier",
			Doc: "While a grid is explained: shows the previous change of the grid in the run.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"U"}, Name: "use text",
			Doc: "After an edited kernel was timed: switches to the new source or back to the original kernel, from the next step on.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"enter"}, Name: "unfold",
			Doc: "While a grid is explained: opens or closes the chain of changes. In other texts: closes the text.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{"esc", "q", "?"}, Name: "close",
			Doc: "Closes the text that is shown over the view.",
			In:  []Place{Overlays},
		},
		{
			Keys: []string{`ctrl+\`}, Name: "timings",
			Doc:  "Shows how long the program itself takes to draw frames and handle messages, and how many jobs are running. The same key hides these numbers.",
			Also: "fps performance slow screen",
			In:   []Place{Anywhere},
		},
		{
			Keys: []string{"ctrl+c"}, Name: "cancel",
			Doc: fmt.Sprintf("Cancels the running command. Pressed twice within %.0f s: quits the program.",
				Again.Seconds()),
			In: []Place{Anywhere},
		},
		{
			Keys: []string{"ctrl+z"}, Name: "suspend",
			Doc: "Suspends the program. The shell command fg resumes it.",
			In:  []Place{Anywhere},
		},
	}...)
}
