package widget

import (
	"context"
	"time"
)

// Now returns the current time. Tests replace it with a fixed clock.
var Now = time.Now

// Jobs computes the content of the screen in the background: tables, sort orders, filters and details. The
// event loop only displays finished results, so that keys respond fast even if a trace is very large.
//
// Each part of the screen that jobs compute is a Task. Only the event loop may call the methods of Jobs.
type Jobs struct {
	Runner   *Runner
	fail     func(task any, err error)
	mended   func(task any)
	Asked    int // incremented on every action of the user
	Busy     int // number of jobs, including cancelled jobs, whose end the event loop has not handled yet
	Open     int // number of the Busy jobs whose result is still needed
	since    time.Time
	Patience time.Duration // how long a job may take before the screen mentions it
	Ticking  bool
	Rest     time.Time // updates from a running model wait until this time
	Resting  bool      // an update waits for the time Rest
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

// Ended displays the result of a job that has ended.
func (j *Jobs) Ended(m ReadyMsg) {
	j.Busy--
	m.place()
}

// Late reports whether a job whose result is needed has been running for longer than Patience.
func (j *Jobs) Late() bool { return j.Open > 0 && Now().Sub(j.since) >= j.Patience }

// Task holds one part of the screen's content: the latest value, of type V, and the running job that computes
// the next value, if any. A key of type K identifies the data from which a value is computed. A value never
// changes after it has been computed.
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

// took is called after a job that took the time d. It sets how long the next update from a running model
// waits.
func (j *Jobs) took(d time.Duration) {
	t := Now()
	if j.Rest.Before(t) {
		j.Rest = t
	}
	if j.Rest = j.Rest.Add(restFor * d); j.Rest.Sub(t) > longest {
		j.Rest = t.Add(longest)
	}
}

// Want starts a job that computes the value for key and passes the value to `take`, unless the task has this
// value or is computing it. The previous value stays until the new value is ready. If the user has acted
// since the running job began, Want cancels the running job. Other updates wait for the running job: if each
// update of a fast run cancelled the previous job, no result would ever be shown.
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

// Awaited reports whether a job that the user started is running, for at most Patience so far.
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
