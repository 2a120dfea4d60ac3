package widget

import (
	"context"
	"time"
)

// Now is the clock; tests stop it.
var Now = time.Now

// Jobs computes beside the event loop what the screen will show: tables, orders, filters, details. The event
// loop only places what is ready, so no trace is so large, or so odd, that a key has to wait for it for long.
//
// What is computed for one place on the screen is a task. All methods belong to the event loop.
type Jobs struct {
	Runner   *Runner
	fail     func(task any, err error)
	mended   func(task any)
	Asked    int // rises with everything that a person does
	Busy     int // jobs whose end the event loop has not heard of, cancelled ones too; 0 is idle
	Open     int // of these, those that somebody waits for
	since    time.Time
	Patience time.Duration // that is how long a job may take before the screen speaks of it
	Ticking  bool
	Rest     time.Time // until then what a running model brings is not shown
	Resting  bool      // it waits for that: the screen looks again
}

// ReadyMsg is the end of a job. The event loop calls place.
type ReadyMsg struct{ place func() }

// LateMsg lets the screen look again whether something takes its time.
type LateMsg struct{}

func NewJobs(fail func(any, error), mended func(any)) *Jobs {
	return &Jobs{fail: fail, mended: mended, Patience: 150 * time.Millisecond}
}

// Start runs f, which gives what the event loop is to do when it has ended.
func (j *Jobs) Start(f func(context.Context) func()) context.CancelFunc {
	if j.Busy++; j.Open == 0 {
		j.since = Now()
	}
	j.Open++
	ctx, cancel := context.WithCancel(j.Runner.Ctx)
	j.Runner.Start(func(context.Context) {
		defer cancel()
		j.Runner.Send(ReadyMsg{f(ctx)})
	})
	return cancel
}

// Ended takes the end of a job in.
func (j *Jobs) Ended(m ReadyMsg) {
	j.Busy--
	m.place()
}

// Late says that somebody waits for a job that takes its time.
func (j *Jobs) Late() bool { return j.Open > 0 && Now().Sub(j.since) >= j.Patience }

// Task is one thing that the screen shows and that jobs compute: the newest that is ready, and the job that
// is on its way. K says what of; V does not change once it was made.
type Task[K comparable, V any] struct {
	Value V
	Given K    // what value is of
	Has   bool // there is one, or err says why not
	Err   error

	making     K         // what the job on its way is of
	begun      time.Time // when it began
	wished     bool      // by what a person did since the one before it
	generation int
	asked      int                // of jobs, when that job began
	Cancel     context.CancelFunc // nil: no job is on its way
}

// What a running model brings is shown, all of it at once, when so many times as long has passed as it took
// to make what is shown, or this long: all that the screen does is to take much less than a tenth of a core.
const (
	restFor = 50
	longest = 5 * time.Second
)

// took has what a running model brings wait for a job that took so long.
func (j *Jobs) took(d time.Duration) {
	t := Now()
	if j.Rest.Before(t) {
		j.Rest = t
	}
	if j.Rest = j.Rest.Add(restFor * d); j.Rest.Sub(t) > longest {
		j.Rest = t.Add(longest)
	}
}

// Want has the value of key computed beside the event loop, unless it is there or on its way, and take called
// with it; until then what was there stays. What a person asks for anew cancels the job on its way, and its
// result is dropped. Other news wait for that job, or a fast run would not be seen at all.
func (t *Task[K, V]) Want(j *Jobs, key K, compute func(context.Context) (V, error), take func(V)) {
	switch {
	case t.Has && t.Given == key:
		t.Drop(j)
		return
	case t.Cancel != nil && (t.making == key || t.asked == j.Asked):
		return
	}
	t.Drop(j)
	t.generation++
	t.wished = t.asked != j.Asked
	t.making, t.asked = key, j.Asked
	generation := t.generation
	t.begun = Now()
	t.Cancel = j.Start(func(ctx context.Context) func() {
		v, err := compute(ctx)
		return func() {
			if t.generation != generation || t.Cancel == nil {
				return // nobody waits for it
			}
			t.Cancel = nil
			j.Open--
			t.Given, t.Has = key, true
			j.took(Now().Sub(t.begun))
			if t.Err = err; err != nil { // it is not tried again until something else is wanted
				j.fail(t, err)
				return
			}
			j.mended(t)
			t.Value = v
			if take != nil {
				take(v)
			}
		}
	})
}

// Awaited says that a job is on its way that began with what a person did, and has not taken its time.
func (t *Task[K, V]) Awaited(j *Jobs) bool {
	return t.Cancel != nil && t.wished && Now().Sub(t.begun) < j.Patience
}

// Drop cancels the job on its way.
func (t *Task[K, V]) Drop(j *Jobs) {
	if t.Cancel != nil {
		t.Cancel()
		t.Cancel = nil
		j.Open--
	}
}

// Clear drops the job and what there was.
func (t *Task[K, V]) Clear(j *Jobs) {
	t.Drop(j)
	var none V
	t.Value, t.Has, t.Err = none, false, nil
}
