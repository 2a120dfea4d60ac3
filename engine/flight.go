package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// A step goes through three stages: it is prepared (its shapes and params in force, its commands recorded),
// sent, and finished (waited for). Step does all of it and submits piece by piece while it encodes. Prepare,
// Send and Finish do one each, so that the host prepares the next step, or sends it, while the GPU is at this
// one. Here, and nowhere else, is known which steps are on their way: two at most, of which one is prepared
// and not sent. What is in force is the younger's.
//
// Params need no care: a write is done after all that was submitted before it.

// flight is a step on its way, or the last one that ended.
type flight struct {
	stepLog
	stage    stage
	number   int               // of the shapes it ran at: see Executor.number
	ahead    bool              // it was prepared in the time of another
	readback gpu.Readback      // of outputs; nil where there are none
	stamps   gpu.Timestamps    // that it is timed by: the clock's, or where it was prepared those of a sheet
	stampsAt int               // the first of them
	resolves bool              // it brings them to the host
	sheet    *sheet            // nil: it was not prepared
	commands gpu.Recording     // of a step that was prepared
	sizes    []int64           // in bytes, of what is read back
	stays    []measure.Metered // by dispatch: what keeps a barrier before it; nil of a step as it is
	bytes    int64             // of its work, as modelled
	flops    int64
}

// stage is how far a step is.
type stage uint8

const (
	idle stage = iota // ended, or never begun
	prepared
	sent
)

// errFlight is a stage out of order.
var errFlight = errors.New("Prepare, Send and Finish come one after another, and one step is prepared at a time")

// begin makes a flight that of another step.
func (f *flight) begin(t Timing, read []graph.ValueID) {
	s := &f.stepLog
	*s = stepLog{
		timing: t, runs: s.runs[:0], ticks: s.ticks[:0], read: append(s.read[:0], read...), start: time.Now(),
	}
	f.ahead, f.sizes = false, f.sizes[:0]
	f.stamps, f.stampsAt, f.resolves, f.sheet = nil, 0, true, nil
}

// timedFlight is one of dispatches between two timestamps, outside of any step.
func (x *Executor) timedFlight() flight {
	log := stepLog{timing: TimingStep, ticks: make([]uint64, 2)}
	return flight{stepLog: log, stamps: x.clock.Stamps, resolves: true}
}

// at is the oldest flight that is at a stage, nil where none is.
func (x *Executor) at(s stage) *flight {
	var oldest *flight
	for i := range x.flights {
		if f := &x.flights[i]; f.stage == s && (oldest == nil || f.number < oldest.number) {
			oldest = f
		}
	}
	return oldest
}

// Stands says whether the last step ended well and its shapes are those in force: it can be run again.
func (x *Executor) Stands() bool { return x.last.ran && x.last.number == x.number }

// CanPrepare says whether steps like the last one can be prepared at a timing level: no check looks at the
// device between two of them, and one submit holds each.
func (x *Executor) CanPrepare(t Timing) bool {
	active := x.live.Active()
	return x.Loaded() && !x.check && t <= TimingStep && x.shortRun(active) == len(active)
}

// Prepare makes the shapes of the next step the live ones and records its commands, as one submit: see
// CanPrepare. Of its inputs the dims count here; their data is for Send. After an error of a plan the shapes
// are as they were.
func (x *Executor) Prepare(ctx context.Context, in *graph.StepInput, t Timing) error {
	f := x.at(idle)
	if x.at(prepared) != nil || f == nil {
		return errFlight
	}
	f.begin(x.level(t), in.Read)
	if err := x.resize(ctx, in); err != nil {
		return err
	}
	f.number = x.number
	resized := time.Now()
	if err := x.uploadParams(f); err != nil {
		return err
	}
	uploaded := time.Now()
	if f.timing != TimingOff {
		x.sheets.place(f)
	}
	if err := x.record(f, in); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	f.stage = prepared
	x.sheets.enter(f)
	by, flying := x.booked(f)
	f.ahead = flying
	end := time.Now()
	by.resize += resized.Sub(f.start).Nanoseconds()
	by.upload += uploaded.Sub(resized).Nanoseconds()
	by.encode += end.Sub(uploaded).Nanoseconds()
	if flying {
		by.overlapped += end.Sub(f.start).Nanoseconds()
	}
	return nil
}

// record records the dispatches in force as the commands of a flight.
func (x *Executor) record(f *flight, in *graph.StepInput) error {
	active := x.live.Active()
	f.cold = x.cold(active)
	f.bytes, f.flops = x.work(active)
	enc, err := x.dev.Begin("step")
	if err != nil {
		return err
	}
	if err := x.encode(enc, f, active, 0, len(active), in); err != nil {
		enc.Discard()
		return err
	}
	f.commands, err = enc.Finish()
	return err
}

// booked is the flight in whose time the host works for f: the one that the GPU is at, where there is one.
func (x *Executor) booked(f *flight) (by *flight, flying bool) {
	if by := x.at(sent); by != nil {
		return by, true
	}
	return f, false
}

// Flush sends the params of the step that was prepared ahead of its commands: a GPU takes them while the host
// reads what the step before gave. A software device would let the host wait for that step.
func (x *Executor) Flush() error {
	f := x.at(prepared)
	if f == nil {
		return errFlight
	}
	if x.dev.Info().Type == gpu.CPU {
		return nil
	}
	begin := time.Now()
	by, flying := x.booked(f)
	if err := x.dev.Flush(); err != nil {
		return fmt.Errorf("upload params: %w", err)
	}
	took := time.Since(begin).Nanoseconds()
	by.upload += took
	if flying {
		by.overlapped += took
	}
	return nil
}

// Send writes the inputs of the step that was prepared and gives it to the device.
func (x *Executor) Send(in *graph.StepInput) error {
	f := x.at(prepared)
	if f == nil {
		return errFlight
	}
	begin := time.Now()
	by, flying := x.booked(f)
	if f.ahead && !flying {
		f.start = begin
	}
	if err := x.uploadInputs(f, in); err != nil {
		return err
	}
	f.stage, f.begun = idle, time.Now()
	if err := f.commands.Submit(); err != nil {
		f.strike()
		return fmt.Errorf("submit: %w", err)
	}
	f.stage, f.pipelined = sent, flying
	f.submits++
	x.haveRun(x.live.Active())
	end := time.Now()
	by.upload += f.begun.Sub(begin).Nanoseconds()
	by.submit += end.Sub(f.begun).Nanoseconds()
	if flying {
		by.overlapped += end.Sub(begin).Nanoseconds()
	}
	return nil
}

// Finish waits for the older of the steps that were sent, which is the last step then.
func (x *Executor) Finish() error {
	f := x.at(sent)
	if f == nil {
		return errFlight
	}
	begin := time.Now()
	err := f.commands.Wait()
	f.stage = idle
	if err != nil {
		return fmt.Errorf("wait for the GPU: %w", err)
	}
	f.waited(begin)
	if x.lastEnd.After(f.begun) { // the GPU was at the step before until then
		f.running = f.ended.Sub(x.lastEnd).Nanoseconds()
	} else {
		f.running = f.ended.Sub(f.begun).Nanoseconds()
	}
	x.last = f
	if err := x.end(f); err != nil {
		return err
	}
	if next := x.at(sent); next != nil {
		next.start = x.lastEnd
	}
	return nil
}

// waited says that the wait that began then has ended.
func (f *flight) waited(begin time.Time) {
	f.polls++
	f.ended = time.Now()
	f.wait += f.ended.Sub(begin).Nanoseconds()
}

// end completes the log of a step that was waited for.
func (x *Executor) end(f *flight) error {
	x.rates.learn(f.bytes, f.flops, float64(f.running))
	if err := x.readTicks(f); err != nil {
		return err
	}
	x.lastEnd = time.Now()
	f.total = x.lastEnd.Sub(f.start).Nanoseconds()
	x.lengthen(&f.stepLog)
	f.gcs, f.gcNS = x.pauses.since(f.start)
	f.ran = true
	return nil
}

// span is how long the GPU was at a step, from its first tick to its last, where these have come.
func (x *Executor) span(s *stepLog) trace.Time {
	if len(s.ticks) == 0 {
		return trace.Time{}
	}
	return x.clock.Scale.Duration(s.ticks[0], s.ticks[len(s.ticks)-1])
}

// lengthen makes a pipelined step no shorter than the GPU was at it: the end of the step before may have been
// seen late.
func (x *Executor) lengthen(s *stepLog) {
	if span, ok := x.span(s).NS(); ok && s.pipelined {
		s.total = max(s.total, span)
	}
}

// Abandon gives up the steps that are on their way: one that was prepared never runs, those that were sent
// run to their end. None of them is the last step. What they wrote to State is at and after their positions,
// where whoever comes next writes it again. Steps that have ended get the times that they wait for.
func (x *Executor) Abandon() error {
	var err error
	for i := range x.flights {
		switch f := &x.flights[i]; f.stage {
		case prepared:
			f.commands.Discard()
			f.stage = idle
			f.strike()
		case sent:
			err = gpu.Join(err, f.commands.Wait())
			f.stage = idle
		}
	}
	x.canary.Forget()
	return gpu.Join(err, x.settle())
}

// haveRun marks dispatches as run on the routes in force.
func (x *Executor) haveRun(run []trace.DispatchID) {
	for _, id := range run {
		*x.ranOn(id) = true
	}
}
