package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// ThreadLanes is the workgroup size of the kernels in which each invocation works alone.
const ThreadLanes = 64

// MaxRank is the largest rank of a tensor.
const MaxRank = 8

// kernels holds every kernel that was asked for: graphs share them, and engines tell kernels apart by
// pointer.
var kernels struct {
	sync.Mutex
	byKey map[string]*graph.Kernel
}

// NewKernel is the kernel that a template and its constants make, under the template's name, and the same
// pointer for the same constants. After an error, which it records in the builder, it returns nil.
func NewKernel(b *graph.Builder, template string, c shaders.Constants) *graph.Kernel {
	return NewKernelAs(b, template, template, c)
}

// NewKernelAs is kernel under a name that says more than the template's.
func NewKernelAs(b *graph.Builder, as, template string, c shaders.Constants) *graph.Kernel {
	var key strings.Builder
	fmt.Fprintf(&key, "%s: %s", as, template)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&key, " %s=%v", name, c[name])
	}
	kernels.Lock()
	defer kernels.Unlock()
	if k := kernels.byKey[key.String()]; k != nil {
		return k
	}
	expanded, err := shaders.Expand(template, c)
	if err != nil {
		b.Errorf("%w", err)
		return nil
	}
	k, err := FromSource(as, expanded)
	if err != nil {
		b.Errorf("%w", err)
		return nil
	}
	if kernels.byKey == nil {
		kernels.byKey = map[string]*graph.Kernel{}
	}
	kernels.byKey[key.String()] = k
	return k
}

// FromSource is an expanded kernel as the engine takes it.
func FromSource(name string, expanded shaders.Kernel) (*graph.Kernel, error) {
	memory, ok := gpu.WorkgroupBytes(expanded.Source)
	if !ok {
		return nil, fmt.Errorf("kernel %s: the size of its workgroup memory cannot be read, so that it cannot be "+
			"held to the device's limit: declare it by numbers and constants", name)
	}
	k := &graph.Kernel{
		Name: name, Constants: expanded.Constants, Source: expanded.Source,
		Filled: expanded.Filled, Taken: expanded.Taken, WorkgroupBytes: int(memory),
	}
	for i, n := range expanded.WorkgroupSize {
		k.WorkgroupSize[i] = uint32(n)
	}
	for _, s := range expanded.Storage {
		access := gpu.Read
		if s.Write {
			access = gpu.ReadWrite
		}
		k.Storage = append(k.Storage, graph.Storage{
			Name: s.Name, Elem: s.Elem, Access: access, Read: s.Read,
		})
	}
	for _, p := range expanded.Params {
		k.Params = append(k.Params, trace.Param(p))
	}
	return k, nil
}

// Uses is the list of uses of a slot that has the same kernel on every route.
func Uses(k *graph.Kernel, bindings ...graph.Binding) []graph.Use {
	return []graph.Use{{Kernel: k, Bind: bindings}}
}

// PerDim are the names of a kernel's fields of which it has one for each dim: size_0, size_1, ...
func PerDim(name string) (list [MaxRank]string) {
	for k := range list {
		list[k] = fmt.Sprintf("%s_%d", name, k)
	}
	return list
}

// PutDims writes fields of which a kernel has one for each dim.
func PutDims(p *graph.Params, names *[MaxRank]string, values []int) {
	for k, v := range values {
		p.U32(names[k], v)
	}
}

// Vec is how many elements a kernel moves at a time along a dim whose live size never changes: 4 where it
// divides, else 1.
func Vec(b *graph.Builder, v graph.ValueID, axis int) int {
	lowest, highest := b.MinDims(v), b.MaxDims(v)
	if axis < 0 {
		axis += len(highest)
	}
	if axis < 0 || axis >= len(highest) || lowest[axis] != highest[axis] || highest[axis]%4 != 0 {
		return 1
	}
	return 4
}

// LanesFor is the size of a workgroup that shares n pieces of work: a power of two from 64 to 256.
func LanesFor(b *graph.Builder, n int) int {
	lanes := 64
	for lanes < 256 && lanes < n && 2*lanes <= int(b.Limits().MaxInvocations) {
		lanes *= 2
	}
	return lanes
}
