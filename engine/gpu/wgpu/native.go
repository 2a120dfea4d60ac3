//go:build cgo

package wgpu

// This file calls the native library (wgpu-native 0.20) directly, without the Go binding that links the
// library. The binding cannot be used for these calls:
//
//   - Buffer.MapAsync gives the library a pointer to a Go variable that nothing keeps alive. A garbage
//     collection before the callback frees the variable.
//   - CreateInstance and RequestDevice pass structs with uninitialized fields.
//   - The binding opens an error scope only around some calls. An error outside of these scopes aborts the
//     process, for example an error in SetBindGroup or DispatchWorkgroups, or a lack of memory. Here, two
//     scopes that are always open catch these errors.
//   - Every recorded call allocates on the Go heap, and most calls push and pop an error scope. Here a single
//     call encodes a whole recording.
//
// The declarations repeat the parts of webgpu.h and wgpu.h that are used here. Objects are opaque pointers;
// ref reads them from the structs of the binding.

/*
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct chained { struct chained const *next; uint32_t type; } chained;

typedef struct {
	chained const *next;
	char const *label;
} labelled; // WGPUCommandEncoderDescriptor, WGPUCommandBufferDescriptor

typedef struct {
	chained const *next;
	char const *label;
	void const *timestampWrites;
} passDescriptor; // WGPUComputePassDescriptor

typedef struct { chained const *next; } instanceDescriptor; // WGPUInstanceDescriptor

typedef struct {
	chained chain;
	uint32_t backends, flags;
	uint32_t dx12ShaderCompiler, gles3MinorVersion;
	char const *dxilPath, *dxcPath;
} instanceExtras; // WGPUInstanceExtras

enum { typeInstanceExtras = 0x00030006, mapRead = 1, scopeValidation = 0, scopeOutOfMemory = 1 };

typedef void (*errorCallback)(int type, char const *message, void *userdata);
typedef void (*mapCallback)(int status, void *userdata);

extern void *wgpuCreateInstance(instanceDescriptor const *);
extern void wgpuDevicePushErrorScope(void *device, int filter);
extern void wgpuDevicePopErrorScope(void *device, errorCallback, void *userdata);
extern uint32_t wgpuDevicePoll(void *device, uint32_t wait, void const *);
extern void *wgpuDeviceCreateCommandEncoder(void *device, labelled const *);
extern void wgpuQueueWriteBuffer(void *queue, void *buffer, uint64_t offset, void const *data, size_t size);
extern void wgpuQueueSubmit(void *queue, size_t count, void *const *commands);
extern void wgpuBufferMapAsync(void *buffer, uint32_t mode, size_t offset, size_t size, mapCallback,
	void *userdata);
extern void const *wgpuBufferGetConstMappedRange(void *buffer, size_t offset, size_t size);
extern void wgpuBufferUnmap(void *buffer);
extern void *wgpuCommandEncoderBeginComputePass(void *encoder, passDescriptor const *);
extern void wgpuCommandEncoderCopyBufferToBuffer(void *encoder, void *src, uint64_t srcOffset, void *dst,
	uint64_t dstOffset, uint64_t size);
extern void wgpuCommandEncoderResolveQuerySet(void *encoder, void *set, uint32_t first, uint32_t count,
	void *dst, uint64_t offset);
extern void wgpuCommandEncoderWriteTimestamp(void *encoder, void *set, uint32_t index);
extern void *wgpuCommandEncoderFinish(void *encoder, labelled const *);
extern void wgpuCommandEncoderRelease(void *encoder);
extern void wgpuCommandBufferRelease(void *commands);
extern void wgpuComputePassEncoderSetPipeline(void *pass, void *pipeline);
extern void wgpuComputePassEncoderSetBindGroup(void *pass, uint32_t index, void *group, size_t count,
	uint32_t const *offsets);
extern void wgpuComputePassEncoderDispatchWorkgroups(void *pass, uint32_t x, uint32_t y, uint32_t z);
extern void wgpuComputePassEncoderEnd(void *pass);
extern void wgpuComputePassEncoderRelease(void *pass);

static void *createInstance(uint32_t backends) {
	instanceExtras extras = {.chain = {.type = typeInstanceExtras}, .backends = backends};
	instanceDescriptor desc = {&extras.chain};
	return wgpuCreateInstance(&desc);
}

static void pushScopes(void *device) {
	wgpuDevicePushErrorScope(device, scopeOutOfMemory);
	wgpuDevicePushErrorScope(device, scopeValidation);
}

// caught is an error that a scope caught. The caller must free message, which is NULL if there was no
// error.
typedef struct { char *message; } caught;

static void keepError(int type, char const *message, void *userdata) {
	caught *c = userdata;
	if (type == 0 || c->message != NULL) return;
	c->message = strdup(message);
}

// takeError returns and clears the error of the two scopes that are always open.
static caught takeError(void *device) {
	caught c = {NULL};
	wgpuDevicePopErrorScope(device, keepError, &c);
	wgpuDevicePopErrorScope(device, keepError, &c);
	pushScopes(device);
	return c;
}

static caught writeBuffer(void *device, void *queue, void *buffer, uint64_t offset, void const *data,
	size_t size) {
	wgpuQueueWriteBuffer(queue, buffer, offset, data, size);
	return takeError(device);
}

// A wait must not use the waiting mode of the library. In this mode the library stops waiting after 5 s, even
// if the work is not done. It then treats the work as done and frees memory that the device still uses.
// Instead, a wait polls the library. For the first `patience` ns, it polls without sleeping. After that, it
// sleeps between two polls. Each sleep lasts 1% of the time since the wait began, but at most 1 ms.
typedef struct { int64_t begin, patience; } watch;

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pauseBetweenLooks(watch const *w) {
	int64_t passed = now() - w->begin;
	if (passed < w->patience) {
		sched_yield();
		return;
	}
	struct timespec pause = {0, passed / 100 < 1000000 ? passed / 100 : 1000000};
	nanosleep(&pause, NULL);
}

// waitIdle returns when the queue is idle.
static void waitIdle(void *device, int64_t patience) {
	watch w = {now(), patience};
	while (!wgpuDevicePoll(device, 0, NULL)) pauseBetweenLooks(&w);
}

// waitMapped returns when a requested mapping is complete or the queue is idle.
static void waitMapped(void *device, int const *status, int64_t patience) {
	watch w = {now(), patience};
	while (!wgpuDevicePoll(device, 0, NULL) && *(int const volatile *)status == -1) pauseBetweenLooks(&w);
}

static void submitNothing(void *queue) { wgpuQueueSubmit(queue, 0, NULL); }

static void mapped(int status, void *userdata) { *(int *)userdata = status; }

static void mapForRead(void *buffer, uint64_t size, int *status) {
	*status = -1;
	wgpuBufferMapAsync(buffer, mapRead, 0, size, mapped, status);
}

static void const *mappedRange(void *buffer,
	uint64_t size) { return wgpuBufferGetConstMappedRange(buffer, 0, size); }

enum { opBeginPass, opDispatch, opEndPass, opTimestamp, opResolve, opCopy };

// command is one recorded call. Pointers are stored as integers so that Go neither scans nor checks them.
typedef struct {
	uint32_t op;
	uint32_t x, y, z;    // grid of a dispatch; for opResolve x is the first query and y the number of queries
	uintptr_t a, b;      // a: pass label, pipeline, query set or source; b: bind group or destination
	uint64_t from, to, size;
} command;

// recorded holds encoded commands, or an error if encoding failed.
typedef struct { void *commands; caught error; } recorded;

// encode encodes a list of commands.
static recorded encode(void *device, char const *label, command const *commands, size_t count) {
	labelled desc = {NULL, label};
	void *encoder = wgpuDeviceCreateCommandEncoder(device, &desc), *pass = NULL;
	uintptr_t pipeline = 0, group = 0;
	for (command const *c = commands; c < commands + count; c++) {
		switch (c->op) {
		case opBeginPass: {
			passDescriptor passDesc = {NULL, (char const *)c->a, NULL};
			pass = wgpuCommandEncoderBeginComputePass(encoder, &passDesc);
			pipeline = group = 0;
			break;
		}
		case opDispatch:
			if (c->a != pipeline) wgpuComputePassEncoderSetPipeline(pass, (void *)(pipeline = c->a));
			if (c->b != group) wgpuComputePassEncoderSetBindGroup(pass, 0, (void *)(group = c->b), 0, NULL);
			wgpuComputePassEncoderDispatchWorkgroups(pass, c->x, c->y, c->z);
			break;
		case opEndPass:
			wgpuComputePassEncoderEnd(pass);
			wgpuComputePassEncoderRelease(pass);
			break;
		case opTimestamp:
			wgpuCommandEncoderWriteTimestamp(encoder, (void *)c->a, c->x);
			break;
		case opResolve:
			wgpuCommandEncoderResolveQuerySet(encoder, (void *)c->a, c->x, c->y, (void *)c->b, c->to);
			break;
		case opCopy:
			wgpuCommandEncoderCopyBufferToBuffer(encoder, (void *)c->a, c->from, (void *)c->b, c->to,
				c->size);
			break;
		}
	}
	recorded r = {wgpuCommandEncoderFinish(encoder, &desc)};
	wgpuCommandEncoderRelease(encoder);
	r.error = takeError(device);
	if (r.error.message != NULL) {
		wgpuCommandBufferRelease(r.commands);
		r.commands = NULL;
	}
	return r;
}

static caught submit(void *device, void *queue, void *commands) {
	wgpuQueueSubmit(queue, 1, &commands);
	caught c = takeError(device);
	wgpuCommandBufferRelease(commands);
	return c;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	binding "github.com/cogentcore/webgpu/wgpu"

	"gpuscope/engine/gpu"
)

// handle is a pointer to an object of the native library.
type handle = unsafe.Pointer

// ref returns the handle in a struct of the binding. The handle must be the only field of the struct.
func ref[T binding.Device | binding.BindGroup | binding.ComputePipeline | binding.QuerySet](p *T) handle {
	return *(*handle)(unsafe.Pointer(p))
}

// owned is the memory layout of a struct of the binding with two fields: its device and its own handle.
type owned struct{ device, ref handle }

func ownedRef[T binding.Buffer | binding.Queue](p *T) handle { return (*owned)(unsafe.Pointer(p)).ref }

// newInstance creates an instance of the native library for a set of back ends.
func newInstance(backends binding.InstanceBackend) (*binding.Instance, error) {
	p := C.createInstance(C.uint32_t(backends))
	if p == nil {
		return nil, errors.New("the WebGPU library failed to create an instance")
	}
	instance := new(binding.Instance)
	*(*handle)(unsafe.Pointer(instance)) = p
	return instance, nil
}

// native is an open device of the native library.
type native struct {
	device, queue handle
	patience      time.Duration
}

// catchErrors opens two error scopes, which stay open. Without them, the errors that they catch would abort
// the process. Call catchErrors only once for each device.
func (n native) catchErrors() { C.pushScopes(n.device) }

// caught returns the error that the scopes caught since the last call, or nil.
func (n native) caught() error { return goError(C.takeError(n.device)) }

func goError(c C.caught) error {
	if c.message == nil {
		return nil
	}
	text := C.GoString(c.message)
	C.free(unsafe.Pointer(c.message))
	return said(text)
}

// said converts an error message of the native library to a Go error.
func said(message string) error {
	text := tidy(message)
	if strings.Contains(text, "Not enough memory left") {
		return gpu.ErrOutOfMemory
	}
	return errors.New(text)
}

// tidy shortens an error message of the library to the parts that help the author of a kernel: the causes,
// and the excerpt of the source that the compiler shows, in its original layout.
func tidy(message string) string {
	var kept []string
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, " \n")
		text := strings.TrimLeft(line, " ")
		if picture := strings.HasPrefix(text, "┌") || strings.Contains(text, "│"); !picture {
			line = text
		}
		if call := strings.LastIndex(line, "(): "); strings.HasPrefix(line, "wgpu.(") && call >= 0 {
			line = line[call+len("(): "):]
		}
		switch {
		case line == "", line == "Validation Error", line == "Caused by:", strings.HasPrefix(line, "In wgpu"),
			strings.HasPrefix(line, "note: label = "):
		case slices.ContainsFunc(kept, func(said string) bool { return strings.HasSuffix(said, line) }):
		default:
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return strings.TrimSpace(message)
	}
	return strings.Join(kept, "\n")
}

// write queues data, which must not be empty. The expression &data[0] must be written in the call itself,
// because then cgo checks only the slice for Go pointers. For any other pointer cgo checks the whole
// enclosing object, and panics if this object is a struct that contains a pointer.
func (n native) write(buffer handle, offset uint64, data []byte) error {
	return goError(C.writeBuffer(n.device, n.queue, buffer, C.uint64_t(offset), unsafe.Pointer(&data[0]),
		C.size_t(len(data))))
}

// sendWrites sends queued writes to the device.
func (n native) sendWrites() error {
	C.submitNothing(n.queue)
	return n.caught()
}

// drain sends queued writes and waits until the library has freed their staging memory.
func (n native) drain() error {
	if err := n.sendWrites(); err != nil {
		return err
	}
	return n.wait()
}

// wait blocks until the queue is idle. It also runs the callbacks of mappings that are complete.
func (n native) wait() error {
	C.waitIdle(n.device, C.int64_t(n.patience))
	return n.caught()
}

// waitFor blocks until a mapping that was requested with mapping.begin is complete.
func (n native) waitFor(m *mapping) error {
	C.waitMapped(n.device, m.status, C.int64_t(n.patience))
	return n.caught()
}

// patience returns how long a wait polls without sleeping. With a GPU, polling for a whole step is better
// than sleeping: the host has nothing else to do, and a sleep lasts longer than requested. A software device
// runs its work on the host's processor, so the wait sleeps early.
func patience(t gpu.AdapterType) time.Duration {
	if t == gpu.CPU {
		return time.Millisecond
	}
	return 200 * time.Millisecond
}

type command = C.command

const (
	opBeginPass = C.opBeginPass
	opDispatch  = C.opDispatch
	opEndPass   = C.opEndPass
	opTimestamp = C.opTimestamp
	opResolve   = C.opResolve
	opCopy      = C.opCopy
)

// record encodes a list of commands in one native call.
func (n native) record(label cstring, commands []command) (handle, error) {
	r := C.encode(n.device, label, unsafe.SliceData(commands), C.size_t(len(commands)))
	return r.commands, goError(r.error)
}

// submit submits the commands that native.record returned, and then releases them.
func (n native) submit(commands handle) error { return goError(C.submit(n.device, n.queue, commands)) }

// drop releases commands that native.record returned and that were not submitted.
func (n native) drop(commands handle) { C.wgpuCommandBufferRelease(commands) }

// address returns a handle as an integer, which is how commands store it.
func address(h handle) C.uintptr_t { return C.uintptr_t(uintptr(h)) }

// cstring is a C string; a nil pointer means no text.
type cstring = *C.char

// labels caches the C strings of labels, because every step uses the same labels. Once the cache is full, new
// labels are dropped (the object has no label). Otherwise the cache would grow without limit if a caller
// numbers its labels.
type labels map[string]cstring

const maxLabels = 1 << 14

func (l labels) get(s string) cstring {
	if s == "" {
		return nil
	}
	c, ok := l[s]
	if !ok && len(l) < maxLabels {
		c = C.CString(strings.ReplaceAll(s, "\x00", ""))
		l[s] = c
	}
	return c
}

func (l labels) free() {
	for s, c := range l {
		C.free(unsafe.Pointer(c))
		delete(l, s)
	}
}

// mapping is the mapping of a buffer to host memory.
type mapping struct {
	buffer handle
	size   uint64
	status *C.int // in C memory: a later call of the library writes to it
	bytes  []byte // nil while the buffer is not mapped
}

func newMapping(buffer handle, size uint64) mapping {
	return mapping{buffer: buffer, size: size, status: (*C.int)(C.malloc(C.size_t(unsafe.Sizeof(C.int(0)))))}
}

func (m *mapping) free() {
	m.unmap()
	C.free(unsafe.Pointer(m.status))
}

// begin requests the mapping. The mapping is complete after the next native.wait or native.waitFor.
func (m *mapping) begin() { C.mapForRead(m.buffer, C.uint64_t(m.size), m.status) }

// end gives access to the mapped memory. Call it after begin and a wait.
func (m *mapping) end() error {
	if *m.status != 0 {
		return fmt.Errorf("cannot map GPU memory to host memory: the WebGPU library returned status %d",
			*m.status)
	}
	m.bytes = unsafe.Slice((*byte)(C.mappedRange(m.buffer, C.uint64_t(m.size))), m.size)
	return nil
}

func (m *mapping) unmap() {
	if m.bytes != nil {
		C.wgpuBufferUnmap(m.buffer)
		m.bytes = nil
	}
}

func u32(n uint32) C.uint32_t { return C.uint32_t(n) }

func u64(n uint64) C.uint64_t { return C.uint64_t(n) }
