// Package fake is a driver of engine/gpu in pure Go for tests. The fake driver records every call and
// computes nothing, so the engine and whole sessions can be tested without a GPU and with reproducible
// results.
//
// Buffers hold real bytes. Write changes the bytes at once. Copy and CopyOut copy bytes during Submit, in the
// recorded order. A readback returns the copied bytes. A dispatch does not change any bytes unless the test
// computes results itself:
//
//	dev := fake.New(fake.Options{})
//	dev.OnDispatch = func(d fake.Dispatch) {
//		if d.Pipeline == "argmax" {
//			binary.LittleEndian.PutUint32(d.Bound[1].Bytes, 42)
//		}
//	}
//	dev.Duration = func(pipeline string, x, y, z uint32) int64 { return 1000 * int64(x) }
//	dev.FailNth(fake.Submit, 3, errors.New("no"))
//
// The clock is virtual: only dispatches, passes and Idle advance it, so timestamps are exact. Invalid calls
// return the same errors as in engine/gpu/wgpu, because both drivers validate calls with engine/gpu/rules.
package fake

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// Options configures a fake adapter and its device.
type Options struct {
	// Info describes the adapter. If Info.Name is empty, the adapter gets the description of a fake CPU, but
	// keeps the limits in Info. If these limits are empty, the adapter has WebGPU's default limits.
	// Timestamps are available unless NoTimestamps is true.
	Info         gpu.AdapterInfo
	NoTimestamps bool
	// NoLog opens the device with Logging off.
	NoLog bool
}

// info returns the adapter's description with defaults for fields that are not set.
func (o Options) info() gpu.AdapterInfo {
	info := o.Info
	if info.Name == "" {
		info = gpu.AdapterInfo{
			Name: "fake", Vendor: "gpuscope", Driver: "fake", Type: gpu.CPU,
			Limits: info.Limits,
		}
	}
	if info.Limits == (gpu.Limits{}) {
		info.Limits = gpu.DefaultLimits()
	}
	info.Backend, info.Timestamps, info.NSPerTick = "fake", !o.NoTimestamps, 1
	return info
}

// Driver lists fake adapters and opens fake devices. The zero value has no adapter.
type Driver struct {
	// All lists the adapters.
	All []Options
	// Opened lists the devices that Open has returned, in order.
	Opened []*Device
	// Err, if not nil, is the error that Adapters and Open return. It is for tests of failures.
	Err error
}

// Adapters implements gpu.Driver.
func (d *Driver) Adapters() ([]gpu.AdapterInfo, error) {
	list := make([]gpu.AdapterInfo, len(d.All))
	for i, o := range d.All {
		list[i] = o.info()
	}
	return list, d.Err
}

// Open implements gpu.Driver.
func (d *Driver) Open(index int) (gpu.Device, error) {
	if d.Err != nil {
		return nil, d.Err
	}
	if index < 0 || index >= len(d.All) {
		return nil, fmt.Errorf("adapter %d does not exist, because the list has %d adapters: %w",
			index, len(d.All), gpu.ErrNoAdapter)
	}
	dev := New(d.All[index])
	d.Opened = append(d.Opened, dev)
	return dev, nil
}

// New opens a fake device.
func New(o Options) *Device {
	info := o.info()
	d := &Device{info: info, Logging: !o.NoLog}
	d.rules = rules.Device{Limits: info.Limits, HasTimestamps: info.Timestamps}
	d.enc.dev = d
	return d
}

// Dispatch describes a dispatch that is running.
type Dispatch struct {
	Pipeline string // label of the pipeline
	Source   string // WGSL
	Entry    string
	Pass     string // label of the pass
	Group    string // label of the bind group
	Bound    []Bound
	X, Y, Z  uint32
}

// String returns the dispatch as one line of text.
func (d Dispatch) String() string {
	return fmt.Sprintf("%s [%d %d %d]", d.Pipeline, d.X, d.Y, d.Z)
}

// Bound is a binding of a dispatch.
type Bound struct {
	Buffer string // label of the buffer
	Access gpu.Access
	Offset uint64 // position of Bytes in the buffer, in bytes
	// Bytes is the part of the buffer that is bound, not a copy of it. A test acts as the kernel by writing
	// to Bytes.
	Bytes []byte
}
