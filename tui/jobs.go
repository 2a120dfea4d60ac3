package tui

import (
	"context"
	"time"
)

// now is the clock; tests stop it.
var now = time.Now

// jobs computes beside the event loop what the screen will show: tables, orders, filters, details. The event
// loop only places what is ready, so no trace is so large, or so odd, that a key has to wait for it for long.
//
// What is computed for one place on the screen is a task. All methods belong to the event loop.
type jobs struct {
	runner   *runner
	fail     func(task any, err error)
	mended   func(task any)
	asked    int // rises with everything that a person does
	busy     int // jobs whose end the event loop has not heard of, cancelled ones too; 0 is idle
	open     int // of these, those that somebody waits for
	since    time.Time
	patience time.Duration // that is how long a job may take before the screen speaks of it
	ticking  bool
	rest     time.Time // until then what a running model brings is not shown
	resting  bool      // it waits for that: the screen looks again
}

// readyMsg is the end of a job. The event loop calls place.
type readyMsg struct{ place func() }

// lateMsg lets the screen look again whether something takes its time.
type lateMsg struct{}

func newJobs(fail func(any, error), mended func(any)) *jobs {
	return &jobs{fail: fail, mended: mended, patience: 150 * time.Millisecond}
}

// start runs f, which gives what the event loop is to do when it has ended.
func (j *jobs) start(f func(context.Context) func()) context.CancelFunc {
	if j.busy++; j.open == 0 {
		j.since = now()
	}
	j.open++
	ctx, cancel := context.WithCancel(j.runner.ctx)
	j.runner.start(func(context.Context) {
		defer cancel()
		j.runner.send(readyMsg{f(ctx)})
	})
	return cancel
}

// ended takes the end of a job in.
func (j *jobs) ended(m readyMsg) {
	j.busy--
	m.place()
}

// late says that somebody waits for a job that takes its time.
func (j *jobs) late() bool { return j.open > 0 && now().Sub(j.since) >= j.patience }

// task is one thing that the screen shows and that jobs compute: the newest that is ready, and the job that
// is on its way. K says what of; V does not change once it was made.
type task[K comparable, V any] struct {
	value V
	given K    // what value is of
	has   bool // there is one, or err says why not
	err   error

	making     K         // what the job on its way is of
	begun      time.Time // when it began
	wished     bool      // by what a person did since the one before it
	generation int
	asked      int                // of jobs, when that job began
	cancel     context.CancelFunc // nil: no job is on its way
}

// What a running model brings is shown, all of it at once, when so many times as long has passed as it took
// to make what is shown, or this long: all that the screen does is to take much less than a tenth of a core.
const (
	restFor = 50
	longest = 5 * time.Second
)

// took has what a running model brings wait for a job that took so long.
func (j *jobs) took(d time.Duration) {
	t := now()
	if j.rest.Before(t) {
		j.rest = t
	}
	if j.rest = j.rest.Add(restFor * d); j.rest.Sub(t) > longest {
		j.rest = t.Add(longest)
	}
}

// want has the value of key computed beside the event loop, unless it is there or on its way, and take called
// with it; until then what was there stays. What a person asks for anew cancels the job on its way, and its
// result is dropped. Other news wait for that job, or a fast run would not be seen at all.
func (t *task[K, V]) want(j *jobs, key K, compute func(context.Context) (V, error), take func(V)) {
	switch {
	case t.has && t.given == key:
		t.drop(j)
		return
	case t.cancel != nil && (t.making == key || t.asked == j.asked):
		return
	}
	t.drop(j)
	t.generation++
	t.wished = t.asked != j.asked
	t.making, t.asked = key, j.asked
	generation := t.generation
	t.begun = now()
	t.cancel = j.start(func(ctx context.Context) func() {
		v, err := compute(ctx)
		return func() {
			if t.generation != generation || t.cancel == nil {
				return // nobody waits for it
			}
			t.cancel = nil
			j.open--
			t.given, t.has = key, true
			j.took(now().Sub(t.begun))
			if t.err = err; err != nil { // it is not tried again until something else is wanted
				j.fail(t, err)
				return
			}
			j.mended(t)
			t.value = v
			if take != nil {
				take(v)
			}
		}
	})
}

// awaited says that a job is on its way that began with what a person did, and has not taken its time.
func (t *task[K, V]) awaited(j *jobs) bool {
	return t.cancel != nil && t.wished && now().Sub(t.begun) < j.patience
}

// drop cancels the job on its way.
func (t *task[K, V]) drop(j *jobs) {
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
		j.open--
	}
}

// clear drops the job and what there was.
func (t *task[K, V]) clear(j *jobs) {
	t.drop(j)
	var none V
	t.value, t.has, t.err = none, false, nil
}
