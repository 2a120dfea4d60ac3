//go:build cgo

package wgpu

import (
	"encoding/binary"
	"fmt"

	binding "github.com/cogentcore/webgpu/wgpu"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// hostBuffer is memory that the device copies to and the host reads. Wait maps the buffer to host memory. The
// next Submit that copies to the buffer unmaps it first, because the library aborts the process if submitted
// commands use a mapped buffer.
type hostBuffer struct {
	owner   *rules.Object
	raw     *binding.Buffer
	mapping mapping
	// filledBy is the serial number of the last submitted recording that copies to the buffer, or 0 if the
	// buffer is not in device.pending.
	filledBy uint64
	freed    bool
}

func (d *device) newHostBuffer(owner *rules.Object, size uint64) (*hostBuffer, error) {
	raw, err := d.newBuffer(owner, size, binding.BufferUsageCopyDst|binding.BufferUsageMapRead)
	if err != nil {
		return nil, err
	}
	return &hostBuffer{owner: owner, raw: raw, mapping: newMapping(ownedRef(raw), size)}, nil
}

func (h *hostBuffer) free() {
	h.freed = true
	h.mapping.free()
	h.raw.Release()
}

// bytes returns the data that the device copied.
func (h *hostBuffer) bytes() ([]byte, error) {
	if h.mapping.bytes == nil {
		return nil, fmt.Errorf("%s: cannot be read before Wait", h.owner)
	}
	return h.mapping.bytes, nil
}

// readback implements gpu.Readback.
type readback struct {
	rules.Readback
	host *hostBuffer
}

// NewReadback implements gpu.Device.
func (d *device) NewReadback(label string, size uint64) (gpu.Readback, error) {
	r := &readback{}
	var err error
	if r.Readback, err = d.rules.Readback(label, size); err != nil {
		return nil, err
	}
	if r.host, err = d.newHostBuffer(&r.Object, size); err != nil {
		return nil, err
	}
	r.Made(r.host.free)
	return r, nil
}

// Read implements gpu.Readback.
func (r *readback) Read(dst []byte, offset uint64) error {
	if err := r.Readback.Read(len(dst), offset); err != nil {
		return err
	}
	src, err := r.host.bytes()
	if err != nil {
		return err
	}
	copy(dst, src[offset:])
	return nil
}

// queriesPerSet is WebGPU's maximum number of queries in a query set.
const queriesPerSet = 4096

// timestamps implements gpu.Timestamps. The timestamps are written to query sets, resolved into a buffer, and
// copied to a host buffer.
type timestamps struct {
	rules.Timestamps
	sets     []*binding.QuerySet
	resolved *binding.Buffer
	host     *hostBuffer
}

// NewTimestamps implements gpu.Device.
func (d *device) NewTimestamps(n int) (gpu.Timestamps, error) {
	t := &timestamps{}
	var err error
	if t.Timestamps, err = d.rules.Timestamps(n); err != nil {
		return nil, err
	}
	if err := t.make(d, n); err != nil {
		t.free()
		return nil, err
	}
	t.Made(t.free)
	return t, nil
}

func (t *timestamps) make(d *device, n int) (err error) {
	for first := 0; first < n; first += queriesPerSet {
		set,
			err := d.raw.CreateQuerySet(&binding.QuerySetDescriptor{
			Type:  binding.QueryTypeTimestamp,
			Count: uint32(min(queriesPerSet, n-first)),
		})
		if set != nil {
			t.sets = append(t.sets, set)
		}
		if err := d.check(&t.Object, err); err != nil {
			return err
		}
	}
	size := uint64(n) * rules.TickBytes
	if t.resolved, err = d.newBuffer(&t.Object, size,
		binding.BufferUsageQueryResolve|binding.BufferUsageCopySrc); err != nil {
		return err
	}
	t.host, err = d.newHostBuffer(&t.Object, size)
	return err
}

func (t *timestamps) free() {
	for _, s := range t.sets {
		s.Release()
	}
	if t.resolved != nil {
		t.resolved.Release()
	}
	if t.host != nil {
		t.host.free()
	}
}

// Read implements gpu.Timestamps.
func (t *timestamps) Read(ticks []uint64) error {
	if err := t.Timestamps.Read(len(ticks)); err != nil || len(ticks) == 0 {
		return err
	}
	src, err := t.host.bytes()
	if err != nil {
		return err
	}
	for i := range ticks {
		ticks[i] = binary.LittleEndian.Uint64(src[i*rules.TickBytes:])
	}
	return nil
}
