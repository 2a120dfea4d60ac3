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

// Look is a request to read a value as it is right after a dispatch, before another value reuses its memory.
type Look struct {
	After trace.DispatchID
	Value graph.ValueID
	Into  []byte // receives the value from its first byte on; LiveSize returns the full size
}

// ErrNoStep reports that no step can be run again, because no step has run or the last step failed.
var ErrNoStep = errors.New("no step can be run again, because none has run or the last one failed")

// replayBytes is the maximum number of bytes that one run of Replay reads back. If the requested values have
// more bytes, Replay runs several times. A single value may be larger.
const replayBytes = 64 << 20

// Replay runs the dispatches of the last step again, up to the last dispatch that a look names. For each look
// it reads the value right after the look's dispatch, before another value reuses the memory.
//
// The replay uses the current shapes, plans and params, and the graph inputs that the step uploaded. Only
// State differs from the original run, because the step has already changed it. If an operator appends rows
// to State at the step's position, or writes slots of State that the step does not read, the replay writes
// the same content again. If an operator computes State from its previous content in place, the replay
// changes it a second time. The outputs and the record of the last step can still be read.
//
// Until something else runs, memory has the content that the last dispatch of the replay left. To read a
// value that is too large for one run, request a look with an empty Into and then call ReadPart piece by
// piece.
//
// Replay first checks, for each look, that the value is in memory after the look's dispatch. Otherwise it
// returns an error and runs nothing. Replay checks for a cancellation between submits.
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

// placedLook is a look with its offset in the readback buffer.
type placedLook struct {
	Look
	at uint64
}

// room returns the number of bytes that a look occupies in the readback buffer.
func (l *placedLook) room() uint64 { return uint64(len(l.Into)+15) / 16 * 16 }

// LiveDims returns the current dims of a tensor. If the tensor is scratch that the last step does not use,
// all dims are 0.
func (x *Executor) LiveDims(v graph.ValueID) []int { return slices.Clone(x.live.Dims(v)) }

// LiveSize returns the size of a tensor at the current dims, in bytes.
func (x *Executor) LiveSize(v graph.ValueID) int64 { return x.live.BytesOf(v) }

// checkLooks returns an error if a look is invalid. The looks must be in order of submission.
func (x *Executor) checkLooks(looks []placedLook) error {
	g := x.g
	holds := make(map[int]graph.ValueID) // by memory number: value written last
	active, at := x.live.Active(), 0
	for i := range looks {
		l := &looks[i]
		if l.Value < 0 || int(l.Value) >= len(g.Values) || g.Values[l.Value].Kind != graph.Tensor {
			return fmt.Errorf("read value %d: the graph has no tensor with this number", l.Value)
		}
		val := &g.Values[l.Value]
		if _, ran := slices.BinarySearch(active, l.After); !ran {
			return fmt.Errorf("read %s after dispatch %d: the dispatch did not run in the last step",
				val.Name, l.After)
		}
		if n := x.LiveSize(l.Value); int64(len(l.Into)) > n {
			return fmt.Errorf("read %s: %d bytes requested, but the value has only %d", val.Name,
				len(l.Into), n)
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
			return fmt.Errorf("read %s after dispatch %d: no dispatch has written this value by then",
				val.Name, l.After)
		case holder != root:
			return fmt.Errorf("read %s after dispatch %d: by then its memory has been reused for %s",
				val.Name, l.After,
				g.Values[holder].Name)
		}
	}
	return nil
}

// Writers returns the dispatches of the last step that write the memory of a value, in order of submission.
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

// OutputLooks returns a look for every output tensor of every operator of the last step. Each look names the
// last dispatch that writes its tensor. The looks are in order of submission, and the caller must set Into.
// An operator whose output is an alias of its input has no look, because it has no dispatch.
func (x *Executor) OutputLooks() []Look {
	var looks []Look
	at := map[graph.ValueID]int{} // index of the value's look in `looks`
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

// replay runs the dispatches up to the last look, and then reads the requested values.
func (x *Executor) replay(ctx context.Context, looks []placedLook, size uint64) error {
	r, err := x.dev.NewReadback("replay", max(size, 16))
	if err != nil {
		return err
	}
	defer r.Release()
	run := x.live.Active()
	end, _ := slices.BinarySearch(run, looks[len(looks)-1].After)
	if err := x.replayRun(ctx, run[:end+1], looks, r); err != nil {
		return err
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

// replayRun runs dispatches of the last step, split into short submits. It copies the values of `looks` into
// the readback buffer r. r may be nil if `looks` is empty.
func (x *Executor) replayRun(ctx context.Context, run []trace.DispatchID, looks []placedLook,
	r gpu.Readback,
) error {
	for len(run) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := x.shortRun(run)
		enc, err := x.dev.Begin("replay")
		if err != nil {
			return err
		}
		if looks, err = x.encodeReplay(enc, run[:n], looks, r); err != nil {
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
	return nil
}

// encodeReplay encodes the dispatches in `run`. Right after the dispatch that a look names, it encodes the
// copy of the look's value. It returns the looks that name later dispatches.
func (x *Executor) encodeReplay(enc gpu.Encoder, run []trace.DispatchID, looks []placedLook, r gpu.Readback) (
	later []placedLook, err error,
) {
	open := false
	var log stepLog // not used: the log of the last step must not change
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
			return looks, fmt.Errorf("cannot end the pass of operator %s: %w",
				x.g.Ops[x.g.Dispatches[id].Op].Name, err)
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
