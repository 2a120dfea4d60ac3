package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/params"
	"gpuscope/shaders"
	"gpuscope/trace"
)

// ThreadLanes is the workgroup size of kernels whose invocations do not share work.
const ThreadLanes = 64

// MaxRank is the largest supported rank of a tensor.
const MaxRank = 8

// kernels caches every kernel made so far, so that all graphs use the same pointer for the same kernel.
// Engines compare kernels by pointer.
var kernels struct {
	sync.Mutex
	byKey map[string]*graph.Kernel
}

// NewKernel expands a WGSL template with constants, and returns the resulting kernel. The kernel has the name
// of the template. The same template and constants always return the same pointer. On an error NewKernel
// records the error in the builder and returns nil.
func NewKernel(b *graph.Builder, template string, c shaders.Constants) *graph.Kernel {
	return NewKernelAs(b, template, template, c)
}

// NewKernelAs is like NewKernel, but the caller chooses the kernel's name.
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

// FromSource converts an expanded WGSL template into a kernel that the engine can run.
func FromSource(name string, expanded shaders.Kernel) (*graph.Kernel, error) {
	memory, ok := gpu.WorkgroupBytes(expanded.Source)
	if !ok {
		return nil, fmt.Errorf("kernel %s: the size of its workgroup memory cannot be computed, so it cannot be "+
			"compared with the device's limit. Declare array sizes as numbers or constants", name)
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

// Uses returns the value for a slot's field Uses, if the slot has the same kernel and bindings on every
// route.
func Uses(k *graph.Kernel, bindings ...graph.Binding) []graph.Use {
	return []graph.Use{{Kernel: k, Bind: bindings}}
}

// PerDim returns the names of the params that a kernel has once for each dim: size_0, size_1, ...
func PerDim(name string) (list [MaxRank]string) {
	for k := range list {
		list[k] = fmt.Sprintf("%s_%d", name, k)
	}
	return list
}

// PutDims writes one param for each dim, under the names that PerDim returned.
func PutDims(p *params.Block, names *[MaxRank]string, values []int) {
	for k, v := range values {
		p.U32(names[k], v)
	}
}

// Vec returns how many elements a kernel can load or store at a time along a dim of v. The result is 4 if the
// size of the dim never changes and is a multiple of 4, else 1.
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

// LanesFor returns the size of a workgroup whose invocations share n pieces of work: a power of two from 64
// to 256.
func LanesFor(b *graph.Builder, n int) int {
	lanes := 64
	for lanes < 256 && lanes < n && 2*lanes <= int(b.Limits().MaxInvocations) {
		lanes *= 2
	}
	return lanes
}
