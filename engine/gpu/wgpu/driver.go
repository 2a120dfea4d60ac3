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

// New is the driver of this machine.
func New() Driver { return Driver{} }

// Adapters implements gpu.Driver. Where none is found the error wraps gpu.ErrNoAdapter and says what to
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
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(found.infos), gpu.ErrNoAdapter)
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

// foundAdapters are native adapters with what they say of themselves, in the order of preference. Every
// device has an instance of the library to itself: with two devices of one instance, released in another
// order than they were made, the library takes the command buffers of a third for another device's and
// aborts.
type foundAdapters struct {
	instance *binding.Instance
	adapters []*binding.Adapter
	infos    []gpu.AdapterInfo
}

// release gives back what open did not take.
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

// find asks the platform's own back end: Vulkan, Metal or DX12. GL is left out. It has no timestamps, and the
// library aborts the process where EGL is installed and has no driver, or where one of two GL devices is
// released.
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

// stayLoaded makes an instance that is never released, so that the loader keeps the drivers. A process can
// load NVIDIA's driver only a dozen times: what it takes of the static TLS block does not come back when it
// is unloaded.
var stayLoaded = sync.OnceValue(func() error {
	_, err := newInstance(binding.InstanceBackendPrimary)
	return err
})

// sorted puts adapters in the order of preference.
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

// quiet keeps native code from writing to descriptor 2 where it can be asked to: the library's warnings (its
// errors come back from calls), and Mesa's device-select layer, which asks a Wayland server for the preferred
// GPU and complains where there is none. Adapters are ordered by gpu.Choose, so that layer has nothing to add
// unless its own variable is set.
func quiet() {
	binding.SetLogLevel(binding.LogLevelOff)
	if os.Getenv("XDG_RUNTIME_DIR") == "" && os.Getenv("MESA_VK_DEVICE_SELECT") == "" {
		_ = os.Setenv("NODEVICE_SELECT", "1") // it cannot fail with this name
	}
}

// describe asks an adapter what it is. Its limits are those that a device of it is granted.
func describe(a *binding.Adapter) gpu.AdapterInfo {
	raw := a.GetInfo()
	info := gpu.AdapterInfo{
		// The library fills the struct in otherwise than its header says: the description is the name, the
		// name is the PCI device.
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
		info.Type = gpu.Virtual // WebGPU has no type for it, so the library says unknown
	}
	return info
}

// vendor is the maker's name by its PCI number.
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

// driver is the driver's name and version where the system tells: the library does not.
func driver(info gpu.AdapterInfo) string {
	if info.Vendor == "NVIDIA" {
		if version, err := os.ReadFile("/sys/module/nvidia/version"); err == nil {
			return "NVIDIA " + strings.TrimSpace(string(version))
		}
	}
	return ""
}

// granted are the limits that a device of an adapter with these limits gets: WebGPU's defaults, raised to the
// adapter's where plans and memory look at them. Some fields that the binding gives are zero though the
// adapter has more.
func granted(adapter binding.Limits) gpu.Limits {
	l := gpu.DefaultLimits()
	// Without a limit the adapter says 2^64 - 1, which in a request means the default.
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

// required is the request for these limits. Everything else is left at the default, and push constants are
// not asked for: the binding gives that field of an adapter uninitialised.
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

// open makes a device, which takes the adapter and the instance.
func open(found *foundAdapters, index int) (*device, error) {
	adapter, info := found.adapters[index], found.infos[index]
	// a DeviceLostCallback panics in cgo
	desc := &binding.DeviceDescriptor{Label: "gpuscope", RequiredLimits: required(info.Limits)}
	if info.Timestamps {
		desc.RequiredFeatures = []binding.FeatureName{binding.FeatureNameTimestampQuery}
	}
	raw, err := adapter.RequestDevice(desc)
	if err != nil {
		return nil,
			fmt.Errorf("%s (%s): no device: %w", info.Name, info.Backend,
				errors.Join(gpu.ErrUnsupported, err))
	}
	dev := newDevice(found.instance, adapter, raw, info)
	found.instance, found.adapters[index] = nil, nil
	return dev, nil
}
