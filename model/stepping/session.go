// Package stepping runs the commands of a session that apply to any graph: it repeats steps, measures costs,
// reads values, compares kernels and stops at breakpoints. A Host defines what a step is. In package model a
// step reads tokens. In package model/executions a step executes a method.
package stepping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/capture"
	"gpuscope/session"
	"gpuscope/trace"
)

// Host is the part of a session that defines what a step is. Only the goroutine of the session calls it.
type Host interface {
	// Current returns the current step. ok is false before the first step.
	Current() (s Step, ok bool)
	// Find returns the step with this index. ok is false if the step cannot run again.
	Find(index int) (s Step, ok bool)
	// Play runs a step again, with the same inputs and the same State as the first time. differs describes
	// how the new result differs from the first: "produced token 5, but produces token 7 when run again".
	// differs is "" if the results are the same.
	Play(ctx context.Context, s Step, timing engine.Timing) (differs string, err error)
	// Rewind restores the State on the device to the State before the last step, so that the dispatches of
	// the step can run again. It does nothing if they would read the same State anyway.
	Rewind() error
	// State returns the state of the session for the front end, without the fields Running, Step, Timing,
	// Upto and Edited, which the Session sets.
	State() session.State
	// Position returns the number of positions in use.
	Position() int
	// Error returns the numeric error of an edited kernel, given the outputs that the kernel wrote in a
	// dispatch of a step. It returns nil if the error is not known.
	Error(ctx context.Context, s Step, id trace.DispatchID, outputs []engine.EditOutput) (*trace.NumericError,
		error)
	// Close releases what the host holds.
	Close() error
}

// Step is a step that has run.
type Step struct {
	Index    int      // index of its trace.Step
	Position int      // position before the step
	Tokens   int      // number of input tokens; 0 if the graph is not a language model
	Shape    string   // identifies the shapes of the inputs: steps with equal shapes have the same grids
	Edited   []string // names of the edited kernels that were in use
}

// Session implements session.Session for a graph on a device. One goroutine owns the device, the engine and
// the host. Do passes commands to this goroutine one by one.
type Session struct {
	*Device
	Timing engine.Timing
	// Ran is the index of the step that the executor ran last, or Nowhere if it is unknown.
	Ran int
	// Upto is nil if the current step ran completely. If the step was run again only up to a dispatch, Upto
	// is this dispatch.
	Upto  *trace.DispatchID
	Watch *Watch

	host   Host
	origin capture.Origin // description of the run in captures
	table  []Command
	cache  string        // folder with the measured ceilings of devices
	clock  trace.Clock   // the clock that was last recorded
	input  graph.ValueID // an input of the graph: no dispatch overwrites it
	looked replayed      // the last replay for the command look, if no other step ran after it
	kept   *kept         // the baseline of the last look, if no other command followed; nil if it had none
	costed costed

	requests chan request
	stream   *session.Stream
	sender   *session.Sender
	closing  context.Context // cancelled by Close
	close    context.CancelFunc
	done     chan struct{} // closed when the goroutine has ended
	lost     error         // why the goroutine ended without a call of Close; read only after done is closed
	closed   sync.Once
}

type request struct {
	ctx    context.Context
	c      session.Command
	answer chan answer
}

type answer struct {
	reply session.Reply
	err   error
}

// New returns a session that has not started. `cache` is the folder in which the measured ceilings of devices
// are stored. If it is "", they are not stored.
func New(d *Device, timing engine.Timing, cache string) *Session {
	s := &Session{
		Device: d, Timing: timing, cache: cache, Watch: NewWatch(d.Graph.Describe()), clock: d.Exec.Clock(),
		requests: make(chan request), done: make(chan struct{}), Ran: Nowhere,
		looked: replayed{step: Nowhere},
	}
	for _, v := range d.Graph.Inputs() {
		if !d.Graph.Value(v).SymInt {
			s.input = v
		}
	}
	if !d.Timed() {
		s.Timing = engine.TimingOff
	}
	return s
}

// Start starts the goroutine of the session. The first events are the trace's header and the session's state.
// `own` lists the commands of the host. The session adds the commands that apply to any graph.
func (s *Session) Start(host Host, header *trace.Trace, own []Command) {
	s.host, s.table = host, slices.Concat(own, s.Commands())
	s.origin = originOf(header)
	s.closing, s.close = context.WithCancel(context.Background())
	s.stream = session.NewStream(s.closing.Done(), session.EventBuffer)
	s.sender = session.NewSender(s.stream, s.Exec.Settled)
	s.stream.Send(session.Event{Opened: header})
	s.tell(false)
	for _, e := range s.Exec.Edits() {
		s.tellEdited(e.Of(s.Graph))
	}
	s.sender.Flush()
	go s.serve()
}

func (s *Session) serve() {
	defer close(s.done)
	defer s.sender.End()
	defer func() {
		s.Release()
		s.lost = errors.Join(s.lost, s.host.Close())
	}()
	for {
		select {
		case <-s.closing.Done():
			return
		case r := <-s.requests:
			ctx, cancel := context.WithCancel(r.ctx)
			stop := context.AfterFunc(s.closing, cancel)
			reply, err := s.do(ctx, r.c)
			stop()
			cancel()
			r.answer <- answer{reply, err}
			if errors.Is(err, gpu.ErrDeviceLost) {
				s.lost = err
				return
			}
		}
	}
}

// Do implements session.Session.
func (s *Session) Do(ctx context.Context, c session.Command) (session.Reply, error) {
	if err := ctx.Err(); err != nil {
		return session.Reply{}, err
	}
	r := request{ctx, c, make(chan answer, 1)}
	select {
	case s.requests <- r:
		a := <-r.answer
		return a.reply, a.err
	case <-ctx.Done():
		return session.Reply{}, ctx.Err()
	case <-s.done:
		if s.lost != nil {
			return session.Reply{}, fmt.Errorf("%w: %w", session.ErrClosed, s.lost)
		}
		return session.Reply{}, session.ErrClosed
	}
}

// Events implements session.Session.
func (s *Session) Events() <-chan session.Event { return s.stream.Events() }

// Closing returns a channel that is closed when Close is called.
func (s *Session) Closing() <-chan struct{} { return s.closing.Done() }

// Close implements session.Session.
func (s *Session) Close() error {
	s.closed.Do(s.close)
	<-s.done
	return s.lost
}

// tell sends the state of the session to the front end.
func (s *Session) tell(running bool) {
	st := s.host.State()
	st.Running, st.Step, st.Timing = running, s.stepIndex(), s.Timing.Level()
	st.Upto, st.Edited = s.Upto, s.Edited()
	s.Send(func() session.Event { return session.Event{State: &st} })
}

// stepIndex returns the index of the current step, or -1 before the first step.
func (s *Session) stepIndex() int {
	if t, ok := s.host.Current(); ok {
		return t.Index
	}
	return -1
}

// Send sends the event that a function returns. The function may be called later, on another goroutine.
func (s *Session) Send(of func() session.Event) { s.sender.Send(of) }

// Record sends a record that the front end adds to the trace.
func (s *Session) Record(r trace.Record) {
	s.Send(func() session.Event { return session.Event{Records: []trace.Record{r}} })
}

// Event records an event that belongs to a step.
func (s *Session) Event(step int, kind, format string, args ...any) *trace.Event {
	e := &trace.Event{Step: step, Kind: kind, Text: fmt.Sprintf(format, args...)}
	s.Record(trace.Record{Event: e})
	return e
}

// Limits for observe: ObserveRuns is the maximum number of runs of the step at each timing level. After
// observeFor, no further round starts.
const (
	ObserveRuns = 8
	observeFor  = 2 * time.Second
)

// observe measures the overhead of timing. It runs the current step again at three timing levels: without
// timing, with timestamps around the step, and with timestamps around every dispatch. It alternates between
// the levels, so that a change of the clock speed affects all of them equally.
func (s *Session) observe(ctx context.Context, r *session.Reply) error {
	t, _ := s.host.Current()
	walls := map[engine.Timing][]int64{}
	var spans, befores []int64
	begin, progress := time.Now(), s.Progress()
	for n := 0; n < ObserveRuns && (n == 0 || time.Since(begin) < observeFor); n++ {
		if err := progress("measure timing overhead", n, ObserveRuns); err != nil {
			return err
		}
		for _, level := range []engine.Timing{engine.TimingOff, engine.TimingStep, engine.TimingDispatch} {
			start := time.Now()
			if _, err := s.Again(ctx, t, level); err != nil {
				return err
			}
			walls[level] = append(walls[level], time.Since(start).Nanoseconds())
			if span, before, ok := s.Exec.SpanNS(); ok && level == engine.TimingStep {
				spans, befores = append(spans, span), append(befores, before)
			}
		}
	}
	r.Repeats = len(walls[engine.TimingOff])
	s.Record(trace.Record{Observer: &trace.Observer{
		Step: &t.Index, UntimedNS: median(walls[engine.TimingOff]),
		TimedNS: median(walls[engine.TimingDispatch]), SpanNS: median(spans), BeforeNS: median(befores),
		UntimedOff: offBy(walls[engine.TimingOff]), SpanOff: offBy(spans), N: r.Repeats,
	}})
	return nil
}

// median returns the median of durations in ns. For an empty list it returns the zero Time, which means not
// measured.
func median(list []int64) trace.Time {
	n := len(list)
	if n == 0 {
		return trace.Time{}
	}
	slices.Sort(list)
	return trace.Measured((list[(n-1)/2] + list[n/2]) / 2)
}

// offBy returns the statistical error of the median of durations in ns, as trace.OffBy defines it.
func offBy(list []int64) trace.Time {
	ns, ok := median(list).NS()
	if !ok {
		return trace.Time{}
	}
	return trace.OffBy(list, ns)
}

// tellClock records the known properties of the GPU clock if they have changed since the last record.
func (s *Session) tellClock() {
	if c := s.Exec.Clock(); c != s.clock {
		s.clock = c
		s.Record(trace.Record{Clock: &c})
	}
}
