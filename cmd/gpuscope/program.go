package main

import (
	"context"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/describe"
)

// executorch lists the operands of a command that are files of ExecuTorch.
type executorch struct{ programs, data []string }

// executorchFiles sorts files of ExecuTorch by kind. A single operand of another kind gives an empty
// result. If there are several operands, all of them must be files of ExecuTorch.
func executorchFiles(operands []string) (files executorch, err error) {
	var others []string
	for _, path := range operands {
		switch {
		case pte.IsProgram(path):
			files.programs = append(files.programs, path)
		case pte.IsDataFile(path):
			files.data = append(files.data, path)
		default:
			others = append(others, path)
		}
	}
	switch {
	case len(others) > 0 && len(others) < len(operands):
		return executorch{},
			cli.Usagef("%s is not an ExecuTorch program: only ExecuTorch programs can be listed together",
				others[0])
	case len(others) > 1:
		return executorch{},
			cli.Usagef("unexpected argument %q: only ExecuTorch programs can be listed together",
				operands[1])
	}
	return files, nil
}

// print prints the contents of the files.
func (e executorch) print(ctx context.Context, p *program, o *modelOptions, format string) error {
	switch {
	case len(e.programs) == 0 && len(o.dataFiles) > 0:
		return cli.Usagef("--data %s: no program is given that reads the data file", o.dataFiles[0])
	case o.method != "":
		return cli.Usagef("--method %s: graph lists all methods of a program; give --passes, --pass, --at or --kernel to plan one",
			printable.Short(o.method, 80))
	}
	infos, data := []*describe.Info{}, []*describe.DataInfo{}
	for _, path := range e.programs {
		f, err := pte.Open(path, o.dataFiles...)
		if err != nil {
			return err
		}
		info := describe.Of(f)
		if format != "dot" { // a drawing shows no plan
			addPlans(f, info)
		}
		infos = append(infos, info)
		if err := f.Close(); err != nil {
			return err
		}
	}
	for _, path := range e.data {
		f, err := pte.OpenData(path)
		if err != nil {
			return err
		}
		data = append(data, describe.OfData(f))
		if err := f.Close(); err != nil {
			return err
		}
	}
	switch format {
	case "json":
		return cli.WriteJSON(p.Stdout, struct {
			Programs  []*describe.Info     `json:"programs"`
			DataFiles []*describe.DataInfo `json:"data_files,omitempty"`
		}{infos, data})
	case "dot":
		if len(data) > 0 {
			return cli.Usagef("%s is a data file: --format dot draws programs. Use text or json", e.data[0])
		}
		return describe.DOT(p.Stdout, infos...)
	}
	if len(infos) > 0 {
		if err := describe.Text(ctx, p.Stdout, infos...); err != nil {
			return err
		}
	}
	if len(infos) > 0 && len(data) > 0 {
		if _, err := p.Stdout.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return describe.DataText(ctx, p.Stdout, data...)
}
