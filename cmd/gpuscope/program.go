package main

import (
	"context"
	"slices"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/describe"
)

// programs returns the operands if all are ExecuTorch programs, and nil if none is.
func programs(operands []string) ([]string, error) {
	others := slices.DeleteFunc(slices.Clone(operands), pte.IsProgram)
	switch {
	case len(others) == 0:
		return operands, nil
	case len(others) < len(operands):
		return nil,
			usagef("%s is not an ExecuTorch program: only ExecuTorch programs can be listed together",
				others[0])
	case len(operands) > 1:
		return nil, usagef("unexpected argument %q: only ExecuTorch programs can be listed together",
			operands[1])
	}
	return nil, nil
}

// printPrograms prints the content of ExecuTorch programs. Their constants may be in data files.
func (p *program) printPrograms(ctx context.Context, paths, dataFiles []string, format string) (err error) {
	infos := []*describe.Info{}
	for _, path := range paths {
		f, err := pte.Open(path, dataFiles...)
		if err != nil {
			return err
		}
		infos = append(infos, describe.Of(f))
		if err := f.Close(); err != nil {
			return err
		}
	}
	switch format {
	case "json":
		return writeJSON(p.stdout, struct {
			Programs []*describe.Info `json:"programs"`
		}{infos})
	case "dot":
		return describe.DOT(p.stdout, infos...)
	}
	return describe.Text(ctx, p.stdout, infos...)
}
