package main

import (
	"cmp"
	"context"
	"errors"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/model"
	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
)

// printAt plans a step without running it and prints its dispatches.
func (p *program) printAt(ctx context.Context, o *modelOptions, at string, format *cli.Choice) (err error) {
	tokens, position, ok := session.ParseShape(at)
	if !ok {
		return cli.Usagef("--at %q: want M,POS, such as 1,638: number of tokens and position", at)
	}
	if format.Value == "dot" {
		return cli.Usagef("--at cannot be combined with --format dot: use text or json")
	}
	limits, _, err := p.limits(o)
	if err != nil {
		return asUsage(err)
	}
	options, err := p.forModel(o)
	if err != nil {
		return err
	}
	m, err := model.Read(options)
	if err != nil {
		return asUsage(err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p.warn(m)
	t, err := m.At(limits, tokens, position)
	if err != nil {
		return asUsage(err)
	}
	x := analyze.NewIndex(t)
	return report.Print(ctx, x, p.Stdout, "dispatches", format.Value, cmp.Or(p.Columns, 200),
		analyze.Options{Selection: x.Step(0)})
}
