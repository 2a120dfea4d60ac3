package executions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Session is a session whose steps execute a method.
type Session struct {
	*stepping.Session
	options Options
	file    *pte.File
	method  *program.Method
	program *program.Program
	opening []trace.Opening

	inputs  []*npy.Array // inputs of the next execution, if they are random
	live    []program.LiveDim
	runs    []execution  // executions since the last reset
	count   int          // number of new executions, including those before the last reset
	outputs []*npy.Array // outputs of the last new execution
	told    bool         // whether the live dims have been sent to the front end
	resumed bool         // whether the session continues the session of a crashed engine

	// accumulating lists the mutable buffers except caches of keys and values. Before an execution is
	// repeated, these buffers must get the contents that they had before it first ran.
	accumulating []graph.ValueID
	initial      buffers
	after        buffers // contents after the current execution
	before       buffers // contents before the last run
}

// buffers holds the contents of the accumulating buffers.
type buffers map[graph.ValueID][]byte

// execution is a step of the session.
type execution struct {
	stepping.Step
	inputs []*npy.Array
	sum    uint64  // checksum of the outputs
	before buffers // contents of the accumulating buffers before the execution
}

// Method returns the method that the session executes.
func (s *Session) Method() *program.Method { return s.method }

// Outputs returns the outputs of the last new execution. An execution that is run again is not a new one.
// Outputs must not be called while a command is running.
func (s *Session) Outputs() []*npy.Array { return s.outputs }

// Inputs returns the inputs of execution n, counted from 0.
func (s *Session) Inputs(n int) []*npy.Array {
	if list := s.options.Inputs; len(list) > 0 {
		return list[n%len(list)]
	}
	return s.inputs
}

// choose checks the inputs in the options, or sets the dims of the random inputs.
func (s *Session) choose(live []program.LiveDim) error {
	for _, inputs := range s.options.Inputs {
		if err := s.method.Check(inputs); err != nil {
			return session.Refusef("%w", err)
		}
	}
	if len(s.options.Inputs) > 0 {
		return nil
	}
	shapes, err := s.method.LiveShapes(live)
	if err != nil {
		return session.Refusef("%w", err)
	}
	inputs, err := s.method.RandomInputs(s.options.Seed, shapes)
	if err != nil {
		return err
	}
	s.inputs, s.live, s.told = inputs, live, false
	return nil
}

// dims returns the name and the size of each input dim that can change. The text "0.1=7" means that dim 1 of
// input 0 has size 7.
func (s *Session) dims() []session.Token {
	var list []session.Token
	inputs := s.Inputs(s.count)
	for i, a := range s.method.Inputs() {
		for k, changes := range a.Changes {
			if changes {
				n := inputs[i].Dims[k]
				list = append(list, session.Token{ID: n, Text: fmt.Sprintf("%d.%d=%d ", i, k, n)})
			}
		}
	}
	if len(list) == 0 {
		list = []session.Token{{Text: "no dim can change "}}
	}
	return list
}

// host implements stepping.Host.
type host struct{ *Session }

func (s host) Current() (stepping.Step, bool) {
	if len(s.runs) == 0 {
		return stepping.Step{}, false
	}
	return s.runs[len(s.runs)-1].Step, true
}

func (s host) find(index int) int {
	return slices.IndexFunc(s.runs, func(e execution) bool { return e.Index == index })
}

func (s host) Find(index int) (stepping.Step, bool) {
	i := s.find(index)
	if i < 0 {
		return stepping.Step{}, false
	}
	return s.runs[i].Step, true
}

// Play implements stepping.Host.
func (s host) Play(ctx context.Context, of stepping.Step, timing engine.Timing) (differs string, err error) {
	i := s.find(of.Index)
	e := &s.runs[i]
	if i < len(s.runs)-1 && len(s.accumulating) > 0 {
		if err := s.replay(ctx, i); err != nil {
			return "", err
		}
	} else if i == len(s.runs)-1 {
		if err := s.restore(e.before); err != nil {
			return "", err
		}
	}
	outputs, err := s.run(ctx, e.inputs, timing)
	if err == nil && checksum(outputs) != e.sum {
		differs = "computes other outputs when run again"
	}
	return differs, err
}

// replay restores the contents that the accumulating buffers had before execution i. For this, it resets the
// buffers and runs all earlier executions again.
func (s *Session) replay(ctx context.Context, i int) error {
	if err := s.restore(s.initial); err != nil {
		return err
	}
	for k := range i {
		if _, err := s.program.RunTimed(ctx, s.runs[k].inputs, engine.TimingOff); err != nil {
			return err
		}
	}
	return nil
}

// run runs the method with the current contents of the accumulating buffers.
func (s *Session) run(ctx context.Context, inputs []*npy.Array, timing engine.Timing) ([]*npy.Array, error) {
	var err error
	if s.before, err = s.save(); err != nil {
		return nil, err
	}
	return s.program.RunTimed(ctx, inputs, timing)
}

// save reads the accumulating buffers.
func (s *Session) save() (buffers, error) {
	b := buffers{}
	for _, v := range s.accumulating {
		info := s.Graph.Value(v)
		b[v] = make([]byte, info.DType.Bytes(graph.Numel(info.MaxDims)))
		if err := s.Exec.ReadValue(v, b[v]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// restore writes the accumulating buffers.
func (s *Session) restore(b buffers) error {
	for v, data := range b {
		if err := s.Exec.WriteValue(v, data); err != nil {
			return err
		}
	}
	return nil
}

// Rewind implements stepping.Host.
func (s host) Rewind() error {
	if err := s.program.Rewind(); err != nil {
		return err
	}
	return s.restore(s.before)
}

func (s host) Position() int { return len(s.runs) }

func (s host) State() session.State {
	st := session.State{Program: true, Position: len(s.runs)}
	if !s.told {
		st.Begins, s.told = &session.Text{Prompt: s.dims()}, true
		st.Resumed, s.resumed = s.resumed, false
	}
	return st
}

// Error implements stepping.Host. It returns nil: there are no reference values for executions yet.
func (s host) Error(context.Context, stepping.Step, trace.DispatchID, []engine.EditOutput) (
	*trace.NumericError, error,
) {
	return nil, nil
}

func (s host) Close() error { return s.file.Close() }

// step runs the next execution.
func (s *Session) step(ctx context.Context, r *session.Reply) error {
	s.Upto = nil
	s.Forget()
	inputs := s.Inputs(s.count)
	if err := s.restore(s.after); err != nil {
		return err
	}
	outputs, err := s.run(ctx, inputs, s.Timing)
	if err != nil {
		_, unplanned := errors.AsType[*graph.OpError](err) // an operator does not support the shapes
		if unplanned || errors.Is(err, program.ErrInput) || errors.Is(err, graph.ErrShape) {
			err = session.Refusef("%w", err)
		}
		return err
	}
	before := s.before
	if s.after, err = s.save(); err != nil {
		return err
	}
	was := s.Snapshot()
	was.ClockProbe, was.Slow = s.HeedClockProbe(s.Timing)
	position := len(s.runs)
	s.Ran, s.outputs = was.Index(), outputs
	s.runs = append(s.runs, execution{
		stepping.Step{Index: was.Index(), Position: position, Shape: shapeText(inputs), Edited: s.Edited()},
		inputs, checksum(outputs), before,
	})
	s.Send(func() session.Event {
		return was.StepEvent(func(step *trace.Step) {
			step.Phase, step.Position = trace.Execute, position
		})
	})
	r.Steps++
	s.count++
	if s.options.Ran != nil {
		return s.options.Ran(s.count-1, outputs)
	}
	return nil
}

func shapeText(inputs []*npy.Array) string {
	var b strings.Builder
	for _, a := range inputs {
		fmt.Fprint(&b, a.Dims)
	}
	return b.String()
}

var seed = maphash.MakeSeed()

func checksum(outputs []*npy.Array) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, a := range outputs {
		_, _ = h.Write(a.Data) // never fails
	}
	return h.Sum64()
}

// commands returns the commands that only a session of executions has.
func (s *Session) commands() []stepping.Command {
	list := []stepping.Command{
		{
			Kind:  session.Prompt,
			Doc:   `Set the live dims of the inputs, such as "0.1=7", and execute the method. All other dims get their upper bounds. Pause at a breakpoint.`,
			Takes: []stepping.Field{stepping.Text, stepping.Count, stepping.Breaks}, Begin: s.beginPrompt,
			Tracked: true,
		},
		{
			Kind: session.Next,
			Doc:  "Execute the method, or finish the current execution if it ran only up to a dispatch.",
			Begin: func(session.Command) (stepping.Work, error) {
				if s.Upto != nil {
					return s.Finish, nil
				}
				return s.step, nil
			},
			Tracked: true,
		},
		{
			Kind: session.Run, Doc: "Execute the method n times. If n is 0, execute it 100 times. Pause at a breakpoint.",
			Takes: []stepping.Field{stepping.Count, stepping.Breaks}, Begin: s.beginRun, Tracked: true,
		},
		{
			Kind: session.Previous, Doc: "Step back: return to the execution before the current one.",
			Begin: s.beginPrevious,
		},
		{
			Kind: session.Reset, Doc: "Give all buffers of the method their initial contents. The steps recorded so far stay in the trace.",
			Begin: func(session.Command) (stepping.Work, error) {
				at := s.Rec.Next()
				s.runs, s.after, s.Upto, s.told = nil, s.initial, nil, false
				s.Event(max(at-1, 0), "reset", session.ExecutionsResetText)
				return nil, nil
			},
		},
		{
			Kind: session.Resume, Doc: "After a crash, continue with the live dims of the crashed engine. The buffers have their initial contents.",
			Takes: []stepping.Field{stepping.Left}, Begin: s.beginResume,
		},
	}
	for _, kind := range []session.CommandKind{
		session.Plan, session.Edit, session.Chunk, session.TimeOp, session.Tokenize, session.Verify,
	} {
		list = append(list, stepping.Command{
			Kind: kind, Doc: "Only for language models.", Takes: stepping.Fields,
			Begin: func(session.Command) (stepping.Work, error) {
				return nil, session.Refusef("%s: not available, because the program is not a language model",
					kind)
			},
			Tracked: true,
		})
	}
	return list
}

func (s *Session) beginPrompt(c session.Command) (stepping.Work, error) {
	if c.Text != "" && len(s.options.Inputs) > 0 {
		return nil, session.Refusef("cannot set live dims: the inputs are read from files, which determine the shapes")
	}
	live, err := program.ParseLiveDims(c.Text)
	if err != nil {
		return nil, session.Refusef("%w", err)
	}
	if c.Text == "" {
		live = s.live
	}
	if err := s.Watch.Set(c.Breaks); err != nil {
		return nil, err
	}
	if err := s.choose(live); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		return s.execute(ctx, session.Command{N: 1, Breaks: c.Breaks}, r)
	}, nil
}

func (s *Session) beginRun(c session.Command) (stepping.Work, error) {
	if err := s.Watch.Set(c.Breaks); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error { return s.execute(ctx, c, r) }, nil
}

// usualRuns is the default number of executions of a run command.
const usualRuns = 100

// execute executes the method c.N times. It stops early after an execution that meets a breakpoint.
func (s *Session) execute(ctx context.Context, c session.Command, r *session.Reply) error {
	if len(c.Breaks) > 0 {
		if err := s.Hold(ctx); err != nil {
			return err
		}
		s.Watch.From(s.Session)
	}
	for range cmp.Or(c.N, usualRuns) {
		begin := time.Now()
		if err := s.step(ctx, r); err != nil {
			return err
		}
		if len(c.Breaks) == 0 {
			continue
		}
		if paused, err := s.Pauses(ctx, s.runs[len(s.runs)-1].Step, begin, r); paused || err != nil {
			return err
		}
	}
	return nil
}

// beginPrevious steps back. If the program has accumulating buffers, a replay restores their contents.
func (s *Session) beginPrevious(session.Command) (stepping.Work, error) {
	if len(s.runs) == 0 {
		return nil, session.Refusef("cannot step back: nothing was executed since the reset")
	}
	last := s.runs[len(s.runs)-1]
	s.runs, s.Upto = s.runs[:len(s.runs)-1], nil
	if len(s.accumulating) == 0 {
		s.Event(last.Index, "set_back", "stepped back to execution %d", last.Position)
		return nil, nil
	}
	note := s.Event(last.Index, "replayed",
		"stepped back to execution %d by running %s since the reset again, because the program updates buffers that are not KV caches",
		last.Position, table.Plural(len(s.runs), "execution"))
	return func(ctx context.Context, r *session.Reply) error {
		r.Note = note
		err := s.replay(ctx, len(s.runs))
		if err == nil {
			s.after, err = s.save()
		}
		return err
	}, nil
}

// beginResume continues the session of a crashed engine. The prompt in c.Left holds the sizes of the
// changing input dims in the crashed engine, in the same order as the result of Session.dims.
func (s *Session) beginResume(c session.Command) (stepping.Work, error) {
	l := c.Left
	if l == nil || s.Rec.Next() > 0 {
		return nil, session.Refusef("resume: the field \"left\" is missing, or this engine has already run steps")
	}
	var live []program.LiveDim
	for i, a := range s.method.Inputs() {
		for k, changes := range a.Changes {
			if changes && len(live) < len(l.Prompt) {
				live = append(live, program.LiveDim{Input: i, Dim: k, Size: l.Prompt[len(live)]})
			}
		}
	}
	if err := s.choose(live); err != nil {
		return nil, err
	}
	if l.Timing != "" {
		timing, err := s.TimingOf(l.Timing)
		if err != nil {
			return nil, err
		}
		s.Timing = timing
	}
	return func(ctx context.Context, _ *session.Reply) error {
		s.resumed, s.told = true, false
		if l.Last == nil {
			return nil
		}
		if _, err := s.run(ctx, s.Inputs(s.count), engine.TimingOff); err != nil {
			return err
		}
		for _, p := range s.Rec.Continue(l.Last.Step + 1) {
			s.Record(trace.Record{Plan: &p})
		}
		s.Event(l.Last.Step, "engine_restarted",
			"the engine was restarted: the buffers of the program have their initial contents")
		return nil
	}, nil
}
