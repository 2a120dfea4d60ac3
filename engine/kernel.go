package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// paramsBytes is the size of the kernel's params block: WGSL rounds a uniform struct up to 16.
func (k *Kernel) paramsBytes() int { return (4*len(k.Params) + 15) / 16 * 16 }

// bindings are the accesses of the kernel's bindings: storage, then params.
func (k *Kernel) bindings() []gpu.Access {
	list := append([]gpu.Access{}, k.Storage...)
	if len(k.Params) > 0 {
		list = append(list, gpu.Params)
	}
	return list
}

// nameKernels gives every kernel of the graph a name of its own.
func (g *Graph) nameKernels() {
	g.names = make(map[*Kernel]string, len(g.kernels))
	seen := map[string]int{}
	for _, k := range g.kernels {
		name := k.Name
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, seen[name])
		}
		g.names[k] = name
	}
}

// KernelName is the name by which the graph tells a kernel from others, "" where no corner takes it.
func (g *Graph) KernelName(k *Kernel) string { return g.names[k] }

func (g *Graph) describeKernel(k *Kernel) trace.Kernel {
	sum := sha256.Sum256([]byte(k.Source))
	t := trace.Kernel{
		Name: g.names[k], Constants: k.Constants, SourceSHA256: hex.EncodeToString(sum[:]),
		Source: k.Source, Params: k.Params,
	}
	for i, n := range k.WorkgroupSize {
		t.WorkgroupSize[i] = int(n)
	}
	return t
}
