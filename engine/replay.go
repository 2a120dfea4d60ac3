package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Look is a value to be read right after a dispatch of a step has run, when its memory is still its own.
type Look struct {
	After trace.DispatchID
	Value graph.ValueID
	Into  []byte // the start of the value's live bytes; a slice of LiveSize takes all
}

// ErrNoStep says that there is no step to run again: none has run, or the last one did not end.
var ErrNoStep = errors.New("no step to run again")

// replayBytes is how much is read back in one go. Looks at more than that take several runs.
const replayBytes = 64 << 20

// Replay runs the dispatches of the last step again, the first to the last that a look names, and reads each
// value right after its dispatch, whatever takes over its memory later.
//
// Everything is as it was: shapes, plans and params are those in force, graph inputs hold what the step
// uploaded. State is the exception, since the step has changed it: what is appended at a position is written
// again, the same; State that an operator computes from its own former content moves on once more.
// Nothing of what the step told is touched: its outputs can still be read, and so can its record.
//
// After it memory is as the last look's dispatch left it, until something else runs: of a value that is too
// large for one go a look takes no bytes, and ReadPart reads it piece by piece.
//
// A look at what its memory does not hold after the dispatch is refused before anything runs. A cancel is
// heard between submits.
func (x *Executor) Replay(ctx context.Context, looks ...Look) error {
	if !x.Stands() {
		return ErrNoStep
	}
	placed := make([]placedLook, len(looks))
	for i, l := range looks {
		placed[i].Look = l
	}
	slices.SortStableFunc(placed, func(a, b placedLook) int { return cmp.Compare(a.After, b.After) })
	if err := x.checkLooks(placed); err != nil {
		return err
	}
	for len(placed) > 0 {
		n, size := 0, uint64(0)
		for ; n < len(placed) && (n == 0 || size+placed[n].room() <= replayBytes); n++ {
			placed[n].at = size
			size += placed[n].room()
		}
		if err := x.replay(ctx, placed[:n], size); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		placed = placed[n:]
	}
	return nil
}

// placedLook is a look with its place in a readback.
type placedLook struct {
	Look
	at uint64
}

// room is what a look takes of a readback.
func (l *placedLook) room() uint64 { return uint64(len(l.Into)+15) / 16 * 16 }

// LiveDims are the dims in force of a tensor, all 0 of scratch that the last step does not use.
func (x *Executor) LiveDims(v graph.ValueID) []int { return slices.Clone(x.live.Dims(v)) }

// LiveSize is the size in bytes of a tensor at the dims in force.
func (x *Executor) LiveSize(v graph.ValueID) int64 { return x.live.BytesOf(v) }

// checkLooks says what is wrong with looks in order of submission.
func (x *Executor) checkLooks(looks []placedLook) error {
	g := x.g
	holds := make(map[int]graph.ValueID) // by memory: the value written last
	active, at := x.live.Active(), 0
	for i := range looks {
		l := &looks[i]
		if l.Value < 0 || int(l.Value) >= len(g.Values) || g.Values[l.Value].Kind != graph.Tensor {
			return fmt.Errorf("look at value %d: it is no tensor of the graph", l.Value)
		}
		val := &g.Values[l.Value]
		if _, ran := slices.BinarySearch(active, l.After); !ran {
			return fmt.Errorf("look at %s after dispatch %d: it did not run in the last step", val.Name,
				l.After)
		}
		if n := x.LiveSize(l.Value); int64(len(l.Into)) > n {
			return fmt.Errorf("look at %s: %d bytes, it has %d", val.Name, len(l.Into), n)
		}
		for ; at < len(active) && active[at] <= l.After; at++ {
			d := &g.Dispatches[active[at]]
			use := g.Ops[d.Op].Use(d.Slot, x.live.Plans[d.Op].Route)
			for b, bind := range use.Bind {
				if use.Kernel.Storage[b].Access == gpu.ReadWrite {
					holds[x.live.Memory(bind.Value)] = g.Root(bind.Value)
				}
			}
		}
		root := g.Root(l.Value)
		switch holder, written := holds[x.live.Memory(l.Value)]; {
		case slices.Contains([]graph.Role{graph.Input, graph.Constant, graph.State}, g.Values[root].Role):
		case !written:
			return fmt.Errorf("look at %s after dispatch %d: nothing has written it by then", val.Name,
				l.After)
		case holder != root:
			return fmt.Errorf("look at %s after dispatch %d: its memory holds %s by then", val.Name, l.After,
				g.Values[holder].Name)
		}
	}
	return nil
}

// Writers are the dispatches of the last step that write the memory of a value, in order of submission.
func (x *Executor) Writers(v graph.ValueID) []trace.DispatchID {
	var list []trace.DispatchID
	for _, id := range x.live.Active() {
		d := &x.g.Dispatches[id]
		use := x.g.Ops[d.Op].Use(d.Slot, x.live.Plans[d.Op].Route)
		for b, bind := range use.Bind {
			if use.Kernel.Storage[b].Access == gpu.ReadWrite && x.g.Root(bind.Value) == x.g.Root(v) {
				list = append(list, id)
				break
			}
		}
	}
	return list
}

// OutputLooks are looks at every output tensor of every operator of the last step, each after the dispatch
// that writes it last, in order of submission. Into is left to the caller. An operator that is an alias has
// no dispatch: its output is its input.
func (x *Executor) OutputLooks() []Look {
	var looks []Look
	at := map[graph.ValueID]int{} // place in looks
	for _, id := range x.live.Active() {
		d := &x.g.Dispatches[id]
		o := &x.g.Ops[d.Op]
		use := o.Use(d.Slot, x.live.Plans[d.Op].Route)
		for i, bind := range use.Bind {
			gives := slices.Contains(o.Spec.Outputs, bind.Value) ||
				slices.Contains(o.Spec.Materializes, bind.Value)
			if use.Kernel.Storage[i].Access != gpu.ReadWrite || !gives {
				continue
			}
			k, ok := at[bind.Value]
			if !ok {
				k = len(looks)
				at[bind.Value], looks = k, append(looks, Look{Value: bind.Value})
			}
			looks[k].After = id
		}
	}
	slices.SortStableFunc(looks, func(a, b Look) int { return cmp.Compare(a.After, b.After) })
	return looks
}

// replay runs the dispatches up to the last look, in as many submits as it takes to keep each short, and then
// reads.
func (x *Executor) replay(ctx context.Context, looks []placedLook, size uint64) error {
	r, err := x.dev.NewReadback("replay", max(size, 16))
	if err != nil {
		return err
	}
	defer r.Release()
	run := x.live.Active()
	end, _ := slices.BinarySearch(run, looks[len(looks)-1].After)
	run = run[:end+1]
	for left := looks; len(run) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := x.shortRun(run)
		enc, err := x.dev.Begin("replay")
		if err != nil {
			return err
		}
		if left, err = x.encodeReplay(enc, run[:n], left, r); err != nil {
			enc.Discard()
			return err
		}
		if err := enc.Submit(); err != nil {
			return err
		}
		if err := x.dev.Wait(); err != nil {
			return err
		}
		run = run[n:]
	}
	for i := range looks {
		if l := &looks[i]; len(l.Into) > 0 {
			if err := r.Read(l.Into, l.at); err != nil {
				return fmt.Errorf("read %s: %w", x.g.Values[l.Value].Name, err)
			}
		}
	}
	return nil
}

// encodeReplay encodes a run with the looks that stand in it, and returns those that come later.
func (x *Executor) encodeReplay(enc gpu.Encoder, run []trace.DispatchID, looks []placedLook, r gpu.Readback) (
	later []placedLook, err error,
) {
	open := false
	var log stepLog // what the step told stays as it is
	for i, id := range run {
		if !open {
			if err := enc.BeginPass("replay"); err != nil {
				return looks, err
			}
			open = true
		}
		if err := x.encodeDispatch(enc, &log, id); err != nil {
			return looks, err
		}
		here := 0
		for here < len(looks) && looks[here].After == id {
			here++
		}
		if here == 0 && i < len(run)-1 {
			continue
		}
		open = false
		if err := enc.EndPass(); err != nil {
			return looks, fmt.Errorf("pass that ends with %s: %w", x.g.Ops[x.g.Dispatches[id].Op].Name, err)
		}
		for k := range looks[:here] {
			l := &looks[k]
			if n := uint64(len(l.Into)+3) / 4 * 4; n > 0 {
				from, begin := x.place(l.Value)
				if err := enc.CopyOut(from, begin, r, l.at, n); err != nil {
					return looks, fmt.Errorf("read %s: %w", x.g.Values[l.Value].Name, err)
				}
			}
		}
		looks = looks[here:]
	}
	return looks, nil
}
