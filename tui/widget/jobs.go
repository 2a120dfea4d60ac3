package widget

import (
	"context"
	"time"
)

// Now returns the current time. Tests replace it with a fixed clock.
var Now = time.Now

// Jobs computes the content of the screen in the background: tables, sort orders, filters and details. The
// event loop only displays finished results, so that keys respond fast even with a very large or unusual
// trace.
//
// The computation for one place on the screen is a Task. Only the event loop may call the methods of Jobs.
type Jobs struct {
	Runner   *Runner
	fail     func(task any, err error)
	mended   func(task any)
	Asked    int // incremented on every action of the user
	Busy     int // jobs whose end the event loop has not handled yet; includes canceled jobs; 0 means idle
	Open     int // how many of the Busy jobs compute a result that is still needed
	since    time.Time
	Patience time.Duration // how long a job may take before the screen mentions it
	Ticking  bool
	Rest     time.Time // updates from a running model wait until this time
	Resting  bool      // a redraw is scheduled for the time Rest
}

// ReadyMsg reports the end of a job. The event loop calls `place` to display the result.
type ReadyMsg struct{ place func() }

// LateMsg makes the screen check again for jobs that are late.
type LateMsg struct{}

func NewJobs(fail func(any, error), mended func(any)) *Jobs {
	return &Jobs{fail: fail, mended: mended, Patience: 150 * time.Millisecond}
}

// Start runs f in the background. When f has ended, the event loop calls the function that f returned.
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

// Ended is called by the event loop when a job has ended. It displays the result.
func (j *Jobs) Ended(m ReadyMsg) {
	j.Busy--
	m.place()
}

// Late reports whether a job whose result is needed has taken longer than Patience.
func (j *Jobs) Late() bool { return j.Open > 0 && Now().Sub(j.since) >= j.Patience }

// Task holds one piece of screen content, which jobs compute: the latest value, and the job that computes the
// next value, if one is running. A key of type K identifies the data that a value is computed from. A
// computed value of type V never changes.
type Task[K comparable, V any] struct {
	Value V
	Given K    // key of Value
	Has   bool // the job for Given has ended, and its result is in Value or Err
	Err   error

	making     K         // key of the value that the running job computes
	begun      time.Time // when the running job began
	wished     bool      // the running job was started by an action of the user
	generation int
	asked      int                // value of Jobs.Asked when the running job began
	Cancel     context.CancelFunc // nil if no job is running
}

// Updates from a running model are shown in batches. After a job that took the time d, the next batch waits
// restFor*d, but at most longest. This limits the screen to much less than a tenth of a CPU core.
const (
	restFor = 50
	longest = 5 * time.Second
)

// took is called after a job that took the time d. It sets how long the next update from a running model has
// to wait.
func (j *Jobs) took(d time.Duration) {
	t := Now()
	if j.Rest.Before(t) {
		j.Rest = t
	}
	if j.Rest = j.Rest.Add(restFor * d); j.Rest.Sub(t) > longest {
		j.Rest = t.Add(longest)
	}
}

// Want makes the task compute the value for key, unless it already has this value or is computing it. A
// background job computes the value and passes it to `take`. The previous value stays until the new one is
// ready. If the user has acted since the running job began, Want cancels this job and drops its result. Other
// updates wait for the running job. If they did not wait, each update of a fast run would cancel the job of
// the previous update. No result would ever be shown.
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
				return // the result is no longer needed
			}
			t.Cancel = nil
			j.Open--
			t.Given, t.Has = key, true
			j.took(Now().Sub(t.begun))
			if t.Err = err; err != nil { // failed jobs are not repeated until the key changes
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

// Awaited reports whether a job started by the user is running and has not exceeded Patience.
func (t *Task[K, V]) Awaited(j *Jobs) bool {
	return t.Cancel != nil && t.wished && Now().Sub(t.begun) < j.Patience
}

// Drop cancels the running job.
func (t *Task[K, V]) Drop(j *Jobs) {
	if t.Cancel != nil {
		t.Cancel()
		t.Cancel = nil
		j.Open--
	}
}

// Clear cancels the running job and removes the value.
func (t *Task[K, V]) Clear(j *Jobs) {
	t.Drop(j)
	var none V
	t.Value, t.Has, t.Err = none, false, nil
}
