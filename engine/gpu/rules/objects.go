package rules

import (
	"fmt"
	"math"

	"gpuscope/engine/gpu"
)

// copyAlignment is what offsets and lengths of writes and copies are multiples of (WebGPU, "buffer copies").
const copyAlignment = 4

// Buffer is the validation of a buffer.
type Buffer struct {
	Object
	size  uint64
	usage gpu.Usage
	index int // for gpu.Barriers
}

// Buffer checks that a buffer can be made.
func (d *Device) Buffer(label string, size uint64, usage gpu.Usage) (Buffer, error) {
	b := Buffer{Object: d.object(BufferKind, label), size: size, usage: usage}
	if d.gone != nil {
		return b, d.gone
	}
	if usage > gpu.Uniform {
		return b, b.wrong("usage %d is neither storage nor uniform", usage)
	}
	b.index = d.buffers
	d.buffers++
	return b, b.checkSize(size)
}

// Size is in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// checkSize says what is wrong with the size of a buffer.
func (o *Object) checkSize(size uint64) error {
	limit := o.dev.Limits.MaxBufferSize
	switch {
	case size == 0 || size%copyAlignment != 0:
		return o.wrong("%d bytes; a buffer has a multiple of %d and is not empty", size, copyAlignment)
	case size > limit:
		return o.wrong("%d bytes, the device allows %d in one buffer: %w", size, limit, gpu.ErrUnsupported)
	case size > math.MaxInt:
		return o.wrong("%d bytes do not fit this machine's address space: %w", size, gpu.ErrUnsupported)
	}
	return nil
}

// span says what is wrong with touching size bytes at offset of an object of total bytes.
func (o *Object) span(what string, offset, size, total uint64) error {
	if offset%copyAlignment != 0 || size%copyAlignment != 0 {
		return o.wrong("%s %d bytes at %d; both must be multiples of %d", what, size, offset, copyAlignment)
	}
	if offset > total || size > total-offset {
		return o.wrong("%s %d bytes at %d, it has %d", what, size, offset, total)
	}
	return nil
}

// Write checks a write of n bytes from the host.
func (d *Device) Write(b *Buffer, offset uint64, n int) error {
	if b == nil {
		return (*Object)(nil).usable(d)
	}
	if err := b.usable(d); err != nil {
		return err
	}
	return b.span("write of", offset, uint64(n), b.size)
}

// Readback is the validation of a readback.
type Readback struct {
	Object
	size     uint64
	inFlight uint64 // serial of the last submit that copies to it and was not waited for; 0: none
	filled   bool   // holds what a submit copied to it
}

// arrived says that what was copied to it can be read.
func (r *Readback) arrived() { r.inFlight, r.filled = 0, true }

// Readback checks that a readback can be made.
func (d *Device) Readback(label string, size uint64) (Readback, error) {
	r := Readback{Object: d.object(ReadbackKind, label), size: size}
	if d.gone != nil {
		return r, d.gone
	}
	return r, r.checkSize(size)
}

// Read checks a read of n bytes at offset by the host.
func (r *Readback) Read(n int, offset uint64) error {
	if err := r.usable(r.dev); err != nil {
		return err
	}
	switch {
	case r.inFlight != 0:
		return r.wrong("read before Wait")
	case !r.filled:
		return r.wrong("read before anything was copied to it: CopyOut, Submit and Wait come first")
	case offset > r.size || uint64(n) > r.size-offset:
		return r.wrong("read of %d bytes at %d, it has %d", n, offset, r.size)
	}
	return nil
}

// Pipeline is the validation of a pipeline.
type Pipeline struct {
	Object
	// Entry is the kernel's entry point.
	Entry    string
	bindings []gpu.Access
}

// Pipeline checks what can be known of a kernel without compiling it.
func (d *Device) Pipeline(desc gpu.PipelineDesc) (Pipeline, error) {
	p := Pipeline{Object: d.object(PipelineKind, desc.Label), Entry: desc.Entry, bindings: desc.Bindings}
	if p.Entry == "" {
		p.Entry = "main"
	}
	if d.gone != nil {
		return p, d.gone
	}
	if desc.Source == "" {
		return p, p.wrong("no source")
	}
	if n, ok := gpu.WorkgroupBytes(desc.Source); ok && n > uint64(d.Limits.MaxWorkgroupStorage) {
		return p,
			p.wrong("%d bytes of workgroup memory, the device has %d: %w", n, d.Limits.MaxWorkgroupStorage,
				gpu.ErrUnsupported)
	}
	var storage uint32
	for i, a := range desc.Bindings {
		switch a {
		case gpu.Read, gpu.ReadWrite:
			storage++
		case gpu.Params:
		default:
			return p, p.wrong("binding %d: access %d is not known", i, a)
		}
	}
	if n := uint32(len(desc.Bindings)); n > d.Limits.MaxBindingsPerGrp {
		return p,
			p.wrong("%d bindings, the device allows %d: %w", n, d.Limits.MaxBindingsPerGrp,
				gpu.ErrUnsupported)
	}
	if storage > d.Limits.MaxStorageBuffers {
		return p,
			p.wrong("%d storage bindings, the device allows %d: %w", storage, d.Limits.MaxStorageBuffers,
				gpu.ErrUnsupported)
	}
	return p, nil
}

// Bound is a binding with its size settled.
type Bound struct {
	Buffer *Buffer
	Access gpu.Access
	Offset uint64
	Size   uint64
}

// BindGroup is the validation of a bind group.
type BindGroup struct {
	Object
	bound []Bound
}

// BindGroup checks bindings against a pipeline. bound are they, with size 0 where the caller left it open.
func (d *Device) BindGroup(label string, p *Pipeline, bound []Bound) (BindGroup, error) {
	g := BindGroup{Object: d.object(BindGroupKind, label), bound: bound}
	if p == nil {
		return g, (*Object)(nil).usable(d)
	}
	if err := p.usable(d); err != nil {
		return g, err
	}
	if len(bound) != len(p.bindings) {
		return g, g.wrong("%d bindings for %s, which has %d", len(bound), p, len(p.bindings))
	}
	for i := range bound {
		bound[i].Access = p.bindings[i]
		if err := d.checkBound(&bound[i]); err != nil {
			return g, g.wrong("binding %d (%s): %w", i, bound[i].Access, err)
		}
		for j := range i {
			a, b := bound[i].Access, bound[j].Access
			if bound[i].Buffer == bound[j].Buffer && a != b {
				return g,
					g.wrong("bindings %d (%s) and %d (%s) are the same %s; a dispatch uses a buffer in one way", j, b, i, a, bound[i].Buffer)
			}
		}
	}
	return g, nil
}

// checkBound settles the size of a binding and checks it.
func (d *Device) checkBound(b *Bound) error {
	if b.Buffer == nil {
		return (*Object)(nil).usable(d)
	}
	if err := b.Buffer.usable(d); err != nil {
		return err
	}
	usage, alignment, limit := gpu.Storage, uint64(d.Limits.StorageAlignment), d.Limits.MaxStorageBinding
	if b.Access == gpu.Params {
		usage, alignment, limit = gpu.Uniform, uint64(d.Limits.UniformAlignment), d.Limits.MaxUniformBinding
	}
	if b.Buffer.usage != usage {
		return b.Buffer.wrong("was not made for this use")
	}
	if b.Offset > b.Buffer.size || b.Size > b.Buffer.size-b.Offset {
		return b.Buffer.wrong("%d bytes at %d, it has %d", b.Size, b.Offset, b.Buffer.size)
	}
	if b.Size == 0 {
		b.Size = b.Buffer.size - b.Offset
	}
	switch {
	case b.Size == 0:
		return b.Buffer.wrong("nothing at %d, it has %d bytes", b.Offset, b.Buffer.size)
	case b.Offset%alignment != 0:
		return b.Buffer.wrong("offset %d, the device wants multiples of %d", b.Offset, alignment)
	case b.Size%copyAlignment != 0:
		return b.Buffer.wrong("%d bytes, not a multiple of %d", b.Size, copyAlignment)
	case b.Size > limit:
		return b.Buffer.wrong("%d bytes, the device binds at most %d: %w", b.Size, limit, gpu.ErrUnsupported)
	}
	return nil
}

// Timestamps is the validation of a set of clock readings.
type Timestamps struct {
	Object
	written  []uint64 // serial of the encoder that wrote each slot; 0: none
	inFlight uint64   // serial of the last submit that resolves some and was not waited for; 0: none
	resolved int      // by submits that nobody waited for
	readable int
}

// arrived says that what was resolved can be read.
func (t *Timestamps) arrived() {
	t.readable, t.resolved, t.inFlight = max(t.readable, t.resolved), 0, 0
}

// Timestamps checks that room for n readings can be made.
func (d *Device) Timestamps(n int) (Timestamps, error) {
	t := Timestamps{Object: d.object(TimestampsKind, fmt.Sprintf("of %d", n))}
	switch {
	case d.gone != nil:
		return t, d.gone
	case !d.HasTimestamps:
		return t, t.wrong("no clock to read: %w", gpu.ErrUnsupported)
	case n < 1:
		return t, t.wrong("room for at least one reading is needed")
	case uint64(n) > d.Limits.MaxBufferSize/TickBytes:
		return t,
			t.wrong("%d bytes a reading, the device allows %d in one buffer: %w", TickBytes,
				d.Limits.MaxBufferSize, gpu.ErrUnsupported)
	}
	t.written = make([]uint64, n)
	return t, nil
}

// TickBytes is the size of a resolved clock reading.
const TickBytes = 8

// Read checks a read of the first n readings.
func (t *Timestamps) Read(n int) error {
	if err := t.usable(t.dev); err != nil {
		return err
	}
	if t.inFlight != 0 {
		return t.wrong("read before Wait")
	}
	if n > t.readable {
		return t.wrong("read of %d readings, %d were resolved, submitted and waited for", n, t.readable)
	}
	return nil
}
