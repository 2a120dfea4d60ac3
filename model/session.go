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

// live is a model on a device that commands step through its text. One goroutine owns the device, the engine
// and the transcript; Do hands it commands one by one.
type live struct {
	m         *Model
	runner    *run.Runner
	text      run.Transcript
	timing    engine.Timing
	chunk     int         // tokens a step of a prompt takes, 0: as many as it can
	clock     trace.Clock // as it was last told
	ran       int         // the step that the executor ran last, nowhere where that is not known
	looked    replayed    // up to where it was run again for a look, with nothing after that
	costed    costed
	upto      *trace.DispatchID // up to which the current step was run again, nil: it is whole
	watch     *watch
	resumed   bool          // the text is another engine's
	reference *referenceRun // of the text, nil before it is wanted

	requests chan request
	stream   *session.Stream
	teller   *teller
	closing  context.Context // ends with Close
	close    context.CancelFunc
	done     chan struct{} // closed when the goroutine has ended
	lost     error         // why it ended by itself; read after done
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

// start runs the session. Its first events are the trace's header and where it stands.
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
	s.teller = newTeller(s.stream, r.Exec.Settled)
	s.stream.Send(session.Event{Opened: header})
	s.tell(false)
	for _, e := range r.Exec.Edits() {
		s.tellEdited(e.Of(r.Net.Graph))
	}
	s.teller.flush()
	go s.serve()
	return s
}

// serve runs commands until Close, or until the device is lost.
func (s *live) serve() {
	defer close(s.done)
	defer s.teller.end()
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

// tell says where the session stands, and its text where that is another one than was told before.
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
	s.teller.tell(func() session.Event { return session.Event{State: &st} })
}

// record adds to the trace.
func (s *live) record(r trace.Record) {
	s.teller.tell(func() session.Event { return session.Event{Records: []trace.Record{r}} })
}

// canStep says why no step can follow the current one.
func (s *live) canStep() error {
	switch {
	case len(s.text.IDs) == 0:
		return session.Refusef("there is no text yet: give a prompt first")
	case s.text.Position() >= s.m.context:
		return session.Refusef("the context is full: %d of %d positions are in use", s.text.Position(),
			s.m.context)
	case s.text.Fault != nil:
		return session.Refusef("the text has ended: %w: go back a step, or give another prompt", s.text.Fault)
	case s.text.Ended:
		return session.Refusef("the text has ended with the model's end token: go back a step, or give another prompt")
	}
	return nil
}

// event records something that happened at a step.
func (s *live) event(step int, kind, format string, args ...any) *trace.Event {
	e := &trace.Event{Step: step, Kind: kind, Text: fmt.Sprintf(format, args...)}
	s.record(trace.Record{Event: e})
	return e
}

// prefill takes the prompt in, up to the first token that comes out, or up to a step that meets one of the
// conditions.
func (s *live) prefill(breaks []session.Break) work {
	return func(ctx context.Context, r *session.Reply) error {
		return s.run(ctx, session.Command{Until: len(s.text.IDs), Breaks: breaks}, r)
	}
}

// run makes n tokens, or as many as there are, or those up to a position, or up to a step that meets one of
// the conditions. A prompt that was not taken in to its end is first.
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

// step makes the next step. Where it fails the position is the old one. A step whose logits are no numbers is
// told as it was, gives no token, and is an error: the text cannot go on.
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

// ended takes in a step that the executor ran last: its token is in the text then, and it was told.
func (s *live) ended(ctx context.Context, phase trace.Phase, n run.Turn, out run.Picked, was run.Snapshot,
	r *session.Reply,
) error {
	was.ClockProbe, was.Slow = s.runner.HeedClockProbe(s.timing)
	n.Index, n.Token, n.Edited = was.Index(), out.Token, edited(s.runner)
	s.ran = n.Index
	if n.Gives && !out.Finite() {
		n.Gives = false
		s.text.Ended = true
		s.text.Fault = fmt.Errorf("step %d at position %d gives no token: the highest of its logits is %v%s",
			n.Index, n.Position, out.Highest, s.runner.Blame(ctx))
	}
	text := s.text.Push(n)
	if n.Gives {
		s.text.Ended = s.ends(n.Token)
	}
	s.teller.tell(func() session.Event { return s.m.stepEvent(was, phase, n, out.Top, text) })
	r.Steps++
	if s.text.Fault != nil {
		s.event(n.Index, "logits", "%v", s.text.Fault)
	}
	return s.text.Fault
}

// play runs a turn of the text.
func (s *live) play(ctx context.Context, n *run.Turn, timing engine.Timing) (run.Picked, error) {
	var recent []int
	if by := &s.m.options.Sampling; n.Gives && by.Penalises() {
		recent = s.text.Recent(n.Position+len(n.Tokens), by.RepeatLastN)
	}
	return s.runner.Step(ctx, n.Position, n.Tokens, n.Gives, recent, timing)
}

// generates says whether the steps to come can be made one after another: nothing looks at what is between
// them, and the current one, which the executor has in force, is one of them.
func (s *live) generates(c *session.Command) bool {
	last := s.text.Last()
	return len(c.Breaks) == 0 && last != nil && last.Position >= len(s.text.IDs) && s.ran == last.Index &&
		s.upto == nil && s.runner.Exec.CanPrepare(s.timing)
}

// generate makes the tokens that a run has left when it has made n, or as many as there are.
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
		if !out.Finite() { // which is looked into: the step is run again, for the next may have run
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

// ends says whether the text ends with a token that came out.
func (s *live) ends(token int) bool {
	return s.text.Position() >= s.m.context || !s.m.options.IgnoreEOS && s.m.tokens.IsEnd(token)
}

// stepEvent is a step with the plans that are new with it.
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

// How often, and for how long at most, observe runs the step at each of the two levels.
const (
	observeRuns = 8
	observeFor  = 2 * time.Second
)

// observe measures what timing costs: the current step again, untimed, with timestamps around it, and with
// every dispatch timed, in turns, so that a drift of clocks meets all of them.
func (s *live) observe(ctx context.Context, r *session.Reply) error {
	t := s.text.Last()
	walls := map[engine.Timing][]int64{}
	var spans, befores []int64
	begin, progress := time.Now(), s.progress()
	for n := 0; n < observeRuns && (n == 0 || time.Since(begin) < observeFor); n++ {
		if err := progress("what timing costs", n, observeRuns); err != nil {
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

// median of times, not measured where there are none.
func median(list []int64) trace.Time {
	n := len(list)
	if n == 0 {
		return trace.Time{}
	}
	slices.Sort(list)
	return trace.Measured((list[(n-1)/2] + list[n/2]) / 2)
}

// offBy is what the median of times may be off by.
func offBy(list []int64) trace.Time {
	ns, ok := median(list).NS()
	if !ok {
		return trace.Time{}
	}
	return trace.OffBy(list, ns)
}

// tellClock says what the steps have taught of the GPU's clock.
func (s *live) tellClock() {
	if c := s.runner.Exec.Clock(); c != s.clock {
		s.clock = c
		s.record(trace.Record{Clock: &c})
	}
}
