// Package samples turns a trace into the samples of a profile, for the formats of profilers. A sample is a
// dispatch of a step: a stack of functions and four values. The stack consists of the kernel, its operator,
// the layer and the phase of the step. A step that was timed by blocks has, in addition, one sample for the
// time of each block.
package samples

import (
	"fmt"
	"iter"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Type is what one of the four values of a sample counts.
type Type struct{ Name, Unit string }

// Types lists what the values of a sample count, in the order of Sample.Values. The last type is the one that
// a profiler should show first. Only its values are measured. The others are exact.
var Types = [4]Type{
	{"dispatches", "count"},
	{"workgroups", "count"},        // launched workgroups
	{"workgroups_wasted", "count"}, // launched workgroups without work
	{"gpu_time", "nanoseconds"},
}

// Indices in Types.
const (
	Workgroups = 1              // the launched workgroups
	GPUTime    = len(Types) - 1 // the measured time
)

// Function is an element of a stack. File and Line are those of the entry point in the WGSL source of a
// kernel. Functions that are not kernels have no file. Line is 0 if the trace has no source.
type Function struct {
	Name, File string
	Line       int64
}

// Sample holds the values of a dispatch in one step. A block that was timed has a sample too, in which only
// GPU is set.
type Sample struct {
	Stack      int   // index into Profile.Stacks
	Dispatches int64 // 1, or 0 for a block
	Workgroups int64 // launched workgroups
	Wasted     int64 // launched workgroups without work
	GPU        trace.Time
}

// Values returns the values in the order of Types. If the GPU time was not measured, the last value is 0 and
// measured is false.
func (s *Sample) Values() (values [4]int64, measured bool) {
	ns, measured := s.GPU.NS()
	return [4]int64{s.Dispatches, s.Workgroups, s.Wasted, ns}, measured
}

// Profile holds the functions and the stacks of the samples of a trace.
type Profile struct {
	Functions []Function
	Stacks    [][]int // for each stack, indices into Functions, the innermost function first
	Timed     bool    // at least one sample has a measured GPU time

	trace     *trace.Trace
	index     *analyze.Index // of the graph, without steps
	functions map[Function]int
	stacks    map[key]int
	plans     map[planKey]int // stack of each plan, for the plans that were looked up
}

// key identifies a stack. The leaf is a kernel or a block. op is the operator of the kernel, or the first
// operator of the block.
type key struct {
	phase trace.Phase
	op    trace.OpID
	block bool
	leaf  string
}

// noOp is the operator of a block without dispatches.
const noOp = trace.OpID(-1)

type planKey struct {
	phase trace.Phase
	plan  trace.PlanID
}

// Of returns the profile of a trace. The memory that the profile takes does not grow with the number of
// steps.
func Of(t *trace.Trace) *Profile {
	p := &Profile{
		trace: t, index: analyze.NewIndex(&trace.Trace{Graph: t.Graph}),
		functions: map[Function]int{}, stacks: map[key]int{}, plans: map[planKey]int{},
	}
	for i := range t.Steps {
		for s := range p.Step(i) {
			_, measured := s.GPU.NS()
			p.Timed = p.Timed || measured
		}
	}
	return p
}

// Step returns the samples of a step, by its index in Trace.Steps.
func (p *Profile) Step(i int) iter.Seq[Sample] {
	s := &p.trace.Steps[i]
	blocks := s.Timing == trace.TimingBlock && len(s.Blocks) > 0
	return func(yield func(Sample) bool) {
		for j := range s.Dispatches {
			plan := &p.trace.Plans[s.Dispatches[j].Plan]
			waste := analyze.WasteOf(plan, nil)
			sample := Sample{
				Stack: p.ofPlan(s.Phase, plan), Dispatches: 1,
				Workgroups: waste.Launched, Wasted: waste.Groups(),
			}
			if !blocks {
				sample.GPU = s.Dispatches[j].GPUNS
			}
			if !yield(sample) {
				return
			}
		}
		first := 0
		for j := 0; blocks && j < len(s.Blocks); j++ {
			b := &s.Blocks[j]
			if _, timed := b.GPUNS.NS(); timed {
				op := noOp
				if first < len(s.Dispatches) {
					op = p.opOf(&p.trace.Plans[s.Dispatches[first].Plan])
				}
				stack := p.stack(key{phase: s.Phase, op: op, block: true, leaf: b.Name})
				if !yield(Sample{Stack: stack, GPU: b.GPUNS}) {
					return
				}
			}
			first += b.Dispatches
		}
	}
}

func (p *Profile) opOf(plan *trace.Plan) trace.OpID {
	return p.trace.Graph.Dispatches[plan.Dispatch].Op
}

func (p *Profile) ofPlan(phase trace.Phase, plan *trace.Plan) int {
	at := planKey{phase, plan.ID}
	n, found := p.plans[at]
	if !found {
		n = p.stack(key{phase: phase, op: p.opOf(plan), leaf: plan.Kernel})
		p.plans[at] = n
	}
	return n
}

// stack returns the index of a stack, and adds the stack if it is new.
func (p *Profile) stack(k key) int {
	if n, found := p.stacks[k]; found {
		return n
	}
	var list []int
	if k.block {
		list = append(list, p.function(Named(k.leaf)))
	} else {
		list = append(list, p.function(KernelFunction(k.leaf, p.index.Kernel(k.leaf))),
			p.function(Named(p.trace.Graph.Ops[k.op].Name)))
	}
	if layer := p.layerOf(k.op); layer != "" {
		list = append(list, p.function(Named(layer)))
	}
	list = append(list, p.function(Named(string(k.phase))))
	n := len(p.Stacks)
	p.Stacks = append(p.Stacks, list)
	p.stacks[k] = n
	return n
}

// layerOf returns the name of the layer of an operator, or "prologue" or "epilogue" for an operator outside
// of the layers. It returns "" if the graph has no layers, and for noOp.
func (p *Profile) layerOf(id trace.OpID) string {
	if id == noOp {
		return ""
	}
	o := &p.trace.Graph.Ops[id]
	if o.Layer != nil {
		return fmt.Sprintf("layer %d", *o.Layer)
	}
	return p.index.Graph.Layers.Part(o)
}

func (p *Profile) function(f Function) int {
	n, found := p.functions[f]
	if !found {
		n = len(p.Functions)
		p.Functions = append(p.Functions, f)
		p.functions[f] = n
	}
	return n
}

// Named returns a function with this name that is not a kernel.
func Named(name string) Function { return Function{Name: named(name)} }

// named returns a name, or a placeholder if the name is empty: profilers drop functions without a name.
func named(name string) string {
	if name == "" {
		return "(no name)"
	}
	return name
}

// KernelFunction returns the function of a kernel: its name, the name of its WGSL file, and the line of its
// entry point. k is nil if the trace does not describe the kernel.
func KernelFunction(name string, k *trace.Kernel) Function {
	f := Function{Name: named(name), File: named(name) + ".wgsl"}
	if k != nil {
		f.Line = entryLine(k.Source)
	}
	return f
}

// entryLine returns the line of the entry point in a WGSL source: that of the first `fn` at the beginning of
// a line after @compute, or that of @compute if both are in one line. It returns 0 if there is none.
func entryLine(source string) int64 {
	n, found := int64(0), false
	for line := range strings.Lines(source) {
		n++
		code, _, _ := strings.Cut(line, "//")
		found = found || strings.Contains(code, "@compute")
		if found && strings.Contains(" "+code, " fn ") {
			return n
		}
	}
	return 0
}
