package command

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Place is a kind of screen area in which the keys of a command work.
type Place int

const (
	Anywhere Place = iota // views and overlays
	InViews               // all views, or only those that offer the command
	Moving                // lists and texts, wherever they are shown: in views and in overlays
	Overlays              // a text shown over a view
)

func (p Place) String() string {
	return [...]string{"Anywhere", "In every view", "Moving", "In a text shown over a view"}[p]
}

// Needs is what a command requires before it can run.
type Needs int

const (
	Nothing Needs = iota
	Opened        // an open session or trace
	Steps         // at least one recorded step
	Shown         // a step on the screen
	View          // a view that has content to show
	Rows          // a view that has rows
	Session       // a session, not a recorded trace
	Text          // a session with a text
	Device        // a session whose steps run on a GPU
	Run           // a device, and a current step of the session
)

// Headings of the help for commands that only some views offer.
const (
	Opening      = "In views with rows that open"
	Parted       = "In views with parts of a step that can be opened"
	WithRows     = "In views with rows"
	Folding      = "In views with rows that can be grouped"
	Filtered     = "In views with rows that can be filtered"
	Explained    = "In views with rows to explain"
	SideBySide   = "In views that show steps side by side"
	Costed       = "In views with rows that can be measured and verified"
	WithDispatch = "With a dispatch under the cursor"
	InVariants   = "In the list of variants"
	WithCurves   = "In views with curves"
	WithAxis     = "In views with an axis that can be zoomed"
	OnTimeline   = "On the timeline"
	InGraph      = "With an operator or a value under the cursor"
	InValue      = "In an opened value"
	WithLists    = "In views with several lists"
)

// Headings lists the headings in the order of docs/reference/keys.md.
var Headings = []string{
	Opening, Parted, WithRows, Folding, Filtered, Explained, SideBySide, Costed,
	WithDispatch, InVariants, WithCurves, WithAxis, OnTimeline, InGraph, InValue, WithLists,
}

// Row describes one command of the program. The table of rows assigns the keys. The hint line, the help,
// the palette, plain mode and docs/reference/keys.md are all built from the table.
type Row struct {
	Keys  []string
	Name  string // one or two words, for the hint line and the palette
	Doc   string // one sentence, for the help
	In    []Place
	Of    string // "" if every view has the command; otherwise one of Headings
	Needs []Needs
	Hint  int    // rank in the hint line, lowest first; 0: not in the hint line
	With  string // name of a command whose key the hint line shows before the key of this command
	Word  string // label in the hint line; if empty, Name is the label
	Also  string // other words by which the palette finds the command, separated by spaces
	Plain Line   // the command in plain mode
}

// Line describes a command as it is typed in plain mode. If Word is empty, plain mode does not have the
// command.
type Line struct {
	Word, Takes, Doc string
	Recorded         bool // also works on a recorded trace
}

// Action is the implementation of a command for one view or for the program.
type Action struct {
	Name string        // name of the command's Row
	Off  func() string // returns why the command is not available now, or ""; may be nil
	Now  func() string // returns the hint-line label that replaces Row.Word now, or ""; may be nil
	Miss func()        // called instead of Run if the command is not available; may be nil
	Run  func()        // nil in the Action of a view: the program's own Action runs
}

// Again is the time within which a second cancel quits the program.
const Again = 2 * time.Second

// Where is the context in which a key is pressed.
type Where struct {
	In     []Place
	Offers func(name string) bool // reports whether the view offers the named command; nil: it offers none
}

// Holds reports whether the command can be used in the given context.
func (r *Row) Holds(at Where) bool {
	return slices.ContainsFunc(r.In, func(p Place) bool {
		able := p != InViews || r.Of == "" || at.Offers != nil && at.Offers(r.Name)
		return able && slices.Contains(at.In, p)
	})
}

// Find returns the command that a key runs in the given context, or nil if there is none.
func Find(key string, at Where) *Row {
	for i := range Table {
		if slices.Contains(Table[i].Keys, key) && Table[i].Holds(at) {
			return &Table[i]
		}
	}
	return nil
}

// Here returns the commands that can be used in the given context. If `hinted` is set, it returns only the
// commands of the hint line, in their order there.
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

// Under returns the commands of a place for whose heading the function `accepts` returns true. Commands
// that every view has are under the heading "".
func Under(in Place, accepts func(heading string) bool) []*Row {
	var out []*Row
	for i := range Table {
		if r := &Table[i]; slices.Contains(r.In, in) && accepts(r.Of) {
			out = append(out, r)
		}
	}
	return out
}

// General is an argument for Under. It accepts the commands that every view has.
func General(heading string) bool { return heading == "" }

// Key returns the first key of a command. If the command has no key, it returns ":" and the name of the
// command, because : opens the palette, which finds a command by its name.
func (r *Row) Key() string {
	if len(r.Keys) == 0 {
		return ":" + r.Name
	}
	return r.Keys[0]
}

// KeyNames returns the keys of a command as the help shows them.
func (r *Row) KeyNames() string { return strings.Join(r.Keys, " ") }

// Named returns the command with the given name. It panics if no command has this name.
func Named(name string) *Row {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	panic("command: the table has no command named " + name)
}

// KeyOf returns the first key of the command with the given name.
func KeyOf(name string) string { return Named(name).Key() }

// Keyed replaces each {name} in a sentence with the key of the named command: "{prompt}" becomes "i", or the
// key that the user chose instead.
func Keyed(s string) string {
	return braced.ReplaceAllStringFunc(s, func(name string) string { return KeyOf(name[1 : len(name)-1]) })
}

var braced = regexp.MustCompile(`\{[^{}]+\}`)
