package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// Executor runs a graph on a device. It owns everything it makes there; the device stays its caller's. One
// goroutine uses it.
type Executor struct {
	dev     gpu.Device
	g       *graph.Graph
	live    *graph.Live
	buffers []gpu.Buffer // by Graph.memory; nil where there is none
	begins  []uint64     // likewise: where a constant begins in its buffer
	arena   paramsArena
	pipes   map[*graph.Kernel]gpu.Pipeline
	// groups are the bind groups of each dispatch slot by layout and route; routes that share a Use share
	// them.
	groups   [][][]slotGroups
	readAt   []uint64 // by value: offset of an output in the readback of a flight
	clock    *measure.Clock
	owned    []interface{ Release() } // in order of making
	flights  [2]flight
	last     *flight // the step that ended last; none has where it has not run
	number   int     // of the steps so far whose shapes were in force
	hasRun   []bool  // by dispatch and route, flat
	rates    rates
	pauses   pauses
	canary   *measure.Probe // nil where there is none
	lastEnd  time.Time
	sheets   sheets
	start    time.Time
	boundN   int
	compiled []trace.Compiled
	loading  Loading
	check    bool
	resizes  int // that were committed
	// firstPiece is how many dispatches of a step are submitted first.
	firstPiece int
	// allocated is all the device memory that it holds.
	allocated int64
	edits     edits
}

// slotGroups are the bind groups of a dispatch slot on a route: one with the params of the first dispatch
// that is like it, and, once it is needed, one with its own.
type slotGroups struct{ first, own gpu.BindGroup }

// SetCheck makes every Step check itself before it submits.
func (x *Executor) SetCheck(on bool) { x.check = on }

// Loading is where the time of Load went.
type Loading struct {
	Prepack time.Duration // bringing weights into the order that kernels read them in, on the host
	Upload  time.Duration // writing them to the device
	Compile time.Duration // making pipelines
}

// Loading is where the time went when the graph was loaded.
func (x *Executor) Loading() Loading { return x.loading }

// Progress is told how far something has come that takes its time; its error ends that. Cancelling is one.
type Progress func(phase string, done, total int) error

// UploadPhase is the phase of Load that counts bytes; the others count things.
const UploadPhase = "upload weights"

// Load puts a graph on a device: memory, weights, kernels. progress, which may be nil, is told before each
// tensor and each kernel.
func Load(dev gpu.Device, g *graph.Graph, o graph.LiveOptions, progress Progress) (x *Executor, err error) {
	if progress == nil {
		progress = func(string, int, int) error { return nil }
	}
	live, err := graph.NewLive(g, o)
	if err != nil {
		return nil, err
	}
	x = &Executor{
		dev: dev, g: g, live: live, pipes: map[*graph.Kernel]gpu.Pipeline{}, start: time.Now(),
		firstPiece: firstPiece,
	}
	x.last = &x.flights[0]
	defer func() {
		if err != nil {
			x.Release()
			x = nil
		}
	}()
	if err := x.allocate(progress); err != nil {
		return x, err
	}
	if err := x.compile(progress); err != nil {
		return x, err
	}
	if err := x.bind(); err != nil {
		return x, err
	}
	x.allocated += int64(len(x.arena.shadow))
	x.hasRun = make([]bool, len(g.Dispatches)*graph.MaxRoutes)
	x.rates = newRates(dev.Info().Type)
	if dev.Info().Timestamps {
		if x.clock, err = measure.NewClock(dev, max(4, 2*len(g.Dispatches))); err != nil {
			return x, err
		}
		x.own(x.clock)
		x.last.ticks = make([]uint64, 0, 2*len(g.Dispatches))
		x.last.runs = make([]int, 0, len(g.Dispatches))
		for i := range x.flights {
			x.flights[i].ticks = slices.Grow(x.flights[i].ticks, 2)
		}
		if err = x.newSheets(); err != nil {
			return x, err
		}
	}
	return x, nil
}

func (x *Executor) own(o interface{ Release() }) { x.owned = append(x.owned, o) }

// allocate makes the buffers and fills those of constants, and of State that starts as something.
func (x *Executor) allocate(progress Progress) error {
	x.buffers = make([]gpu.Buffer, x.g.FirstOwn+len(x.g.Values))
	x.begins = make([]uint64, len(x.buffers))
	for i := range x.g.Layouts {
		p := &x.g.Layouts[i]
		for s, n := range p.Slots {
			if err := x.allocateOne(p.Base+s, fmt.Sprintf("slot %d of layout %d", s, i), n); err != nil {
				return err
			}
		}
	}
	if err := x.allocateConstants(); err != nil {
		return err
	}
	if err := x.allocateOutputs(); err != nil {
		return err
	}
	done, total := 0, 0
	for i := range x.g.Values {
		if val := &x.g.Values[i]; val.Load != nil && x.g.HasOwn(graph.ValueID(i)) {
			total += int(val.Bytes)
		}
	}
	for i := range x.g.Values {
		val := &x.g.Values[i]
		if !x.g.HasOwn(graph.ValueID(i)) {
			continue
		}
		if x.buffers[x.g.FirstOwn+i] == nil {
			if err := x.allocateOne(x.g.FirstOwn+i, val.Name, val.Bytes); err != nil {
				return err
			}
		}
		if val.Load != nil {
			if err := progress(UploadPhase, done, total); err != nil {
				return err
			}
			if err := x.fill(graph.ValueID(i)); err != nil {
				return err
			}
			done += int(val.Bytes)
		}
	}
	if err := progress(UploadPhase, done, total); err != nil {
		return err
	}
	size := x.placeOutputs()
	if size == 0 {
		return nil
	}
	for i := range x.flights {
		r, err := x.dev.NewReadback("outputs", size)
		if err != nil {
			return err
		}
		x.own(r)
		x.flights[i].readback = r
	}
	return nil
}

// placeOutputs finds the places of outputs in a readback, and its size. What lies side by side in a buffer of
// outputs does so there.
func (x *Executor) placeOutputs() (size uint64) {
	x.readAt = make([]uint64, len(x.g.Values))
	buffers := map[gpu.Buffer]uint64{}
	for _, v := range x.g.Outputs() {
		root := x.g.Root(v)
		i := x.g.FirstOwn + int(root)
		if x.g.Values[root].Role != graph.Output {
			x.readAt[v] = size
			size += uint64(x.g.Values[v].Bytes+15) / 16 * 16
			continue
		}
		at, placed := buffers[x.buffers[i]]
		if !placed {
			at = size
			buffers[x.buffers[i]], size = at, at+(x.buffers[i].Size()+15)/16*16
		}
		x.readAt[v] = at + x.begins[i]
	}
	return size
}

func (x *Executor) allocateOne(memory int, label string, bytes int64) error {
	b, err := x.dev.NewBuffer(label, uint64(bytes), gpu.Storage)
	if err != nil {
		return fmt.Errorf("allocate %s: %w", label, err)
	}
	x.own(b)
	x.buffers[memory] = b
	x.allocated += bytes
	return nil
}

// Constants lie in buffers of this size at most, or in one of their own where they are larger: a submit takes
// the host the longer the more buffers its commands use, by some 40 ns each.
const constantsBytes = 256 << 20

// allocateConstants makes the buffers of all constants.
func (x *Executor) allocateConstants() error {
	var constants []graph.ValueID
	for i := range x.g.Values {
		if v := graph.ValueID(i); x.g.Values[v].Role == graph.Constant && x.g.HasOwn(v) {
			constants = append(constants, v)
		}
	}
	most := int64(min(constantsBytes, x.dev.Info().Limits.MaxBufferSize))
	return x.allocateTogether("constants from ", constants, func(_, v graph.ValueID, at int64) bool {
		return at+x.g.Values[v].Bytes <= most
	})
}

// allocateOutputs makes the buffers of outputs. Those that the same dispatches give and that only the host
// reads lie in one, so that one copy brings them there.
func (x *Executor) allocateOutputs() error {
	var outputs []graph.ValueID
	for _, v := range x.g.Outputs() {
		if x.g.Values[v].Role == graph.Output && x.g.HasOwn(v) && !slices.Contains(outputs, v) {
			outputs = append(outputs, v)
		}
	}
	return x.allocateTogether("", outputs, func(first, v graph.ValueID, _ int64) bool {
		return x.g.Beside(first, v)
	})
}

// allocateTogether makes buffers in which values lie one after another. fits says whether one can lie at a
// place after the first of a buffer.
func (x *Executor) allocateTogether(label string, values []graph.ValueID,
	fits func(first, v graph.ValueID, at int64) bool,
) error {
	align := int64(max(256, x.dev.Info().Limits.StorageAlignment))
	for len(values) > 0 {
		first, size, n := values[0], int64(0), 0
		for ; n < len(values); n++ {
			v, at := values[n], (size+align-1)/align*align
			if n > 0 && !fits(first, v, at) {
				break
			}
			x.begins[x.g.FirstOwn+int(v)], size = uint64(at), at+x.g.Values[v].Bytes
		}
		if err := x.allocateOne(x.g.FirstOwn+int(first), label+x.g.Values[first].Name, size); err != nil {
			return err
		}
		for _, v := range values[:n] {
			x.buffers[x.g.FirstOwn+int(v)] = x.buffers[x.g.FirstOwn+int(first)]
		}
		values = values[n:]
	}
	return nil
}

// piece is how much is uploaded at a time.
const piece = 16 << 20

// zero fills a buffer with zeros.
func (x *Executor) zero(b gpu.Buffer, val *graph.Value) error {
	zeros := make([]byte, min(piece, val.Bytes))
	for at := int64(0); at < val.Bytes; at += piece {
		if err := x.dev.Write(b, uint64(at), zeros[:min(piece, val.Bytes-at)]); err != nil {
			return fmt.Errorf("clear %s: %w", val.Name, err)
		}
	}
	return nil
}

// fill uploads a constant, or what State starts as, in pieces that a driver's staging takes well.
func (x *Executor) fill(v graph.ValueID) error {
	val, b, begin := &x.g.Values[v], x.buffers[x.g.FirstOwn+int(v)], x.begins[x.g.FirstOwn+int(v)]
	if val.Load == nil {
		return x.zero(b, val)
	}
	start := time.Now()
	data, err := val.Load()
	if err != nil {
		return fmt.Errorf("load %s: %w", val.Name, err)
	}
	packed := time.Now()
	x.loading.Prepack += packed.Sub(start)
	defer func() { x.loading.Upload += time.Since(packed) }()
	if int64(len(data)) != val.Bytes {
		return fmt.Errorf("load %s: %d bytes for %v %s, want %d", val.Name, len(data), val.MaxDims, val.DType,
			val.Bytes)
	}
	for at := 0; at < len(data); at += piece {
		if err := x.dev.Write(b, begin+uint64(at), data[at:min(at+piece, len(data))]); err != nil {
			return fmt.Errorf("upload %s: %w", val.Name, err)
		}
	}
	return nil
}

func (x *Executor) compile(progress Progress) error {
	for i, k := range x.g.Kernels {
		if err := progress("compile kernels", i, len(x.g.Kernels)); err != nil {
			return err
		}
		start := time.Now()
		p, err := x.dev.NewPipeline(gpu.PipelineDesc{
			Label: x.g.KernelNames[k], Source: k.Source, Entry: "main",
			Bindings: k.Bindings(),
		})
		if err != nil {
			return fmt.Errorf("compile kernel %s: %w", x.g.KernelNames[k], err)
		}
		x.own(p)
		x.pipes[k] = p
		x.loading.Compile += time.Since(start)
		x.compiled = append(x.compiled,
			trace.Compiled{Kernel: x.g.KernelNames[k], NS: trace.Measured(time.Since(start).Nanoseconds())})
	}
	return progress("compile kernels", len(x.g.Kernels), len(x.g.Kernels))
}

// bind makes the params arena and the bind groups of every slot.
func (x *Executor) bind() error {
	if err := x.arena.make(x.dev, x.g, x.live.Plans); err != nil {
		return err
	}
	if x.arena.buffer != nil {
		x.own(x.arena.buffer)
	}
	for i := range x.g.Layouts {
		groups := make([][]slotGroups, len(x.g.Dispatches))
		for d := range groups {
			var err error
			if groups[d], err = x.bindDispatch(trace.DispatchID(d), &x.g.Layouts[i]); err != nil {
				return err
			}
		}
		x.groups = append(x.groups, groups)
	}
	for i := range x.g.Ops {
		x.arena.take(&x.g.Ops[i], &x.live.Plans[i])
	}
	return nil
}

// bindDispatch makes the bind groups of a dispatch on every route that a corner takes.
func (x *Executor) bindDispatch(id trace.DispatchID, p *graph.Layout) ([]slotGroups, error) {
	d := &x.g.Dispatches[id]
	o := &x.g.Ops[d.Op]
	groups := make([]slotGroups, len(o.Spec.Slots[d.Slot].Uses))
	for r := range groups {
		if o.Aliased || len(groups) > 1 && !x.g.Compiled(o, d.Slot, r) {
			continue // no corner takes this route: what it would read may have no memory then
		}
		var err error
		if groups[r].first, err = x.newGroup(id, r, p, x.arena.blocks[id].first); err != nil {
			return nil, err
		}
		x.boundN++
	}
	return groups, nil
}

// newGroup makes a bind group of a dispatch on a route, with the params block of one that is like it.
func (x *Executor) newGroup(id trace.DispatchID, route int, p *graph.Layout, params trace.DispatchID) (
	gpu.BindGroup, error,
) {
	d := &x.g.Dispatches[id]
	o := &x.g.Ops[d.Op]
	use := &o.Spec.Slots[d.Slot].Uses[route]
	var bindings []gpu.Binding
	for _, bind := range use.Bind {
		bindings = append(bindings, x.binding(p, bind.Value))
	}
	if n := use.Kernel.ParamsBytes(); n > 0 {
		at := uint64(x.arena.blocks[params].begin)
		bindings = append(bindings, gpu.Binding{Buffer: x.arena.buffer, Offset: at, Size: uint64(n)})
	}
	label := fmt.Sprintf("%s/%s", o.Name, x.g.KernelNames[use.Kernel])
	group, err := x.dev.NewBindGroup(label, x.pipes[use.Kernel], bindings)
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", label, err)
	}
	x.own(group)
	return group, nil
}

// group is the bind group of a dispatch on the route in force, with the params block that it reads now. One
// that is made for that counts as the step's.
func (x *Executor) group(s *stepLog, id trace.DispatchID, route int) (gpu.BindGroup, error) {
	layout := x.live.Layout
	g := &x.groups[layout][id][route]
	if x.arena.read(id) == x.arena.blocks[id].first {
		return g.first, nil
	}
	if g.own == nil {
		var err error
		if g.own, err = x.newGroup(id, route, &x.g.Layouts[layout], id); err != nil {
			return nil, err
		}
		s.bound++
	}
	return g.own, nil
}

// place is where a value lies in the step: a buffer, and where in it.
func (x *Executor) place(v graph.ValueID) (gpu.Buffer, uint64) {
	i := x.live.Memory(v)
	return x.buffers[i], x.begins[i]
}

// binding is a value as kernels are bound to it.
func (x *Executor) binding(p *graph.Layout, v graph.ValueID) gpu.Binding {
	i := x.g.Memory(p, v)
	b := gpu.Binding{Buffer: x.buffers[i], Offset: x.begins[i]}
	if root := &x.g.Values[x.g.Root(v)]; root.Role == graph.Constant || root.Role == graph.Output {
		b.Size = uint64(root.Bytes)
	}
	return b
}

// Live is the graph's live shapes and plans.
func (x *Executor) Live() *graph.Live { return x.live }

// Graph is the graph that is loaded.
func (x *Executor) Graph() *graph.Graph { return x.g }

// Release frees what the executor made, last made first.
func (x *Executor) Release() {
	for i := len(x.owned) - 1; i >= 0; i-- {
		x.owned[i].Release()
	}
	x.owned = nil
}

// ErrNotRead says that an output was not among what the last step read back.
var ErrNotRead = errors.New("output was not read back")

// Output copies an output that the last Step read back to dst, at most its live bytes, and returns how many.
func (x *Executor) Output(v graph.ValueID, dst []byte) (int, error) {
	i := slices.Index(x.last.read, v)
	if !x.last.ran || i < 0 {
		return 0, fmt.Errorf("value %d: %w", v, ErrNotRead)
	}
	n := min(len(dst), int(x.last.sizes[i]))
	return n, x.last.readback.Read(dst[:n], x.readAt[v])
}

// ReadValue copies what is now in a value's memory, as much as fits dst. Memory that values share holds what
// was written last: only outputs, State and constants are sure to be themselves.
func (x *Executor) ReadValue(v graph.ValueID, dst []byte) error { return x.ReadPart(v, 0, dst) }

// ReadPart is ReadValue from a byte on, a multiple of 4, of so many bytes, a multiple of 4 too.
func (x *Executor) ReadPart(v graph.ValueID, from uint64, dst []byte) error {
	b, begin := x.place(v)
	return x.read(b, begin+from, dst)
}

// read copies a part of a buffer out, and waits for it.
func (x *Executor) read(b gpu.Buffer, from uint64, dst []byte) error {
	r, err := x.dev.NewReadback("read", uint64(len(dst)))
	if err != nil {
		return err
	}
	defer r.Release()
	enc, err := x.dev.Begin("read")
	if err != nil {
		return err
	}
	if err := enc.CopyOut(b, from, r, 0, uint64(len(dst))); err != nil {
		enc.Discard()
		return err
	}
	if err := enc.Submit(); err != nil {
		return err
	}
	if err := x.dev.Wait(); err != nil {
		return err
	}
	return r.Read(dst, 0)
}

// WriteValue overwrites the memory of a value, from its start.
func (x *Executor) WriteValue(v graph.ValueID, data []byte) error { return x.writePart(v, 0, data) }

// writePart is WriteValue from a byte on, a multiple of 4.
func (x *Executor) writePart(v graph.ValueID, from uint64, data []byte) error {
	b, begin := x.place(v)
	return x.dev.Write(b, begin+from, data)
}
