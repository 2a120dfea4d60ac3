package traces

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	_ "gpuscope/trace/report/all" // registers the tables
	"gpuscope/trace/table"
	screen "gpuscope/tui/command"
)

func showCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace show", Operand: "FILE",
		Doc: "print a table of a recorded trace",
		More: `FILE is a trace (` + trace.Storable() + `); no GPU is needed.
Without --table, lists the tables.
A table of several steps shows medians. A median only covers steps with the same work and the same routes. Cold steps are
excluded unless there are no others. --filter and --sort work like the keys / and o of the full-screen program.`,
		Examples: []cli.Example{
			{"gpuscope trace show run.json", "list the tables of the trace"},
			{"gpuscope trace show run.json --table dispatches", "the dispatches of the last step"},
			{
				"gpuscope trace show run.json --table dispatches --steps decode --fold op --sort sum_us",
				"all decode steps, grouped by operator",
			},
			{
				`gpuscope trace show run.json --table dispatches --steps 3-17 --filter "us:>10 !norm" --format csv`,
				"the matching rows as CSV, for a spreadsheet",
			},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			s := show{e: e}
			flags.StringVar(&s.table, "table", "", "print the table `NAME` (default: list the tables)")
			var names []string
			for _, t := range report.Tables() {
				names = append(names, t.Name)
			}
			cli.SetWords(flags, "table", names...)
			flags.StringVar(&s.steps, "steps", "",
				"print the table for these `STEPS`: "+analyze.SelectionWords+" (default the last step, or all steps for a table of the whole run)")
			cli.SetWords(flags, "steps", "last", "prefill", "decode", "execute", "all")
			flags.StringVar(&s.base, "base", "",
				"compare with these `STEPS` of the trace or, if STEPS is the file name of another trace, with its steps of the same phase")
			fold := cli.ChoiceFlag(flags, "fold", "group dispatches by `KEY`", analyze.GroupingNames()...)
			flags.BoolVar(&s.choice.All, "unfold", false, "also print the rows inside every group")
			flags.StringVar(&s.filter, "filter", "",
				"print only the rows that match the filter `WORDS`, such as norm, !norm, re:^fd_, kernel:mul, op:=k, us:>10, #37")
			flags.StringVar(&s.choice.Sort, "sort", "", "sort by `COLUMN`, with the largest number first")
			flags.BoolVar(&s.reverse, "reverse", false, "reverse the order")
			flags.Var((*cli.Positive)(&s.width), "width",
				"leave out columns that do not fit in a width of `N` characters (default: the width of the terminal; without a terminal, all columns are printed)")
			format := cli.FormatFlag(flags, table.Formats...)
			return func(ctx context.Context, operands []string) error {
				for _, c := range []*cli.Choice{fold, format} {
					if err := c.Check(); err != nil {
						return err
					}
				}
				s.fold, s.foldGiven, s.format = fold.Value, flags.Changed("fold"), format.Value
				return s.run(ctx, operands)
			}
		},
	}
}

// show holds the arguments of one trace show command.
type show struct {
	e                                        *cli.Env
	path                                     string // the trace
	table, steps, base, fold, filter, format string
	foldGiven, reverse                       bool
	width                                    int
	choice                                   table.Selection
}

func (s *show) run(ctx context.Context, operands []string) error {
	kind := report.List
	if s.table != "" {
		var err error
		if kind, err = report.TableNamed(s.table); err != nil {
			return cli.Usage("--table: " + err.Error())
		}
	}
	t, err := readTrace(operands)
	if err != nil {
		return err
	}
	s.path = operands[0]
	x := analyze.NewIndex(t)
	o, err := s.options(ctx, x, &kind)
	if err != nil {
		return err
	}
	made, err := kind.Of(ctx, x, o)
	if err != nil {
		return err
	}
	if s.choice.Filter, err = made.ParseFilter(ctx, s.filter); err != nil {
		return cli.Usage("--" + err.Error())
	}
	s.choice.Reverse = made.LargestFirst(s.choice.Sort) != s.reverse
	rows, err := made.Select(ctx, s.choice)
	if err != nil {
		return cli.Usage("--sort: " + err.Error())
	}
	return made.Print(ctx, s.e.Stdout, s.format, rows, s.screen())
}

// options returns the options for computing a table.
func (s *show) options(ctx context.Context, x *analyze.Index,
	kind *report.Table,
) (o analyze.Options, err error) {
	switch o.Selection, err = kind.Selection(x, s.steps); {
	case err != nil && s.steps == "": // the command is correct, but the trace has no such steps
		return o, err
	case err != nil:
		return o, cli.Usagef("--steps: %v", err)
	}
	if o.Grouping, err = analyze.ParseGrouping(s.fold); err != nil {
		return o, cli.Usage(err.Error())
	}
	what := "the list of tables"
	if s.table != "" {
		what = "table " + kind.Name
	}
	if s.foldGiven && !kind.Folds {
		return o, cli.Usagef("--fold: the rows of %s cannot be grouped", what)
	}
	if s.base == "" {
		return o, nil
	}
	if !kind.Compares {
		return o, cli.Usagef("--base: %s cannot be compared with other steps", what)
	}
	o.Baseline, err = s.baseline(ctx, x, o.Selection)
	return o, err
}

// baseline returns the baseline of a selection: other steps of the trace, or the steps of the same phase in
// another trace.
func (s *show) baseline(ctx context.Context, x *analyze.Index,
	selection analyze.Selection,
) (*analyze.Baseline, error) {
	base, err := x.ParseSelection(s.base)
	switch {
	case err == nil:
		return &analyze.Baseline{Index: x, Selection: base}, nil
	case !trace.IsTrace(s.base):
		return nil, cli.Usagef("--base: %v", err)
	}
	if len(selection.Steps) == 0 { // a table of the whole run
		if selection, err = x.ParseSelection("last"); err != nil {
			return nil, err
		}
	}
	file := x
	if !sameFile(s.base, s.path) {
		if file, err = screen.ReadBase(ctx, s.base); err != nil {
			return nil, err
		}
	}
	of := screen.SameKind(file, s.base, x, selection)
	if of == nil {
		return nil, fmt.Errorf("--base: %s has no %s steps", s.base,
			x.Trace.Steps[selection.Steps[0]].Phase)
	}
	return of, nil
}

// screen returns the width, in characters, of the screen for which table columns are chosen.
func (s *show) screen() int { return cmp.Or(s.width, s.e.Columns) }
