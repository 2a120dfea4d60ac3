package executions_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/executions"
	"gpuscope/session"
	"gpuscope/trace"
)

// driver hands out a device that is open already.
type driver struct{ gpu.Device }

func (d driver) Adapters() ([]gpu.AdapterInfo, error) { return []gpu.AdapterInfo{d.Info()}, nil }
func (d driver) Open(int) (gpu.Device, error)         { return kept(d), nil }

// kept is a device that its user does not release.
type kept struct{ gpu.Device }

func (kept) Release() {}

// opened is a session whose events arrive in a mirror.
type opened struct {
	*executions.Session
	t      *testing.T
	mirror session.Mirror
	done   chan struct{}
}

func open(t *testing.T, p *ptetest.Program, o executions.Options) *opened {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "test.pte")
	if err := os.WriteFile(o.Path, p.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Driver, o.Timing = driver{gputest.Open(t)}, engine.TimingDispatch
	s, err := executions.Open(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &opened{Session: s, t: t, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for e := range s.Events() {
			if err := r.mirror.Apply(e); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { r.end() })
	return r
}

// end closes the session and returns the trace.
func (r *opened) end() *trace.Trace {
	if err := r.Close(); err != nil {
		r.t.Error(err)
	}
	<-r.done
	return r.mirror.Trace
}

func (r *opened) do(c session.Command) session.Reply {
	r.t.Helper()
	reply, err := r.Do(context.Background(), c)
	if err != nil {
		r.t.Fatalf("%s: %v", c.Kind, err)
	}
	return reply
}

func (r *opened) floats() (list []float32) {
	data := r.Outputs()[0].Data
	for i := 0; i < len(data); i += 4 {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
	}
	return list
}

func array(dims []int, v ...float32) *npy.Array {
	a := &npy.Array{Type: npy.Float32, Dims: dims}
	for _, f := range v {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(f))
	}
	return a
}

func TestAPromptSetsTheLiveDims(t *testing.T) {
	r := open(t, ptetest.Adder(), executions.Options{Seed: 1})
	r.do(session.Command{Kind: session.Next})
	if got := r.Outputs()[0].Dims; !slices.Equal(got, []int{8}) {
		t.Errorf("the first output has shape %v, want the upper bound", got)
	}
	r.do(session.Command{Kind: session.Prompt, Text: "0.0=3"})
	first := r.floats()
	r.do(session.Command{Kind: session.Next})
	if got := r.floats(); len(got) != 3 || !slices.Equal(got, first) {
		t.Errorf("the outputs are %v, then %v", first, got)
	}
	reply := r.do(session.Command{Kind: session.Run, N: 4})
	if reply.Steps != 4 || reply.Step != 6 || reply.Position != 7 {
		t.Errorf("after 4 more executions: %+v", reply)
	}
	trace := r.end()
	if err := trace.Check(); err != nil {
		t.Error(err)
	}
	if n := len(trace.Steps); n != 7 || trace.Steps[6].Phase != "execute" || trace.Steps[6].Position != 6 {
		t.Errorf("%d steps, the last is %+v", n, trace.Steps[n-1])
	}
	if s := r.mirror.State; !s.Program || s.Step != 6 || len(r.mirror.Text.Prompt) != 2 ||
		r.mirror.Text.Prompt[0].ID != 3 {
		t.Errorf("state %+v, text %+v", s, r.mirror.Text)
	}
}

func TestWhatNeedsATextIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	r := open(t, ptetest.Adder(), executions.Options{})
	for name, c := range map[string]session.Command{
		"tokenize":       {Kind: session.Tokenize, Text: "x"},
		"edit":           {Kind: session.Edit, N: 3},
		"a text":         {Kind: session.Prompt, Text: "Once upon a time"},
		"above a bound":  {Kind: session.Prompt, Text: "0.0=9"},
		"token ids":      {Kind: session.Prompt, Tokens: []int{1}},
		"nothing to go":  {Kind: session.Previous},
		"nothing to run": {Kind: session.Repeat},
	} {
		_, err := r.Do(t.Context(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v, want ErrUsage", name, err)
		}
		golden.Error(name, err)
	}
}

func TestExecutionsAreMeasuredLikeSteps(t *testing.T) {
	r := open(t, ptetest.Adder(), executions.Options{})
	r.do(session.Command{Kind: session.Run, N: 2})
	first := 0
	if reply := r.do(session.Command{Kind: session.Repeat, N: 3, Step: &first}); reply.Repeats != 3 {
		t.Errorf("repeated %d times", reply.Repeats)
	}
	part := trace.Part{Name: "add", Dispatches: []trace.DispatchID{0}}
	r.do(session.Command{Kind: session.Cost, N: 5, Parts: []trace.Part{part}})
	out := r.Method().Graph.Outputs()[0]
	at := &session.LookAt{Value: out, Count: 8}
	got := r.do(session.Command{Kind: session.Look, At: at}).Tensor
	for i, want := range r.floats() {
		if float32(got.Numbers[i]) != want {
			t.Errorf("element %d is %v, want %v", i, got.Numbers[i], want)
		}
	}
	reply := r.do(session.Command{Kind: session.Run, N: 9, Breaks: []session.Break{{On: "op", Of: "add"}}})
	if reply.Hit == nil || reply.Steps != 1 {
		t.Errorf("a breakpoint at the operator: %+v", reply)
	}
	if s := r.end().Steps; len(s[0].Dispatches[0].Samples) != 3 || len(s[1].Costs) != 1 {
		t.Errorf("%d samples, %d costs", len(s[0].Dispatches[0].Samples), len(s[1].Costs))
	}
}

// The method returns the input of the previous execution, so a wrong buffer shows in the output.
func TestAccumulatingBuffersAreReplayed(t *testing.T) {
	var inputs [][]*npy.Array
	for i := range 5 {
		inputs = append(inputs, []*npy.Array{array([]int{1, 1, 1, 2}, float32(i+1), 10*float32(i+1))})
	}
	r := open(t, ptetest.Recaller(), executions.Options{Inputs: inputs})
	want := func(what string, v float32) {
		t.Helper()
		if got := r.floats(); got[0] != -v || got[1] != -10*v {
			t.Errorf("%s: %v, want %v", what, got, []float32{-v, -10 * v})
		}
	}
	look := func(step int) float64 {
		t.Helper()
		at := &session.LookAt{Value: r.Method().Graph.Outputs()[0], Count: 1, Step: &step}
		return float64(r.do(session.Command{Kind: session.Look, At: at}).Tensor.Numbers[0])
	}
	next := session.Command{Kind: session.Next}
	r.do(next)
	want("the first execution", 0)
	r.do(next)
	r.do(next)
	want("the third execution", 2)
	if got := look(1); got != -1 {
		t.Errorf("the output of the second execution is %v, want -1", got)
	}
	if got := look(2); got != -2 {
		t.Errorf("the output of the third execution is %v, want -2", got)
	}
	r.do(session.Command{Kind: session.Repeat, N: 2})
	r.do(next)
	want("the fourth execution, after others ran again", 3)
	if reply := r.do(session.Command{Kind: session.Previous}); reply.Note == nil || reply.Position != 3 {
		t.Errorf("stepping back: %+v", reply)
	}
	r.do(session.Command{Kind: session.Previous})
	r.do(next)
	want("an execution after two steps back", 2)
	r.do(session.Command{Kind: session.Reset})
	r.do(next)
	want("an execution after a reset", 0)
}
