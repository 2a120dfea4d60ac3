// Package ops holds the operators, one to a file, under ExecuTorch's names. A file has all there is to know
// of its operator: its row of Kinds with the types of its arguments, the constructor that puts it into a
// graph, the plan that maps live shapes to dispatches, the corners, and the float64 reference. Its kernels
// are shaders/<operator>*.wgsl. Operators that differ in a formula are a family: one file with a table, whose
// rows are the members (unary.go, binary.go, compare.go, reduce.go,
// gather.go, symint.go).
//
// Weights are matrices in a format (Format, format_*.go), of which linear and embedding take any. Fusions are
// the rules by which several operators become one (fuse_*.go).
//
//	x := b.Input("x", graph.F32, []int{1, 256}, []int{512, 256})
//	y := ops.RMSNorm(b, "norm", x, weight, 1e-5)
//
// A constructor takes the builder, the operator's name in the graph, then the arguments in upstream's order;
// it returns the ids of the outputs, which are named after the operator. What is wrong with its arguments is
// recorded in the builder, and graph.Builder.Finish returns it: constructors may be chained without a look
// at errors, since every call after the first error does nothing. New does the same for a kind by name, with
// its arguments by name, for readers of files and for members of families that have no constructor:
//
//	y := ops.New(b, "tanh", "act", ops.Args{"x": x})
//
// Either way the arguments are held to the types of the kind's row, once.
//
// Tensors are dense, row-major, and f32 where nothing else is said. A live tensor is a prefix of its memory.
//
// Every operator implements Referencer, and Interpreter runs a whole graph by these references.
package ops

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

// maxRank is the largest rank of a tensor.
const maxRank = 8

// kernels holds every kernel that was asked for: graphs share them, and engines tell kernels apart by
// pointer.
var kernels struct {
	sync.Mutex
	byKey map[string]*graph.Kernel
}

// kernel is the kernel that a template and its constants make, under the template's name, and the same
// pointer for the same constants. After an error, which it records in the builder, it returns nil.
func kernel(b *graph.Builder, template string, c shaders.Constants) *graph.Kernel {
	return kernelAs(b, template, template, c)
}

// kernelAs is kernel under a name that says more than the template's.
func kernelAs(b *graph.Builder, as, template string, c shaders.Constants) *graph.Kernel {
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
	k, err := engineKernel(as, expanded)
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

// engineKernel is an expanded kernel as the engine takes it.
func engineKernel(name string, expanded shaders.Kernel) (*graph.Kernel, error) {
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

// one is the list of uses of a slot that has the same kernel on every route.
func one(k *graph.Kernel, bindings ...graph.Binding) []graph.Use {
	return []graph.Use{{Kernel: k, Bind: bindings}}
}

// bind is a value under the name of the kernel's binding that it is for.
func bind(name string, v graph.ValueID) graph.Binding { return graph.Bind(name, v) }

// perDim are the names of a kernel's fields of which it has one for each dim: size_0, size_1, ...
func perDim(name string) (list [maxRank]string) {
	for k := range list {
		list[k] = fmt.Sprintf("%s_%d", name, k)
	}
	return list
}

// putDims writes fields of which a kernel has one for each dim.
func putDims(p *graph.Params, names *[maxRank]string, values []int) {
	for k, v := range values {
		p.U32(names[k], v)
	}
}

// ready says whether an operator can be put together: nothing went wrong so far, and every argument is a
// value.
func ready(b *graph.Builder, args ...graph.ValueID) bool {
	return b.Err() == nil && !slices.Contains(args, graph.None)
}

// vec is how many elements a kernel moves at a time along a dim whose live size never changes: 4 where it
// divides, else 1.
func vec(b *graph.Builder, v graph.ValueID, axis int) int {
	lowest, highest := b.MinDims(v), b.MaxDims(v)
	if axis < 0 {
		axis += len(highest)
	}
	if axis < 0 || axis >= len(highest) || lowest[axis] != highest[axis] || highest[axis]%4 != 0 {
		return 1
	}
	return 4
}

// lanesFor is the size of a workgroup that shares n pieces of work: a power of two from 64 to 256.
func lanesFor(b *graph.Builder, n int) int {
	lanes := 64
	for lanes < 256 && lanes < n && 2*lanes <= int(b.Limits().MaxInvocations) {
		lanes *= 2
	}
	return lanes
}

// last is the size of the last dim; 1 for a tensor of rank 0.
func last(dims []int) int {
	if len(dims) == 0 {
		return 1
	}
	return dims[len(dims)-1]
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func divUp(n, d int) int { return (n + d - 1) / d }

func sameDims(a, b []int) bool { return slices.Equal(a, b) }
