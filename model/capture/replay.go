package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/session"
	"gpuscope/trace"
)

// Defaults of ReplayOptions.
const (
	DefaultRuns      = 30
	DefaultTolerance = 1e-3
)

// warmFor is how long a dispatch runs before it is timed, because an idle GPU needs some time to raise its
// clock. A software device runs the dispatch only once before timing.
const warmFor = 150 * time.Millisecond

// ReplayOptions selects how a capture is replayed.
type ReplayOptions struct {
	// Source is the WGSL of a kernel that replaces the captured kernel. If it is "", the captured kernel
	// runs. The new kernel must have the same bindings, params and workgroup size. File is the name of its
	// source file in error messages.
	Source, File string
	Runs         int // number of timed runs; 0 times nothing
	// Tolerance is the allowed difference of an element, as a fraction of the largest expected element of its
	// binding. Integers (i32 and u32) must be equal.
	Tolerance float64
}

// Result is what a replay computed, and how long it took.
type Result struct {
	Outputs []Output
	Times   *session.Spread // GPU times of a run; nil if the device has no timestamps
	Runs    int             // number of timed runs
}

// Wrong reports whether an output differs from the expected one by more than the tolerance.
func (r *Result) Wrong() bool {
	for i := range r.Outputs {
		if r.Outputs[i].Exceed > 0 {
			return true
		}
	}
	return false
}

// Differ returns the number of elements that differ from the expected ones.
func (r *Result) Differ() (n int) {
	for i := range r.Outputs {
		n += r.Outputs[i].Differ
	}
	return n
}

// Replay runs the captured dispatch on a device, compares the results with the expected contents, and times
// the dispatch. The error for a kernel that does not compile, or does not fit the capture, is a
// *session.SourceError.
func (c *Capture) Replay(ctx context.Context, dev gpu.Device, o ReplayOptions) (*Result, error) {
	r := &replay{c: c, dev: dev, kernel: c.kernel, file: kernelFile}
	defer r.free()
	if o.Source != "" {
		k, err := parseKernel(c.Kernel.Name, o.Source)
		if err == nil {
			err = fits(k, o.File, c.kernel, "of the capture")
		}
		if err != nil {
			return nil, &session.SourceError{File: o.File, Text: err.Error()}
		}
		r.kernel, r.file = k, o.File
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.run(nil); err != nil {
		return nil, err
	}
	out := &Result{}
	for i := range c.Bindings {
		if !c.Bindings[i].writes() {
			continue
		}
		compared, err := r.compare(ctx, i, o.Tolerance)
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, compared)
	}
	if o.Runs == 0 || !dev.Info().Timestamps {
		return out, nil
	}
	times, err := r.times(ctx, o.Runs)
	if errors.Is(err, measure.ErrNoPeriod) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Times, out.Runs = &session.Spread{}, len(times)
	out.Times.Q1NS, out.Times.NS, out.Times.Q3NS = trace.Quartiles(times)
	return out, nil
}

// replay is a capture on a device.
type replay struct {
	c       *Capture
	dev     gpu.Device
	kernel  *graph.Kernel
	file    string // name of the file with the kernel's source
	buffers []gpu.Buffer
	pipe    gpu.Pipeline
	group   gpu.BindGroup
	owned   []interface{ Release() } // in order of creation
}

func (r *replay) own(o interface{ Release() }) { r.owned = append(r.owned, o) }

func (r *replay) free() {
	for i := len(r.owned) - 1; i >= 0; i-- {
		r.owned[i].Release()
	}
}

// prepare creates the buffers with their contents, and compiles the kernel.
func (r *replay) prepare(ctx context.Context) (err error) {
	r.pipe, err = r.dev.NewPipeline(gpu.PipelineDesc{
		Label: r.kernel.Name, Source: r.kernel.Source, Entry: "main", Bindings: r.kernel.Bindings(),
	})
	switch {
	case errors.Is(err, gpu.ErrDeviceLost):
		return err
	case err != nil:
		return session.CompilerError(r.file, r.kernel.Name, err)
	}
	r.own(r.pipe)
	var bindings []gpu.Binding
	for i := range r.c.Bindings {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := &r.c.Bindings[i]
		// The kernel may declare vec4 elements, so the size is a multiple of 16.
		buffer, err := r.dev.NewBuffer(b.Name, uint64(max(16, (b.size+15)/16*16)), gpu.Storage)
		if err != nil {
			return fmt.Errorf("allocate binding %s: %w", b.Name, err)
		}
		r.own(buffer)
		r.buffers = append(r.buffers, buffer)
		bindings = append(bindings, gpu.Binding{Buffer: buffer})
		if err := r.fill(i); err != nil {
			return err
		}
	}
	if n := r.kernel.ParamsBytes(); n > 0 {
		data := make([]byte, n)
		for i, p := range r.c.Params {
			binary.LittleEndian.PutUint32(data[4*i:], p.Word)
		}
		buffer, err := r.dev.NewBuffer("params", uint64(n), gpu.Uniform)
		if err != nil {
			return fmt.Errorf("allocate params: %w", err)
		}
		r.own(buffer)
		if err := r.dev.Write(buffer, 0, data); err != nil {
			return err
		}
		bindings = append(bindings, gpu.Binding{Buffer: buffer})
	}
	if r.group, err = r.dev.NewBindGroup(r.kernel.Name, r.pipe, bindings); err != nil {
		return err
	}
	r.own(r.group)
	return nil
}

// fill sets binding i to its content before the dispatch.
func (r *replay) fill(i int) error {
	b := &r.c.Bindings[i]
	if b.Before != "" {
		if len(b.before) == 0 {
			return nil
		}
		return r.dev.Write(r.buffers[i], 0, b.before)
	}
	word := binary.LittleEndian.AppendUint32(nil, r.c.UnwrittenWord)
	data := make([]byte, 0, min(piece, b.size))
	for len(data) < cap(data) {
		data = append(data, word...)
	}
	for at := int64(0); at < b.size; at += piece {
		if err := r.dev.Write(r.buffers[i], uint64(at), data[:min(piece, b.size-at)]); err != nil {
			return err
		}
	}
	return nil
}

// piece is the number of bytes that are written or read at a time.
const piece = 16 << 20

// run runs the dispatch once. If stamps is not nil, its first two slots time the dispatch.
func (r *replay) run(stamps gpu.Timestamps) error {
	enc, err := r.dev.Begin("replay")
	if err != nil {
		return err
	}
	if err := r.encode(enc, stamps); err != nil {
		enc.Discard()
		return err
	}
	if err := enc.Submit(); err != nil {
		return err
	}
	return r.dev.Wait()
}

func (r *replay) encode(enc gpu.Encoder, stamps gpu.Timestamps) error {
	if stamps != nil {
		if err := enc.Timestamp(stamps, 0); err != nil {
			return err
		}
	}
	if err := enc.BeginPass("replay"); err != nil {
		return err
	}
	w := r.c.Workgroups
	enc.Dispatch(r.pipe, r.group, w[0], w[1], w[2])
	if err := enc.EndPass(); err != nil || stamps == nil {
		return err
	}
	if err := enc.Timestamp(stamps, 1); err != nil {
		return err
	}
	return enc.Resolve(stamps, 2)
}

// times runs the dispatch n times and returns the GPU time of each run in ns. Before each run it restores the
// bindings that the kernel both reads and writes.
func (r *replay) times(ctx context.Context, n int) ([]int64, error) {
	clock, err := measure.NewClock(r.dev, 2)
	if err != nil {
		return nil, err
	}
	r.own(clock)
	if !clock.Scale.Known() {
		return nil, measure.ErrNoPeriod
	}
	warm, begin := warmFor, time.Now()
	if r.dev.Info().Type == gpu.CPU {
		warm = 0
	}
	var list []int64
	ticks := make([]uint64, 2)
	for len(list) < n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range r.c.Bindings {
			if b := &r.c.Bindings[i]; b.writes() && b.Before != "" {
				if err := r.fill(i); err != nil {
					return nil, err
				}
			}
		}
		if time.Since(begin) <= warm {
			if err := r.run(nil); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.run(clock.Stamps); err != nil {
			return nil, err
		}
		if err := clock.Stamps.Read(ticks); err != nil {
			return nil, err
		}
		ns, ok := clock.Scale.Duration(ticks[0], ticks[1]).NS()
		if !ok {
			return nil, measure.ErrNoPeriod
		}
		list = append(list, ns)
	}
	return list, nil
}
