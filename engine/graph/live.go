package graph

import (
	"errors"
	"fmt"
	"slices"

	"gpuscope/engine/graph/internal/bitset"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Order is the order in which a resize visits the operators that it may have to re-plan.
type Order uint8

// The orders in which Propagate can visit operators.
const (
	// Topological visits each operator at most once, after all its producers.
	Topological Order = iota
	// Fixpoint repeats passes over the operators until no value changes, as ExecuTorch's engine does.
	Fixpoint
)

// String returns the name of the order, as used on the command line and in traces.
func (o Order) String() string { return [...]string{"topological", "fixpoint"}[o] }

// LiveOptions configure a Live.
type LiveOptions struct {
	Order Order
	// Static keeps the dispatches the same at all live shapes, as far as possible. Every operator uses the
	// route of its largest corner if this route supports the shape. Every slot launches the largest grid
	// that it has on the operator's current route. Dims, params and SymInts still follow the live shapes.
	Static bool
	// MaxPasses limits the number of passes of a Fixpoint resize. 0 means the number of operators + 1.
	MaxPasses int
}

// Live is the changing state of a graph: the live dims, the SymInts and the current plan of every operator.
//
// A resize is a transaction. SetDims, SetInt and SetHost record changes, and Propagate re-plans the affected
// operators. Then Commit makes the new plans current, or Discard drops them. Propagate discards all changes
// itself if it fails. Only the first few resizes of a Live allocate memory.
type Live struct {
	G         *Graph
	order     Order
	static    bool
	maxPasses int
	requested []routeRequest // route that the user requested, by operator

	now, next    env    // now: current state; next: with the changes of the transaction
	Plans        []Plan // current plans, by operator
	nextPlans    []Plan // new plans of this transaction, for operators in `isPlanned`
	scratchPlans []Plan // memory for the next plan of each operator
	planner      Planner

	changed   []ValueID // values whose shape or integer may differ in `next` and `now`
	isChanged []bool    // by value: whether it is in `changed`
	planned   []OpID    // operators that were re-planned in this transaction
	isPlanned []bool    // by operator: whether nextPlans has its plan

	lastRun  []int      // by operator: index in log.hooks of the latest run of its plan, or -1
	newFrom  []int      // by operator: changes from this index in log.hooks on are new to it; -1: all
	changeAt []int      // by value: index in log.hooks of the latest run that changed it, or -1
	wake     bitset.Set // operators to re-plan; with Fixpoint, those to re-plan in the next pass
	passWake bitset.Set // Fixpoint only: operators to re-plan in this pass
	deferred bitset.Set // Fixpoint only: operators whose plan failed; the next pass retries them
	log      ResizeLog

	active   []trace.DispatchID // dispatches that run, in order of submission
	levels   []trace.DispatchID // first dispatch of each level
	waits    []trace.Wait       // hazards that make the barriers between levels necessary
	relist   bool               // active, levels and waits must be computed again
	listed   int                // number of times that active, levels and waits were computed
	barriers gpu.Barriers
	needs    []int64 // by buffer number: bytes in use, computed by LiveBytes
	Layout   int     // the current layout, as an index in Graph.Layouts
	large    []bool  // by value: whether the value is too large for the last of Graph.Layouts
	larges   int     // number of true elements of `large`
}

// NewLive returns the live state of a graph with all inputs at their maximum shapes and every SymInt at its
// initial value.
func NewLive(g *Graph, o LiveOptions) (*Live, error) {
	nv, no := len(g.Values), len(g.Ops)
	l := &Live{
		G: g, order: o.Order, static: o.Static, maxPasses: o.MaxPasses,
		Plans: make([]Plan, no), nextPlans: make([]Plan, no), scratchPlans: make([]Plan, no),
		requested: make([]routeRequest, no),
		isChanged: make([]bool, nv), isPlanned: make([]bool, no), lastRun: make([]int, no),
		newFrom: make([]int, no), changeAt: make([]int, nv),
		wake: bitset.New(no), passWake: bitset.New(no), deferred: bitset.New(no), relist: true,
		needs: make([]int64, g.FirstOwn+nv), large: make([]bool, nv),
	}
	if l.maxPasses == 0 {
		l.maxPasses = no + 1
	}
	l.now, l.next = newEnv(g), newEnv(g)
	l.planner = Planner{limits: &g.Limits, values: g.Values, env: l.next}
	for i := range g.Ops {
		o := &g.Ops[i]
		l.Plans[i], l.nextPlans[i], l.scratchPlans[i] = o.newPlan(), o.newPlan(), o.newPlan()
		l.requested[i], l.lastRun[i], l.newFrom[i] = o.request, -1, -1
		if l.static {
			l.requested[i] = routeRequest{route: o.corner[o.largest].Route}
		}
	}
	// Plan every operator once, in graph order.
	for i := range g.Ops {
		l.wake.Add(i)
	}
	l.log.begin(Topological)
	l.log.pass(nil)
	if err := l.sweep(); err != nil {
		return nil, fmt.Errorf("cannot plan the graph at its initial shapes: %w", err)
	}
	l.eachLive(l.weigh)
	l.Commit()
	return l, nil
}

func newEnv(g *Graph) env {
	e := env{
		dims: make([][]int, len(g.Values)), ints: make([]int64, len(g.Values)),
		host: make([][]int64, len(g.Values)), deferred: make([]bool, len(g.Values)),
	}
	for i := range g.Values {
		val := &g.Values[i]
		e.dims[i], e.ints[i] = slices.Clone(val.MaxDims), val.first
		if val.HostRead {
			e.host[i] = make([]int64, Numel(val.MaxDims))
			copy(e.host[i], val.firstHost)
		}
	}
	return e
}

// ErrShape is wrapped by errors about inputs of a step that the graph does not support: unsupported dims, a
// SymInt that is out of range, or a wrong number of integers or bytes.
var ErrShape = errors.New("shape not supported")

// SetDims sets the live dims of a graph input.
func (l *Live) SetDims(v ValueID, dims ...int) error {
	val, err := l.input(v, Tensor)
	if err != nil {
		return err
	}
	if len(dims) != len(val.MaxDims) {
		return fmt.Errorf("input %s has rank %d; want %d: %w", val.Name, len(dims), len(val.MaxDims),
			ErrShape)
	}
	for i, d := range dims {
		if d < 1 {
			return fmt.Errorf("input %s: dim %d is %d; want at least 1: %w", val.Name, i, d, ErrShape)
		}
		if d > val.MaxDims[i] {
			return fmt.Errorf("input %s: dim %d is %d; the maximum is %d: %w", val.Name, i, d, val.MaxDims[i],
				ErrShape)
		}
		if d < val.minDims[i] {
			return fmt.Errorf("input %s: dim %d is %d; the minimum is %d: %w", val.Name, i, d, val.minDims[i],
				ErrShape)
		}
	}
	if slices.Equal(l.next.dims[v], dims) {
		return nil
	}
	l.change(v)
	copy(l.next.dims[v], dims)
	l.triggerConsumers(v)
	return nil
}

// SetInt sets the value of a SymInt that is a graph input.
func (l *Live) SetInt(v ValueID, n int64) error {
	val, err := l.input(v, SymInt)
	if err != nil {
		return err
	}
	if n < val.Lo || n > val.Hi {
		return fmt.Errorf("symint %s is %d, but it must be from %d to %d: %w",
			val.Name, n, val.Lo, val.Hi, ErrShape)
	}
	if l.next.ints[v] == n {
		return nil
	}
	l.change(v)
	l.next.ints[v] = n
	l.triggerConsumers(v)
	return nil
}

// SetHost sets the integers that the step will write to a graph input. It must be called after SetDims. Only
// the operators whose plans read these integers are re-planned.
func (l *Live) SetHost(v ValueID, ints []int64) error {
	val, err := l.input(v, Tensor)
	if err != nil || !val.HostRead {
		return err
	}
	if n := Numel(l.next.dims[v]); len(ints) != n {
		return fmt.Errorf("input %s: got %d integers for dims %v; want %d: %w", val.Name, len(ints),
			l.next.dims[v], n, ErrShape)
	}
	if slices.Equal(l.next.host[v], ints) {
		return nil
	}
	l.change(v)
	l.next.host[v] = append(l.next.host[v][:0], ints...)
	for _, o := range val.Consumers {
		if l.G.Ops[o].readsHost {
			l.wake.Add(int(o))
		}
	}
	return nil
}

func (l *Live) input(v ValueID, kind ValueKind) (*Value, error) {
	if v < 0 || int(v) >= len(l.G.Values) {
		return nil, fmt.Errorf("value %d does not exist: the graph has %d values", v, len(l.G.Values))
	}
	if val := &l.G.Values[v]; val.Role == Input && val.Kind == kind {
		return val, nil
	}
	return nil, fmt.Errorf("%s is not a %s input of the graph", l.G.Values[v].Name, kind)
}

// change adds v to the values whose live shape or integer may have changed.
func (l *Live) change(v ValueID) {
	if !l.isChanged[v] {
		l.isChanged[v] = true
		l.changed = append(l.changed, v)
		l.changeAt[v] = -1
	}
}

func (l *Live) triggerConsumers(v ValueID) {
	for _, o := range l.G.Values[v].Consumers {
		l.wake.Add(int(o))
	}
}

// Changed reports whether the transaction changes any live shape.
func (l *Live) Changed() bool { return len(l.changed) > 0 }

// EachPlanned calls f with every operator that Propagate re-planned and the operator's new plan.
func (l *Live) EachPlanned(f func(o *Op, p *Plan)) {
	for _, o := range l.planned {
		f(&l.G.Ops[o], &l.nextPlans[o])
	}
}

// Commit makes the changes and the new plans of the last Propagate current.
func (l *Live) Commit() {
	for _, v := range l.changed {
		copy(l.now.dims[v], l.next.dims[v])
		l.now.ints[v], l.now.deferred[v] = l.next.ints[v], l.next.deferred[v]
		l.now.host[v] = append(l.now.host[v][:0], l.next.host[v]...)
	}
	for _, o := range l.planned {
		l.relist = l.relist || !sameDispatches(&l.Plans[o], &l.nextPlans[o])
		l.Plans[o], l.nextPlans[o] = l.nextPlans[o], l.Plans[o]
	}
	l.chooseLayout()
	l.settle()
}

// chooseLayout selects the last layout if all live values fit it, or else the first. It looks only at the
// sizes of values that the transaction changed.
func (l *Live) chooseLayout() {
	last := len(l.G.Layouts) - 1
	if last == 0 {
		return
	}
	for _, v := range l.changed {
		if l.G.Values[v].Kind == Tensor {
			l.weigh(v, l.BytesOf(v))
		}
	}
	layout := 0
	if l.larges == 0 {
		layout = last
	}
	if layout != l.Layout {
		l.Layout, l.relist = layout, true
	}
}

// weigh records whether a value with the given size is too large for the last layout.
func (l *Live) weigh(v ValueID, bytes int64) {
	p := &l.G.Layouts[len(l.G.Layouts)-1]
	large := p.slot[v] >= 0 && bytes > p.fits[v]
	if large != l.large[v] {
		l.large[v] = large
		if large {
			l.larges++
		} else {
			l.larges--
		}
	}
}

// BytesOf returns the size of a tensor in bytes at the current dims.
func (l *Live) BytesOf(v ValueID) int64 { return l.G.Values[v].DType.Bytes(Numel(l.now.dims[v])) }

// eachLive calls f with every tensor and its size in bytes at the current shapes.
func (l *Live) eachLive(f func(v ValueID, bytes int64)) {
	for i := range l.G.Values {
		if val := &l.G.Values[i]; val.Kind == Tensor && val.Role != Fused {
			f(ValueID(i), l.BytesOf(ValueID(i)))
		}
	}
}

// Memory returns the number of the buffer that holds a value in the current layout.
func (l *Live) Memory(v ValueID) int { return l.G.Memory(&l.G.Layouts[l.Layout], v) }

// Buffer returns the number of the device buffer that holds a value. This number determines which barriers
// are needed. It differs from Memory for an output that shares a buffer with outputs of other operators.
func (l *Live) Buffer(v ValueID) int {
	if first, ok := l.G.joined[l.G.Root(v)]; ok {
		return l.G.FirstOwn + int(first)
	}
	return l.Memory(v)
}

// Pass returns the index of the compute pass that contains a dispatch in the current layout.
func (l *Live) Pass(d trace.DispatchID) int { return l.G.Layouts[l.Layout].passes[d] }

// Discard drops all changes since the last Commit.
func (l *Live) Discard() {
	for _, v := range l.changed {
		copy(l.next.dims[v], l.now.dims[v])
		l.next.ints[v], l.next.deferred[v] = l.now.ints[v], l.now.deferred[v]
		l.next.host[v] = append(l.next.host[v][:0], l.now.host[v]...)
	}
	l.settle()
}

func (l *Live) settle() {
	for _, v := range l.changed {
		l.isChanged[v] = false
	}
	for _, o := range l.planned {
		l.isPlanned[o] = false
		l.lastRun[o], l.newFrom[o] = -1, -1
	}
	clear(l.wake)
	clear(l.passWake)
	clear(l.deferred)
	l.changed, l.planned = l.changed[:0], l.planned[:0]
}

// sameDispatches reports whether two plans of an operator use the same route and launch the same slots.
func sameDispatches(a, b *Plan) bool {
	if a.Route != b.Route {
		return false
	}
	for i := range a.Launches {
		if a.Launches[i].Active != b.Launches[i].Active {
			return false
		}
	}
	return true
}

// Graph returns the graph that l belongs to.
func (l *Live) Graph() *Graph { return l.G }

// Log returns the log of the last Propagate.
func (l *Live) Log() *ResizeLog { return &l.log }

// Dims returns the current dims of a tensor. The caller must not change them. They are valid until the next
// Commit.
func (l *Live) Dims(v ValueID) []int { return l.now.dims[v] }

// Deferred reports whether a tensor is deferred at the current shapes: its producer does not compute it, and
// the tensor's readers do this work in their own kernels.
func (l *Live) Deferred(v ValueID) bool { return l.now.deferred[v] }

// Int returns the current value of a SymInt.
func (l *Live) Int(v ValueID) int64 { return l.now.ints[v] }

// Active returns the dispatches that run with the current plans, in order of submission.
func (l *Live) Active() []trace.DispatchID {
	l.listDispatches()
	return l.active
}

// Levels returns the first dispatch of each level.
func (l *Live) Levels() []trace.DispatchID {
	l.listDispatches()
	return l.levels
}

// Passes returns the number of compute passes that the current plans need. A step can have more passes: one
// more for each submit that begins in the middle of a pass, and one more for each group of dispatches that is
// timed.
func (l *Live) Passes() int {
	passes, last := 0, -1
	for _, id := range l.Active() {
		if p := l.Pass(id); p != last {
			passes, last = passes+1, p
		}
	}
	return passes
}

// Waits returns the hazards that require the barriers between levels, in order of submission.
func (l *Live) Waits() []trace.Wait {
	l.listDispatches()
	return l.waits
}

// listDispatches computes active, levels and waits if they are out of date.
func (l *Live) listDispatches() {
	if !l.relist {
		return
	}
	l.relist = false
	l.listed++
	l.active, l.levels, l.waits = l.active[:0], l.levels[:0], l.waits[:0]
	l.barriers.Begin()
	pass := -1                  // compute pass of the previous dispatch
	var begin, level, waits int // where the current pass begins in active, levels and waits
	for i := range l.G.Dispatches {
		d := &l.G.Dispatches[i]
		p := &l.Plans[d.Op]
		if !p.Launches[d.Slot].Active {
			continue
		}
		here := l.Pass(trace.DispatchID(i))
		if here != pass {
			l.barriers.EndPass()
			l.barriers.BeginPass()
			pass, begin, level, waits = here, len(l.active), len(l.levels), len(l.waits)
		}
		l.active = append(l.active, trace.DispatchID(i))
		use := l.G.Ops[d.Op].Use(d.Slot, p.Route)
		n := l.barriers.Levels()
		for b, bind := range use.Bind {
			l.barriers.Touch(l.Buffer(bind.Value), use.Kernel.Storage[b].Access)
		}
		if l.barriers.Levels() > n { // a barrier before the pass begins a new level
			n++
			l.levels = slices.Insert(l.levels, level, l.active[begin])
		}
		l.barriers.Dispatch()
		if l.barriers.Levels() > n {
			l.levels = append(l.levels, trace.DispatchID(i))
		}
		for _, w := range l.barriers.Waits() {
			t := l.wait(d, use, w)
			if l.Pass(t.For) == here {
				l.waits = append(l.waits, t)
				continue
			}
			t.Dispatch = l.active[begin] // the barriers before a pass are merged into one
			l.waits = slices.Insert(l.waits, waits, t)
			waits++
		}
	}
	l.barriers.EndPass()
}

// wait converts w, a hazard that requires a barrier before the last active dispatch, to trace format. If both
// dispatches write the value and the later one also reads it, the hazard is reported as read-after-write.
func (l *Live) wait(d *dispatch, use Use, w gpu.Wait) trace.Wait {
	bound := slices.IndexFunc(use.Bind, func(b Binding) bool { return l.Buffer(b.Value) == w.Buffer })
	t := trace.Wait{
		Dispatch: l.active[len(l.active)-1], For: l.active[w.For], Kind: w.Hazard.String(),
		Value: use.Bind[bound].Value,
	}
	if w.Hazard == gpu.WriteAfterWrite && slices.Contains(d.reads, t.Value) {
		t.Kind = gpu.ReadAfterWrite.String()
	}
	return t
}

// Launch returns the current plan of a dispatch slot and the kernel that it runs. It returns nil if the slot
// is not in use.
func (l *Live) Launch(id trace.DispatchID) (*Launch, *Kernel) {
	d := &l.G.Dispatches[id]
	p := &l.Plans[d.Op]
	if !p.Launches[d.Slot].Active {
		return nil, nil
	}
	return &p.Launches[d.Slot], l.G.Ops[d.Op].Use(d.Slot, p.Route).Kernel
}

// LiveBytes returns how many bytes of the allocated memory the current plans use. Params are not counted. Of
// the values that share a buffer, only the largest live value counts.
func (l *Live) LiveBytes() int64 {
	clear(l.needs)
	l.eachLive(func(v ValueID, bytes int64) {
		n := &l.needs[l.Memory(v)]
		*n = max(*n, bytes)
	})
	var sum int64
	for _, n := range l.needs {
		sum += n
	}
	return sum
}
