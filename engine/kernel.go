package engine

import (
	"crypto/sha256"
	"encoding/hex"

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

func (k *Kernel) describe() trace.Kernel {
	sum := sha256.Sum256([]byte(k.Source))
	t := trace.Kernel{Name: k.Name, SourceSHA256: hex.EncodeToString(sum[:]), Source: k.Source, Params: k.Params}
	for i, n := range k.WorkgroupSize {
		t.WorkgroupSize[i] = int(n)
	}
	return t
}
