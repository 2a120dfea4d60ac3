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

// EditTrial is the result of comparing an edit with the kernel that it replaces. Runs of the kernel and of
// the edit alternate; the first and the last run are runs of the kernel. The times are in ns. A device
// without timestamps yields no times.
type EditTrial struct {
	Outputs []EditOutput // values that the dispatch writes, in order of bindings
	Alone   Turns        // times of runs of the isolated dispatch, with the inputs of the step
	// Step holds the times of the whole step. In these runs, all dispatches of the kernel use the same
	// variant: the kernel or the edit.
	Step       Turns
	Dispatches int // number of dispatches of the kernel in the step
	// Stray is true if the edit writes words of State that the kernel does not write (stray words). Such an
	// edit is not run in the whole step, because it would leave stray words in State.
	Stray bool
}

// EditOutput is a value that a dispatch writes. Own is the content that the kernel leaves in memory, and New
// is the content that the edit leaves. Before both runs the memory has the same content. If the kernel or
// the edit reads the value, this is the content just before the dispatch in the step. Otherwise every word
// is Unwritten.
type EditOutput struct {
	Value    graph.ValueID
	Own, New []byte
}

// Turns holds the durations of alternating runs of two variants, in ns. Own has one more element than New,
// because the series ends with a run of Own.
type Turns struct{ Own, New []int64 }

// Gains returns a number for each New run: by how many ns the run was faster than the mean of two Own runs,
// the one before it and the one after it.
func (t *Turns) Gains() []int64 {
	gains := make([]int64, len(t.New))
	for i, ns := range t.New {
		gains[i] = (t.Own[i]+t.Own[i+1])/2 - ns
	}
	return gains
}

// TryEdit compares an edit with its kernel in the last step. First TryEdit runs the step again up to the
// dispatch with the given id, so that the dispatch has the same inputs as in the step. TryEdit then runs the
// isolated dispatch once with the kernel and once with the edit to compare the outputs. To compare the times,
// it alternates between the two. After that, it alternates between whole steps with the kernel and with the
// edit.
//
// In a step with the edit, the edit and all dispatches that depend on it may compute wrong results. Therefore
// TryEdit finally runs the whole step with the kernel. This run writes all results of the step again,
// including rows of State. It takes place even after a cancellation, for which TryEdit checks between runs.
// There is one exception, as in Replay: if an operator computes State from its previous content in place, the
// repeated runs change this State. TryEdit restores the State that the isolated dispatch wrote. An edit that
// writes other words of State never runs in a whole step. The outputs and the record of the last step do not
// change.
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

// editRun is one comparison of an edit with its kernel.
type editRun struct {
	x      *Executor
	e      *Edit
	id     trace.DispatchID
	before *Edit    // edit in use before the trial; nil if the kernel itself was in use
	whole  *costRun // runs of whole steps; nil if the device cannot time them
	o      *CostOptions
	writes []written
	log    flight
	out    EditTrial
}

// written is a value that the dispatch writes.
type written struct {
	value graph.ValueID
	found []byte // content just before the dispatch in the step
	// before is the content that mark wrote before the latest run. After the run of the edit, strays
	// compares the memory with `before`.
	before []byte
	places []bool // if the value is a State: for each word, whether the kernel writes it
	reads  bool   // the kernel or the edit reads the value
	state  bool
}

// strays reports whether the edit wrote stray words: words that the kernel does not write.
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
	return nil, fmt.Errorf("in the last step, dispatch %d did not run the kernel that the edit replaces", id)
}

// measure makes the comparison. Afterwards it restores the memory, and the edit or kernel that was in use.
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
	phase := "time the step with both kernels"
	return r.turns(ctx, &r.out.Step, time.Since(begin), phase, func() (int64, error) {
		return r.whole.run(context.WithoutCancel(ctx), nil)
	})
}

// upto runs the first n dispatches of the step, with the edits that are currently in use.
func (r *editRun) upto(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	last := r.x.live.Active()[n-1]
	return r.x.replay(ctx, []placedLook{{Look: Look{After: last}}}, 0)
}

// alone compares the outputs and the times of the kernel and the edit in isolated runs of the dispatch. These
// runs have the same inputs as the dispatch has in the step.
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
	return r.turns(ctx, &r.out.Alone, 0, "time the dispatch with both kernels", func() (int64, error) {
		if err := r.restore(func(w *written) bool { return w.reads }); err != nil {
			return 0, err
		}
		return r.run()
	})
}

// capture runs the step up to the dispatch, and stores the current content of the values that the dispatch
// writes.
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
			continue // scratch that the step does not use
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

// Unwritten is a word that a kernel is unlikely to write: it is NaN as f32 and NaN as two f16.
const Unwritten = 0x7fc17fc1

func unwritten(n int) []byte {
	data := make([]byte, n)
	for at := 0; at < n; at += 4 {
		binary.LittleEndian.PutUint32(data[at:], Unwritten)
	}
	return data
}

// marker returns the word with which findPlaces marks word i of a State. Like Unwritten, it is NaN as f32
// and as two f16. Markers of different words differ, so that findPlaces also detects a word that the kernel
// overwrites with a copy of another word.
func marker(i int) uint32 {
	k := uint32(i % 32749) // a prime: words at a power-of-two distance get different markers
	return 0x7f807f00 | k>>8<<16 | k&0xff
}

// findPlaces finds the words of State that the kernel writes. findPlaces fills the State with markers and
// runs the kernel. Without markers, the kernel would write the results that the State already holds, and
// nobody could tell which words were written.
func (r *editRun) findPlaces() error {
	some := false
	for i := range r.writes {
		if w := &r.writes[i]; w.state {
			marked := make([]byte, len(w.found))
			for k := range len(marked) / 4 {
				binary.LittleEndian.PutUint32(marked[4*k:], marker(k))
			}
			if err := r.put(w, marked); err != nil {
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
			w.places[k] = binary.LittleEndian.Uint32(got[4*k:]) != marker(k)
		}
	}
	return nil
}

// mark prepares the memory of the written values for a run. If the kernel or the edit reads a value, mark
// restores the content that the value had before the dispatch. Otherwise mark fills the value with
// Unwritten, so that a word that the run does not write can be recognized.
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

// restore writes the content found before the dispatch back to the selected values.
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

// run runs the isolated dispatch, and returns its GPU time in ns if the device can time it.
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

// turns alternates between the kernel and the edit, and calls run for each. It stores the times in t. turns
// stops after the requested number of rounds or at the time limit. The first run of each variant does not
// count. The comparison of the isolated dispatch may use half of the time limit, and the comparison of whole
// steps may use the rest. `spent` is the time that an earlier comparison took. It is 0 when the isolated
// dispatch is compared. When whole steps are compared, it is the time that the comparison of the isolated
// dispatch took.
func (r *editRun) turns(ctx context.Context, t *Turns, spent time.Duration, phase string,
	run func() (int64, error),
) error {
	one := func(e *Edit) (int64, error) {
		r.x.runAs(r.e.of, e)
		return run()
	}
	// If a round was interrupted after the run of the edit, drop the time of this run.
	defer func() { t.New = t.New[:max(0, len(t.Own)-1)] }()
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
