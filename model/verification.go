package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/network"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/model/verify"
	"gpuscope/ops/reference"
	"gpuscope/trace"
)

// verification checks the step that the device has just run: it compares the outputs of each operator with
// those of the operator's reference, in the order of the graph.
type verification struct {
	graph    *graph.Graph
	net      *network.Network
	exec     *engine.Executor
	ops      []trace.Op
	step     *graph.StepInput
	position int
	tokens   int
	own      *reference.Interpreter // runs each reference on the inputs that the device computed
	full     *reference.Interpreter // runs each reference on the results of earlier references; may be nil
	part     float64                // fraction of the elements of large operators to compare
	flops    float64                // floating-point operations of the step
	byOp     []opWork
	bounded  bool // release each constant after use, because all constants together are too large for memory
	gaps     []trace.DispatchError
	// instead has outputs that an edited kernel wrote. These are compared instead of the values on the
	// device.
	instead map[graph.ValueID][]byte
}

// opWork describes what a verification has to do for one operator.
type opWork struct {
	runs    bool // whether the reference of the operator runs
	looks   []engine.Look
	compare bool
	flops   float64
	ends    []graph.ValueID  // inputs that no later operator reads
	last    trace.DispatchID // last dispatch of the operator; -1 if it has none
}

// verifyWindow is the maximum number of bytes that are read from the device at a time. keepConstants is the
// maximum number of bytes that constants may take in host memory. If all constants together are larger, each
// constant is released after use.
const (
	verifyWindow  = 64 << 20
	keepConstants = 1 << 30
)

func newVerification(s *live, t *run.Turn, only []trace.DispatchID) *verification {
	net := s.runner.Net
	v := &verification{
		graph: net.Graph, net: net, exec: s.runner.Exec, ops: s.Watch.Graph.Ops,
		step: net.Input(t.Position, t.Tokens), position: t.Position, tokens: len(t.Tokens),
		own: s.reference.x.Beside(), part: 1,
		byOp: make([]opWork, net.Graph.NumOps()),
	}
	if net.Recurrent != nil {
		from, to := network.Slots(s.runner.Input)
		network.SetSlots(v.step, from, to)
	}
	for i := range v.byOp {
		v.byOp[i].last = -1
	}
	for _, id := range v.exec.Live().Active() {
		w := &v.byOp[s.Watch.Graph.Dispatches[id].Op]
		w.last = id
		if l, _ := v.exec.Live().Launch(id); l != nil {
			w.flops += float64(l.FLOPs)
		}
		if len(only) == 0 || slices.Contains(only, id) {
			w.compare = true
		}
	}
	v.plan(s.Watch.Graph.Dispatches)
	return v
}

// plan decides which references run and which values are read from the device. The verification reads the
// outputs and the State that are compared, and the inputs that references need. The reference of an operator
// runs if the operator is compared or computes a SymInt. It also runs if another reference needs an output of
// the operator that no dispatch wrote.
func (v *verification) plan(slots []trace.Dispatch) {
	after := map[graph.ValueID]trace.DispatchID{}
	for _, l := range v.exec.OutputLooks() {
		after[l.Value] = l.After
	}
	for i := range v.ops {
		for _, out := range v.ops[i].Outputs {
			// An operator without a dispatch of its own was fused into another operator, which wrote its
			// outputs.
			if id, looked := after[out]; looked && v.byOp[i].last < 0 {
				v.byOp[i].compare, v.byOp[i].last = v.byOp[slots[id].Op].compare, id
			}
		}
	}
	var constants int64
	for i := range v.graph.NumValues() {
		info := v.graph.Value(graph.ValueID(i))
		if info.Role == graph.Constant && !info.SymInt {
			constants += info.DType.Bytes(arch.Numel(info.MaxDims))
		}
	}
	v.bounded = constants > keepConstants
	wanted := map[graph.ValueID]bool{} // tensors that a reference reads
	seen := map[graph.ValueID]bool{}
	for i := len(v.ops) - 1; i >= 0; i-- {
		o, w := &v.ops[i], &v.byOp[i]
		v.flops += w.flops
		made, takes := false, false
		for _, out := range o.Outputs {
			made = made || v.graph.Value(out).SymInt
			id, looked := after[out]
			switch {
			case looked && (w.compare || wanted[out]):
				w.looks = append(w.looks, engine.Look{After: id, Value: out})
			case !looked && wanted[out]: // no dispatch writes an alias, so the reference must compute it
				takes = true
			}
		}
		if w.compare && w.last >= 0 {
			for _, state := range o.State {
				w.looks = append(w.looks, engine.Look{After: w.last, Value: state})
			}
			takes = true
		}
		w.runs = made || takes
		if !w.runs {
			continue
		}
		for _, in := range o.Inputs {
			if info := v.graph.Value(in); info.SymInt || info.Role == graph.Constant {
				continue
			}
			if wanted[in] = true; !seen[in] {
				seen[in] = true
				w.ends = append(w.ends, in)
			}
		}
	}
}

// run compares the operators of the step one after another.
func (v *verification) run(ctx context.Context, progress engine.Progress) error {
	if err := v.own.Begin(v.step); err != nil {
		return err
	}
	if v.full != nil {
		if err := v.full.Begin(v.step); err != nil {
			return err
		}
	}
	read := 0 // number of operators whose values have been read
	for i := range v.byOp {
		if err := errors.Join(ctx.Err(), progress("verify", i, len(v.byOp))); err != nil {
			return err
		}
		if i >= read {
			var err error
			if read, err = v.read(ctx, i); err != nil {
				return err
			}
		}
		if err := v.operator(i); err != nil {
			return fmt.Errorf("%s: %w", v.ops[i].Name, err)
		}
	}
	return progress("verify", len(v.byOp), len(v.byOp))
}

// read reads the outputs of operators from the device. It starts with the operator of index `from` and
// continues as long as the outputs fit in verifyWindow. It returns the index of the first operator that was
// not read.
func (v *verification) read(ctx context.Context, from int) (to int, err error) {
	var looks []engine.Look
	size := int64(0)
	for to = from; to < len(v.byOp); to++ {
		w := &v.byOp[to]
		need := int64(0)
		for k := range w.looks {
			need += v.bytes(w.looks[k].Value)
		}
		if to > from && size+need > verifyWindow {
			break
		}
		size += need
		for k := range w.looks {
			w.looks[k].Into = make([]byte, v.bytes(w.looks[k].Value))
			looks = append(looks, w.looks[k])
		}
	}
	if len(looks) == 0 {
		return to, nil
	}
	return to, v.exec.Replay(ctx, looks...)
}

// bytes returns how many bytes of a value are read from the device.
func (v *verification) bytes(id graph.ValueID) int64 {
	return v.graph.Value(id).DType.Bytes(v.elements(id))
}

// elements returns how many elements of a value are read from the device. For State, these are the elements
// that may be in use after the step.
func (v *verification) elements(id graph.ValueID) int {
	if v.graph.Value(id).Role == graph.State {
		return v.held(id, v.position+v.tokens)
	}
	return arch.Numel(v.exec.LiveDims(id))
}

// held returns how many elements of State are in use if the given number of positions is filled. A cache has
// dims [1, positions, ...], so only the elements of its first positions are in use. All other State is always
// in use as a whole.
func (v *verification) held(id graph.ValueID, positions int) int {
	dims := v.graph.Value(id).MaxDims
	if len(dims) < 2 || dims[0] != 1 {
		return arch.Numel(dims)
	}
	return arch.Numel(dims[2:]) * min(dims[1], positions)
}

// operator runs the references of an operator and compares the results with the device's values.
func (v *verification) operator(i int) error {
	o, w := &v.ops[i], &v.byOp[i]
	got := make([][]float64, len(w.looks))
	for k, l := range w.looks {
		info := v.graph.Value(l.Value)
		if other, ok := v.instead[l.Value]; ok && w.compare {
			l.Into = other
		}
		var err error
		if got[k], err = reference.Decode(info.DType, l.Into, v.elements(l.Value)); err != nil {
			return err
		}
		// Give the reference the State that is on the device. The reference overwrites the positions that the
		// operator writes. All other positions are correct, because the operator did not change them.
		if info.Role == graph.State {
			held := reference.Tensor{Dims: info.MaxDims, Data: make([]float64, arch.Numel(info.MaxDims))}
			copy(held.Data, got[k])
			v.own.SetTensor(l.Value, held)
		} else if part := v.partOf(w); w.compare && part < 1 {
			dims := v.exec.LiveDims(l.Value)
			v.own.Choose(l.Value, verify.ChooseSample(o.Name, arch.Numel(dims)/lastDim(dims), lastDim(dims),
				part))
		}
	}
	for _, out := range o.Outputs {
		if v.exec.Live().Deferred(out) {
			v.own.Leave(out)
		}
	}
	if w.runs {
		if err := v.own.Run(o.ID); err != nil {
			return err
		}
	}
	if v.full != nil {
		if err := v.full.Run(o.ID); err != nil {
			return err
		}
	}
	for k, l := range w.looks {
		if w.compare && w.last >= 0 {
			v.compare(o, w, l, got[k])
		}
		if v.graph.Value(l.Value).Role == graph.State {
			v.own.Drop(l.Value)
		} else {
			dims := v.exec.LiveDims(l.Value)
			v.own.SetTensor(l.Value, reference.Tensor{Dims: dims, Data: got[k]})
		}
		w.looks[k].Into = nil
	}
	v.drop(o, w)
	return nil
}

// partOf returns which fraction of the elements of an operator is compared. It is 1 if the operator executes
// only a few of the step's floating-point operations.
func (v *verification) partOf(w *opWork) float64 {
	const little = 1e-3 // fraction of the step's floating-point operations
	if w.flops <= little*v.flops {
		return 1
	}
	return v.part
}

func lastDim(dims []int) int {
	if len(dims) == 0 {
		return 1
	}
	return max(1, dims[len(dims)-1])
}

// compare computes the error of one output of an operator and attributes it to the dispatch that wrote the
// output last. If a dispatch wrote several outputs, compare keeps only the error that is largest relative to
// its tolerance.
func (v *verification) compare(o *trace.Op, w *opWork, l engine.Look, got []float64) {
	info := v.graph.Value(l.Value)
	want, all := v.own.Tensor(l.Value), []float64(nil)
	if v.full != nil && info.DType != graph.I32 && info.DType != graph.U32 {
		all = v.full.Tensor(l.Value).Data
	}
	id, from, to := l.After, 0, len(got) // the elements to compare
	dims := v.exec.LiveDims(l.Value)
	part := verify.Sample{Width: lastDim(dims), Float: info.DType == graph.F32, Column: info.Column}
	if info.Role == graph.State {
		later := func(id trace.DispatchID) bool { return id > w.last }
		writers := slices.DeleteFunc(v.exec.Writers(l.Value), later)
		if len(writers) == 0 {
			return
		}
		id = writers[len(writers)-1]
		// Skip the positions and slots that earlier steps wrote: this step did not cause their errors.
		if v.net.IsRecurrent(l.Value) {
			_, slot := network.Slots(v.step)
			from, to = v.net.Elements(l.Value, slot)
		} else if n := v.held(l.Value, v.position); n < len(got) {
			from = n
		}
	} else if c := v.partOf(w); c < 1 {
		chosen := verify.ChooseSample(o.Name, len(got)/part.Width, part.Width, c)
		part.Rows, part.Cols = chosen.Rows, chosen.Cols
	}
	part.From = from
	t := v.own.Tolerance(o.ID, l.Value)
	g := part.Error(got[from:to], want.Data[from:to], &t)
	g.Value = &l.Value
	if len(all) >= len(got) {
		g.Run = part.Drift(got[from:to], all[from:to])
	}
	for k := range v.gaps {
		if old := &v.gaps[k]; old.Dispatch == id {
			if g.Share > old.Gap.Share || g.NotFinite > old.Gap.NotFinite {
				old.Gap = g
			}
			return
		}
	}
	v.gaps = append(v.gaps, trace.DispatchError{Dispatch: id, Gap: g})
}

// drop releases the inputs of an operator that no later operator reads. If all constants together are too
// large to keep, it also releases the constants that the operator read.
func (v *verification) drop(o *trace.Op, w *opWork) {
	for _, x := range []*reference.Interpreter{v.own, v.full} {
		if x == nil {
			continue
		}
		for _, id := range w.ends {
			if v.graph.Value(id).Role != graph.Input {
				x.Drop(id)
			}
		}
		for _, id := range o.Inputs {
			if v.bounded && v.graph.Value(id).Role == graph.Constant {
				x.Drop(id)
			}
		}
	}
}

// labFLOPs is the maximum number of floating-point operations of the reference for one tested dispatch. If
// the whole reference needs more, only some elements are compared.
const labFLOPs = 2e8

// Error implements stepping.Host: it compares the outputs with the reference of the operator. It returns nil
// if the dispatch writes no output of the operator.
func (s host) Error(ctx context.Context, of stepping.Step, id trace.DispatchID,
	outputs []engine.EditOutput,
) (*trace.NumericError, error) {
	if s.reference == nil {
		s.reference = newReferenceRun(s.runner.Net)
	}
	v := newVerification(s.live, s.text.Find(of.Index), []trace.DispatchID{id})
	v.part = min(1, labFLOPs/max(v.byOp[s.Watch.Graph.Dispatches[id].Op].flops, 1))
	v.instead = map[graph.ValueID][]byte{}
	for i := range outputs {
		v.instead[outputs[i].Value] = outputs[i].New
	}
	if err := v.run(ctx, s.Progress()); err != nil {
		return nil, err
	}
	for i := range v.gaps {
		if v.gaps[i].Dispatch == id {
			return &v.gaps[i].Gap, nil
		}
	}
	return nil, nil
}
