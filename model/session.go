package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
)

// live implements session.Session for a model on a device. One goroutine owns the device, the engine and the
// transcript. Do passes commands to this goroutine one by one.
type live struct {
	m      *Model
	runner *run.Runner
	text   run.Transcript
	timing engine.Timing
	chunk  int         // tokens per prefill step; 0 for the maximum
	clock  trace.Clock // the clock that was last recorded
	// ran is the index of the step that the executor ran last, or nowhere if it is unknown.
	ran int
	// looked describes the last run of the executor if it was a replay for the command look.
	looked replayed
	costed costed
	// upto is set if the current step last ran only up to a dispatch, and names this dispatch; nil if the
	// step ran completely.
	upto    *trace.DispatchID
	watch   *watch
	resumed bool // the text was taken over from a crashed engine
	// reference is the reference run of the text; nil until it is first needed.
	reference *referenceRun

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

// start starts the goroutine of the session. The first events are the trace's header and the session's
// state.
func start(m *Model, r *run.Runner, header *trace.Trace) *live {
	s := &live{
		m: m, runner: r, timing: m.options.Timing, clock: header.Clock, watch: newWatch(header.Graph),
		requests: make(chan request), done: make(chan struct{}),
		ran: nowhere, looked: replayed{step: nowhere},
	}
	if !r.Timed() {
		s.timing = engine.TimingOff
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.stream = session.NewStream(s.closing.Done(), session.EventBuffer)
	s.sender = session.NewSender(s.stream, r.Exec.Settled)
	s.stream.Send(session.Event{Opened: header})
	s.tell(false)
	for _, e := range r.Exec.Edits() {
		s.tellEdited(e.Of(r.Net.Graph))
	}
	s.sender.Flush()
	go s.serve()
	return s
}

func (s *live) serve() {
	defer close(s.done)
	defer s.sender.End()
	defer func() {
		s.runner.Release()
		s.lost = errors.Join(s.lost, s.m.Close())
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
func (s *live) Do(ctx context.Context, c session.Command) (session.Reply, error) {
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
func (s *live) Events() <-chan session.Event { return s.stream.Events() }

// Close implements session.Session.
func (s *live) Close() error {
	s.closed.Do(s.close)
	<-s.done
	return s.lost
}

// tell sends the state of the session to the front end. The state contains the text only if another text has
// begun since the state was sent last.
func (s *live) tell(running bool) {
	st := session.State{
		Context: s.m.context, MaxChunk: s.m.maxChunk, Position: s.text.Position(), Step: s.text.Step(),
		Given: s.text.Given, Ended: s.text.Ended, Running: running, Timing: s.timing.Level(),
		Chunk: s.chunk, Upto: s.upto, Unfinished: s.text.Voice.Held(),
		Edited: edited(s.runner),
	}
	if !s.text.Told {
		begins := session.Text{Prompt: s.text.Prompt, Given: s.text.Before, Talk: s.text.Talk}
		st.Begins, s.text.Told = &begins, true
		st.Resumed, s.resumed = s.resumed, false
	}
	s.sender.Send(func() session.Event { return session.Event{State: &st} })
}

func (s *live) record(r trace.Record) {
	s.sender.Send(func() session.Event { return session.Event{Records: []trace.Record{r}} })
}

// canStep returns an error if no step can follow the current one.
func (s *live) canStep() error {
	switch {
	case len(s.text.IDs) == 0:
		return session.Refusef("there is no text yet; give a prompt first")
	case s.text.Position() >= s.m.context:
		return session.Refusef("the context is full: %d of %d positions are in use", s.text.Position(),
			s.m.context)
	case s.text.Fault != nil:
		return session.Refusef("the text has ended: %w. Step back or give another prompt", s.text.Fault)
	case s.text.Ended:
		return session.Refusef("the text has ended with the model's end token; step back or give another prompt")
	}
	return nil
}

// event records an event of a step.
func (s *live) event(step int, kind, format string, args ...any) *trace.Event {
	e := &trace.Event{Step: step, Kind: kind, Text: fmt.Sprintf(format, args...)}
	s.record(trace.Record{Event: e})
	return e
}

// prefill returns the slow part of a command that sets a prompt: it processes the prompt until the first
// token is produced, or until a step meets a breakpoint.
func (s *live) prefill(breaks []session.Break) work {
	return func(ctx context.Context, r *session.Reply) error {
		return s.run(ctx, session.Command{Until: len(s.text.IDs), Breaks: breaks}, r)
	}
}

// run generates c.N tokens, or as many as possible if c.N is 0. It stops early at position c.Until or after a
// step that meets a breakpoint. If the prefill of the prompt was interrupted, run first processes the rest of
// the prompt.
func (s *live) run(ctx context.Context, c session.Command, r *session.Reply) error {
	if len(c.Breaks) > 0 {
		if err := s.hold(ctx); err != nil {
			return err
		}
		s.watch.from(s)
	}
	for n := 0; s.canStep() == nil && (c.Until == 0 || s.text.Position() < c.Until); {
		if s.text.Position() >= len(s.text.IDs) {
			if c.N > 0 && n == c.N {
				return nil
			}
			if s.generates(&c) {
				return s.generate(ctx, &c, n, r)
			}
			n++
		}
		begin := time.Now()
		if err := s.step(ctx, r); err != nil {
			return err
		}
		if len(c.Breaks) == 0 {
			continue
		}
		m := &moment{s: s, n: *s.text.Last(), ns: time.Since(begin).Nanoseconds()}
		if ns, _, ok := s.runner.Exec.SpanNS(); ok {
			m.ns = ns
		}
		hit, upto, err := s.watch.look(ctx, m)
		if err != nil {
			return err
		}
		if hit == nil {
			continue
		}
		r.Hit = hit
		s.record(trace.Record{Event: hit})
		if upto && s.runner.Exec.Loaded() {
			return s.runUpto(ctx, *hit.Dispatch)
		}
		return nil
	}
	return nil
}

// step runs the next step. If the step fails, the position does not change. If the highest logit is not
// finite, the step is recorded but produces no token. The text cannot continue, so step returns an error.
func (s *live) step(ctx context.Context, r *session.Reply) error {
	phase, n := s.text.Next()
	n.Gives = n.Gives && s.runner.Exec.Loaded()
	s.forget()
	s.upto = nil
	out, err := s.play(ctx, &n, s.timing)
	if err != nil {
		return err
	}
	return s.ended(ctx, phase, n, out, s.runner.Snapshot(), r)
}

// ended appends a step that has just run to the text, and sends its record to the front end.
func (s *live) ended(ctx context.Context, phase trace.Phase, n run.Turn, out run.Picked, was run.Snapshot,
	r *session.Reply,
) error {
	was.ClockProbe, was.Slow = s.runner.HeedClockProbe(s.timing)
	n.Index, n.Token, n.Edited = was.Index(), out.Token, edited(s.runner)
	s.ran = n.Index
	if n.Gives && !out.Finite() {
		n.Gives = false
		s.text.Ended = true
		s.text.Fault = fmt.Errorf("step %d at position %d produces no token: the highest logit is %v%s",
			n.Index, n.Position, out.Highest, s.runner.Blame(ctx))
	}
	text := s.text.Push(n)
	if n.Gives {
		s.text.Ended = s.ends(n.Token)
	}
	s.sender.Send(func() session.Event { return s.m.stepEvent(was, phase, n, out.Top, text) })
	r.Steps++
	if s.text.Fault != nil {
		s.event(n.Index, "logits", "%v", s.text.Fault)
	}
	return s.text.Fault
}

func (s *live) play(ctx context.Context, n *run.Turn, timing engine.Timing) (run.Picked, error) {
	var recent []int
	if by := &s.m.options.Sampling; n.Gives && by.Penalises() {
		recent = s.text.Recent(n.Position+len(n.Tokens), by.RepeatLastN)
	}
	return s.runner.Step(ctx, n.Position, n.Tokens, n.Gives, recent, timing)
}

// generates reports whether run.Runner.Generate can run the next steps, that is, whether nothing need be read
// from the device between two of them. The current step must be a decode step. It must also be the last step
// that the executor ran, and it must have run completely.
func (s *live) generates(c *session.Command) bool {
	last := s.text.Last()
	return len(c.Breaks) == 0 && last != nil && last.Position >= len(s.text.IDs) && s.ran == last.Index &&
		s.upto == nil && s.runner.Exec.CanPrepare(s.timing)
}

// generate generates the remaining tokens of a run command that has generated n tokens so far.
func (s *live) generate(ctx context.Context, c *session.Command, n int, r *session.Reply) error {
	_, next := s.text.Next()
	g := run.Generation{
		Position: next.Position, Token: next.Tokens[0], Steps: s.m.context - next.Position, Timing: s.timing,
		Pipelined: s.m.options.Pipelined && s.runner.Pipelines(), Recorded: true,
	}
	if c.N > 0 {
		g.Steps = min(g.Steps, c.N-n)
	}
	if c.Until > 0 {
		g.Steps = min(g.Steps, c.Until-next.Position)
	}
	if by := &s.m.options.Sampling; by.Penalises() {
		g.Recent = func(position int) []int { return s.text.Recent(position, by.RepeatLastN) }
	}
	g.Gave = func(out run.Picked, was run.Snapshot) (more bool, err error) {
		phase, n := s.text.Next()
		// If a logit is not finite, run the step again: ended calls Blame, which examines the values on the
		// device, and the next step may have overwritten them.
		if !out.Finite() {
			if _, err := s.play(ctx, &n, engine.TimingOff); err != nil {
				return false, err
			}
		}
		err = s.ended(ctx, phase, n, out, was, r)
		return err == nil && s.canStep() == nil, err
	}
	s.forget()
	err := s.runner.Generate(ctx, &g)
	if !s.runner.Exec.Stands() {
		s.forget()
	}
	return err
}

// ends reports whether the text ends with a generated token.
func (s *live) ends(token int) bool {
	return s.text.Position() >= s.m.context || !s.m.options.IgnoreEOS && s.m.tokens.IsEnd(token)
}

// stepEvent returns the event with the record of a step and the records of plans that did not occur earlier.
func (m *Model) stepEvent(s run.Snapshot, phase trace.Phase, n run.Turn, top []trace.Candidate,
	text string,
) session.Event {
	plans, step := s.Record()
	step.Phase, step.Position, step.Tokens, step.Text = phase, n.Position, n.Tokens, text
	if n.Gives {
		step.Token, step.Sampling = &n.Token, m.sampling
	}
	for i := range top {
		top[i].Text = strings.ToValidUTF8(string(m.tokens.Bytes(top[i].ID)), "\uFFFD")
	}
	step.Top = top
	records := make([]trace.Record, len(plans)+1)
	for i := range plans {
		records[i].Plan = &plans[i]
	}
	records[len(plans)].Step = &step
	return session.Event{Records: records}
}

// Limits for observe: observeRuns is the maximum number of times that it runs the step at each timing level.
// After observeFor it starts no further round.
const (
	observeRuns = 8
	observeFor  = 2 * time.Second
)

// observe measures the overhead of timing. It runs the current step again at three timing levels: without
// timing, with timestamps around the step, and with timestamps around every dispatch. It alternates between
// the levels, so that a change of the clock speed affects all of them equally.
func (s *live) observe(ctx context.Context, r *session.Reply) error {
	t := s.text.Last()
	walls := map[engine.Timing][]int64{}
	var spans, befores []int64
	begin, progress := time.Now(), s.progress()
	for n := 0; n < observeRuns && (n == 0 || time.Since(begin) < observeFor); n++ {
		if err := progress("measure timing overhead", n, observeRuns); err != nil {
			return err
		}
		for _, level := range []engine.Timing{engine.TimingOff, engine.TimingStep, engine.TimingDispatch} {
			start := time.Now()
			if _, err := s.again(ctx, t, level); err != nil {
				return err
			}
			walls[level] = append(walls[level], time.Since(start).Nanoseconds())
			if span, before, ok := s.runner.Exec.SpanNS(); ok && level == engine.TimingStep {
				spans, befores = append(spans, span), append(befores, before)
			}
		}
	}
	r.Repeats = len(walls[engine.TimingOff])
	s.record(trace.Record{Observer: &trace.Observer{
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

// tellClock records what is known about the GPU clock, if this has changed since the last record.
func (s *live) tellClock() {
	if c := s.runner.Exec.Clock(); c != s.clock {
		s.clock = c
		s.record(trace.Record{Clock: &c})
	}
}
