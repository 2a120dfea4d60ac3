package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// submitNS is the maximum GPU time that one submit should take, in ns, because a step reacts to a
// cancellation only between submits.
const submitNS = 100e6

// stepLog holds what is measured and counted in one step. Later steps reuse its memory.
type stepLog struct {
	timing                               Timing
	cold, pipelined                      bool
	resize, upload, encode, submit, wait int64 // durations in ns
	// overlapped is the part of resize, upload, encode and submit during which the GPU still had work from
	// an earlier submit. running is the time during which the host knows the GPU to be busy: from the first
	// submit to the end of the wait for the last one. All times except `wait` may include work of the host
	// for the next step.
	overlapped, running int64
	total               int64
	// pieces is true if the step is submitted in pieces, so that the GPU starts the first dispatches while
	// the host encodes the later ones.
	pieces                         bool
	passes, submits, writes, polls int
	bound                          int // number of bind groups created
	writeBytes                     int64
	// runs holds the number of dispatches between each pair of timestamps, at the timing levels block and
	// dispatch. ticks holds the two timestamps of each pair.
	runs  []int
	ticks []uint64
	gcs   int // number of pauses of Go's garbage collector; gcNS is their total duration
	gcNS  int64
	ran   bool
	read  []graph.ValueID // outputs copied to the readback buffer
	// start is when the step started, begun is when its first submit was made, and ended is when the wait for
	// its last submit ended.
	start, begun, ended time.Time
}

// Step resizes the graph to the given inputs, uploads them, runs the graph and waits. If Step returns nil,
// the outputs in in.Read can be read. If planning fails, or ctx is canceled before planning has ended, the
// graph does not change. After a later error, the new shapes remain, and State and outputs hold the results
// of those dispatches that the GPU ran. Later steps can run normally after any of these errors.
func (x *Executor) Step(ctx context.Context, in *graph.StepInput, t Timing) error {
	if err := x.Abandon(); err != nil {
		return err
	}
	f := &x.flights[0]
	x.last = f
	f.begin(x.level(t), in.Read)
	f.pieces = true
	if x.clock != nil {
		f.stamps = x.clock.Stamps
	}
	if err := x.resize(ctx, in); err != nil {
		return err
	}
	f.number = x.number
	resized := time.Now()
	f.resize = resized.Sub(f.start).Nanoseconds()
	if !x.Loaded() {
		return nil
	}
	if err := x.upload(f, in); err != nil {
		return err
	}
	f.upload = time.Since(resized).Nanoseconds()
	if x.check {
		if err := x.Check(); err != nil {
			return err
		}
	}
	return x.execute(ctx, f, in)
}

// level returns the timing level that a step really uses if the level t is requested.
func (x *Executor) level(t Timing) Timing {
	if x.clock == nil || len(x.g.Dispatches) == 0 {
		return TimingOff
	}
	return t
}

// resize applies the shapes of the step's inputs to the graph. If it returns an error, nothing has changed.
func (x *Executor) resize(ctx context.Context, in *graph.StepInput) error {
	for i := range in.Inputs {
		a := &in.Inputs[i]
		if err := x.live.SetDims(a.Value, a.Dims...); err != nil {
			x.live.Discard()
			return err
		}
		val := &x.g.Values[a.Value]
		n := val.DType.Bytes(graph.Numel(a.Dims))
		if a.From != nil {
			if err := x.checkFrom(a, n); err != nil {
				x.live.Discard()
				return err
			}
			continue
		}
		if int64(len(a.Data)) != n {
			x.live.Discard()
			return fmt.Errorf("input %s: got %d bytes, but dims %v of %s need %d: %w", val.Name, len(a.Data),
				a.Dims, val.DType, n, graph.ErrShape)
		}
		if val.HostRead {
			if err := x.live.SetHost(a.Value, a.Host); err != nil {
				x.live.Discard()
				return err
			}
		}
	}
	for _, v := range in.SymInts {
		if err := x.live.SetInt(v.Value, v.Int); err != nil {
			x.live.Discard()
			return err
		}
	}
	for _, v := range in.Read {
		if v < 0 || int(v) >= len(x.g.Values) || !slices.Contains(x.g.Outputs(), v) {
			x.live.Discard()
			return fmt.Errorf("cannot read value %d back: it is not an output of the graph", v)
		}
	}
	if err := x.live.Propagate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		x.live.Discard()
		return err
	}
	if x.Loaded() {
		x.live.EachPlanned(x.arena.take)
	}
	if x.live.Changed() {
		x.resizes++
	}
	x.live.Commit()
	x.number++
	return nil
}

// checkFrom returns an error if an input cannot be copied from the output a.From. n is the size of the input
// in bytes.
func (x *Executor) checkFrom(a *graph.InputData, n int64) error {
	val, from := &x.g.Values[a.Value], *a.From
	if from < 0 || int(from) >= len(x.g.Values) || !slices.Contains(x.g.Outputs(), from) {
		return fmt.Errorf("input %s cannot be copied from value %d, which is not an output of the graph",
			val.Name, from)
	}
	switch source := &x.g.Values[from]; {
	case val.HostRead:
		return fmt.Errorf("input %s cannot be copied from %s on the device, because the host needs the contents of this input",
			val.Name, source.Name)
	case source.Kind != graph.Tensor || source.DType != val.DType || source.Bytes < n:
		return fmt.Errorf("input %s cannot be copied from %s: the input needs %d bytes of %s, but the output has %d bytes of %s: %w",
			val.Name, source.Name, n, val.DType, source.Bytes, source.DType, graph.ErrShape)
	}
	return nil
}

// upload writes the inputs and the changed params to the device.
func (x *Executor) upload(f *flight, in *graph.StepInput) error {
	if err := x.uploadInputs(f, in); err != nil {
		return err
	}
	return x.uploadParams(f)
}

func (x *Executor) uploadParams(f *flight) error {
	n, err := x.arena.upload(x.dev)
	if n > 0 {
		f.writes++
		f.writeBytes += int64(n)
	}
	return err
}

// uploadInputs uploads the inputs whose data is on the host.
func (x *Executor) uploadInputs(f *flight, in *graph.StepInput) error {
	for i := range in.Inputs {
		a := &in.Inputs[i]
		if a.From != nil {
			continue
		}
		if err := x.WriteValue(a.Value, a.Data); err != nil {
			return fmt.Errorf("upload input %s: %w", x.g.Values[a.Value].Name, err)
		}
		f.writes++
		f.writeBytes += int64(len(a.Data))
	}
	return nil
}

// execute encodes and runs the active dispatches. It uses several submits if a single submit would take too
// long.
func (x *Executor) execute(ctx context.Context, f *flight, in *graph.StepInput) error {
	active := x.live.Active()
	f.cold = x.cold(active)
	f.bytes, f.flops = x.work(active)
	for first := 0; first == 0 || first < len(active); {
		n := x.shortRun(active[first:])
		if first > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := x.submit(f, active[first:first+n], first, len(active), in); err != nil {
			return err
		}
		if first += n; n == 0 {
			// the graph has no dispatches
			break
		}
	}
	return x.end(f)
}

// readTicks reads the timestamps that a finished step resolved. These can be timestamps of earlier steps too.
func (x *Executor) readTicks(f *flight) error {
	if f.timing == TimingOff {
		return nil
	}
	if l := f.line(); l != nil {
		l.begun, l.ended = f.begun, f.ended
		if !f.resolves {
			return nil
		}
		return x.arrived(f.sheet)
	}
	f.ticks = f.ticks[:f.stampCount()]
	if err := f.stamps.Read(f.ticks); err != nil {
		return fmt.Errorf("read timestamps: %w", err)
	}
	x.learn(f.ticks, f.begun, f.ended)
	return nil
}

// learn updates the clock with the GPU timestamps of some work. `begun` and `ended` are host times before and
// after this work.
func (x *Executor) learn(ticks []uint64, begun, ended time.Time) {
	c := x.clock
	c.See(ticks)
	c.Take(measure.Reading{
		First: ticks[0], Last: ticks[len(ticks)-1], Before: c.SinceStart(begun), After: c.SinceStart(ended),
	})
}

// shortRun returns how many dispatches at the start of `run` should be in one submit, according to the
// expected times.
func (x *Executor) shortRun(run []trace.DispatchID) int {
	spent := 0.0
	for i, id := range run {
		ns := x.rates.expect(x.work(run[i : i+1]))
		if i > 0 && x.g.Dispatches[run[i-1]].Op != x.g.Dispatches[id].Op && spent+ns > submitNS {
			return i
		}
		spent += ns
	}
	return len(run)
}

// work returns the modeled memory traffic of dispatches in bytes, and their modeled FLOPs.
func (x *Executor) work(run []trace.DispatchID) (bytes, flops int64) {
	for _, id := range run {
		d := &x.g.Dispatches[id]
		l := &x.live.Plans[d.Op].Launches[d.Slot]
		bytes, flops = bytes+l.Bytes, flops+l.FLOPs
	}
	return bytes, flops
}

// cold reports whether the times of a step would be misleading. They are if a dispatch runs for the first
// time, or if the GPU has been idle long enough to lower its clocks.
func (x *Executor) cold(active []trace.DispatchID) bool {
	if x.dev.Info().Type != gpu.CPU && time.Since(x.lastEnd) > time.Second {
		return true
	}
	for _, id := range active {
		if !*x.ranOn(id) {
			return true
		}
	}
	return false
}

// ranOn returns a pointer to the flag that records whether a dispatch has run on its current route.
func (x *Executor) ranOn(id trace.DispatchID) *bool {
	return &x.hasRun[int(id)*graph.MaxRoutes+x.live.Plans[x.g.Dispatches[id].Op].Route]
}

// encode encodes the dispatches in `run`. `from` is the position of the first of them in the step, and `all`
// is the number of dispatches in the step. Before the first dispatch of the step, encode copies the inputs
// that are already on the device. After the last dispatch of the step, it copies the outputs that are to be
// read back.
func (x *Executor) encode(enc gpu.Encoder, s *flight, run []trace.DispatchID, from, all int,
	in *graph.StepInput,
) error {
	last := from+len(run) == all
	if s.timing == TimingStep && from == 0 {
		if err := enc.Timestamp(s.stamps, s.stampsAt); err != nil {
			return err
		}
	}
	if from == 0 {
		if err := x.encodeInputs(enc, in); err != nil {
			return err
		}
	}
	for i, id := range run {
		d := &x.g.Dispatches[id]
		first := i == 0 || !s.timing.together(x.g, run[i-1], id)
		final := i == len(run)-1 || !s.timing.together(x.g, id, run[i+1])
		if s.timing >= TimingBlock && first {
			s.runs = append(s.runs, 0)
			if err := enc.Timestamp(s.stamps, 2*len(s.runs)-2); err != nil {
				return err
			}
		}
		if first || x.live.Pass(run[i-1]) != x.live.Pass(id) {
			if err := enc.BeginPass(x.g.Ops[d.Op].Name); err != nil {
				return err
			}
			s.passes++
		}
		if s.stays != nil && s.stays[id].Pipe != nil {
			enc.Dispatch(s.stays[id].Pipe, s.stays[id].Group, 1, 1, 1)
		}
		if err := x.encodeDispatch(enc, &s.stepLog, id); err != nil {
			return err
		}
		if final || x.live.Pass(run[i+1]) != x.live.Pass(id) {
			if err := enc.EndPass(); err != nil {
				return fmt.Errorf("cannot end the pass of operator %s: %w", x.g.Ops[d.Op].Name, err)
			}
		}
		if s.timing < TimingBlock {
			continue
		}
		s.runs[len(s.runs)-1]++
		if final {
			if err := enc.Timestamp(s.stamps, 2*len(s.runs)-1); err != nil {
				return err
			}
		}
	}
	if !last {
		return nil
	}
	if s.timing == TimingStep {
		if err := enc.Timestamp(s.stamps, s.stampsAt+1); err != nil {
			return err
		}
	}
	if s.timing != TimingOff && s.resolves {
		if err := enc.Resolve(s.stamps, s.stampsAt+s.stampCount()); err != nil {
			return err
		}
	}
	return x.encodeOutputs(enc, s, in.Read)
}

// encodeOutputs copies the outputs to the readback buffer. Adjacent outputs share one copy.
func (x *Executor) encodeOutputs(enc gpu.Encoder, s *flight, read []graph.ValueID) error {
	for i := 0; i < len(read); {
		first := read[i]
		from, begin := x.place(first)
		end := begin
		for ; i < len(read); i++ {
			b, at := x.place(read[i])
			if b != from || at < begin || at-begin != x.readAt[read[i]]-x.readAt[first] {
				break
			}
			n := x.LiveSize(read[i])
			s.sizes = append(s.sizes, n)
			end = max(end, at+uint64(n))
		}
		if err := enc.CopyOut(from, begin, s.readback, x.readAt[first], end-begin); err != nil {
			return fmt.Errorf("read %s: %w", x.g.Values[first].Name, err)
		}
	}
	return nil
}

// encodeInputs copies the inputs that are outputs of the previous step and are still on the device.
func (x *Executor) encodeInputs(enc gpu.Encoder, in *graph.StepInput) error {
	for i := range in.Inputs {
		a := &in.Inputs[i]
		if a.From == nil {
			continue
		}
		from, begin := x.place(*a.From)
		to, at := x.place(a.Value)
		if err := enc.Copy(from, begin, to, at, uint64(x.LiveSize(a.Value))); err != nil {
			return fmt.Errorf("copy %s to input %s: %w",
				x.g.Values[*a.From].Name, x.g.Values[a.Value].Name, err)
		}
	}
	return nil
}

// stampCount returns how many timestamps the step writes.
func (s *stepLog) stampCount() int {
	switch s.timing {
	case TimingOff:
		return 0
	case TimingStep:
		return 2
	}
	return 2 * len(s.runs)
}

// encodeDispatch encodes a dispatch with its current grid, route and bind group.
func (x *Executor) encodeDispatch(enc gpu.Encoder, s *stepLog, id trace.DispatchID) error {
	d := &x.g.Dispatches[id]
	p := &x.live.Plans[d.Op]
	uses, route := x.g.Ops[d.Op].Spec.Slots[d.Slot].Uses, p.Route
	if len(uses) == 1 {
		route = 0
	}
	group, err := x.group(s, id, route)
	if err != nil {
		return err
	}
	g := &p.Launches[d.Slot].Grid
	enc.Dispatch(x.pipes[uses[route].Kernel], group, g.X, g.Y, g.Z)
	return nil
}
