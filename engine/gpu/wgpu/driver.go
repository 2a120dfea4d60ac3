//go:build cgo

package wgpu

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	binding "github.com/cogentcore/webgpu/wgpu"

	"gpuscope/engine/gpu"
)

// Driver finds the adapters of this machine.
type Driver struct{}

// New returns the driver of this machine.
func New() Driver { return Driver{} }

// Adapters implements gpu.Driver. If there is no adapter, the error wraps gpu.ErrNoAdapter and says what to
// install.
func (d Driver) Adapters() ([]gpu.AdapterInfo, error) {
	found, err := find()
	if err != nil {
		return nil, err
	}
	found.release()
	return found.infos, nil
}

// Open implements gpu.Driver.
func (d Driver) Open(index int) (gpu.Device, error) {
	found, err := find()
	if err != nil {
		return nil, err
	}
	defer found.release()
	if index < 0 || index >= len(found.infos) {
		return nil, fmt.Errorf("adapter %d does not exist, because the list has %d adapters: %w",
			index, len(found.infos), gpu.ErrNoAdapter)
	}
	dev, err := open(found, index)
	if err != nil {
		return nil, err
	}
	if dev.info.Limits.FlushesHalves, err = gpu.FlushesHalves(dev); err != nil {
		dev.Release()
		return nil, err
	}
	return dev, nil
}

// foundAdapters holds native adapters with their descriptions, in order of preference. Every device needs its
// own instance of the library. If two devices shared an instance and were not released in the order of their
// creation, the library would mix up the command buffers of further devices, and abort.
type foundAdapters struct {
	instance *binding.Instance
	adapters []*binding.Adapter
	infos    []gpu.AdapterInfo
}

// release frees the instance and the adapters. If the function `open` has passed the instance and an adapter
// on to a device, these two are nil here and stay allocated.
func (f *foundAdapters) release() {
	for _, a := range f.adapters {
		if a != nil {
			a.Release()
		}
	}
	if f.instance != nil {
		f.instance.Release()
	}
}

// find lists the adapters of the platform's native back ends: Vulkan, Metal or DX12. GL is not used for two
// reasons: GL has no timestamps, and with GL the library aborts the process in some cases. The library
// aborts if EGL is installed without a driver, or when one of two GL devices is released.
func find() (*foundAdapters, error) {
	quiet()
	if err := stayLoaded(); err != nil {
		return nil, err
	}
	instance, err := newInstance(binding.InstanceBackendPrimary)
	if err != nil {
		return nil, err
	}
	adapters := instance.EnumerateAdapters(nil)
	if len(adapters) == 0 {
		instance.Release()
		return nil, fmt.Errorf("%w: %s", gpu.ErrNoAdapter, remedy(runtime.GOOS))
	}
	f := sorted(adapters)
	f.instance = instance
	return f, nil
}

// stayLoaded creates an instance that is never released, so that the loader keeps the drivers loaded. A
// process can load NVIDIA's driver only about a dozen times: each load takes a part of the static TLS block,
// and unloading does not free it.
var stayLoaded = sync.OnceValue(func() error {
	_, err := newInstance(binding.InstanceBackendPrimary)
	return err
})

// sorted returns the adapters in order of preference.
func sorted(adapters []*binding.Adapter) *foundAdapters {
	f := &foundAdapters{}
	infos := map[*binding.Adapter]gpu.AdapterInfo{}
	for _, a := range adapters {
		infos[a] = describe(a)
	}
	slices.SortStableFunc(adapters,
		func(a, b *binding.Adapter) int { return cmp.Compare(infos[a].Type, infos[b].Type) })
	for _, a := range adapters {
		f.adapters, f.infos = append(f.adapters, a), append(f.infos, infos[a])
	}
	return f
}

// quiet stops native code from writing to file descriptor 2 where possible. quiet turns off the library's
// warnings; the library's errors are returned from calls. If no Wayland server can be running
// (XDG_RUNTIME_DIR is not set), quiet also disables Mesa's device-select layer. This layer would ask the
// server for the preferred GPU and print a complaint. gpu.Choose orders the adapters, so the layer is not
// needed. If the user has set the layer's own variable, the layer stays enabled.
func quiet() {
	binding.SetLogLevel(binding.LogLevelOff)
	if os.Getenv("XDG_RUNTIME_DIR") == "" && os.Getenv("MESA_VK_DEVICE_SELECT") == "" {
		_ = os.Setenv("NODEVICE_SELECT", "1") // cannot fail with this name
	}
}

// describe returns the description of an adapter. The limits are those that a device of this adapter will
// have.
func describe(a *binding.Adapter) gpu.AdapterInfo {
	raw := a.GetInfo()
	info := gpu.AdapterInfo{
		// The library does not fill this struct as its header says: DriverDescription holds the name of the
		// adapter, and Name holds the PCI device.
		Name: raw.DriverDescription, Vendor: vendor(raw.VendorId), Backend: raw.BackendType.String(),
		Type:       gpu.UnknownAdapter,
		Timestamps: slices.Contains(a.EnumerateFeatures(), binding.FeatureNameTimestampQuery),
		Limits:     granted(a.GetLimits().Limits),
	}
	info.Driver = driver(info)
	switch raw.BackendType {
	case binding.BackendTypeVulkan:
		info.Backend = "vulkan"
	case binding.BackendTypeMetal:
		info.Backend = "metal"
	case binding.BackendTypeD3D12:
		info.Backend = "dx12"
	}
	switch raw.AdapterType {
	case binding.AdapterTypeDiscreteGPU:
		info.Type = gpu.Discrete
	case binding.AdapterTypeIntegratedGPU:
		info.Type = gpu.Integrated
	case binding.AdapterTypeCPU:
		info.Type = gpu.CPU
	case binding.AdapterTypeUnknown:
		// WebGPU has no type for virtual GPUs, so the library reports an unknown type.
		info.Type = gpu.Virtual
	}
	return info
}

// vendor returns the name of the manufacturer with the given PCI number.
func vendor(id uint32) string {
	switch id {
	case 0x1002:
		return "AMD"
	case 0x106b:
		return "Apple"
	case 0x10de:
		return "NVIDIA"
	case 0x10005:
		return "Mesa"
	case 0x13b5:
		return "ARM"
	case 0x5143:
		return "Qualcomm"
	case 0x8086:
		return "Intel"
	}
	return fmt.Sprintf("0x%04x", id)
}

// driver returns the name and version of the driver if the operating system reports them. The library does
// not report them.
func driver(info gpu.AdapterInfo) string {
	if info.Vendor == "NVIDIA" {
		if version, err := os.ReadFile("/sys/module/nvidia/version"); err == nil {
			return "NVIDIA " + strings.TrimSpace(string(version))
		}
	}
	return ""
}

// granted returns the limits of a device of this adapter. The limits that matter to plans and memory are
// those of the adapter, and the others are WebGPU's defaults. The binding reports some limits as 0 although
// the adapter supports more; the defaults replace these zeros.
func granted(adapter binding.Limits) gpu.Limits {
	l := gpu.DefaultLimits()
	// An adapter without a limit reports 2^64 - 1. A device request would interpret this number as "default".
	l.MaxBufferSize = max(l.MaxBufferSize, min(adapter.MaxBufferSize, 1<<48))
	l.MaxStorageBinding = max(l.MaxStorageBinding, adapter.MaxStorageBufferBindingSize)
	l.MaxUniformBinding = max(l.MaxUniformBinding, adapter.MaxUniformBufferBindingSize)
	if a := adapter.MinUniformBufferOffsetAlignment; a > 0 {
		l.UniformAlignment = min(l.UniformAlignment, a)
	}
	if a := adapter.MinStorageBufferOffsetAlignment; a > 0 {
		l.StorageAlignment = min(l.StorageAlignment, a)
	}
	l.MaxStorageBuffers = max(l.MaxStorageBuffers, adapter.MaxStorageBuffersPerShaderStage)
	l.MaxWorkgroupStorage = max(l.MaxWorkgroupStorage, adapter.MaxComputeWorkgroupStorageSize)
	l.MaxInvocations = max(l.MaxInvocations, adapter.MaxComputeInvocationsPerWorkgroup)
	l.MaxWorkgroupX = max(l.MaxWorkgroupX, adapter.MaxComputeWorkgroupSizeX)
	l.MaxWorkgroupY = max(l.MaxWorkgroupY, adapter.MaxComputeWorkgroupSizeY)
	l.MaxWorkgroupZ = max(l.MaxWorkgroupZ, adapter.MaxComputeWorkgroupSizeZ)
	l.MaxWorkgroups = max(l.MaxWorkgroups, adapter.MaxComputeWorkgroupsPerDimension)
	return l
}

// required returns the device request for these limits. All other limits stay at their defaults. Push
// constants are not requested, because the binding does not initialize the adapter's limit for them.
func required(l gpu.Limits) *binding.RequiredLimits {
	r := binding.DefaultLimits()
	r.MaxBufferSize = l.MaxBufferSize
	r.MaxStorageBufferBindingSize = l.MaxStorageBinding
	r.MaxUniformBufferBindingSize = l.MaxUniformBinding
	r.MinUniformBufferOffsetAlignment = l.UniformAlignment
	r.MinStorageBufferOffsetAlignment = l.StorageAlignment
	r.MaxStorageBuffersPerShaderStage = l.MaxStorageBuffers
	r.MaxComputeWorkgroupStorageSize = l.MaxWorkgroupStorage
	r.MaxComputeInvocationsPerWorkgroup = l.MaxInvocations
	r.MaxComputeWorkgroupSizeX = l.MaxWorkgroupX
	r.MaxComputeWorkgroupSizeY = l.MaxWorkgroupY
	r.MaxComputeWorkgroupSizeZ = l.MaxWorkgroupZ
	r.MaxComputeWorkgroupsPerDimension = l.MaxWorkgroups
	r.MaxPushConstantSize = 0
	return &binding.RequiredLimits{Limits: r}
}

// open creates a device, which takes over the adapter and the instance from `found`.
func open(found *foundAdapters, index int) (*device, error) {
	adapter, info := found.adapters[index], found.infos[index]
	// No DeviceLostCallback is set, because the binding's callback panics in cgo.
	desc := &binding.DeviceDescriptor{Label: "gpuscope", RequiredLimits: required(info.Limits)}
	if info.Timestamps {
		desc.RequiredFeatures = []binding.FeatureName{binding.FeatureNameTimestampQuery}
	}
	raw, err := adapter.RequestDevice(desc)
	if err != nil {
		return nil,
			fmt.Errorf("%s (%s): cannot open the device: %w", info.Name, info.Backend,
				errors.Join(gpu.ErrUnsupported, err))
	}
	dev := newDevice(found.instance, adapter, raw, info)
	found.instance, found.adapters[index] = nil, nil
	return dev, nil
}
