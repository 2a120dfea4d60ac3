package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"gpuscope/trace"
)

// attestation is the execution attestation of ExecuTorch's WebGPU runtime: JSON with the commands of each
// execution, their grids, and whether each ran. It has no times. If all commands name their operator by its
// id in the program, they are joined by these ids, otherwise in order. The content is that of
// pytorch/executorch#21677, which is not merged; the names of the fields may still change.
var attestation = format{
	name: "executorch-attestation", doc: "the execution attestation of ExecuTorch's WebGPU runtime",
	sniff: func(start []byte) bool {
		return bytes.Contains(start, []byte(`"commands"`)) && bytes.Contains(start, []byte(`"grid"`))
	},
	read: readAttestation,
}

// attested is one execution in the file: the commands that it ran.
type attested struct {
	Commands []struct {
		Kernel string `json:"kernel"`
		Op     *int   `json:"op_id"`
		Grid   []int  `json:"grid"`
		State  string `json:"state"` // enabled, zero_grid or suppressed
	} `json:"commands"`
}

func readAttestation(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "ExecuTorch", "ExecuTorch WebGPU"
	ops, r := newModel(t), newExecutorchReader(t)
	var single attested
	add := func(e *attested) error {
		if err := r.room(len(e.Commands)); err != nil {
			return err
		}
		r.rows = r.rows[:0]
		var ids []*int
		for i := range e.Commands {
			c := &e.Commands[i]
			if !slices.Contains([]string{"", "enabled", "zero_grid", "suppressed"}, c.State) {
				return fmt.Errorf("commands[%d].state: want enabled, zero_grid or suppressed", i)
			}
			if c.State != "" && c.State != "enabled" || slices.Contains(c.Grid, 0) {
				continue // the command did not run
			}
			row := row{line: i + 1}
			if len(c.Grid) != len(row.grid) {
				return fmt.Errorf("commands[%d].grid: want three counts", i)
			}
			for k, n := range c.Grid {
				if n < 1 || n > maxGroups {
					return fmt.Errorf("commands[%d].grid: want counts between 1 and %d", i, maxGroups)
				}
				row.grid[k] = n
			}
			var err error
			if row.kernel, err = r.name(c.Kernel); err != nil {
				return err
			}
			r.rows, ids = append(r.rows, row), append(ids, c.Op)
		}
		return r.attest(ops, ids)
	}
	each := func(raw json.RawMessage) error {
		var e attested
		if err := unmarshal(raw, &e); err != nil {
			return err
		}
		return add(&e)
	}
	d := document{list: "executions", each: each, other: func(name string, raw json.RawMessage) error {
		if name != "commands" { // the file of one execution
			return nil
		}
		if err := unmarshal(raw, &single.Commands); err != nil {
			return fmt.Errorf("commands: %w", err)
		}
		return add(&single)
	}}
	if err := d.read(in); err != nil {
		return err
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: no command ran", ErrFormat)
	}
	r.finish()
	return nil
}

// attest adds the collected rows as a step. ids has the operator of each row, or nil.
func (r *executorchReader) attest(m *model, ids []*int) error {
	phase := trace.Prefill
	if oneToken(r.rows) {
		phase = trace.Decode
	}
	known := func(id *int) bool {
		if id == nil {
			return false
		}
		_, ok := m.ids[*id]
		return ok
	}
	var step stepRows
	switch {
	case len(r.rows) == 0:
		return nil
	case len(m.ops) > 0 && !slices.ContainsFunc(ids, func(id *int) bool { return !known(id) }):
		for i, row := range r.rows {
			err := r.put(&step, m.ids[*ids[i]], row.kernel,
				launch{kernel: row.kernel, grid: row.grid, joined: trace.JoinedByID})
			if err != nil {
				return err
			}
		}
	case len(m.ops) > 0:
		launches, err := r.join(len(r.rows))
		if err != nil {
			return err
		}
		step.launches = launches
	default:
		for _, row := range r.rows {
			err := r.putOwn(&step, trace.Op{Name: row.kernel, Kind: row.kernel},
				launch{kernel: row.kernel, grid: row.grid})
			if err != nil {
				return err
			}
		}
	}
	return r.add(phase, step.launches)
}
