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

// Table is a kind of table about a trace. The screen, the commands and the exports find all tables here and
// therefore show the same. To add a table, add a file that calls Register.
type Table struct {
	Name  string
	Doc   string // one-line description
	Takes Takes
	// Folds reports whether the table uses Options.Grouping. Compares reports whether it uses
	// Options.Baseline.
	Folds, Compares bool
	// OfGraph reports whether the table accepts a selection without steps. Without steps, the table shows
	// the graph at its largest shapes.
	OfGraph bool
	Of      func(context.Context, *analyze.Index, analyze.Options) (*table.Table, error)
}

// Takes is the kind of selection that a table accepts.
type Takes int

// These are the kinds of selections.
const (
	OneStep  Takes = iota // exactly one step
	AnySteps              // one step, or several steps summarized by medians
	WholeRun              // the whole run, or the selected part of it
	NoSteps               // no steps: the table is about the graph or the file
)

// String describes the accepted selections, for the list of tables.
func (k Takes) String() string {
	return [...]string{"one step", "one or more steps", "the whole run, or selected steps", "the graph or the file"}[k]
}

// List is the table that lists all tables.
var List = Table{
	Name: "tables", Doc: "all tables", Takes: NoSteps,
	Of: func(context.Context, *analyze.Index, analyze.Options) (*table.Table, error) {
		list := Tables()
		of := table.ColumnsOf(list)
		return table.New("tables", []table.Column{
			of.Text(80, "table", "table", "name of the table, for the flag --table",
				func(t *Table) string { return t.Name }),
			of.Text(80, "steps", "of", "steps that the table covers",
				func(t *Table) string { return t.Takes.String() }),
			of.Text(80, "doc", "shows", "what the table shows", func(t *Table) string { return t.Doc }),
		}, table.Flat(len(list), func(row int) string { return list[row].Name })), nil
	},
}

var tables []Table

// ErrSelection is wrapped by the error for a selection that a table does not accept.
var ErrSelection = errors.New("selection does not fit the table")

// badSelection is an error message that wraps ErrSelection.
type badSelection string

func (e badSelection) Error() string { return string(e) }

// Unwrap returns ErrSelection.
func (e badSelection) Unwrap() error { return ErrSelection }

func selectionError(format string, args ...any) error {
	return badSelection(fmt.Sprintf(format, args...))
}

// Register adds a table. Files call it from their init functions. Register wraps the table so that a
// selection without steps is an error, except for tables that accept such a selection.
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

// ofNone reports whether the table accepts a selection without steps. Without steps, the table is about the
// graph, the file, or all steps.
func (t *Table) ofNone() bool { return t.OfGraph || t.Takes == NoSteps || t.Takes == WholeRun }

// Tables returns all registered tables, sorted by name.
func Tables() []Table {
	byName := func(a, b Table) int { return cmp.Compare(a.Name, b.Name) }
	return slices.SortedFunc(slices.Values(tables), byName)
}

// TableNamed returns the table with the given name. For an unknown name it returns an error that lists all
// names.
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

// Selection parses the selection for a table. An empty word means the table's default: the last step or the
// whole run, or the graph if no step was run.
func (t *Table) Selection(x *analyze.Index, word string) (analyze.Selection, error) {
	switch {
	case t.Name == List.Name && word != "":
		return analyze.Selection{}, selectionError("steps were selected without a table. Name a table")
	case t.Takes == NoSteps && word != "":
		return analyze.Selection{}, selectionError("table %s covers %s and accepts no steps", t.Name, t.Takes)
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
			"table %s shows one step, but %s selects %s. Name one step, such as s%d",
			t.Name,
			s.Name,
			StepCount(s),
			x.Trace.Steps[s.Last()].Index,
		)
	}
	return s, err
}

// Print prints a table. It prints the rows that are initially unfolded, as a screen of the given width
// shows them.
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
