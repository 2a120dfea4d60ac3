package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
)

// reply runs a command that must succeed and returns its reply.
func (r *rig) reply(c session.Command) session.Reply {
	r.t.Helper()
	reply, err := r.s.Do(context.Background(), c)
	if err != nil {
		r.t.Fatalf("%s: %v", c.Kind, err)
	}
	r.wait()
	return reply
}

// kinds returns the kind and step of each event in the trace.
func (r *rig) kinds() (list []string) {
	for _, e := range r.mirror.Trace.Events {
		list = append(list, fmt.Sprintf("%s s%d", e.Kind, e.Step))
	}
	return list
}

func TestARunPausesAtAPosition(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	r.do(promptOf(5))
	reply := r.reply(session.Command{Kind: session.Run, Until: 9})
	if reply.Steps != 4 || reply.Position != 9 {
		t.Errorf("reply %+v", reply)
	}
	r.wantStand(`step 4, position 9, "fghij"`)
	r.do(session.Command{Kind: session.Run, N: 2, Until: 20})
	r.wantStand(`step 6, position 11, "fghijkl"`)
	for _, until := range []int{11, tinyContext + 1, -1} {
		err := r.try(context.Background(), session.Command{Kind: session.Run, Until: until})
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("until %d: %v", until, err)
		}
		golden.Error(fmt.Sprint("until ", until), err)
	}
	r.wantStand(`step 6, position 11, "fghijkl"`)
}

func TestARunPausesWhereAConditionIsMet(t *testing.T) {
	golden := wordingtest.New(t)
	type setting struct {
		breaks  []string
		stands  string
		at      string // dispatch of the breakpoint, or ""
		prompt  int    // tokens; 0 stands for 5
		prepare func(*rig)
	}
	for name, test := range map[string]setting{
		"a position": {
			breaks: []string{"position 8"}, stands: `step 3, position 8, "fghi"`,
		},
		"a kernel": {
			breaks: []string{"kernel gemv"}, stands: `step 1, position 6, "fg"`, at: "layers.0.attn.q",
		},
		"an operator by its name": {
			breaks: []string{"op 1.mlp.down"}, stands: `step 1, position 6, "fg"`,
			at: "layers.1.mlp.down+add",
		},
		"an operator by its kind, as an expression": {
			breaks: []string{`op re:^embedding`}, stands: `step 1, position 6, "fg"`, at: "embed",
		},
		"the first that is met": {
			breaks: []string{"position 40", "kernel no such", "position 7"}, stands: `step 2, position 7, "fgh"`,
		},
		"a grid that nobody asked for": {
			breaks: []string{"grid"}, stands: `step 5, position 449, "cdefgh"`, prompt: 444,
			at: "layers.0.attn.rope+sdpa.fd_split",
		},
		"another route": {
			breaks: []string{"route mlp"}, stands: `step 1, position 6, "fg"`,
			at: "layers.0.mlp.gate",
		},
		"no other route, as steps are alike": {
			breaks: []string{"route", "position 4"}, prompt: 1, stands: `step 3, position 4, "bcde"`,
		},
		"a number that is none": {
			breaks: []string{"nan"}, stands: `step 3, position 8, "fghi"`, at: "embed",
			prepare: func(r *rig) {
				read := r.dev.OnRead
				r.dev.OnRead = func(label string, offset uint64, dst []byte) {
					read(label, offset, dst)
					if label == "replay" && r.s.text.Position() == 8 && offset == 0 {
						copy(dst, []byte{0, 0, 0xc0, 0x7f})
					}
				}
			},
		},
		"a dispatch that takes long": {
			breaks: []string{"time 3"}, stands: `step 12, position 17, "fghijklmnopqr"`,
			at: "layers.0.mlp.gate",
			prepare: func(r *rig) {
				gates := 0
				r.dev.Duration = func(pipeline string, x, _, _ uint32) int64 {
					if strings.Contains(pipeline, "rms_norm") {
						gates++
					}
					if r.s.text.Position() == 16 && gates%5 == 2 && !strings.Contains(pipeline, "rms_norm") {
						return 50_000
					}
					return 1000
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := tiny()
			file.Set("llama.context_length", max(4*tinyContext, 2*test.prompt))
			r := newRigOn(t, Options{Timing: engine.TimingDispatch, Fuse: normsRun}, file,
				fake.Options{NoLog: true})
			if test.prepare != nil {
				test.prepare(r)
			}
			r.do(promptOf(cmp.Or(test.prompt, 5)))
			var breaks []session.Break
			for _, text := range test.breaks {
				b, err := session.ParseBreak(text)
				if err != nil {
					t.Fatal(err)
				}
				breaks = append(breaks, b)
			}
			reply := r.reply(session.Command{Kind: session.Run, Breaks: breaks})
			r.wantStand(test.stands)
			if reply.Hit == nil {
				t.Fatal("the reply does not say which condition was met")
			}
			events := r.mirror.Trace.Events
			e := events[len(events)-1]
			if d := diff.Diff(*reply.Hit, e); d != "" {
				t.Error("the event in the trace differs:", d)
			}
			if e.Kind != "breakpoint" || e.Step != r.mirror.State.Step {
				t.Errorf("event %+v", e)
			}
			golden.Text(name, e.Text)
			at := ""
			if e.Dispatch != nil {
				at = r.s.Watch.Name(*e.Dispatch)
			}
			if at != test.at {
				t.Errorf("at %q, want %q: %s", at, test.at, e.Text)
			}
			r.do(session.Command{Kind: session.Reset})
		})
	}
}

func TestAPromptPausesWhereAConditionIsMet(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	prompt := promptOf(20)
	prompt.Chunks = []int{4}
	prompt.Breaks = []session.Break{{On: "route"}, {On: "position", Of: "12"}}
	if reply := r.reply(prompt); reply.Hit == nil || reply.Hit.Kind != "breakpoint" {
		t.Errorf("the reply has the hit %+v", reply.Hit)
	} else {
		golden.Text("position 12", reply.Hit.Text)
	}
	r.wantStand(`step 2, position 12, ""`)
	r.do(session.Command{Kind: session.Run, N: 1}) // runs the rest of the prompt and generates a token
	r.wantStand(`step 5, position 21, "uv"`)
	r.do(session.Command{Kind: session.Reset})
	if reply := r.reply(promptOf(5)); reply.Hit != nil {
		t.Errorf("a prompt without conditions: %+v", reply.Hit)
	}
}

// A breakpoint before the current position does not stop a run. After a reset, a breakpoint stops the run
// again.
func TestRunPausesAtAPositionEveryTime(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	run := session.Command{Kind: session.Run, Until: 12, Breaks: []session.Break{
		{On: "position", Of: "3"}, {On: "position", Of: "8"},
	}}
	for i, want := range []int{8, 12, 8} {
		if i == 2 {
			r.do(session.Command{Kind: session.Reset})
			r.do(promptOf(7))
		}
		if r.do(run); r.mirror.State.Position != want {
			t.Errorf("run %d pauses at position %d, want %d", i, r.mirror.State.Position, want)
		}
	}
}

// A condition compares a step with the previous step of the text, even if the device last ran another step.
func TestConditionComparesWithTheTextsPreviousStep(t *testing.T) {
	file := tiny()
	file.Set("llama.context_length", 1000)
	r := newRigOn(t, Options{}, file, fake.Options{NoLog: true})
	r.do(promptOf(124))
	run := session.Command{Kind: session.Run, Breaks: []session.Break{{On: "grid"}}}
	r.do(run)
	r.wantStand(`step 5, position 129, "uvwxyz"`)
	r.do(session.Command{Kind: session.Previous})
	if r.do(run); r.mirror.State.Position != 129 {
		t.Errorf("the second run pauses at position %d, want 129", r.mirror.State.Position)
	}
}

func TestAnOlderStepIsRepeatedInItsPlace(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{Timing: engine.TimingDispatch, MaxChunk: 4})
	r.do(promptOf(6)) // in two steps
	r.do(session.Command{Kind: session.Run, N: 3})
	for _, step := range []int{2, 0} {
		var positions []int
		r.token = func(position int, tokens []int) int {
			positions = append(positions, position)
			return letters(position, tokens)
		}
		reply := r.reply(session.Command{Kind: session.Repeat, N: 3, Step: &step})
		if reply.Repeats != 3 || reply.Step != 4 || reply.Position != 9 {
			t.Errorf("step %d: reply %+v", step, reply)
		}
		if n := len(r.mirror.Trace.Steps[step].Dispatches[0].Samples); n != 3 {
			t.Errorf("step %d has %d samples, want 3", step, n)
		}
		if last := positions[len(positions)-1]; last != 8 {
			t.Errorf("step %d: the last step that ran was at position %d, want 8", step, last)
		}
	}
	for i, s := range r.mirror.Trace.Steps {
		if n := len(s.Dispatches[0].Samples); n != map[int]int{0: 3, 2: 3}[i] {
			t.Errorf("step %d has %d samples", i, n)
		}
	}
	r.do(session.Command{Kind: session.Previous})
	four := 4
	err := r.try(context.Background(), session.Command{Kind: session.Repeat, Step: &four})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("a step that was undone: %v", err)
	}
	golden.Error("a step that was undone", err)
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 6, position 10, "ghijk"`)
}

func TestWhatHappenedToTheTextIsRecorded(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingDispatch})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Repeat, N: 2})
	r.do(session.Command{Kind: session.Edit, N: 3, Tokens: []int{'x'}})
	r.do(session.Command{Kind: session.Reset})
	want := []string{"prompt s0", "set_back s1", "repeat s0", "edit s2", "reset s2"}
	if d := diff.Diff(want, r.kinds()); d != "" {
		t.Error(d)
	}
}

// The fake device computes nothing, so the test counts the dispatches that ran.
func TestStepPausesAtADispatchAndFinishes(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	ran := 0
	r.dev.OnDispatch = func(fake.Dispatch) { ran++ }
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 3})
	active := r.s.runner.Exec.Live().Active()
	for _, test := range []struct{ at, runs int }{{0, 1}, {7, 8}, {len(active) - 1, len(active)}} {
		ran = 0
		r.do(session.Command{Kind: session.Upto, N: int(active[test.at])})
		if upto := r.mirror.State.Upto; upto == nil || *upto != active[test.at] || ran != test.runs {
			t.Errorf("pause at index %d: the state has %v, %d dispatches ran, want %d", test.at, upto, ran,
				test.runs)
		}
	}
	ran = 0
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 3, position 8, "fghi"`)
	if r.mirror.State.Upto != nil || ran != len(active) {
		t.Errorf("finished: the state has %v, %d of %d dispatches ran", r.mirror.State.Upto, ran, len(active))
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 4, position 9, "fghij"`)

	// After a step back, the device does not have the values of the current step.
	r.do(session.Command{Kind: session.Previous})
	ran = 0
	r.do(session.Command{Kind: session.Upto, N: int(active[0])})
	if ran != len(active)+1 {
		t.Errorf("after a step back %d ran, want %d: the step and its first dispatch", ran, len(active)+1)
	}
	for _, c := range []session.Command{
		{Kind: session.Previous},
		{Kind: session.Repeat},
		{Kind: session.Run, N: 1},
		promptOf(3),
		{Kind: session.Reset},
	} {
		r.do(promptOf(5))
		r.do(session.Command{Kind: session.Run, N: 2})
		r.do(session.Command{Kind: session.Upto, N: int(active[3])})
		if r.do(c); r.mirror.State.Upto != nil {
			t.Errorf("after %s the step is paused at dispatch %d", c.Kind, *r.mirror.State.Upto)
		}
	}
	r.do(promptOf(5))
	for name, n := range map[string]int{
		"a dispatch past the last":         len(r.mirror.Trace.Graph.Dispatches),
		"a dispatch that the step skipped": unused(r),
	} {
		err := r.try(context.Background(), session.Command{Kind: session.Upto, N: n})
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
}

// unused returns a dispatch that the current step does not run.
func unused(r *rig) int {
	active := r.s.runner.Exec.Live().Active()
	for i := range r.mirror.Trace.Graph.Dispatches {
		if i >= len(active) || int(active[i]) != i {
			return i
		}
	}
	r.t.Fatal("every dispatch runs")
	return -1
}

func TestRunPausesAtTheDispatchOfItsKernel(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, Breaks: []session.Break{{On: "op", Of: "1.mlp.down"}}})
	upto := r.mirror.State.Upto
	if upto == nil || r.s.Watch.Name(*upto) != "layers.1.mlp.down+add" {
		t.Errorf("stopped at %v", upto)
	}
	r.do(session.Command{Kind: session.Next}) // finishes the step
	r.wantStand(`step 1, position 6, "fg"`)
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 2, position 7, "fgh"`)
}

func TestAnEditKeepsWhatTheCacheHas(t *testing.T) {
	golden := wordingtest.New(t)
	for _, test := range []struct {
		name       string
		c          session.Command
		sizes      []int // tokens of each step that processes the edited text
		at         int   // position of the first of these steps
		text       string
		afterwards string
	}{
		{
			"other tokens behind the first",
			session.Command{N: 3, Tokens: []int{'x', 'y'}},
			[]int{2},
			3, "ABCxy",
			`step 5, position 6, "fg"`,
		},
		{"nothing behind them", session.Command{N: 4}, []int{1}, 3, "ABCD", `step 5, position 5, "ef"`},
		{
			"the text as it went on, and then something else",
			session.Command{N: 2, Tokens: []int{'C', 'D', 'E', 'f', 'z'}},
			[]int{1},
			6, "ABCDEfz",
			`step 5, position 8, "hi"`,
		},
		{
			"the last token, that is in no position yet",
			session.Command{N: 9},
			[]int{1},
			8, "ABCDEfghi",
			`step 5, position 10, "jk"`,
		},
		{
			"a text from the start",
			session.Command{Text: "AB"},
			[]int{3},
			0, "<|end|>AB",
			`step 5, position 4, "de"`,
		},
		{"more than a chunk", session.Command{N: 1, Tokens: ids(9)}, []int{4, 4, 1}, 1, "AABCDEFGHI", `step 7, position 11, "kl"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, Options{MaxChunk: 5})
			r.do(promptOf(5))
			r.do(session.Command{Kind: session.Run, N: 3})
			r.do(session.Command{Kind: session.Chunk, N: 4})
			test.c.Kind = session.Edit
			r.do(test.c)
			var sizes []int
			for _, s := range r.mirror.Trace.Steps[4:] {
				sizes = append(sizes, len(s.Tokens))
			}
			if d := diff.Diff(test.sizes, sizes); d != "" || r.mirror.Trace.Steps[4].Position != test.at {
				t.Errorf("from position %d, want %d: %s", r.mirror.Trace.Steps[4].Position, test.at, d)
			}
			text := ""
			for _, tok := range r.mirror.Text.Prompt {
				text += tok.Text
			}
			if text != test.text {
				t.Errorf("the text is %q, want %q", text, test.text)
			}
			r.do(session.Command{Kind: session.Next})
			r.wantStand(test.afterwards)
			for range len(sizes) + 1 {
				r.do(session.Command{Kind: session.Previous})
			}
			if st := r.mirror.State; st.Position != test.at || st.Step != -1 {
				t.Errorf("before the edited text: step %d, position %d", st.Step, st.Position)
			}
			r.do(session.Command{Kind: session.Run, N: 1})
			again := fmt.Sprintf("position %d,", r.mirror.State.Position)
			if !strings.Contains(test.afterwards, again) {
				t.Errorf("run again: %s, want %s", again, test.afterwards)
			}
		})
	}
	r := newRig(t, Options{})
	if err := r.try(context.Background(), session.Command{Kind: session.Edit, Text: "x"}); !errors.Is(err,
		session.ErrUsage) {
		t.Errorf("an edit without a text: %v", err)
	}
	r.do(promptOf(5))
	for name, c := range map[string]session.Command{
		"more than the text has": {Kind: session.Edit, N: 7},
		"over the context":       {Kind: session.Edit, N: 2, Tokens: ids(64)},
		"no such id":             {Kind: session.Edit, N: 2, Tokens: []int{257}},
		"nothing":                {Kind: session.Edit},
	} {
		err := r.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
	r.wantStand(`step 0, position 5, "f"`)
}

func TestPromptsAreReadInSessionSizedChunks(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{MaxChunk: 16})
	for _, test := range []struct {
		n    int
		want int // steps of a prompt of ten tokens
	}{{0, 1}, {3, 4}, {1, 10}, {16, 1}} {
		r.do(session.Command{Kind: session.Chunk, N: test.n})
		if reply := r.reply(promptOf(10)); reply.Steps != test.want || r.mirror.State.Chunk != test.n {
			t.Errorf("chunks of %d: %d steps, want %d; the state has %d", test.n, reply.Steps, test.want,
				r.mirror.State.Chunk)
		}
	}
	err := r.try(context.Background(), session.Command{Kind: session.Chunk, N: 17})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("too large a chunk: %v", err)
	}
	golden.Error("too large a chunk", err)
	c := promptOf(10)
	c.Chunks = []int{7}
	if reply := r.reply(c); reply.Steps != 2 {
		t.Errorf("a prompt with its own chunks takes %d steps, want 2", reply.Steps)
	}
}

// A character may span several tokens. It is shown only when it is complete, in the prompt and also if
// generated tokens complete a character that the prompt began.
func TestCharactersOfAPromptComeWhole(t *testing.T) {
	r := newRig(t, Options{})
	out := []byte("aüb€c")
	r.token = func(position int, tokens []int) int { return int(out[position+len(tokens)]) }
	prompt := make([]int, 6) // the last of them is in the middle of €
	for i := range prompt {
		prompt[i] = int(out[i])
	}
	r.do(session.Command{Kind: session.Prompt, Tokens: prompt})
	r.do(session.Command{Kind: session.Next})
	var texts []string
	for _, tok := range append(slices.Clone(r.mirror.Text.Prompt), r.mirror.Text.Given...) {
		texts = append(texts, tok.Text)
	}
	if d := diff.Diff([]string{"a", "", "ü", "b", "", "", "€", "c"}, texts); d != "" {
		t.Error(d)
	}
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 2, position 6, "€"`)
}

// The trace has the time of each phase of opening, in order.
func TestOpeningIsSplitIntoItsPhases(t *testing.T) {
	r := newRig(t, Options{})
	var phases []string
	for _, o := range r.mirror.Trace.Opening {
		phases = append(phases, o.Phase)
		if ns, ok := o.NS.NS(); !ok || ns < 0 || ns == 0 && o.Phase != "device" {
			t.Errorf("%s took %v ns", o.Phase, ns)
		}
	}
	if d := diff.Diff([]string{"load", "device", "build", "prepack", "upload", "compile"}, phases); d != "" {
		t.Error(d)
	}
}
