package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// Table is a table that a trace can be looked at by. The screen, the commands and exports all find it here,
// so that they show the same. A new one is a file that registers it.
type Table struct {
	Name  string
	Doc   string // what it shows, in a line
	Takes Takes
	// Folds and Compares report whether Options.Fold and Options.Base are heeded.
	Folds, Compares bool
	// OfGraph reports that it takes the Selection of no steps: it is then of the graph at its largest.
	OfGraph bool
	Of      func(context.Context, *analyze.Index, analyze.Options) (*table.Table, error)
}

// Takes says which selections a table speaks of.
type Takes int

// The selections that tables take.
const (
	OneStep  Takes = iota // exactly one
	AnySteps              // one, or several by their medians
	WholeRun              // the whole run, or the part of it that a selection names
	NoSteps               // none: it is of the graph or of the file
)

// String is what a list of tables says of it.
func (k Takes) String() string {
	return [...]string{"one step", "any steps", "the whole run, or any steps", "the graph or the file"}[k]
}

// List is the table of all tables.
var List = Table{
	Name: "tables", Doc: "all tables", Takes: NoSteps,
	Of: func(context.Context, *analyze.Index, analyze.Options) (*table.Table, error) {
		list := Tables()
		at := table.By(list)
		return table.New("tables", []table.Column{
			{
				Name: "table", Title: "table", Width: 80, Doc: "name, for --table",
				Of: at(func(t *Table) table.Cell { return table.Text(t.Name) }),
			},
			{
				Name: "steps", Title: "of", Width: 80, Doc: "steps that the table covers",
				Of: at(func(t *Table) table.Cell { return table.Text(t.Takes.String()) }),
			},
			{
				Name: "doc", Title: "shows", Width: 80, Doc: "what it shows",
				Of: at(func(t *Table) table.Cell { return table.Text(t.Doc) }),
			},
		}, table.Flat(len(list), func(row int) string { return list[row].Name })), nil
	},
}

var tables []Table

// ErrSelection is the error of steps that a table does not take.
var ErrSelection = errors.New("selection does not fit the table")

// badSelection is an ErrSelection in words.
type badSelection string

func (e badSelection) Error() string { return string(e) }

// Unwrap makes it an ErrSelection.
func (e badSelection) Unwrap() error { return ErrSelection }

func selectionError(format string, args ...any) error {
	return badSelection(fmt.Sprintf(format, args...))
}

// Register adds a table; files do it before the program starts. A table is never made of a selection without
// steps that does not take it.
func Register(t Table) {
	of := t.Of
	t.Of = func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
		if len(o.Selection.Steps) == 0 && !t.ofNone() {
			return nil, selectionError("table %s needs %s", t.Name, t.Takes)
		}
		return of(ctx, x, o)
	}
	tables = append(tables, t)
}

// ofNone reports that the table takes a selection of no steps: it is then of the graph, of the file, or of
// all the steps there are.
func (t *Table) ofNone() bool { return t.OfGraph || t.Takes == NoSteps || t.Takes == WholeRun }

// Tables are all there are, by name.
func Tables() []Table {
	byName := func(a, b Table) int { return cmp.Compare(a.Name, b.Name) }
	return slices.SortedFunc(slices.Values(tables), byName)
}

// TableNamed finds a table. An unknown name is an error that lists what there is.
func TableNamed(name string) (Table, error) {
	var names []string
	for _, t := range Tables() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Table{}, fmt.Errorf("no table %q; known: %s", printable.Short(name, 40),
		strings.Join(names, ", "))
}

// Selection reads the selection that a table is asked for, "" for its own: the last step, or the whole run,
// or where no step was run, the graph.
func (t *Table) Selection(x *analyze.Index, word string) (analyze.Selection, error) {
	switch {
	case t.Name == List.Name && word != "":
		return analyze.Selection{}, selectionError("steps need a table: name one")
	case t.Takes == NoSteps && word != "":
		return analyze.Selection{}, selectionError("table %s covers %s and takes no steps", t.Name, t.Takes)
	case t.Takes == NoSteps, word == "" && t.Takes == WholeRun,
		word == "" && t.OfGraph && len(x.Trace.Steps) == 0:
		return analyze.Selection{}, nil
	case word == "" && len(x.Trace.Steps) == 0:
		return analyze.Selection{}, selectionError("table %s needs %s, and the trace has none", t.Name,
			t.Takes)
	case word == "":
		word = "last"
	}
	s, err := x.ParseSelection(word)
	if _, one := s.One(); err == nil && t.Takes == OneStep && !one {
		return analyze.Selection{}, selectionError(
			"table %s shows one step; %s are %s: name one, such as s%d",
			t.Name,
			s.Name,
			StepCount(s),
			x.Trace.Steps[s.Last()].Index,
		)
	}
	return s, err
}

// Print makes a table and prints the rows that are open at first, as a screen of so many cells shows them.
func Print(ctx context.Context, x *analyze.Index, w io.Writer, name, format string, width int,
	o analyze.Options,
) error {
	t, err := TableNamed(name)
	if err != nil {
		return err
	}
	made, err := t.Of(ctx, x, o)
	if err != nil {
		return err
	}
	rows, err := made.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	return made.Print(ctx, w, format, rows, width)
}
