// Package gpu is the driver interface of the engine: adapters, a device, and the few GPU objects that a
// compute graph needs. Package engine/gpu/wgpu implements the interface with WebGPU, and engine/gpu/fake
// implements it in pure Go for tests.
//
// Only one goroutine may use a device and its objects. The owner of an object releases the object exactly
// once. Releasing the device releases all remaining objects. An object that a recording uses may be released
// even before the recording is submitted. All sizes are in bytes. Error messages start with a lower-case
// letter, and name the object's label and the limit that was exceeded. If the caller can react to the cause,
// the error wraps ErrDeviceLost, ErrNoAdapter, ErrUnsupported or ErrOutOfMemory.
//
// The hot path of a step consists of Begin, BeginPass, Dispatch..., EndPass, Submit and Wait. Finish and the
// methods of Recording can replace Submit and Wait. On the hot path, implementations make no Go allocations
// unless their WebGPU binding forces them to.
package gpu

import "errors"

// Join combines an error with the error of the cleanup that followed it. If both errors report a lost device,
// Join returns only the first.
func Join(err, after error) error {
	if errors.Is(err, ErrDeviceLost) && errors.Is(after, ErrDeviceLost) {
		return err
	}
	return errors.Join(err, after)
}

var (
	// ErrNoAdapter reports that no usable GPU or software device was found.
	ErrNoAdapter = errors.New("no WebGPU adapter")
	// ErrDeviceLost reports that the device was lost, and that no object of the device works any more.
	ErrDeviceLost = errors.New("device lost")
	// ErrUnsupported reports that the device lacks a feature, or that a request exceeds a limit of the
	// device.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrOutOfMemory reports that the device has too little free memory for an object.
	ErrOutOfMemory = errors.New("out of device memory")
)

// AdapterType is the type of an adapter. Choose prefers adapters with a smaller value.
type AdapterType uint8

// The adapter types.
const (
	Discrete AdapterType = iota
	Integrated
	Virtual
	CPU
	UnknownAdapter
)

// String returns the name used in traces and on screen.
func (t AdapterType) String() string {
	return [...]string{"discrete", "integrated", "virtual", "cpu", "unknown"}[min(t, UnknownAdapter)]
}

// AdapterInfo describes an adapter or, after Open, the device opened from the adapter.
type AdapterInfo struct {
	Name    string // name reported by the driver
	Vendor  string
	Driver  string // name and version of the driver
	Backend string // "vulkan", "metal", "dx12" or "fake"
	Type    AdapterType
	// Timestamps reports whether Encoder.Timestamp works.
	Timestamps bool
	// NSPerTick is the time between two ticks of the timestamp clock, in ns. It is 0 if the driver does not
	// report this time, which must then be measured. No WebGPU implementation reports it.
	NSPerTick float64
	Limits    Limits
}

// Limits holds the device limits that planning and allocation depend on. Sizes are in bytes.
type Limits struct {
	MaxBufferSize                    uint64
	MaxStorageBinding                uint64
	MaxUniformBinding                uint64
	UniformAlignment                 uint32 // required alignment of the offset of a uniform binding
	StorageAlignment                 uint32 // required alignment of the offset of a storage binding
	MaxStorageBuffers                uint32 // per shader stage
	MaxWorkgroupStorage              uint32
	MaxInvocations                   uint32 // per workgroup
	MaxWorkgroupX, MaxWorkgroupY     uint32
	MaxWorkgroupZ                    uint32
	MaxWorkgroups                    uint32 // in each dimension of a dispatch
	MaxBindGroups, MaxBindingsPerGrp uint32
	// FlushesHalves reports whether the device converts subnormal f16 numbers to 0. This is known only after
	// the device was opened.
	FlushesHalves bool
}

// DefaultLimits returns the limits that every WebGPU device guarantees. Graphs are planned for these limits
// if there is no device.
func DefaultLimits() Limits {
	return Limits{
		MaxBufferSize: 256 << 20, MaxStorageBinding: 128 << 20, MaxUniformBinding: 64 << 10,
		UniformAlignment: 256, StorageAlignment: 256, MaxStorageBuffers: 8, MaxWorkgroupStorage: 16 << 10,
		MaxInvocations: 256, MaxWorkgroupX: 256, MaxWorkgroupY: 256, MaxWorkgroupZ: 64, MaxWorkgroups: 65535,
		MaxBindGroups: 4, MaxBindingsPerGrp: 1000,
	}
}

// LimitSet is a named set of limits for planning without a device.
type LimitSet struct {
	Name, Doc string // Doc continues the phrase "the limits"
	Limits    Limits
}

// LimitSets lists the available limit sets. The first one is the default. The set "large" stays within the
// limits of NVIDIA's data-center GPUs under Vulkan.
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
	// Adapters lists the adapters that can be opened, in order of preference. The list may be empty.
	Adapters() ([]AdapterInfo, error)
	// Open opens the adapter at the given index in the list of Adapters. The device has all limits of the
	// adapter, and timestamps if the adapter supports them.
	Open(index int) (Device, error)
}

// Usage is the purpose of a buffer. Whatever its usage, the host can write the buffer, and commands can copy
// it.
type Usage uint8

// Buffer usages.
const (
	Storage Usage = iota // for data that kernels read or write
	Uniform              // for params
)

// Access is the way in which a kernel uses a binding.
type Access uint8

// The access modes of a binding.
const (
	Read      Access = iota // storage buffer, read-only
	ReadWrite               // storage buffer, read and write
	Params                  // uniform buffer
)

// String returns the WGSL keyword for the access.
func (a Access) String() string { return [...]string{"read", "read_write", "uniform"}[a] }

// PipelineDesc describes a compute kernel to compile. Bindings[i] is the access of binding i of group 0.
type PipelineDesc struct {
	Label    string
	Source   string // WGSL
	Entry    string // empty means "main"
	Bindings []Access
}

// Binding is a range of a buffer bound to a kernel.
type Binding struct {
	Buffer Buffer
	Offset uint64
	Size   uint64 // 0 means the rest of the buffer after the offset
}

// Device creates GPU objects and runs commands. A Device is not safe for concurrent use.
type Device interface {
	// Info returns the adapter's description, but with the limits of this device.
	Info() AdapterInfo
	// NewBuffer creates a zeroed buffer of size bytes. size must be a positive multiple of 4.
	NewBuffer(label string, size uint64, usage Usage) (Buffer, error)
	// NewPipeline compiles a kernel. If compilation fails, the error contains the compiler's message.
	NewPipeline(desc PipelineDesc) (Pipeline, error)
	// NewBindGroup creates a bind group, which binds buffers to the bindings 0..n-1 of a pipeline.
	NewBindGroup(label string, p Pipeline, bindings []Binding) (BindGroup, error)
	// NewReadback creates a readback of size bytes: a buffer that an Encoder can copy to and that the host
	// can read.
	NewReadback(label string, size uint64) (Readback, error)
	// NewTimestamps allocates n timestamp slots. NewTimestamps returns ErrUnsupported if Info().Timestamps
	// is false.
	NewTimestamps(n int) (Timestamps, error)
	// Write queues data to be written to the buffer at offset. The commands of every later Submit use the new
	// data. The offset and the length must be multiples of 4.
	Write(b Buffer, offset uint64, data []byte) error
	// Flush sends queued writes to the device immediately instead of with the next Submit. Flush does not
	// wait for the writes.
	Flush() error
	// Begin starts recording commands. Only one encoder can record at a time.
	Begin(label string) (Encoder, error)
	// Wait blocks until all submitted work is done. Readbacks can be read afterwards.
	Wait() error
	// Release frees the device and all of its objects that have not been released.
	Release()
}

// Encoder records passes and copies. A recording ends with Submit, Finish or Discard.
type Encoder interface {
	// BeginPass opens a compute pass; passes do not nest.
	BeginPass(label string) error
	// Dispatch runs a kernel with x*y*z workgroups. Each dimension must be 1 to Limits.MaxWorkgroups.
	Dispatch(p Pipeline, g BindGroup, x, y, z uint32)
	// EndPass closes the pass and returns the first error of the pass. Some errors are detected only by the
	// kernel's compiler, for example a params block that is too small. Submit reports these errors.
	EndPass() error
	// Timestamp writes the GPU clock to slot i. Call Timestamp between passes.
	Timestamp(t Timestamps, i int) error
	// Resolve makes the slots from 0 to n-1 readable by the host after Wait. Each of these slots must have
	// been written by this recording or by a recording that was submitted earlier.
	Resolve(t Timestamps, n int) error
	// Copy copies size bytes from one buffer to another. Call Copy between passes.
	Copy(src Buffer, srcOffset uint64, dst Buffer, dstOffset, size uint64) error
	// CopyOut copies size bytes from a buffer to a readback. Call CopyOut between passes.
	CopyOut(src Buffer, srcOffset uint64, dst Readback, dstOffset, size uint64) error
	// Submit sends the commands to the GPU and frees the encoder for the next recording. If Submit or an
	// earlier call returned an error, none of the commands runs.
	Submit() error
	// Finish returns the recorded commands, which can be submitted later, and frees the encoder for the next
	// recording. After an error, Finish returns no recording.
	Finish() (Recording, error)
	// Discard frees the encoder without running its commands.
	Discard()
}

// Recording is a list of recorded commands. Wait, Discard or a failed Submit ends a Recording. It must not be
// used afterwards.
type Recording interface {
	// Submit sends the commands to the GPU. The commands run after all earlier writes and submits. After an
	// error none of the commands runs.
	Submit() error
	// Wait blocks until these commands are done. It does not wait for later submits. Afterwards the host can
	// read the copied data and the resolved timestamps, unless a later submit overwrites them.
	Wait() error
	// Discard drops commands that have not been submitted. If the commands have been submitted, Discard has
	// no effect.
	Discard()
}

// Buffer is memory on the device.
type Buffer interface {
	Size() uint64
	Release()
}

// Readback is memory that the device writes and the host reads.
type Readback interface {
	// Read fills dst with data that the GPU copied to the readback, from the given offset on. Call Read after
	// Device.Wait.
	Read(dst []byte, offset uint64) error
	Release()
}

// Pipeline is a compiled kernel.
type Pipeline interface{ Release() }

// BindGroup is a set of bound buffers.
type BindGroup interface{ Release() }

// Timestamps is a set of slots for GPU clock readings.
type Timestamps interface {
	// Read fills ticks with the first len(ticks) readings. Call Read after Encoder.Resolve, Submit and
	// Device.Wait. The readings are ticks, not nanoseconds, because no WebGPU call returns the length of a
	// tick.
	Read(ticks []uint64) error
	Release()
}
