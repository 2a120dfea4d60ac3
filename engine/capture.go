package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Captured is everything that a dispatch of a step depends on, and what it wrote.
type Captured struct {
	Dispatch trace.DispatchID
	// Kernel is the kernel that ran: the graph's kernel, or the edit that runs in its place. Name is the
	// name of this kernel in traces.
	Kernel   *graph.Kernel
	Name     string
	Params   []byte // params block of the kernel; empty if it has no params
	Grid     [3]uint32
	Bytes    int64 // modelled memory traffic of the dispatch in bytes
	Bindings []CapturedBinding
}

// CapturedBinding is a storage binding of a captured dispatch. Before and After hold the bytes of the live
// shape. For State and constants they hold the whole value.
type CapturedBinding struct {
	graph.Storage
	Value graph.ValueID
	DType graph.DType
	Dims  []int // live dims; for State and constants, the dims of the whole value
	// Before is the content just before the dispatch. It is nil if the kernel does not read the binding and
	// the value is not State. In that case Capture sets every word of the memory to the constant Unwritten
	// before the dispatch, so that After shows which words the kernel writes.
	Before []byte
	After  []byte // content after the dispatch, if the kernel can write the binding; otherwise nil

	size  int64 // size of the content in bytes
	state bool
}

// loads reports whether the capture has the content before the dispatch.
func (b *CapturedBinding) loads() bool { return b.Access == gpu.Read || b.Read || b.state }

// CaptureTooLargeError reports that the arrays of a dispatch are larger than the caller allows.
type CaptureTooLargeError struct{ Bytes, Limit int64 }

func (e *CaptureTooLargeError) Error() string {
	return fmt.Sprintf("the arrays of the dispatch have %d bytes, but the limit is %d", e.Bytes, e.Limit)
}

// Capture returns the kernel, the params and the memory of a dispatch of the last step. It runs the step
// again up to the dispatch, reads the bound values, and runs the dispatch. Then it restores what the
// dispatch wrote, and runs the rest of the step, beginning with the dispatch. Afterwards, memory has the
// same content as after Replay. If an operator computes State from its previous content, the caller must
// first restore this State, as for Replay.
//
// If the arrays need more than `most` bytes, Capture runs nothing and returns a *CaptureTooLargeError. It
// checks for a cancellation between reads.
func (x *Executor) Capture(ctx context.Context, id trace.DispatchID, most int64) (*Captured, error) {
	if !x.Stands() {
		return nil, ErrNoStep
	}
	active := x.live.Active()
	at, ran := slices.BinarySearch(active, id)
	if !ran {
		return nil, fmt.Errorf("dispatch %d did not run in the last step", id)
	}
	c := x.describeCapture(id)
	var size int64
	for i := range c.Bindings {
		for _, used := range []bool{c.Bindings[i].loads(), c.Bindings[i].Access == gpu.ReadWrite} {
			if used {
				size += c.Bindings[i].size
			}
		}
	}
	if size > most {
		return nil, &CaptureTooLargeError{size, most}
	}
	// Once the step has begun to run again, it must run to its end even after a cancellation, because it has
	// already written State.
	whole := context.WithoutCancel(ctx)
	err := x.replayRun(whole, active[:at], nil, nil)
	if err == nil {
		err = gpu.Join(x.capture(ctx, c), x.replayRun(whole, active[at:], nil, nil))
	}
	if err != nil {
		return nil, fmt.Errorf("capture dispatch %d: %w", id, err)
	}
	return c, nil
}

// describeCapture returns a capture of an active dispatch without the contents of the bindings.
func (x *Executor) describeCapture(id trace.DispatchID) *Captured {
	launch, k := x.live.Launch(id)
	d := &x.g.Dispatches[id]
	use := x.g.Ops[d.Op].Use(d.Slot, x.live.Plans[d.Op].Route)
	c := &Captured{
		Dispatch: id, Kernel: k, Name: x.g.KernelNames[k], Bytes: launch.Bytes,
		Grid: [3]uint32{launch.Grid.X, launch.Grid.Y, launch.Grid.Z},
	}
	if e := x.edits.inForce[k]; e != nil {
		c.Kernel, c.Name = e.by, e.Name()
	}
	if n := c.Kernel.ParamsBytes(); n > 0 {
		c.Params = bytes.Clone(x.arena.bytes(id)[:n])
	}
	for i, bind := range use.Bind {
		v := &x.g.Values[bind.Value]
		b := CapturedBinding{
			Storage: c.Kernel.Storage[i], Value: bind.Value, DType: v.DType,
			Dims: x.LiveDims(bind.Value), size: x.LiveSize(bind.Value),
		}
		role := x.g.Values[x.g.Root(bind.Value)].Role
		if b.state = role == graph.State; b.state || role == graph.Constant {
			b.Dims, b.size = slices.Clone(v.MaxDims), v.Bytes
		}
		c.Bindings = append(c.Bindings, b)
	}
	return c
}

// capture fills in the contents of the bindings, and then restores memory. The caller has run the step up to
// the dispatch.
func (x *Executor) capture(ctx context.Context, c *Captured) (err error) {
	found := make([][]byte, len(c.Bindings)) // content before the dispatch, of bindings that it can write
	defer func() {
		for i := range found {
			err = gpu.Join(err, x.putAll(c.Bindings[i].Value, found[i]))
		}
	}()
	for i := range c.Bindings {
		b := &c.Bindings[i]
		data, err := x.readAll(ctx, b.Value, b.size)
		if err != nil {
			return err
		}
		if b.loads() {
			b.Before = data
		}
		if b.Access == gpu.ReadWrite {
			found[i] = data
		}
	}
	for i := range c.Bindings {
		if b := &c.Bindings[i]; !b.loads() {
			if err := x.putAll(b.Value, unwritten(int(b.size))); err != nil {
				return err
			}
		}
	}
	if err := x.replayRun(ctx, []trace.DispatchID{c.Dispatch}, nil, nil); err != nil {
		return err
	}
	for i := range c.Bindings {
		if b := &c.Bindings[i]; b.Access == gpu.ReadWrite {
			if b.After, err = x.readAll(ctx, b.Value, b.size); err != nil {
				return err
			}
		}
	}
	return nil
}

// readAll returns the first n bytes of a value's memory. It reads them in pieces.
func (x *Executor) readAll(ctx context.Context, v graph.ValueID, n int64) ([]byte, error) {
	data := make([]byte, n)
	for at := 0; at < len(data); at += piece {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := x.ReadPart(v, uint64(at), data[at:min(at+piece, len(data))]); err != nil {
			return nil, fmt.Errorf("read %s: %w", x.g.Values[v].Name, err)
		}
	}
	return data, nil
}

// putAll writes a value's memory in pieces, from the start of the value.
func (x *Executor) putAll(v graph.ValueID, data []byte) error {
	for at := 0; at < len(data); at += piece {
		if err := x.writePart(v, uint64(at), data[at:min(at+piece, len(data))]); err != nil {
			return fmt.Errorf("write %s: %w", x.g.Values[v].Name, err)
		}
	}
	return nil
}
