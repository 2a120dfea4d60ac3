package rules

import (
	"fmt"
	"math"

	"gpuscope/engine/gpu"
)

// usageNames are the names of usages in errors.
var usageNames = [...]string{gpu.Storage: "storage", gpu.Uniform: "uniform"}

// copyAlignment is the required alignment of offsets and lengths of writes and copies (WebGPU
// specification, "buffer copies").
const copyAlignment = 4

// Buffer validates the use of a buffer.
type Buffer struct {
	Object
	size  uint64
	usage gpu.Usage
	index int // index of the buffer in gpu.Barriers
}

// Buffer checks whether a buffer can be created.
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

// Size returns the size of the buffer in bytes.
func (b *Buffer) Size() uint64 { return b.size }

// checkSize returns an error if the object cannot have the given size.
func (o *Object) checkSize(size uint64) error {
	limit := o.dev.Limits.MaxBufferSize
	switch {
	case size == 0 || size%copyAlignment != 0:
		return o.wrong("size is %d bytes, but must be a positive multiple of %d", size, copyAlignment)
	case size > limit:
		return o.wrong("size is %d bytes, but the device allows at most %d: %w",
			size, limit, gpu.ErrUnsupported)
	case size > math.MaxInt:
		return o.wrong("size of %d bytes exceeds the address space of this machine: %w",
			size, gpu.ErrUnsupported)
	}
	return nil
}

// span checks the range of `size` bytes at `offset` in an object of `total` bytes. It returns an error if
// the range is not aligned or ends after the object.
func (o *Object) span(what string, offset, size, total uint64) error {
	if offset%copyAlignment != 0 || size%copyAlignment != 0 {
		return o.wrong("%s %d bytes at offset %d: size and offset must be multiples of %d",
			what, size, offset, copyAlignment)
	}
	if offset > total || size > total-offset {
		return o.wrong("%s %d bytes at offset %d goes past the end: the size is %d bytes",
			what, size, offset, total)
	}
	return nil
}

// Write validates a write of n bytes from the host.
func (d *Device) Write(b *Buffer, offset uint64, n int) error {
	if b == nil {
		return (*Object)(nil).usable(d)
	}
	if err := b.usable(d); err != nil {
		return err
	}
	return b.span("write of", offset, uint64(n), b.size)
}

// Readback validates the use of a readback.
type Readback struct {
	Object
	size uint64
	// inFlight is the serial number of the last submitted recording that copies to the readback. It is 0 if
	// there is none, or if a wait has made the copied data readable.
	inFlight uint64
	filled   bool // a submitted copy to the readback has finished
}

// arrived records that the copied data can be read.
func (r *Readback) arrived() { r.inFlight, r.filled = 0, true }

// Readback checks whether a readback can be created.
func (d *Device) Readback(label string, size uint64) (Readback, error) {
	r := Readback{Object: d.object(ReadbackKind, label), size: size}
	if d.gone != nil {
		return r, d.gone
	}
	return r, r.checkSize(size)
}

// Read validates a read of n bytes at `offset` by the host.
func (r *Readback) Read(n int, offset uint64) error {
	if err := r.usable(r.dev); err != nil {
		return err
	}
	switch {
	case r.inFlight != 0:
		return r.wrong("cannot be read before Wait")
	case !r.filled:
		return r.wrong("cannot be read yet, because nothing was copied to it: call CopyOut, Submit and Wait first")
	case offset > r.size || uint64(n) > r.size-offset:
		return r.wrong("read of %d bytes at offset %d goes past the end: the size is %d bytes",
			n, offset, r.size)
	}
	return nil
}

// Pipeline validates the use of a pipeline.
type Pipeline struct {
	Object
	// Entry is the name of the kernel's entry point.
	Entry    string
	bindings []gpu.Access
}

// Pipeline checks the properties of a kernel that are known without compiling it.
func (d *Device) Pipeline(desc gpu.PipelineDesc) (Pipeline, error) {
	p := Pipeline{Object: d.object(PipelineKind, desc.Label), Entry: desc.Entry, bindings: desc.Bindings}
	if p.Entry == "" {
		p.Entry = "main"
	}
	if d.gone != nil {
		return p, d.gone
	}
	if desc.Source == "" {
		return p, p.wrong("the WGSL source is empty")
	}
	if n, ok := gpu.WorkgroupBytes(desc.Source); ok && n > uint64(d.Limits.MaxWorkgroupStorage) {
		return p,
			p.wrong("needs %d bytes of workgroup memory, but the device has %d: %w",
				n, d.Limits.MaxWorkgroupStorage,
				gpu.ErrUnsupported)
	}
	var storage uint32
	for i, a := range desc.Bindings {
		switch a {
		case gpu.Read, gpu.ReadWrite:
			storage++
		case gpu.Params:
		default:
			return p, p.wrong("binding %d has unknown access %d", i, a)
		}
	}
	if n := uint32(len(desc.Bindings)); n > d.Limits.MaxBindingsPerGrp {
		return p,
			p.wrong("has %d bindings, but the device allows at most %d: %w", n, d.Limits.MaxBindingsPerGrp,
				gpu.ErrUnsupported)
	}
	if storage > d.Limits.MaxStorageBuffers {
		return p,
			p.wrong("has %d storage bindings, but the device allows at most %d: %w",
				storage, d.Limits.MaxStorageBuffers,
				gpu.ErrUnsupported)
	}
	return p, nil
}

// Bound is a binding whose access and size have been determined.
type Bound struct {
	Buffer *Buffer
	Access gpu.Access
	Offset uint64
	Size   uint64
}

// BindGroup validates the use of a bind group.
type BindGroup struct {
	Object
	bound []Bound
}

// BindGroup checks bindings against a pipeline, and sets the access of each element of `bound`. If the size
// of an element is 0, BindGroup replaces it by the size of the rest of the buffer.
func (d *Device) BindGroup(label string, p *Pipeline, bound []Bound) (BindGroup, error) {
	g := BindGroup{Object: d.object(BindGroupKind, label), bound: bound}
	if p == nil {
		return g, (*Object)(nil).usable(d)
	}
	if err := p.usable(d); err != nil {
		return g, err
	}
	if len(bound) != len(p.bindings) {
		return g, g.wrong("%d bindings, but %s needs %d", len(bound), p, len(p.bindings))
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
					g.wrong("binding %d (%s) and binding %d (%s) use the same %s, but with different access",
						j, b, i, a, bound[i].Buffer)
			}
		}
	}
	return g, nil
}

// checkBound validates a binding and replaces the size 0 by the size of the rest of the buffer.
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
		return b.Buffer.wrong("the buffer was created with usage %s, but the binding needs usage %s",
			usageNames[b.Buffer.usage], usageNames[usage])
	}
	if b.Offset > b.Buffer.size || b.Size > b.Buffer.size-b.Offset {
		return b.Buffer.wrong("a binding of %d bytes at offset %d goes past the end: the buffer has %d bytes",
			b.Size, b.Offset, b.Buffer.size)
	}
	if b.Size == 0 {
		b.Size = b.Buffer.size - b.Offset
	}
	switch {
	case b.Size == 0:
		return b.Buffer.wrong("a binding at offset %d would be empty, because the buffer ends there: its size is %d bytes",
			b.Offset, b.Buffer.size)
	case b.Offset%alignment != 0:
		return b.Buffer.wrong("the binding offset is %d, but it must be a multiple of the device's alignment, %d",
			b.Offset, alignment)
	case b.Size%copyAlignment != 0:
		return b.Buffer.wrong("the binding size is %d bytes, but it must be a multiple of %d",
			b.Size, copyAlignment)
	case b.Size > limit:
		return b.Buffer.wrong("the binding size is %d bytes, but the device allows at most %d: %w",
			b.Size, limit, gpu.ErrUnsupported)
	}
	return nil
}

// Timestamps validates the use of a set of timestamp slots.
type Timestamps struct {
	Object
	written []uint64 // serial number of the recording that wrote each slot; 0 if none
	// inFlight is the serial number of the last submitted recording that resolves slots. It is 0 if there is
	// none, or if a wait has made the resolved slots readable.
	inFlight uint64
	// resolved is the number of slots that become readable after the next wait.
	resolved int
	readable int
}

// arrived records that the resolved slots can be read.
func (t *Timestamps) arrived() {
	t.readable, t.resolved, t.inFlight = max(t.readable, t.resolved), 0, 0
}

// Timestamps checks whether n timestamp slots can be created.
func (d *Device) Timestamps(n int) (Timestamps, error) {
	t := Timestamps{Object: d.object(TimestampsKind, fmt.Sprintf("of %d", n))}
	switch {
	case d.gone != nil:
		return t, d.gone
	case !d.HasTimestamps:
		return t, t.wrong("the device does not support timestamps: %w", gpu.ErrUnsupported)
	case n < 1:
		return t, t.wrong("at least one timestamp slot is required")
	case uint64(n) > d.Limits.MaxBufferSize/TickBytes:
		return t,
			t.wrong(
				"too many timestamp slots: each needs %d bytes, but a buffer can have at most %d bytes: %w",
				TickBytes, d.Limits.MaxBufferSize, gpu.ErrUnsupported)
	}
	t.written = make([]uint64, n)
	return t, nil
}

// TickBytes is the size of a resolved timestamp in bytes.
const TickBytes = 8

// Read validates a read of the first n slots.
func (t *Timestamps) Read(n int) error {
	if err := t.usable(t.dev); err != nil {
		return err
	}
	if t.inFlight != 0 {
		return t.wrong("cannot be read before Wait")
	}
	if n > t.readable {
		return t.wrong(
			"cannot read %d timestamp slots: only %d are ready (resolve them, submit and wait first)",
			n, t.readable)
	}
	return nil
}
