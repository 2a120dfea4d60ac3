//go:build cgo

package wgpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	binding "github.com/cogentcore/webgpu/wgpu"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

type device struct {
	rules    rules.Device
	info     gpu.AdapterInfo
	instance *binding.Instance
	adapter  *binding.Adapter
	raw      *binding.Device
	queue    *binding.Queue
	native   native
	labels   labels
	layouts  map[string]*binding.BindGroupLayout
	enc      encoder
	// written is the number of bytes that the host has written to buffers so far.
	written uint64
	// taken is how many of the `written` bytes are no longer in staging memory, as far as the host knows.
	taken uint64
	// sent is the number of recordings submitted so far.
	sent uint64
	// over is the number of submitted recordings that have finished, as far as the host knows.
	over    uint64
	pending []*hostBuffer // buffers that submitted recordings copy to, not mapped to host memory yet
	// recordings holds all recordings created so far.
	recordings []*recording
}

func newDevice(instance *binding.Instance, adapter *binding.Adapter, raw *binding.Device,
	info gpu.AdapterInfo,
) *device {
	d := &device{
		info: info, instance: instance, adapter: adapter, raw: raw, queue: raw.GetQueue(), labels: labels{},
		layouts: map[string]*binding.BindGroupLayout{},
		rules:   rules.Device{Limits: info.Limits, HasTimestamps: info.Timestamps},
	}
	d.native = native{device: ref(raw), queue: ownedRef(d.queue), patience: patience(info.Type)}
	d.native.catchErrors()
	d.enc.dev = d
	return d
}

// Info implements gpu.Device.
func (d *device) Info() gpu.AdapterInfo { return d.info }

// Live returns the number of objects that have not been released.
func (d *device) Live() rules.Live { return d.rules.Live() }

// Levels returns the number of levels of the last submitted recording (see gpu.Barriers).
func (d *device) Levels() int { return d.rules.Levels }

// Release implements gpu.Device. Release waits for running work.
func (d *device) Release() {
	if d.rules.Err() == nil {
		_ = d.native.wait() // the device is being released, so nobody can handle this error
	}
	for _, r := range d.recordings {
		r.Discard()
	}
	if !d.rules.Release() {
		return
	}
	for _, l := range d.layouts {
		l.Release()
	}
	_ = d.native.wait()
	d.labels.free()
	d.queue.Release()
	d.raw.Release()
	d.adapter.Release()
	d.instance.Release()
	*d = device{rules: d.rules, info: d.info}
}

// check returns the error of a call of the Go binding. If an error scope caught an error (see native.caught),
// check returns the caught error instead of err.
func (d *device) check(what fmt.Stringer, err error) error {
	if caught := d.native.caught(); caught != nil {
		return fmt.Errorf("%s: %w", what, caught)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, said(err.Error()))
	}
	return nil
}

type buffer struct {
	rules.Buffer
	raw *binding.Buffer
	ref handle
}

// NewBuffer implements gpu.Device.
func (d *device) NewBuffer(label string, size uint64, usage gpu.Usage) (gpu.Buffer, error) {
	b := &buffer{}
	var err error
	if b.Buffer, err = d.rules.Buffer(label, size, usage); err != nil {
		return nil, err
	}
	use := binding.BufferUsageCopySrc | binding.BufferUsageCopyDst | binding.BufferUsageStorage
	if usage == gpu.Uniform {
		use = binding.BufferUsageCopySrc | binding.BufferUsageCopyDst | binding.BufferUsageUniform
	}
	if b.raw, err = d.newBuffer(&b.Object, size, use); err != nil {
		return nil, err
	}
	b.ref = ownedRef(b.raw)
	b.Made(b.raw.Release)
	return b, nil
}

func (d *device) newBuffer(o *rules.Object, size uint64, usage binding.BufferUsage) (*binding.Buffer, error) {
	raw, err := d.raw.CreateBuffer(&binding.BufferDescriptor{Label: o.Label(), Size: size, Usage: usage})
	if err := d.check(o, err); err != nil {
		if raw != nil {
			raw.Release()
		}
		return nil, err
	}
	return raw, nil
}

type pipeline struct {
	rules.Pipeline
	raw    *binding.ComputePipeline
	ref    handle
	layout *binding.BindGroupLayout
}

// NewPipeline implements gpu.Device.
func (d *device) NewPipeline(desc gpu.PipelineDesc) (gpu.Pipeline, error) {
	p := &pipeline{}
	var err error
	if p.Pipeline, err = d.rules.Pipeline(desc); err != nil {
		return nil, err
	}
	if p.layout, err = d.layout(&p.Object, desc.Bindings); err != nil {
		return nil, err
	}
	module, err := d.raw.CreateShaderModule(&binding.ShaderModuleDescriptor{
		Label: p.Label(), WGSLDescriptor: &binding.ShaderModuleWGSLDescriptor{Code: desc.Source},
	})
	if err := d.check(&p.Object, err); err != nil {
		if module != nil {
			module.Release()
		}
		return nil, err
	}
	defer module.Release()
	// Each pipeline needs its own pipeline layout. If two pipelines share a layout, the library validates
	// bindings against the binding sizes of the earlier pipeline.
	own,
		err := d.raw.CreatePipelineLayout(&binding.PipelineLayoutDescriptor{
		Label:            p.Label(),
		BindGroupLayouts: []*binding.BindGroupLayout{p.layout},
	})
	if err := d.check(&p.Object, err); err != nil {
		return nil, err
	}
	defer own.Release()
	p.raw, err = d.raw.CreateComputePipeline(&binding.ComputePipelineDescriptor{
		Label: p.Label(), Layout: own,
		Compute: binding.ProgrammableStageDescriptor{Module: module, EntryPoint: p.Entry},
	})
	if err := d.check(&p.Object, err); err != nil {
		if p.raw != nil {
			p.raw.Release()
		}
		return nil, err
	}
	p.ref = ref(p.raw)
	p.Made(p.raw.Release)
	return p, nil
}

// layout returns the bind group layout shared by all kernels with these bindings. The layout is explicit,
// because a layout that the library derives from a kernel belongs to this kernel alone. Such a layout also
// omits bindings that the kernel does not use.
func (d *device) layout(o *rules.Object, bindings []gpu.Access) (*binding.BindGroupLayout, error) {
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(bindings))), len(bindings)))
	if l, ok := d.layouts[key]; ok {
		return l, nil
	}
	entries := make([]binding.BindGroupLayoutEntry, len(bindings))
	for i, a := range bindings {
		kind := map[gpu.Access]binding.BufferBindingType{
			gpu.Read:      binding.BufferBindingTypeReadOnlyStorage,
			gpu.ReadWrite: binding.BufferBindingTypeStorage, gpu.Params: binding.BufferBindingTypeUniform,
		}[a]
		entries[i] = binding.BindGroupLayoutEntry{
			Binding: uint32(i), Visibility: binding.ShaderStageCompute,
			Buffer: binding.BufferBindingLayout{Type: kind},
		}
	}
	l, err := d.raw.CreateBindGroupLayout(&binding.BindGroupLayoutDescriptor{
		Label:   o.Label(),
		Entries: entries,
	})
	if err := d.check(o, err); err != nil {
		return nil, err
	}
	d.layouts[key] = l
	return l, nil
}

type bindGroup struct {
	rules.BindGroup
	raw *binding.BindGroup
	ref handle
}

// NewBindGroup implements gpu.Device.
func (d *device) NewBindGroup(label string, p gpu.Pipeline, bindings []gpu.Binding) (gpu.BindGroup, error) {
	g := &bindGroup{}
	own, ok := p.(*pipeline)
	if !ok {
		own = &pipeline{}
	}
	bound := make([]rules.Bound, len(bindings))
	for i, b := range bindings {
		bound[i] = rules.Bound{Offset: b.Offset, Size: b.Size}
		if own, ok := b.Buffer.(*buffer); ok {
			bound[i].Buffer = &own.Buffer
		}
	}
	var err error
	if g.BindGroup, err = d.rules.BindGroup(label, &own.Pipeline, bound); err != nil {
		return nil, err
	}
	entries := make([]binding.BindGroupEntry, len(bound))
	for i, b := range bound {
		entries[i] = binding.BindGroupEntry{
			Binding: uint32(i), Buffer: bindings[i].Buffer.(*buffer).raw,
			Offset: b.Offset, Size: b.Size,
		}
	}
	g.raw,
		err = d.raw.CreateBindGroup(&binding.BindGroupDescriptor{
		Label: g.Label(), Layout: own.layout,
		Entries: entries,
	})
	if err := d.check(&g.Object, err); err != nil {
		if g.raw != nil {
			g.raw.Release()
		}
		return nil, err
	}
	g.ref = ref(g.raw)
	g.Made(g.raw.Release)
	return g, nil
}

// The library copies written data to staging memory of the same size, and frees this staging memory only when
// the host waits for the queue. Loading a model writes all weights before the first submit, so the staging
// memory would grow to their total size. To prevent this, large writes are split, and the host waits whenever
// maxStagedBytes have been written since the last wait.
const (
	maxStagedBytes = 64 << 20
	maxWriteBytes  = 16 << 20
)

// Write implements gpu.Device.
func (d *device) Write(b gpu.Buffer, offset uint64, data []byte) error {
	own, ok := b.(*buffer)
	if !ok {
		return d.rules.Write(nil, offset, len(data))
	}
	if err := d.rules.Write(&own.Buffer, offset, len(data)); err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), maxWriteBytes)
		if d.written-d.taken+uint64(n) > maxStagedBytes {
			if err := d.native.drain(); err != nil {
				return fmt.Errorf("%s: %w", &own.Object, err)
			}
			d.waited(d.written, d.sent)
		}
		if err := d.native.write(own.ref, offset, data[:n]); err != nil {
			return fmt.Errorf("%s: %w", &own.Object, err)
		}
		d.written += uint64(n)
		offset += uint64(n)
		data = data[n:]
	}
	return nil
}

// Flush implements gpu.Device.
func (d *device) Flush() error {
	if err := d.rules.Err(); err != nil {
		return err
	}
	return d.native.sendWrites()
}

// Wait implements gpu.Device.
func (d *device) Wait() error {
	if err := d.rules.Err(); err != nil {
		return err
	}
	all := func(*hostBuffer) bool { return true }
	if err := d.arrive(all, d.native.wait); err != nil {
		return err
	}
	d.waited(d.written, d.sent)
	d.rules.Waited()
	return nil
}

// waited records that the device has finished with the given number of written bytes and of submitted
// recordings.
func (d *device) waited(written, sent uint64) {
	d.taken, d.over = max(d.taken, written), max(d.over, sent)
}

// arrive maps some of the pending buffers to host memory: those for which `meant` returns true. It calls
// `wait` once for all of them.
func (d *device) arrive(meant func(*hostBuffer) bool, wait func() error) error {
	for _, h := range d.pending {
		if !h.freed && meant(h) {
			h.mapping.begin()
		}
	}
	err := wait()
	for _, h := range d.pending {
		if !meant(h) {
			continue
		}
		h.filledBy = 0
		if h.freed {
			continue
		}
		if failed := h.mapping.end(); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", h.owner, failed))
		}
	}
	d.pending = slices.DeleteFunc(d.pending, func(h *hostBuffer) bool { return h.filledBy == 0 })
	return err
}
