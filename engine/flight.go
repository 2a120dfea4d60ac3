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

// A step has three stages. Prepare applies the step's shapes and params and records its commands, Send
// submits the commands, and Finish waits for the GPU. Step does all of this in one call and submits piece by
// piece while it encodes. If the caller uses the separate calls, the host can prepare or send the next step
// while the GPU runs the current one. Only this file tracks the steps in flight. At most two steps are in
// flight, and at most one of them is prepared but not sent. With two steps in flight, the executor's current
// shapes and params belong to the newer step.
//
// Uploads of params cannot disturb the older step, because the device performs a write only after all earlier
// submits.

// flight is a step in flight, or the last finished step.
type flight struct {
	stepLog
	stage    stage
	number   int            // serial number of the step, see Executor.number
	ahead    bool           // the step was prepared while another step ran
	readback gpu.Readback   // receives the outputs; nil if the graph has no outputs
	stamps   gpu.Timestamps // timestamp slots of the sheet; without a sheet, those of the executor's clock
	stampsAt int            // index of the step's first timestamp in `stamps`
	resolves bool           // the step's commands copy the timestamps to the host
	sheet    *sheet         // see sheet.go; nil if the step was not prepared
	commands gpu.Recording  // commands of a prepared step
	sizes    []int64        // sizes of the values to read back, in bytes
	// stays holds placeholder dispatches, which keep the barriers of skipped dispatches (see stay.go). The
	// placeholder at index i runs right before dispatch i; there is none if its Pipe is nil. Outside of cost
	// measurements, stays is nil.
	stays []measure.Metered
	// bytes and flops are the modeled memory traffic and arithmetic of the step.
	bytes int64
	flops int64
}

// stage is the progress of a flight.
type stage uint8

const (
	idle stage = iota // finished, or never started
	prepared
	sent
)

// errFlight reports a call of Prepare, Send or Finish in the wrong order.
var errFlight = errors.New("wrong order of calls: each step needs Prepare, Send and Finish in this order, with only one step prepared at a time")

// begin resets the flight for a new step.
func (f *flight) begin(t Timing, read []graph.ValueID) {
	s := &f.stepLog
	*s = stepLog{
		timing: t, runs: s.runs[:0], ticks: s.ticks[:0], read: append(s.read[:0], read...), start: time.Now(),
	}
	f.ahead, f.sizes = false, f.sizes[:0]
	f.stamps, f.stampsAt, f.resolves, f.sheet = nil, 0, true, nil
}

// timedFlight returns a flight for dispatches that run outside of any step. Two timestamps, before the first
// and after the last of these dispatches, time them together.
func (x *Executor) timedFlight() flight {
	log := stepLog{timing: TimingStep, ticks: make([]uint64, 2)}
	return flight{stepLog: log, stamps: x.clock.Stamps, resolves: true}
}

// at returns the oldest flight at the given stage, or nil if there is none.
func (x *Executor) at(s stage) *flight {
	var oldest *flight
	for i := range x.flights {
		if f := &x.flights[i]; f.stage == s && (oldest == nil || f.number < oldest.number) {
			oldest = f
		}
	}
	return oldest
}

// Stands reports whether the last step can be run again: the step ended without an error, and the live shapes
// are still the shapes of that step.
func (x *Executor) Stands() bool { return x.last.ran && x.last.number == x.number }

// CanPrepare reports whether steps like the last one can be prepared at a timing level. Each such step must
// fit into one submit, and Check must be off, because Check reads from the device between two steps.
func (x *Executor) CanPrepare(t Timing) bool {
	active := x.live.Active()
	return x.Loaded() && !x.check && t <= TimingStep && x.shortRun(active) == len(active)
}

// Prepare applies the shapes of the next step and records the step's commands as one submit (see CanPrepare).
// Prepare reads only the dims of the inputs; Send uploads their data. If planning returns an error, the
// shapes stay as they were.
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

// record records the active dispatches as the commands of a flight.
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

// booked returns the flight in whose log the host's work on f is counted. If the GPU is running a flight,
// booked returns that flight and true. Otherwise it returns f and false.
func (x *Executor) booked(f *flight) (by *flight, flying bool) {
	if by := x.at(sent); by != nil {
		return by, true
	}
	return f, false
}

// Flush uploads the params of the prepared step before its commands are sent. The params then reach the GPU
// while the host still reads the outputs of the previous step. Flush does nothing on a software device, where
// it would make the host wait for the previous step.
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

// Send uploads the inputs of the prepared step and submits its commands.
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

// Finish waits for the oldest step that was sent. The finished step becomes the executor's last step.
func (x *Executor) Finish() error {
	f := x.at(sent)
	if f == nil {
		return errFlight
	}
	begin := time.Now()
	err := f.commands.Wait()
	f.stage = idle
	if err != nil {
		return fmt.Errorf("cannot wait for the GPU: %w", err)
	}
	f.waited(begin)
	// Before lastEnd, the GPU was still running the previous step.
	if x.lastEnd.After(f.begun) {
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

// waited adds a wait for the GPU to the step's log. The wait began at the given time and ends now.
func (f *flight) waited(begin time.Time) {
	f.polls++
	f.ended = time.Now()
	f.wait += f.ended.Sub(begin).Nanoseconds()
}

// end completes the log of a step. It is called after the wait for the step.
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

// span returns the time from the first GPU timestamp of a step to the last. The result is empty if the
// timestamps have not been read yet.
func (x *Executor) span(s *stepLog) trace.Time {
	if len(s.ticks) == 0 {
		return trace.Time{}
	}
	return x.clock.Scale.Duration(s.ticks[0], s.ticks[len(s.ticks)-1])
}

// lengthen raises the total time of a pipelined step to at least the GPU's time. The total can be too short:
// it starts when the host notices the end of the previous step, and the host may notice this late.
func (x *Executor) lengthen(s *stepLog) {
	if span, ok := x.span(s).NS(); ok && s.pipelined {
		s.total = max(s.total, span)
	}
}

// Abandon gives up the steps in flight. A prepared step never runs, and steps that were sent run to their
// end. None of the abandoned steps becomes the executor's last step. Abandoned steps may already have written
// their rows of State; the next step overwrites these rows. If the GPU timestamps of finished steps have not
// been read yet, Abandon reads them.
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

// haveRun records that dispatches have run on their current routes.
func (x *Executor) haveRun(run []trace.DispatchID) {
	for _, id := range run {
		*x.ranOn(id) = true
	}
}
