// Package tuitest provides a session for tests and demonstrations of the terminal program. The session
// plays a recorded trace back as if a model were running. A test can make it fail, wait or panic.
package tuitest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gpuscope/session"
	"gpuscope/trace"
)

// Script controls how a Session behaves. The zero Script plays the trace back without delay.
type Script struct {
	// Progress is sent before the trace's header.
	Progress []session.Progress
	// Before is called before every command and, in a run, before every step. The error that Before
	// returns is the error of the command. Before may wait or panic.
	Before func(context.Context, session.Command) error
	// Rounds is the number of rounds in one measurement of costs; 0 means 30. Scatter is the difference, in
	// ns, between the upper and the lower quartile of the simulated step times.
	Rounds  int
	Scatter int64
	// Warmer is by how many ns each dispatch is shorter in repeats than in the recorded run.
	Warmer int64
	// Notes makes every measurement of costs return a note, as a real model does.
	Notes bool
	// NaN is the index of the element that is NaN in every value; 0 for none.
	NaN int
	// Lost is the error with which the engine crashes while it opens the model; nil if it does not crash.
	Lost error
}

// Session plays a trace back. Each step is the recorded step at the current position, with a new index: the
// number of steps played so far.
type Session struct {
	script   Script
	recorded *trace.Trace
	places   map[int]int // index of the recorded step at each position
	stream   *session.Stream
	closing  chan struct{}
	close    sync.Once

	mu     sync.Mutex // one command at a time
	died   error
	plans  int // number of plans sent so far
	played int // number of steps sent so far
	state  session.State
	rounds map[int]int  // number of rounds in which the costs of each step were measured, by step
	path   []trace.Step // steps that led to the position
	hit    *trace.Event // the event at which a run paused
	note   *trace.Event // the note of the reply
	tried  *session.Tried
}

// Play opens a session on a recorded trace. The first step of the trace must be its prompt.
func Play(t *trace.Trace, s Script) *Session {
	p := &Session{script: s, recorded: t, closing: make(chan struct{})}
	p.places, p.rounds = map[int]int{}, map[int]int{}
	p.stream = session.NewStream(p.closing, 1<<14)
	for i := len(t.Steps) - 1; i >= 0; i-- {
		p.places[t.Steps[i].Position] = i
	}
	context := t.Model.Dims["context"]
	p.state = session.State{Context: context, MaxChunk: context, Step: -1, Timing: trace.TimingDispatch}
	for i := range s.Progress {
		p.stream.Send(session.Event{Progress: &s.Progress[i]})
	}
	if s.Lost != nil {
		p.Die(s.Lost)
		return p
	}
	head := *t
	head.Plans, head.Steps, head.Events, head.Observer = nil, nil, nil, nil
	p.stream.Send(session.Event{Opened: &head})
	if t.Observer != nil {
		p.record(trace.Record{Observer: t.Observer})
	}
	p.tell()
	return p
}

func (p *Session) record(records ...trace.Record) { p.stream.Send(session.Event{Records: records}) }

// Events returns the stream of events.
func (p *Session) Events() <-chan session.Event { return p.stream.Events() }

// Close ends the stream and returns the error passed to Die, if any.
func (p *Session) Close() error {
	p.close.Do(func() {
		close(p.closing)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stream.End()
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.died
}

// Die ends the session as if the engine had crashed.
func (p *Session) Die(reason error) {
	p.mu.Lock()
	p.died = reason
	p.mu.Unlock()
	_ = p.Close()
}

// Say adds a line to the session's log.
func (p *Session) Say(level, text string) {
	p.stream.Send(session.Event{Log: &session.Log{Level: level, Text: text}})
}

// Do runs a command and returns the recorded or invented result.
func (p *Session) Do(ctx context.Context, c session.Command) (session.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died != nil {
		return session.Reply{}, fmt.Errorf("%w: %w", session.ErrClosed, p.died)
	}
	defer p.tell()
	played := p.played
	p.hit, p.tried, p.note = nil, nil, nil
	err := p.do(ctx, c)
	r := session.Reply{
		Step: p.state.Step, Position: p.state.Position, Steps: p.played - played, Hit: p.hit, Tried: p.tried,
		Note: p.note,
	}
	switch {
	case err != nil:
	case c.Kind == session.Repeat:
		r.Repeats = c.N
	case c.Kind == session.Look:
		r.Tensor, err = p.numbers(c.At)
	case c.Kind == session.Save: // writes nothing
		r.Saved = &session.Saved{Path: c.Save.Path, Type: "float32", Dims: []int{1, 2}, Bytes: 136}
	case c.Kind == session.Tokenize: // splits the text into words
		for i, word := range strings.SplitAfter(c.Text, " ") {
			r.Tokens = append(r.Tokens, session.Token{ID: i, Text: word})
		}
	}
	return r, err
}

func (p *Session) do(ctx context.Context, c session.Command) error {
	if c.Kind != session.Run && c.Kind != session.Cost {
		if err := p.before(ctx, c); err != nil {
			return err
		}
	}
	was := p.state.Upto
	if c.Kind != session.Upto {
		p.state.Upto = nil
	}
	switch c.Kind {
	case session.Prompt, session.Edit:
		p.event(p.played, string(c.Kind))
		p.rewind(0)
		text := &session.Text{}
		for i, id := range p.recorded.Steps[0].Tokens {
			tok := session.Token{ID: id, Text: "·"}
			if i == 0 {
				tok.Text = c.Text
			}
			text.Prompt = append(text.Prompt, tok)
		}
		p.state.Begins = text
		p.tell()
		if err := p.step(); err != nil {
			return err
		}
		p.look(c.Breaks)
	case session.Next:
		switch {
		case was != nil: // the step was paused at a dispatch; this command finishes the step
			return nil
		case p.state.Ended:
			return session.Refusef("the text has ended: go back a step, or give another prompt")
		}
		return p.step()
	case session.Upto:
		if len(p.path) == 0 || c.N >= len(p.recorded.Graph.Dispatches) {
			return session.Refusef("dispatch %d does not exist", c.N)
		}
		id := trace.DispatchID(c.N)
		p.state.Upto = &id
	case session.Chunk:
		p.state.Chunk = c.N
	case session.Run:
		for i := 0; (c.N == 0 || i < c.N) && !p.state.Ended && p.hit == nil; i++ {
			if c.Until > 0 && p.state.Position >= c.Until {
				return nil
			}
			if err := p.before(ctx, c); err != nil {
				return err
			}
			if err := p.step(); err != nil {
				return err
			}
			p.look(c.Breaks)
			p.tell()
		}
	case session.Previous:
		if len(p.path) < 2 {
			return session.Refusef("there is no step before the first")
		}
		p.event(p.state.Step, "set_back")
		p.rewind(len(p.path) - 1)
	case session.Repeat:
		return p.repeat(c.N, c.Step)
	case session.Cost:
		return p.cost(ctx, c)
	case session.Lab:
		return p.try(c)
	case session.Kernel:
		p.use(c.Edit)
	case session.Verify:
		return p.verify(c)
	case session.Resume:
		return p.resume(c.Left)
	case session.Reset:
		p.record(trace.Record{Event: &trace.Event{
			Step: max(0, p.state.Step), Kind: "reset", Text: session.ResetText,
		}})
		p.rewind(0)
		p.state.Begins = &session.Text{}
	case session.Timing:
		p.state.Timing = c.Level
	case session.Observe:
		step := p.state.Step
		p.record(trace.Record{Observer: &trace.Observer{
			Step: &step, UntimedNS: trace.Measured(1_800_000), TimedNS: trace.Measured(4_700_000),
			SpanNS: trace.Measured(1_280_000), BeforeNS: trace.Measured(500_000), N: 8,
			UntimedOff: trace.Measured(20_000), SpanOff: trace.Measured(20_000),
		}})
	case session.TimeOp:
		for _, m := range c.Lengths {
			for i, route := range []string{"bicol", "steel"} {
				ns := int64(10_000 + 400*m) // the second route is faster from 25 tokens on
				if i == 1 {
					ns = int64(20_000)
				}
				p.record(trace.Record{Trial: &trace.Trial{
					Op: *c.Op, Tokens: m, Route: route, Planned: (m == 1) == (i == 0), NS: ns, Q1NS: ns - 200,
					Q3NS: ns + 200, N: 10,
				}})
			}
		}
	case session.Ceilings:
		p.record(trace.Record{Ceilings: &trace.Ceilings{
			CopyBytesPerS: []trace.CopyRate{{Bytes: 1 << 28, PerS: 4.24e12}}, FlopsPerS: 5e13,
			DispatchNS: trace.Measured(1700), TimedPassNS: trace.Measured(4800), FillWorkgroups: 132, N: 5,
		}})
	case session.Tokenize, session.Look, session.Save:
	default:
		return fmt.Errorf("unknown command %q", c.Kind)
	}
	return nil
}

func (p *Session) before(ctx context.Context, c session.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.script.Before == nil {
		return nil
	}
	return p.script.Before(ctx, c)
}

// resume restores the state of another session.
func (p *Session) resume(l *session.Left) error {
	text := &session.Text{}
	for _, id := range l.Prompt {
		text.Prompt = append(text.Prompt, session.Token{ID: id, Text: "·"})
	}
	if l.Last != nil {
		p.played = l.Last.Step + 1
	}
	p.rewind(0)
	for _, turn := range l.Turns {
		s := p.recorded.Steps[p.places[p.state.Position]]
		s.Index = turn.Step
		p.path = append(p.path, s)
		if p.at(s); s.Token != nil {
			text.Given = append(text.Given, session.Token{ID: *s.Token, Text: s.Text})
		}
	}
	p.state.Begins, p.state.Resumed = text, true
	p.event(max(p.state.Step, 0), "engine_restarted")
	return nil
}

// tell sends the current state as an event.
func (p *Session) tell() {
	s := p.state
	p.state.Begins, p.state.Resumed = nil, false
	p.stream.Send(session.Event{State: &s})
}

// rewind keeps the first n steps of the path.
func (p *Session) rewind(n int) {
	p.path = p.path[:n]
	p.state.Given = 0
	p.state.Position, p.state.Step, p.state.Ended = 0, -1, false
	for _, s := range p.path {
		p.at(s)
	}
}

// at updates the state after the step s.
func (p *Session) at(s trace.Step) {
	p.state.Position, p.state.Step = s.Position+len(s.Tokens), s.Index
	if s.Token != nil {
		p.state.Given++
	}
	last := p.recorded.Steps[len(p.recorded.Steps)-1]
	p.state.Ended = s.Position == last.Position
}

// step plays the recorded step at the current position.
func (p *Session) step() error {
	i, ok := p.places[p.state.Position]
	if !ok {
		return fmt.Errorf("position %d: the recording ends at %d", p.state.Position,
			p.recorded.Steps[len(p.recorded.Steps)-1].Position)
	}
	s := p.recorded.Steps[i]
	most := p.plans
	for i := range s.Dispatches {
		most = max(most, int(s.Dispatches[i].Plan)+1)
	}
	for _, pass := range s.Resize.Passes {
		for _, h := range pass.Hooks {
			for _, c := range h.Plans {
				if c.To != nil {
					most = max(most, int(*c.To)+1)
				}
			}
		}
	}
	var records []trace.Record
	for ; p.plans < most; p.plans++ {
		records = append(records, trace.Record{Plan: &p.recorded.Plans[p.plans]})
	}
	s.Index = p.played
	p.played++
	p.record(append(records, trace.Record{Step: &s})...)
	p.path = append(p.path, s)
	p.at(s)
	return nil
}

// event records an event of a step.
func (p *Session) event(step int, kind string) {
	p.record(trace.Record{Event: &trace.Event{Step: step, Kind: kind, Text: kind}})
}

// look checks breakpoints. It supports only conditions on the position.
func (p *Session) look(breaks []session.Break) {
	from, to := p.path[len(p.path)-1].Position, p.state.Position
	for _, b := range breaks {
		if n, err := strconv.Atoi(b.Of); err == nil && b.On == "position" && from < n && n <= to {
			p.hit = &trace.Event{Step: p.state.Step, Kind: "breakpoint", Text: "breakpoint " + b.String()}
			p.record(trace.Record{Event: p.hit})
			return
		}
	}
}

// stepOf returns the step of the path with the given index, or the current step if `index` is nil.
func (p *Session) stepOf(index *int) (*trace.Step, error) {
	if len(p.path) == 0 {
		return nil, session.Refusef("no step to run again")
	}
	if index == nil {
		return &p.path[len(p.path)-1], nil
	}
	i := slices.IndexFunc(p.path, func(s trace.Step) bool { return s.Index == *index })
	if i < 0 {
		return nil, session.Refusef("step %d cannot be run again: it is not part of the current text", *index)
	}
	return &p.path[i], nil
}

// Shared is the part of a step's simulated time, in ns, that no dispatch causes. A measurement of costs
// reports Shared plus the costs of all dispatches as the time of the step.
const Shared = 7000

// cost reports a cost for each part of the command: half the recorded time of the part's dispatches. Before
// each part, it sends the progress and calls Script.Before.
func (p *Session) cost(ctx context.Context, c session.Command) error {
	s, err := p.stepOf(c.Step)
	if err != nil {
		return err
	}
	took := map[trace.DispatchID]int64{}
	whole := trace.Whole{NS: Shared, N: 31, OffNS: trace.Measured(1000)}
	for i := range s.Dispatches {
		ns, _ := s.Dispatches[i].GPUNS.NS()
		took[p.recorded.Plans[s.Dispatches[i].Plan].Dispatch] = ns / 2
		whole.NS += ns / 2
	}
	whole.WallNS = trace.Measured(2 * whole.NS)
	whole.OffNS, whole.WallOff = trace.Measured(9_000), trace.Measured(12_000)
	whole.Q1NS, whole.Q3NS = whole.NS-p.script.Scatter/2, whole.NS+p.script.Scatter/2
	p.rounds[s.Index] += cmp.Or(p.script.Rounds, 30)
	if len(c.Parts) == 0 {
		if err := p.before(ctx, c); err != nil {
			return err
		}
	}
	told := trace.Costs{Step: s.Index, Whole: whole}
	say := func(percent int) {
		to := session.Progress{Phase: "measure costs", Done: percent, Total: 100}
		p.stream.Send(session.Event{Progress: &to})
	}
	for i, part := range c.Parts {
		say(100 * i / len(c.Parts))
		if err = p.before(ctx, c); err != nil {
			break // keep what was measured so far
		}
		cost := trace.Cost{Name: part.Name, Dispatches: part.Dispatches, N: p.rounds[s.Index]}
		for _, id := range part.Dispatches {
			cost.NS += took[id]
		}
		cost.Q1NS, cost.Q3NS = cost.NS-400, cost.NS+600
		if n := cost.N; p.script.Scatter > 0 && n >= 5 && n < 16 {
			cost.OffNS = trace.Measured(int64(2 * float64(p.script.Scatter) / math.Sqrt(float64(cost.N))))
		}
		told.Costs = append(told.Costs, cost)
	}
	if err == nil {
		say(100)
	}
	if len(c.Parts) == 0 || len(told.Costs) > 0 {
		p.record(trace.Record{Costs: &told})
	}
	if len(told.Costs) > 0 {
		p.event(s.Index, "cost")
		if p.script.Notes {
			text := fmt.Sprintf("measured the cost of %d parts", len(told.Costs))
			p.note = &trace.Event{Step: s.Index, Kind: "cost", Text: text}
			p.record(trace.Record{Event: p.note})
		}
	}
	return err
}

// verify reports errors for the named dispatches, or for all dispatches of a step. The error of the step's
// seventh dispatch is three times the tolerance. All other errors are a tenth of the tolerance.
func (p *Session) verify(c session.Command) error {
	s, err := p.stepOf(c.Step)
	if err != nil {
		return err
	}
	named := map[trace.DispatchID]bool{}
	for _, part := range c.Parts {
		for _, id := range part.Dispatches {
			named[id] = true
		}
	}
	gaps := trace.NumericErrors{Step: s.Index}
	for i := range s.Dispatches {
		id := p.recorded.Plans[s.Dispatches[i].Plan].Dispatch
		if len(named) > 0 && !named[id] {
			continue
		}
		g := trace.NumericError{
			MaxAbs: 2e-6, MSE: 1e-13, SNRdB: 120, Reference: "float64",
			Tolerance: "2e-05: 2048 products summed in f32", Share: 0.1, Compared: 2048, Elements: 2048,
		}
		if i == 6 {
			g.MaxAbs, g.MSE, g.SNRdB, g.Share = 6e-5, 1e-10, 90, 3
		}
		if len(named) == 0 {
			g.Run = &trace.Drift{MaxAbs: 4e-5, MSE: 1e-11, SNRdB: 100}
		}
		gaps.Gaps = append(gaps.Gaps, trace.DispatchError{Dispatch: id, Gap: g})
	}
	e := trace.Event{Step: s.Index, Kind: string(c.Kind), Text: "all dispatches are within their tolerance"}
	wrong := func(g trace.DispatchError) bool { return g.Gap.Share > 1 }
	if i := slices.IndexFunc(gaps.Gaps, wrong); i >= 0 {
		e.Dispatch = &gaps.Gaps[i].Dispatch
		e.Text = fmt.Sprintf("first divergence: dispatch %d: 3 times its tolerance", *e.Dispatch)
	}
	p.record(trace.Record{Gaps: &gaps}, trace.Record{Event: &e})
	return nil
}

// repeat adds n samples to a step, or to the current step if `step` is nil. The samples are the recorded
// times with a small variation.
func (p *Session) repeat(n int, step *int) error {
	s, err := p.stepOf(step)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("repeated %d times", n)
	p.record(trace.Record{Event: &trace.Event{Step: s.Index, Kind: "repeat", Text: text}})
	r := trace.Samples{Step: s.Index, Samples: make([][]int64, len(s.Dispatches))}
	for i := range s.Dispatches {
		ns, _ := s.Dispatches[i].GPUNS.NS()
		for k := range n {
			r.Samples[i] = append(r.Samples[i], ns-p.script.Warmer+32*int64((i+k)%5-2))
		}
	}
	p.record(trace.Record{Samples: &r})
	return nil
}
