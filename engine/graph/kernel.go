package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Kernels. The bindings and params that the WGSL declares are checked by name and type against what operators
// bind and write: when an operator is added, and when another kernel is to run in a kernel's place.

// ParamsBytes is the size of the kernel's params block: WGSL rounds a uniform struct up to 16.
func (k *Kernel) ParamsBytes() int { return (4*len(k.Params) + 15) / 16 * 16 }

// Bindings are the access modes of the kernel's bindings: storage, then params if it has any.
func (k *Kernel) Bindings() []gpu.Access {
	var list []gpu.Access
	for _, s := range k.Storage {
		list = append(list, s.Access)
	}
	if len(k.Params) > 0 {
		list = append(list, gpu.Params)
	}
	return list
}

// Takes reports whether the binding can read elements of type t. A u32 binding reads any type as bits.
func (s Storage) Takes(t DType) bool {
	return s.Elem == "" || s.Elem == U32.String() || s.Elem == t.String()
}

// bound checks the use's bindings against the kernel's.
func (u *Use) bound() error {
	if len(u.Bind) != len(u.Kernel.Storage) {
		return fmt.Errorf("%d values bound to kernel %s, which has %d storage bindings", len(u.Bind),
			u.Kernel.Name, len(u.Kernel.Storage))
	}
	for i, s := range u.Kernel.Storage {
		if u.Bind[i].Name != s.Name {
			return fmt.Errorf("value bound as %s, but kernel %s calls it %s (binding %d)", u.Bind[i].Name,
				u.Kernel.Name, s.Name, i)
		}
	}
	if n := len(u.Kernel.Params); n > MaxParams {
		return fmt.Errorf("kernel %s: %d params, limit %d", u.Kernel.Name, n, MaxParams)
	}
	return nil
}

// CanReplace reports why k cannot run in place of other, with the bindings, params and grids planned for
// other; nil if it can. Names must match too: swapping two fields of the same type is an error.
func (k *Kernel) CanReplace(other *Kernel) error {
	if len(k.Storage) != len(other.Storage) {
		return fmt.Errorf("kernel %s has %d storage bindings, %s has %d", k.Name, len(k.Storage), other.Name,
			len(other.Storage))
	}
	for i, s := range k.Storage {
		// Reading a binding that it also writes changes no barrier.
		if o := other.Storage[i]; s.Name != o.Name || s.Elem != o.Elem || s.Access != o.Access {
			return fmt.Errorf("binding %d of kernel %s is %s, in %s it is %s", i, k.Name, s, other.Name, o)
		}
	}
	if len(k.Params) != len(other.Params) {
		return fmt.Errorf("kernel %s takes %d params, %s takes %d", k.Name, len(k.Params), other.Name,
			len(other.Params))
	}
	for i, f := range k.Params {
		if o := other.Params[i]; f.Name != o.Name || f.Type != o.Type {
			return fmt.Errorf("param %d of kernel %s is %s: %s, in %s it is %s: %s", i, k.Name, f.Name,
				f.Type, other.Name, o.Name, o.Type)
		}
	}
	if k.WorkgroupSize != other.WorkgroupSize {
		return fmt.Errorf("kernel %s has workgroups of %v, %s of %v", k.Name, k.WorkgroupSize, other.Name,
			other.WorkgroupSize)
	}
	return nil
}

// String is roughly the binding's WGSL declaration.
func (s Storage) String() string {
	access := "read"
	if s.Access == gpu.ReadWrite {
		access = "read_write"
	}
	return fmt.Sprintf("%s %s: %s", access, s.Name, s.Elem)
}

// nameKernels gives every kernel of the graph a unique name.
func (g *Graph) nameKernels() {
	g.KernelNames = make(map[*Kernel]string, len(g.Kernels))
	seen := map[string]int{}
	for _, k := range g.Kernels {
		name := k.Name
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, seen[name])
		}
		g.KernelNames[k] = name
	}
}

// KernelName is a kernel's unique name in the graph, "" if no corner uses it.
func (g *Graph) KernelName(k *Kernel) string { return g.KernelNames[k] }

// DescribeKernel is a kernel in trace format.
func DescribeKernel(name string, k *Kernel) trace.Kernel {
	sum := sha256.Sum256([]byte(k.Source))
	t := trace.Kernel{
		Name: name, Constants: k.Constants, SourceSHA256: hex.EncodeToString(sum[:]),
		Source: k.Source, Filled: k.Filled, Taken: k.Taken, Params: k.Params,
	}
	for i, n := range k.WorkgroupSize {
		t.WorkgroupSize[i] = int(n)
	}
	return t
}
