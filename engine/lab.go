package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// EditTrial is what came of running an edit and its kernel in turns. Times are in ns, the kernel's before the
// edit's and one more of it at the end; there are none on a device without timestamps.
type EditTrial struct {
	Outputs    []EditOutput // what the dispatch writes, by binding
	Alone      Turns        // of the dispatch alone, on the inputs that it has in the step
	Step       Turns        // of the whole step: every dispatch of the kernel runs the one or the other
	Dispatches int          // of the step that run the kernel
	// Stray says that the edit writes State where the kernel does not: the step was not run with it, which
	// would leave that there.
	Stray bool
}

// EditOutput is a value that a dispatch writes, as the kernel leaves it and as the edit does. Both found the
// same there: what they read of it, and else Unwritten.
type EditOutput struct {
	Value    graph.ValueID
	Own, New []byte
}

// Turns are what two things took that were run in turns: Own has one more, at its end.
type Turns struct{ Own, New []int64 }

// Gains are by how much less each run of the new took than those of its own before and after it.
func (t *Turns) Gains() []int64 {
	gains := make([]int64, len(t.New))
	for i, ns := range t.New {
		gains[i] = (t.Own[i]+t.Own[i+1])/2 - ns
	}
	return gains
}

// TryEdit runs the last step again up to a dispatch, whose inputs are then those that it has in the step, and
// runs it by its kernel and by an edit: once each for what they write, then in turns for what they take
// alone. Then the whole step runs in turns with the one and the other.
//
// What an edit computes in a step may be garbage, and what comes after it then is too. At the end the step
// runs whole as it is in force and writes again what it wrote, rows of State among it, so nothing is
// different afterwards, nor after a cancel, which is heard between runs; State that an operator computes from
// its own former content is the exception, as in Replay. What the dispatch wrote of State alone has its
// content again, and a step is not run with an edit that writes other places of State. What the step told
// stays.
func (x *Executor) TryEdit(ctx context.Context, e *Edit, id trace.DispatchID, o CostOptions) (
	EditTrial, error,
) {
	r, err := x.newEditRun(e, id, &o)
	if err == nil {
		err = r.measure(ctx)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("try kernel %s: %w", e.Name(), err)
	}
	x.lastEnd = time.Now()
	if r == nil {
		return EditTrial{}, err
	}
	return r.out, err
}

// editRun is one such trial.
type editRun struct {
	x      *Executor
	e      *Edit
	id     trace.DispatchID
	before *Edit    // in force, nil for the kernel
	whole  *costRun // of the step; nil where nothing can be timed
	o      *CostOptions
	writes []written
	log    flight
	out    EditTrial
}

// written is what the dispatch writes: a buffer of which so many bytes are its own, and what it found there.
type written struct {
	value  graph.ValueID
	found  []byte
	before []byte // what is there when it runs to be compared
	places []bool // of State, by word: the kernel writes it
	reads  bool   // the kernel, or the edit, reads what it finds
	state  bool
}

// strays says whether words that the kernel does not write are others than before.
func (w *written) strays(after []byte) bool {
	for i, own := range w.places {
		if at := 4 * i; !own && !bytes.Equal(after[at:at+4], w.before[at:at+4]) {
			return true
		}
	}
	return false
}

func (x *Executor) newEditRun(e *Edit, id trace.DispatchID, o *CostOptions) (*editRun, error) {
	if !x.Stands() {
		return nil, ErrNoStep
	}
	serves := x.Serves(e.Of(x.g))
	r := &editRun{
		x: x, e: e, id: id, before: x.edits.inForce[e.of], o: o,
		out: EditTrial{Dispatches: len(serves)},
	}
	for _, d := range serves {
		if d != id {
			continue
		}
		if x.clock == nil || !x.clock.Scale.Known() {
			if o.Progress == nil {
				o.Progress = func(string, int, int) error { return nil }
			}
			return r, nil
		}
		r.log = x.timedFlight()
		var err error
		r.whole, err = x.newCostRun(nil, o)
		return r, err
	}
	return nil, fmt.Errorf("dispatch %d does not run it in the last step", id)
}

// measure makes the trial, and everything as it was.
func (r *editRun) measure(ctx context.Context) (err error) {
	defer func() {
		r.x.runAs(r.e.of, r.before)
		if r.whole != nil {
			err = gpu.Join(err, r.whole.runWhole(context.WithoutCancel(ctx)))
		} else {
			active := r.x.live.Active()
			err = gpu.Join(err, r.upto(context.WithoutCancel(ctx), len(active)))
		}
	}()
	if r.whole != nil {
		if err := r.whole.warm(ctx); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := r.alone(ctx); err != nil || r.whole == nil || r.out.Stray {
		return err
	}
	return r.turns(ctx, &r.out.Step, time.Since(begin), "step with both kernels", func() (int64, error) {
		return r.whole.run(context.WithoutCancel(ctx), nil)
	})
}

// upto runs the first n dispatches of the step as they are in force.
func (r *editRun) upto(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	last := r.x.live.Active()[n-1]
	return r.x.replay(ctx, []placedLook{{Look: Look{After: last}}}, 0)
}

// alone runs the dispatch on the inputs that it has in the step.
func (r *editRun) alone(ctx context.Context) (err error) {
	if err := r.capture(ctx); err != nil {
		return err
	}
	defer func() { err = gpu.Join(err, r.restore(func(w *written) bool { return w.state })) }()
	if err := r.findPlaces(); err != nil {
		return err
	}
	for _, edit := range []*Edit{nil, r.e} {
		if err := r.mark(); err != nil {
			return err
		}
		r.x.runAs(r.e.of, edit)
		if _, err := r.run(); err != nil {
			return err
		}
		for i := range r.writes {
			w := &r.writes[i]
			got := make([]byte, len(w.found))
			if err := r.x.ReadPart(w.value, 0, got); err != nil {
				return err
			}
			if edit == nil {
				r.out.Outputs = append(r.out.Outputs, EditOutput{Value: w.value, Own: got})
				continue
			}
			r.out.Outputs[i].New = got
			r.out.Stray = r.out.Stray || w.strays(got)
		}
	}
	if r.whole == nil {
		return nil
	}
	return r.turns(ctx, &r.out.Alone, 0, "dispatch by both kernels", func() (int64, error) {
		if err := r.restore(func(w *written) bool { return w.reads }); err != nil {
			return 0, err
		}
		return r.run()
	})
}

// capture runs the step up to the dispatch, and keeps what is there of what it will write.
func (r *editRun) capture(ctx context.Context) error {
	x := r.x
	d := &x.g.Dispatches[r.id]
	use := x.g.Ops[d.Op].Use(d.Slot, x.live.Plans[d.Op].Route)
	for i, bind := range use.Bind {
		s := &r.e.by.Storage[i]
		if s.Access != gpu.ReadWrite {
			continue
		}
		n, state := x.LiveSize(bind.Value), x.g.Values[x.g.Root(bind.Value)].Role == graph.State
		if state {
			n = x.g.Values[bind.Value].Bytes
		}
		if n == 0 {
			continue // scratch that is not used
		}
		r.writes = append(r.writes, written{
			value: bind.Value, found: make([]byte, (n+3)/4*4),
			reads: s.Read || use.Kernel.Storage[i].Read, state: state,
		})
	}
	at := 0
	for x.live.Active()[at] != r.id {
		at++
	}
	if err := r.upto(ctx, at); err != nil {
		return err
	}
	for i := range r.writes {
		w := &r.writes[i]
		if err := x.ReadPart(w.value, 0, w.found); err != nil {
			return fmt.Errorf("read %s: %w", x.g.Values[w.value].Name, err)
		}
	}
	return nil
}

// Unwritten is a word that a kernel is not likely to write: a NaN as f32, and as two f16.
const Unwritten = 0x7fc17fc1

func unwritten(n int) []byte {
	data := make([]byte, n)
	for at := 0; at < n; at += 4 {
		binary.LittleEndian.PutUint32(data[at:], Unwritten)
	}
	return data
}

// findPlaces runs the kernel on State that holds nothing, to see which words of it the kernel writes: in the
// State of the step they are there already, for it has run.
func (r *editRun) findPlaces() error {
	some := false
	for i := range r.writes {
		if w := &r.writes[i]; w.state {
			if err := r.put(w, unwritten(len(w.found))); err != nil {
				return err
			}
			some = true
		}
	}
	if !some {
		return nil
	}
	r.x.runAs(r.e.of, nil)
	if _, err := r.run(); err != nil {
		return err
	}
	for i := range r.writes {
		w := &r.writes[i]
		if !w.state {
			continue
		}
		got := make([]byte, len(w.found))
		if err := r.x.ReadPart(w.value, 0, got); err != nil {
			return err
		}
		w.places = make([]bool, len(got)/4)
		for k := range w.places {
			w.places[k] = binary.LittleEndian.Uint32(got[4*k:]) != Unwritten
		}
	}
	return nil
}

// mark makes what the dispatch will write what it found where the kernels read that, and else bits that tell
// what a kernel does not write.
func (r *editRun) mark() error {
	for i := range r.writes {
		w := &r.writes[i]
		if w.before = w.found; !w.reads {
			w.before = unwritten(len(w.found))
		}
		if err := r.put(w, w.before); err != nil {
			return err
		}
	}
	return nil
}

// restore makes some of what the dispatch writes what it found.
func (r *editRun) restore(which func(*written) bool) error {
	var err error
	for i := range r.writes {
		if w := &r.writes[i]; which(w) {
			err = gpu.Join(err, r.put(w, w.found))
		}
	}
	return err
}

func (r *editRun) put(w *written, data []byte) error {
	for at := 0; at < len(data); at += piece {
		part := data[at:min(at+piece, len(data))]
		if err := r.x.writePart(w.value, uint64(at), part); err != nil {
			return fmt.Errorf("write %s: %w", r.x.g.Values[w.value].Name, err)
		}
	}
	return nil
}

// run runs the dispatch alone, and says what that took where it can be timed.
func (r *editRun) run() (ns int64, err error) {
	x := r.x
	if err := x.submit(&r.log, []trace.DispatchID{r.id}, 0, 1, &graph.StepInput{}); err != nil ||
		r.whole == nil {
		return 0, err
	}
	if err := x.readTicks(&r.log); err != nil {
		return 0, err
	}
	ns, _ = x.clock.Scale.Duration(r.log.ticks[0], r.log.ticks[1]).NS()
	return ns, nil
}

// turns runs something with the kernel, with the edit, with the kernel, and so on, as often as was asked for
// or there is time for; the first of each does not count. Each half of the trial has half of the time, less
// what was spent of it.
func (r *editRun) turns(ctx context.Context, t *Turns, spent time.Duration, phase string,
	run func() (int64, error),
) error {
	one := func(e *Edit) (int64, error) {
		r.x.runAs(r.e.of, e)
		return run()
	}
	defer func() { t.New = t.New[:max(0, len(t.Own)-1)] }() // a turn that was cut short does not count
	begin, within := time.Now(), r.o.For-spent
	if spent == 0 {
		within = r.o.For / 2
	}
	for n := -1; n < r.o.Rounds; n++ {
		if n > 0 && r.o.For > 0 && time.Since(begin) > within {
			break
		}
		if err := errors.Join(r.o.Progress(phase, max(n, 0), r.o.Rounds), ctx.Err()); err != nil {
			return err
		}
		own, err := one(nil)
		if err != nil {
			return err
		}
		edit, err := one(r.e)
		if err != nil {
			return err
		}
		if n >= 0 {
			t.Own, t.New = append(t.Own, own), append(t.New, edit)
		}
	}
	last, err := one(nil)
	if err == nil {
		t.Own = append(t.Own, last)
	}
	return err
}
