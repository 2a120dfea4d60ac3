// Package fake is a driver of engine/gpu in pure Go that records everything and computes nothing, so that the
// engine, and whole sessions, are tested with no GPU and the same every time.
//
// Buffers hold real bytes: Write lands in them, Copy and CopyOut move them, a readback gives them back, and
// all of it happens at Submit, in order, as on a device. A dispatch leaves bytes alone unless the test
// computes on them:
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
// The clock is virtual: it stands at what Duration said the dispatches took, so timestamps are exact. What
// WebGPU refuses is refused here with the same words as in engine/gpu/wgpu, because both ask
// engine/gpu/rules.
package fake

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/rules"
)

// Options say what device there is.
type Options struct {
	// Info is the adapter. What is zero in it is filled in: the name, WebGPU's default limits. Timestamps are
	// on unless NoTimestamps says otherwise.
	Info         gpu.AdapterInfo
	NoTimestamps bool
	// NoLog starts the device with Logging off.
	NoLog bool
}

// info fills in what the options leave open.
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
	// All are the adapters.
	All []Options
	// Opened are the devices that Open gave, in order.
	Opened []*Device
	// Err is what Adapters and Open return, where a test wants them to fail.
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
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(d.All), gpu.ErrNoAdapter)
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

// Dispatch is one dispatch as it runs.
type Dispatch struct {
	Pipeline string // label
	Source   string // WGSL
	Entry    string
	Pass     string // label
	Group    string // label of the bind group
	Bound    []Bound
	X, Y, Z  uint32
}

// String prints the dispatch in one line.
func (d Dispatch) String() string {
	return fmt.Sprintf("%s [%d %d %d]", d.Pipeline, d.X, d.Y, d.Z)
}

// Bound is a binding of a dispatch.
type Bound struct {
	Buffer string // label
	Access gpu.Access
	Offset uint64 // of Bytes in the buffer
	// Bytes are the bound range of the buffer itself: writing to them is what a kernel does.
	Bytes []byte
}
