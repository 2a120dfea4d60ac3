package engine

import (
	"bytes"
	"fmt"
)

// Planning has no side effects, so every plan can be computed a second time to check it. Executor.Check plans
// every operator again at the current shapes. It compares grids, params and dims with the plans that are
// about to run, and reads the params arena back from the device. A difference means that the plan in use is
// stale: either a resize failed to re-plan the operator, or a write of params did not reach the device.

// Check returns a *StaleError if a plan in use, or its params on the device, differs from a fresh plan.
// Check reads from the device and therefore waits for it.
func (x *Executor) Check() error {
	var onDevice []byte
	if n := len(x.arena.shadow); n > 0 {
		onDevice = make([]byte, n)
		if err := x.read(x.arena.buffer, 0, onDevice); err != nil {
			return fmt.Errorf("check: cannot read the params back from the device: %w", err)
		}
	}
	l := x.live
	for i := range x.g.Ops {
		o := &x.g.Ops[i]
		fresh, err := l.Fresh(o.ID)
		if err != nil {
			return err
		}
		for s := range fresh.Launches {
			d := o.Dispatches[s]
			if d < 0 || !fresh.Launches[s].Active {
				continue
			}
			want := fresh.Launches[s].Params.Bytes()
			at := x.arena.blocks[x.arena.read(d)].begin
			if got := onDevice[at : at+len(want)]; !bytes.Equal(got, want) {
				return l.Stale(o, s,
					fmt.Sprintf("the device holds the param bytes % x, but a new plan computes % x",
						got, want))
			}
		}
	}
	return nil
}
