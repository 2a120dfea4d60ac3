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

// Executor runs a graph on a device. An Executor owns all objects that it creates on the device; the caller
// keeps owning the device. Only one goroutine at a time may use an Executor.
type Executor struct {
	dev     gpu.Device
	g       *graph.Graph
	live    *graph.Live
	buffers []gpu.Buffer // indexed by memory number (Graph.Memory); nil if the memory is unused
	begins  []uint64     // offset of each value in its buffer, indexed by memory number
	arena   paramsArena
	pipes   map[*graph.Kernel]gpu.Pipeline
	// groups holds the bind groups, indexed by layout, dispatch and route. If a slot has one Use for all
	// routes, only the route index 0 exists (see graph.Slot).
	groups   [][][]slotGroups
	readAt   []uint64 // offset of each output in a flight's readback buffer, indexed by value
	clock    *measure.Clock
	owned    []interface{ Release() } // in order of creation
	flights  [2]flight
	last     *flight // the last finished step; if no step has finished, last.ran is false
	number   int     // number of steps so far whose shapes were committed to live
	hasRun   []bool  // whether a dispatch ran on a route; index: dispatch*graph.MaxRoutes + route
	rates    rates
	pauses   pauses
	canary   *measure.Probe // clock probe; nil if there is none
	lastEnd  time.Time
	sheets   sheets
	start    time.Time
	boundN   int
	compiled []trace.Compiled
	loading  Loading
	check    bool
	resizes  int // number of committed resizes
	// firstPiece is the number of dispatches in the first submit of a step.
	firstPiece int
	// allocated is the total size of the executor's device memory, in bytes.
	allocated int64
	edits     edits
}

// slotGroups holds the bind groups of a dispatch slot on a route. They differ in the params block that they
// bind: first binds the block of the first dispatch that is alike (see paramsArena), and own binds the
// dispatch's own block. own is created when it is first needed.
type slotGroups struct{ first, own gpu.BindGroup }

// SetCheck makes every Step call Check before it submits commands.
func (x *Executor) SetCheck(on bool) { x.check = on }

// Loading holds how much time Load spent on each kind of work.
type Loading struct {
	Prepack time.Duration // reordering weights on the host into the layout that kernels read
	Upload  time.Duration // writing weights to the device
	Compile time.Duration // compiling pipelines
}

// Loading returns how much time Load spent on each kind of work.
func (x *Executor) Loading() Loading { return x.loading }

// Progress is called to report the progress of a long operation. If Progress returns an error, for example
// because the user canceled, the operation stops.
type Progress func(phase string, done, total int) error

// UploadPhase is the name of the phase of Load whose progress is counted in bytes. Progress counts items in
// all other phases.
const UploadPhase = "upload weights"

// Load puts a graph on a device: it allocates memory, uploads weights and compiles kernels. `progress` may be
// nil; it is called before each tensor and each kernel.
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

// allocate creates the buffers and writes the initial contents of constants and State.
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

// placeOutputs assigns each output an offset in the readback buffer, and returns the size that this buffer
// needs. Outputs that share a device buffer keep their distance from each other, so that one copy can read
// them back.
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

// constantsBytes is the maximum size of a buffer that several constants share. A larger constant has a
// buffer of its own. Sharing saves host time: a submit takes about 40 ns longer for each buffer that its
// commands use.
const constantsBytes = 256 << 20

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

// allocateOutputs creates the buffers of outputs. The outputs of a group (see graph.OutputGroups) share a
// buffer, so that one copy reads them all back.
func (x *Executor) allocateOutputs() error {
	for _, group := range x.g.OutputGroups() {
		all := func(_, _ graph.ValueID, _ int64) bool { return true }
		if err := x.allocateTogether("", group, all); err != nil {
			return err
		}
	}
	return nil
}

// allocateTogether creates buffers that each hold several values, one after another. `fits` decides whether
// value v can be stored at byte offset `at` of the buffer whose first value is `first`.
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

// piece is the maximum size of one upload, in bytes.
const piece = 16 << 20

func (x *Executor) zero(b gpu.Buffer, val *graph.Value) error {
	zeros := make([]byte, min(piece, val.Bytes))
	for at := int64(0); at < val.Bytes; at += piece {
		if err := x.dev.Write(b, uint64(at), zeros[:min(piece, val.Bytes-at)]); err != nil {
			return fmt.Errorf("clear %s: %w", val.Name, err)
		}
	}
	return nil
}

// fill uploads a constant or the initial content of State. fill uploads in pieces, because the staging memory
// of drivers handles writes of moderate size well.
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
		return fmt.Errorf("load %s: got %d bytes, but dims %v of %s need %d", val.Name, len(data),
			val.MaxDims, val.DType, val.Bytes)
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

// bind creates the params arena and the bind groups of every slot.
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

// bindDispatch creates the bind groups of a dispatch for every route that at least one corner uses.
func (x *Executor) bindDispatch(id trace.DispatchID, p *graph.Layout) ([]slotGroups, error) {
	d := &x.g.Dispatches[id]
	o := &x.g.Ops[d.Op]
	groups := make([]slotGroups, len(o.Spec.Slots[d.Slot].Uses))
	for r := range groups {
		if o.Aliased || len(groups) > 1 && !x.g.Compiled(o, d.Slot, r) {
			// No corner uses this route, so the buffers that the route reads may not exist.
			continue
		}
		var err error
		if groups[r].first, err = x.newGroup(id, r, p, x.arena.blocks[id].first); err != nil {
			return nil, err
		}
		x.boundN++
	}
	return groups, nil
}

// newGroup creates a bind group of dispatch id on a route. `params` is the dispatch whose params block the
// group binds: id itself or the first dispatch that is alike (see paramsArena).
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

// group returns the bind group of a dispatch on a route, with the params block that the dispatch currently
// reads. If this bind group does not exist yet, group creates it and counts it in the step's log.
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

// place returns the buffer in which the current layout stores a value, and the offset of the value in the
// buffer.
func (x *Executor) place(v graph.ValueID) (gpu.Buffer, uint64) {
	i := x.live.Memory(v)
	return x.buffers[i], x.begins[i]
}

// binding returns the buffer range to which a value is bound in a layout.
func (x *Executor) binding(p *graph.Layout, v graph.ValueID) gpu.Binding {
	i := x.g.Memory(p, v)
	b := gpu.Binding{Buffer: x.buffers[i], Offset: x.begins[i]}
	if root := &x.g.Values[x.g.Root(v)]; root.Role == graph.Constant || root.Role == graph.Output {
		b.Size = uint64(root.Bytes)
	}
	return b
}

// Live returns the graph's current shapes and plans.
func (x *Executor) Live() *graph.Live { return x.live }

// Graph returns the loaded graph.
func (x *Executor) Graph() *graph.Graph { return x.g }

// Release frees the executor's device objects in the reverse order of their creation.
func (x *Executor) Release() {
	for i := len(x.owned) - 1; i >= 0; i-- {
		x.owned[i].Release()
	}
	x.owned = nil
}

// ErrNotRead reports that the last step did not read an output back.
var ErrNotRead = errors.New("the last step did not read this output back: list it in StepInput.Read")

// Output copies to dst an output that was read back by the last step, and returns the number of bytes copied.
// Output copies at most the live bytes of the output.
func (x *Executor) Output(v graph.ValueID, dst []byte) (int, error) {
	i := slices.Index(x.last.read, v)
	if !x.last.ran || i < 0 {
		return 0, fmt.Errorf("value %d: %w", v, ErrNotRead)
	}
	n := min(len(dst), int(x.last.sizes[i]))
	return n, x.last.readback.Read(dst[:n], x.readAt[v])
}

// ReadValue fills dst with the current content of a value's memory, from the start of the value. If several
// values share this memory, the content is that of the value written last. Outputs, State and constants do
// not share their memory in this way.
func (x *Executor) ReadValue(v graph.ValueID, dst []byte) error { return x.ReadPart(v, 0, dst) }

// ReadPart copies part of a value's memory to `dst`, like ReadValue. The start offset and the length of `dst`
// must be multiples of 4 bytes.
func (x *Executor) ReadPart(v graph.ValueID, from uint64, dst []byte) error {
	b, begin := x.place(v)
	return x.read(b, begin+from, dst)
}

// read copies part of a buffer to `dst` and waits for the copy.
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

// WriteValue overwrites the memory of a value, from the start of the value.
func (x *Executor) WriteValue(v graph.ValueID, data []byte) error { return x.writePart(v, 0, data) }

// writePart overwrites the memory of a value starting at a byte offset that must be a multiple of 4.
func (x *Executor) writePart(v graph.ValueID, from uint64, data []byte) error {
	b, begin := x.place(v)
	return x.dev.Write(b, begin+from, data)
}
