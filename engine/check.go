package engine

import (
	"bytes"
	"fmt"
)

// Check. A plan is pure, so it can be made again: Executor.Check plans every operator afresh at the shapes in
// force, holds grids, params and dims against what is about to run, and reads the params arena back from the
// device. What differs is stale: a trigger that was missed, a write that was lost.

// Check returns a *StaleError where what is in force is not what a fresh plan says. It reads from the device
// and so waits for it.
func (x *Executor) Check() error {
	var onDevice []byte
	if n := len(x.arena.shadow); n > 0 {
		onDevice = make([]byte, n)
		if err := x.read(x.arena.buffer, 0, onDevice); err != nil {
			return fmt.Errorf("check: read params back: %w", err)
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
					fmt.Sprintf("params on the device are % x, a fresh plan gives % x", got, want))
			}
		}
	}
	return nil
}
