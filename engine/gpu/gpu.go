// Package gpu is the driver interface of the engine: adapters, a device, and the few GPU
// objects that a compute graph needs. engine/gpu/wgpu implements it over WebGPU, engine/gpu/fake
// in pure Go for tests.
//
// One goroutine owns a device and everything made from it. Objects are released by their owner, once;
// releasing the device releases what is left. What a recording uses may be released before its Submit. Sizes
// are bytes. Errors are lower case, name the object's label and the limit it met, and wrap ErrDeviceLost,
// ErrNoAdapter, ErrUnsupported or ErrOutOfMemory where a caller can act on it.
//
// A step on the hot path is Begin, BeginPass, Dispatch..., EndPass, Submit, Wait, or Finish and what a
// Recording has: implementations keep both free of Go allocations where the binding allows it.
package gpu

import "errors"

// Join is what went wrong with what went wrong in putting things right after it. That the device is lost is
// told once.
func Join(err, after error) error {
	if errors.Is(err, ErrDeviceLost) && errors.Is(after, ErrDeviceLost) {
		return err
	}
	return errors.Join(err, after)
}

var (
	// ErrNoAdapter says that no usable GPU or software device was found.
	ErrNoAdapter = errors.New("no WebGPU adapter")
	// ErrDeviceLost says that the device is gone; nothing made from it works any more.
	ErrDeviceLost = errors.New("device lost")
	// ErrUnsupported says that the device lacks a feature or a limit.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrOutOfMemory says that the device has no memory left for an object.
	ErrOutOfMemory = errors.New("out of device memory")
)

// AdapterType is the kind of an adapter, in the order in which Choose prefers them.
type AdapterType uint8

// The adapter types.
const (
	Discrete AdapterType = iota
	Integrated
	Virtual
	CPU
	UnknownAdapter
)

// String is the name used in traces and on screen.
func (t AdapterType) String() string {
	return [...]string{"discrete", "integrated", "virtual", "cpu", "unknown"}[min(t, UnknownAdapter)]
}

// AdapterInfo describes an adapter, and after Open the device made from it.
type AdapterInfo struct {
	Name    string // as the driver names it
	Vendor  string
	Driver  string // driver name and version
	Backend string // "vulkan", "metal", "dx12", "fake"
	Type    AdapterType
	// Timestamps says whether Encoder.Timestamp works.
	Timestamps bool
	// NSPerTick is the period of a timestamp tick where the driver knows it; 0 where it has to be measured,
	// as with every WebGPU.
	NSPerTick float64
	Limits    Limits
}

// Limits are the device limits that plans and allocation look at. Sizes are bytes.
type Limits struct {
	MaxBufferSize                    uint64
	MaxStorageBinding                uint64
	MaxUniformBinding                uint64
	UniformAlignment                 uint32 // of the offset of a uniform binding
	StorageAlignment                 uint32 // of the offset of a storage binding
	MaxStorageBuffers                uint32 // per shader stage
	MaxWorkgroupStorage              uint32
	MaxInvocations                   uint32 // per workgroup
	MaxWorkgroupX, MaxWorkgroupY     uint32
	MaxWorkgroupZ                    uint32
	MaxWorkgroups                    uint32 // per dimension of a dispatch
	MaxBindGroups, MaxBindingsPerGrp uint32
	// FlushesHalves says whether the smallest halves become 0 as floats. Only of an open device is it known.
	FlushesHalves bool
}

// DefaultLimits are the limits every WebGPU device grants: what graphs are planned against when
// there is no device.
func DefaultLimits() Limits {
	return Limits{
		MaxBufferSize: 256 << 20, MaxStorageBinding: 128 << 20, MaxUniformBinding: 64 << 10,
		UniformAlignment: 256, StorageAlignment: 256, MaxStorageBuffers: 8, MaxWorkgroupStorage: 16 << 10,
		MaxInvocations: 256, MaxWorkgroupX: 256, MaxWorkgroupY: 256, MaxWorkgroupZ: 64, MaxWorkgroups: 65535,
		MaxBindGroups: 4, MaxBindingsPerGrp: 1000,
	}
}

// LimitSet are limits to plan for where there is no device.
type LimitSet struct {
	Name, Doc string
	Limits    Limits
}

// LimitSets are those to choose from; the first one is meant where nothing is said. Those of a large GPU are
// at most what NVIDIA's data-centre GPUs grant under Vulkan.
var LimitSets = []LimitSet{
	{"webgpu", "that every WebGPU device grants", DefaultLimits()},
	{"large", "of a large GPU", largeLimits()},
}

func largeLimits() Limits {
	l := DefaultLimits()
	l.MaxBufferSize, l.MaxStorageBinding = 1<<40, 1<<31-4
	l.MaxStorageBuffers, l.MaxWorkgroupStorage = 16, 32<<10
	l.MaxInvocations, l.MaxWorkgroupX, l.MaxWorkgroupY = 1024, 1024, 1024
	return l
}

// Driver finds adapters and opens devices.
type Driver interface {
	// Adapters lists what can be opened, in the order of preference. The list may be empty.
	Adapters() ([]AdapterInfo, error)
	// Open makes a device from the adapter at index of Adapters, with all its limits granted and
	// timestamps where it has them.
	Open(index int) (Device, error)
}

// Usage says what a buffer is for; it may be written and copied from the host whatever it is.
type Usage uint8

// Buffer usages.
const (
	Storage Usage = iota // read or written by kernels
	Uniform              // params
)

// Access is how a kernel uses a binding.
type Access uint8

// The accesses of a binding.
const (
	Read      Access = iota // storage, read
	ReadWrite               // storage, read_write
	Params                  // uniform
)

// String is the WGSL word for the access.
func (a Access) String() string { return [...]string{"read", "read_write", "uniform"}[a] }

// PipelineDesc is a compute kernel to compile. Binding i of group 0 has access Bindings[i].
type PipelineDesc struct {
	Label    string
	Source   string // WGSL
	Entry    string // "main" where empty
	Bindings []Access
}

// Binding is a range of a buffer bound to a kernel.
type Binding struct {
	Buffer Buffer
	Offset uint64
	Size   uint64 // 0: to the end of the buffer
}

// Device makes GPU objects and runs them. Not safe for concurrent use.
type Device interface {
	// Info is the adapter's, with the limits this device was granted.
	Info() AdapterInfo
	// NewBuffer makes a zeroed buffer of size bytes (a multiple of 4, at least 4).
	NewBuffer(label string, size uint64, usage Usage) (Buffer, error)
	// NewPipeline compiles a kernel. The error of a kernel that does not compile holds the compiler's text.
	NewPipeline(desc PipelineDesc) (Pipeline, error)
	// NewBindGroup binds buffers to a pipeline's bindings 0..n-1.
	NewBindGroup(label string, p Pipeline, bindings []Binding) (BindGroup, error)
	// NewReadback makes a host-visible buffer of size bytes that an Encoder copies to.
	NewReadback(label string, size uint64) (Readback, error)
	// NewTimestamps makes room for n timestamps; ErrUnsupported where Info().Timestamps is false.
	NewTimestamps(n int) (Timestamps, error)
	// Write queues data for the buffer at offset; it is there before any later Submit. Offset and length are
	// multiples of 4.
	Write(b Buffer, offset uint64, data []byte) error
	// Flush sends what was written to the device now and not with the next Submit. Nobody waits for it.
	Flush() error
	// Begin starts recording commands. One encoder at a time.
	Begin(label string) (Encoder, error)
	// Wait blocks until all that was submitted is done and readbacks can be read.
	Wait() error
	// Release frees the device and all that was made from it and not released.
	Release()
}

// Encoder records passes and copies. It ends with Submit, Finish or Discard.
type Encoder interface {
	// BeginPass opens a compute pass; passes do not nest.
	BeginPass(label string) error
	// Dispatch runs a kernel with x*y*z workgroups, each at least 1 and at most Limits.MaxWorkgroups.
	Dispatch(p Pipeline, g BindGroup, x, y, z uint32)
	// EndPass closes the pass and reports what was wrong in it, but for what only the kernel's compiler knows
	// (a params block that is too small): Submit reports that.
	EndPass() error
	// Timestamp writes the GPU clock to slot i, between passes.
	Timestamp(t Timestamps, i int) error
	// Resolve makes slots [0, n) readable after Wait. All of them must have been written, by this recording
	// or a submitted one.
	Resolve(t Timestamps, n int) error
	// Copy copies size bytes between two buffers, between passes.
	Copy(src Buffer, srcOffset uint64, dst Buffer, dstOffset, size uint64) error
	// CopyOut copies size bytes from a buffer to a readback, between passes.
	CopyOut(src Buffer, srcOffset uint64, dst Readback, dstOffset, size uint64) error
	// Submit sends the commands to the GPU and frees the encoder. After an error, here or in any call before,
	// none of them runs.
	Submit() error
	// Finish frees the encoder and gives what was recorded, to be submitted when its time has come. After an
	// error there is nothing.
	Finish() (Recording, error)
	// Discard frees the encoder; nothing runs.
	Discard()
}

// Recording is commands that were recorded. It ends with Wait or Discard, or where Submit fails, and is used
// no more then.
type Recording interface {
	// Submit sends the commands to the GPU, after what was written and submitted before. After an error none
	// of them runs.
	Submit() error
	// Wait blocks until the commands are done, whatever was submitted after them. What they copied out and
	// resolved can be read then, unless a later submit does the same.
	Wait() error
	// Discard gives up commands that were not submitted, and has no effect on others.
	Discard()
}

// Buffer is memory on the device.
type Buffer interface {
	Size() uint64
	Release()
}

// Readback is memory that the device writes and the host reads.
type Readback interface {
	// Read copies what the GPU wrote at offset to dst, after Device.Wait.
	Read(dst []byte, offset uint64) error
	Release()
}

// Pipeline is a compiled kernel.
type Pipeline interface{ Release() }

// BindGroup is a set of bound buffers.
type BindGroup interface{ Release() }

// Timestamps is a set of GPU clock readings.
type Timestamps interface {
	// Read fills ticks with the first len(ticks) readings, after Encoder.Resolve, Submit and Device.Wait.
	// Ticks are raw: no WebGPU call gives their period.
	Read(ticks []uint64) error
	Release()
}
