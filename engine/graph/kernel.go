package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph/params"
	"gpuscope/trace"
)

// A kernel's WGSL declares bindings and params. The bindings of an operator that uses the kernel, and the
// params that its plan writes, must have the same names and types. This is checked when an operator is added
// and when a kernel is replaced.

// ParamsBytes returns the size of the kernel's params block in bytes. WGSL rounds the size of a uniform
// struct up to a multiple of 16.
func (k *Kernel) ParamsBytes() int { return (4*len(k.Params) + 15) / 16 * 16 }

// Bindings returns the access modes of the kernel's bindings: first the storage bindings, then the params
// if the kernel has any.
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

// bound returns an error if the values that u binds do not match the storage bindings that the kernel
// declares.
func (u *Use) bound() error {
	if len(u.Bind) != len(u.Kernel.Storage) {
		return fmt.Errorf(
			"the operator binds %d values to kernel %s, but this kernel has %d storage bindings", len(u.Bind),
			u.Kernel.Name, len(u.Kernel.Storage))
	}
	for i, s := range u.Kernel.Storage {
		if u.Bind[i].Name != s.Name {
			return fmt.Errorf("the operator names a binding %s, but kernel %s names it %s (binding %d)",
				u.Bind[i].Name, u.Kernel.Name, s.Name, i)
		}
	}
	if n := len(u.Kernel.Params); n > params.Max {
		return fmt.Errorf("kernel %s has %d params; the limit is %d", u.Kernel.Name, n, params.Max)
	}
	return nil
}

// CanReplace returns nil if k can run in place of `other` with the bindings, params and grids that were
// planned for `other`. Otherwise it returns an error with the reason. The names of bindings and params must
// match too, because otherwise a swap of two fields of the same type would go unnoticed.
func (k *Kernel) CanReplace(other *Kernel) error {
	if len(k.Storage) != len(other.Storage) {
		return fmt.Errorf("kernel %s has %d storage bindings, but kernel %s has %d",
			k.Name, len(k.Storage), other.Name, len(other.Storage))
	}
	for i, s := range k.Storage {
		// Storage.Read is not compared, because it does not affect barriers: a read_write binding needs the
		// same barriers whether or not the kernel reads it.
		if o := other.Storage[i]; s.Name != o.Name || s.Elem != o.Elem || s.Access != o.Access {
			return fmt.Errorf("binding %d of kernel %s is (%s), but the same binding of kernel %s is (%s)",
				i, k.Name, s, other.Name, o)
		}
	}
	if len(k.Params) != len(other.Params) {
		return fmt.Errorf("kernel %s has %d params, but kernel %s has %d", k.Name, len(k.Params), other.Name,
			len(other.Params))
	}
	for i, f := range k.Params {
		if o := other.Params[i]; f.Name != o.Name || f.Type != o.Type {
			return fmt.Errorf("param %d of kernel %s is (%s: %s), but this param of kernel %s is (%s: %s)",
				i, k.Name, f.Name, f.Type, other.Name, o.Name, o.Type)
		}
	}
	if k.WorkgroupSize != other.WorkgroupSize {
		return fmt.Errorf("kernel %s has workgroup size %v, but kernel %s has %v",
			k.Name, k.WorkgroupSize, other.Name, other.WorkgroupSize)
	}
	return nil
}

// String returns the binding in a form similar to its WGSL declaration, such as "read x: f32".
func (s Storage) String() string {
	access := "read"
	if s.Access == gpu.ReadWrite {
		access = "read_write"
	}
	return fmt.Sprintf("%s %s: %s", access, s.Name, s.Elem)
}

// nameKernels assigns a unique name to every kernel of the graph. If several kernels have the same name,
// nameKernels adds numbers to it.
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

// KernelName returns the kernel's unique name in the graph, or "" if no corner uses the kernel.
func (g *Graph) KernelName(k *Kernel) string { return g.KernelNames[k] }

// DescribeKernel returns a kernel in trace format, with the given name.
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

// CeilingKernels are the kernels that measure the peak rates of a device. In each round, an invocation of
// Copy copies a 16-byte element from its first binding to its second. An invocation of FMA does FlopsPerRound
// operations in registers in each round. Empty does nothing. Fill runs once, before Copy: it fills the memory
// that Copy reads with data that resembles model weights.
type CeilingKernels struct {
	Fill, Copy, FMA, Empty *Kernel
	FlopsPerRound          int
}
