package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	runner "gpuscope/model/program"
	"gpuscope/model/program/suite"
	"gpuscope/model/stepping"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// suiteRun holds the arguments of verify --suite.
type suiteRun struct {
	dir, filter string
	format      *cli.Choice
	model       *modelOptions
}

// suiteFlags lists the flags of verify that apply to a suite.
var suiteFlags = []string{
	"suite", "filter", "format", "device", "fuse", "route", "static", "check", "propagation",
}

// suiteReport is the JSON output of verify --suite.
type suiteReport struct {
	Suite  string         `json:"suite"`  // folder, as given
	Device string         `json:"device"` // name of the adapter
	Passed int            `json:"passed"` // number of cases
	Failed int            `json:"failed"`
	Cases  []suite.Result `json:"cases"`
}

// verifySuite runs the cases of a suite, prints the result of each, and returns an error if one fails.
func (p *program) verifySuite(ctx context.Context, flags *pflag.FlagSet, operands []string,
	r *suiteRun,
) error {
	if len(operands) > 0 {
		return cli.Usagef("unexpected argument %q: --suite runs no model, only the programs of the folder",
			operands[0])
	}
	var other string
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(suiteFlags, f.Name) && other == "" {
			other = cli.FlagName(f)
		}
	})
	switch {
	case other != "":
		return cli.Usagef("%s and --suite cannot be combined", other)
	case r.model.device == trace.NoDevice:
		return cli.Usagef("--device none: verify needs a device; gpuscope devices lists them")
	}
	if err := r.format.Check(); err != nil {
		return err
	}
	if err := r.model.checkFlags(); err != nil {
		return err
	}
	options, err := p.forModel(r.model)
	if err != nil {
		return err
	}
	s, err := suite.Read(r.dir)
	if err != nil {
		return err
	}
	cases := s.Filter(r.filter)
	if len(cases) == 0 {
		return cli.Usagef("--filter %s: this text is not in the name, operator or tier of any case (the suite has %s)",
			printable.Short(r.filter, 80), table.Plural(len(s.Cases), "case"))
	}
	dev, _, err := stepping.OpenDevice(p.driver, r.model.device)
	if err != nil {
		return asUsage(err)
	}
	defer dev.Release()
	report := suiteReport{Suite: r.dir, Device: dev.Info().Name, Cases: []suite.Result{}}
	width := 0
	for i := range cases {
		width = max(width, len(cases[i].Name))
	}
	how := runner.Options{
		Fuse: options.Fuse, Routes: options.Routes, Live: options.Live, Check: options.Check,
	}
	for result := range s.Run(ctx, dev, cases, how) {
		report.Cases = append(report.Cases, result)
		if result.Passed {
			report.Passed++
		} else {
			report.Failed++
		}
		if r.format.Value == "text" {
			if err := printCase(p.Stdout, &result, width); err != nil {
				return err
			}
		}
	}
	if r.format.Value == "json" {
		err = cli.WriteJSON(p.Stdout, report)
	} else {
		_, err = fmt.Fprintf(p.Stdout, "%d of %s passed\n", report.Passed,
			table.Plural(len(report.Cases), "case"))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Failed > 0:
		return fmt.Errorf("%d of %s failed", report.Failed, table.Plural(len(report.Cases), "case"))
	}
	return nil
}

// printCase prints the line of a case: its result, its name, and the worst error or the reason of the
// failure.
func printCase(w io.Writer, r *suite.Result, width int) error {
	verdict, worst := "ok  ", ""
	if !r.Passed {
		verdict = "FAIL"
	}
	switch e := r.Worst; {
	case r.Err != nil:
		worst = printable.Short(cli.OneLine(r.Err), cli.MaxErrorLine)
	case e == nil:
		worst = "no outputs to compare"
	default:
		worst = fmt.Sprintf("worst error %.3g, which is %.3g times the tolerance", float64(e.AbsError),
			float64(e.OfTolerance))
		if !r.Passed {
			worst += fmt.Sprintf(" (run %d, output %d, element %d: got %v, want %v)",
				e.Run, e.Output, e.Element,
				float64(e.Got), float64(e.Want))
		}
	}
	_, err := fmt.Fprintf(w, "%s  %-*s  %s\n", verdict, width, printable.Short(r.Case, 200), worst)
	return err
}
