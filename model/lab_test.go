package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/kind"
	"gpuscope/session"
	"gpuscope/trace"
)

// kernelText returns the source of a kernel of a graph with the text from replaced by the text to.
func kernelText(t *testing.T, g *trace.Graph, name, from, to string) string {
	t.Helper()
	i := slices.IndexFunc(g.Kernels, func(k trace.Kernel) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("there is no kernel %s", name)
	}
	k := &g.Kernels[i]
	text := session.KernelText(name, k.Constants, k.Source)
	if !strings.Contains(text, from) {
		t.Fatalf("%s has no %q:\n%s", name, from, text)
	}
	return strings.Replace(text, from, to, 1)
}

// edited returns an edit of a kernel of the rig's model that does not change the kernel's results.
func (r *rig) edited(name string) *session.KernelEdit {
	text := kernelText(r.t, &r.mirror.Trace.Graph, name, "\n", "\n// the same\n")
	return &session.KernelEdit{Kernel: name, Text: text}
}

// anyEdit replaces the hash in the name of an edited kernel with EDIT, because the hash changes with every
// change of the kernel.
func anyEdit(s string) string {
	return regexp.MustCompile(`\+[0-9a-f]{8}\b`).ReplaceAllString(s, "+EDIT")
}

// ranBy returns the kernels of a step's dispatches in order, each once.
func ranBy(t *trace.Trace, s *trace.Step) (list []string) {
	for _, d := range s.Dispatches {
		if k := t.Plans[d.Plan].Kernel; !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

func TestEditedKernelAlternatesWithTheOriginal(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{Timing: engine.TimingDispatch, Fuse: normsRun})
	r.dev.Duration = func(kernel string, _, _, _ uint32) int64 {
		if strings.HasPrefix(kernel, "rms_norm+") {
			return 700
		}
		return 1000
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	reply, err := r.s.Do(context.Background(), session.Command{
		Kind: session.Lab, Edit: r.edited("rms_norm"), N: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := reply.Tried
	if got == nil || got.Dispatches < 3 || got.Dispatch == nil || got.Alone == nil || got.Whole == nil {
		t.Fatalf("%+v", got)
	}
	whole := int64(300 * got.Dispatches)
	for _, c := range []struct{ got, want session.Spread }{
		{got.Alone.Own, session.Spread{NS: 1000, Q1NS: 1000, Q3NS: 1000}},
		{got.Alone.New, session.Spread{NS: 700, Q1NS: 700, Q3NS: 700}},
		{got.Alone.Gain, session.Spread{NS: 300, Q1NS: 300, Q3NS: 300}},
		{got.Whole.Gain, session.Spread{NS: whole, Q1NS: whole, Q3NS: whole}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
	if got.Alone.N != 4 || got.Whole.N != 4 || len(got.Outputs) != 1 || got.Outputs[0].Elements == 0 {
		t.Errorf("%+v", got)
	}
	r.wait()
	r.wantStand(`step 2, position 7, "fgh"`)
	events := r.mirror.Trace.Events
	e := events[len(events)-1]
	if e.Kind != "lab" {
		t.Errorf("the event is %+v", e)
	}
	golden.Text("event", anyEdit(e.Text))
	r.do(session.Command{Kind: session.Next})
	if list := ranBy(r.mirror.Trace, r.step()); !slices.Contains(list, "rms_norm") {
		t.Errorf("the kernel that was tried is in force: %v", list)
	}
}

// An edited source replaces its kernel until the original is restored. The trace records which of the two
// ran.
func TestAnotherTextOfAKernelTakesItsPlace(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{Fuse: normsRun})
	r.do(promptOf(5))
	e := r.edited("rms_norm")
	r.do(session.Command{Kind: session.Kernel, Edit: e})
	if d := r.mirror.State.Edited; len(d) != 1 || !strings.HasPrefix(d[0], "rms_norm+") {
		t.Errorf("edited kernels are %v", d)
	}
	r.do(session.Command{Kind: session.Next})
	kernels := r.mirror.Trace.Graph.Kernels
	k := kernels[len(kernels)-1]
	list := ranBy(r.mirror.Trace, r.step())
	if k.Of != "rms_norm" || k.Source != e.Text || !slices.Contains(list, k.Name) {
		t.Errorf("%s of %s; %v", k.Name, k.Of, list)
	}
	if slices.Contains(list, "rms_norm") {
		t.Errorf("the original kernel still runs: %v", list)
	}
	r.do(session.Command{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: "rms_norm"}})
	r.do(session.Command{Kind: session.Next})
	list = ranBy(r.mirror.Trace, r.step())
	if slices.Contains(list, k.Name) || len(r.mirror.State.Edited) != 0 {
		t.Errorf("after the original was restored: %v", list)
	}
	said := 0
	for _, e := range r.mirror.Trace.Events {
		if e.Kind == "kernel" {
			said++
			golden.Text(fmt.Sprint("event ", said), anyEdit(e.Text))
		}
	}
	if said != 2 {
		t.Errorf("%d events, want 2", said)
	}
}

// A step can be measured only with the kernels that it ran with.
func TestStepIsNotMeasuredAgainWithOtherKernels(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{Timing: engine.TimingStep, Fuse: normsRun})
	r.dev.Duration = func(kernel string, _, _, _ uint32) int64 {
		if strings.HasPrefix(kernel, "rms_norm+") {
			return 100
		}
		return 1000
	}
	r.do(promptOf(5))
	var norm trace.DispatchID
	for _, d := range r.step().Dispatches {
		if p := &r.mirror.Trace.Plans[d.Plan]; p.Kernel == "rms_norm" {
			norm = p.Dispatch
		}
	}
	cost := session.Command{Kind: session.Cost, N: 3, Parts: []trace.Part{
		{Name: "norm", Dispatches: []trace.DispatchID{norm}},
	}}
	r.do(cost)
	r.do(session.Command{Kind: session.Kernel, Edit: r.edited("rms_norm")})
	for _, c := range []session.Command{
		cost, {Kind: session.Repeat}, {Kind: session.Verify}, {Kind: session.Observe},
	} {
		err := r.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", c.Kind, err)
		}
		golden.Error(string(c.Kind), err)
	}
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Next})
	r.do(cost)
	if c := r.step().Costs; len(c) != 1 || c[0].NS != 100 {
		t.Errorf("costs %+v", c)
	}
	// the lab runs both kernels, whichever is in force
	r.do(session.Command{Kind: session.Lab, Edit: r.edited("rms_norm"), N: 1})
	r.do(session.Command{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: "rms_norm"}})
	if err := r.try(context.Background(), cost); !errors.Is(err, session.ErrUsage) {
		t.Errorf("after the original kernel was restored: %v", err)
	}
}

func TestIncompatibleKernelSourceIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	refused := func(name string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", name)
			return
		}
		golden.Text(name, anyEdit(err.Error()))
	}
	r := newRig(t, Options{Fuse: normsRun})
	r.do(promptOf(5))
	g := &r.mirror.Trace.Graph
	for _, c := range []struct{ name, from, to string }{
		{"no header", "// gpuscope kernel ", "// "},
		{"of other constants", "Lanes 64", "Lanes 32"},
		{"other workgroups", "@workgroup_size(64", "@workgroup_size(32"},
		{"another binding", "> weight:", "> bias:"},
		{"too new", "\n", "\nenable f16;\n"},
	} {
		text := kernelText(t, g, "rms_norm", c.from, c.to)
		for _, kind := range []session.CommandKind{session.Lab, session.Kernel} {
			err := r.try(context.Background(), session.Command{
				Kind: kind, Edit: &session.KernelEdit{Kernel: "rms_norm", Text: text},
			})
			if !errors.Is(err, session.ErrUsage) {
				t.Errorf("%s, %s: %v", kind, c.name, err)
			}
			refused(string(kind)+", "+c.name, err)
		}
	}
	r.dev.FailNth(fake.NewPipeline, 1, errors.New("expected ';'\n ┌─ wgsl:7:12"))
	err := r.try(context.Background(), session.Command{Kind: session.Lab, Edit: r.edited("rms_norm")})
	if err == nil || !strings.HasPrefix(err.Error(), "rms_norm.wgsl:7:12: ") {
		t.Errorf("source that does not compile: %v", err)
	}
	refused("a text that does not compile", err)
	edited := r.edited("rms_norm")
	name, _ := kind.EditedKernel("rms_norm", edited.Text)
	r.dev.FailNth(fake.NewPipeline, 1, errors.New("Shader validation error: \n   ┌─ "+name.Name+`:46:5
   │
46 │     squares += dot(v, v);
   │     ^^^^^^^^^^^^^^^^^^^^ naga::Expression [29]

Operation Add can't work with [28] and [27]
`))
	err = r.try(context.Background(), session.Command{Kind: session.Lab, Edit: edited})
	if err == nil || !strings.HasPrefix(err.Error(), "rms_norm.wgsl:46:5: ") {
		t.Errorf("source with a type error: %v", err)
	}
	refused("a text of wrong types", err)
	e := r.edited("rms_norm")
	for _, d := range r.step().Dispatches {
		if p := &r.mirror.Trace.Plans[d.Plan]; p.Kernel != "rms_norm" {
			e.Dispatch = &p.Dispatch
		}
	}
	for name, c := range map[string]session.Command{
		"another dispatch":                 {Edit: e},
		"no edit to try":                   {},
		"an empty file":                    {Edit: &session.KernelEdit{Kernel: "rms_norm"}},
		"too many rounds":                  {Edit: r.edited("rms_norm"), N: 1001},
		"a step to come":                   {Edit: r.edited("rms_norm"), Step: new(int)},
		"the kernel that is in force":      {Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: "rms_norm"}},
		"no such kernel":                   {Edit: &session.KernelEdit{Kernel: "tanh", Text: "x"}},
		"no edit to put in force":          {Kind: session.Kernel},
		"a field too many to put in force": {Kind: session.Kernel, N: 1},
		"a field too many to try":          {Text: "x"},
	} {
		if c.Step != nil {
			*c.Step = 9
		}
		if c.Kind == "" {
			c.Kind = session.Lab
		}
		err := r.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		refused(name, err)
	}
	r.wantStand(`step 0, position 5, "f"`)
}

// The kernels of a shader folder apply from the first step, and the session reports which files it used.
func TestShaderFolderAppliesFromTheFirstStep(t *testing.T) {
	golden := wordingtest.New(t)
	first := newRig(t, Options{Fuse: normsRun})
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		err := os.WriteFile(filepath.Join(dir, name+session.KernelSuffix), []byte(text), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	put("rms_norm", first.edited("rms_norm").Text)
	put("tanh", "// of another model")
	r := newRig(t, Options{Shaders: dir, Fuse: normsRun})
	r.do(promptOf(5))
	list := ranBy(r.mirror.Trace, r.step())
	named := func(k string) bool { return strings.HasPrefix(k, "rms_norm+") }
	if !slices.ContainsFunc(list, named) || slices.Contains(list, "rms_norm") {
		t.Errorf("ran %v", list)
	}
	if err := r.mirror.Trace.Check(); err != nil {
		t.Error(err)
	}
	b := Benchmark{Decodes: []int{2}, Depths: []int{0}, Repetitions: 1}
	o := Options{Shaders: dir, Fuse: normsRun}
	if result, _, err := benched(t, o, b, fake.Options{NoLog: true}); err != nil {
		t.Error(err)
	} else if len(result.Edited) != 1 || !named(result.Edited[0]) {
		t.Errorf("a benchmark names %q", result.Edited)
	}
	opens := func() error {
		driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
		o := Options{Path: write(t, tiny().Bytes()), Driver: driver, Shaders: dir}
		_, err := Open(context.Background(), o, nil)
		return err
	}
	refused := func(name string) {
		t.Helper()
		err := opens()
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
			return
		}
		golden.Text(name, inFolder(err, dir))
	}
	put("rms_norm", "// gpuscope kernel rms_norm\n")
	refused("a text of another kernel")
	put("rms_norm", strings.Repeat("x", 1<<20+1))
	refused("a text of over a MB")
	if err := os.Remove(filepath.Join(dir, "rms_norm.wgsl")); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(os.DevNull, filepath.Join(dir, "rms_norm.wgsl")) == nil && runtime.GOOS != "windows" {
		err := opens()
		if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), "rms_norm.wgsl") {
			t.Errorf("a device: %v", err) // not in the golden file, because Windows has no such links
		}
		if err := os.Remove(filepath.Join(dir, "rms_norm.wgsl")); err != nil {
			t.Fatal(err)
		}
	}
	refused("only texts of another model")
	if err := os.Remove(filepath.Join(dir, "tanh.wgsl")); err != nil {
		t.Fatal(err)
	}
	put("topk", "// of another head")
	refused("a text of another head")
}

// On a device, an equivalent source gives no difference, a wrong source shows the size of its error, and a
// source that does not compile shows the line. The model's text changes only once a source is in force.
func TestWrongSourceShowsItsErrorOnADevice(t *testing.T) {
	s, whole := deviceSession(t, Options{Timing: engine.TimingStep, Fuse: normsRun})
	ctx := context.Background()
	do := func(c session.Command) session.Reply {
		t.Helper()
		reply, err := s.Do(ctx, c)
		if err != nil {
			t.Fatalf("%s: %v", c.Kind, err)
		}
		return reply
	}
	do(session.Command{Kind: session.Prompt, Text: "Once upon"})
	do(session.Command{Kind: session.Run, N: 2})
	g := s.runner.Net.Graph.Describe()
	const name = "rms_norm"
	text := kernelText(t, &g, name, "\n", "\n// the same\n")
	edit := func(text string) *session.KernelEdit { return &session.KernelEdit{Kernel: name, Text: text} }
	same := do(session.Command{Kind: session.Lab, Edit: edit(text), N: 3}).Tried
	if o := same.Outputs[0]; o.Differ != 0 || o.Elements == 0 || same.Gap == nil || !(same.Gap.Share <= 1) {
		t.Errorf("the same: %+v, error %+v", o, same.Gap)
	}
	if s.runner.Timed() && (same.Alone == nil || same.Alone.N != 3 || same.Whole.N != 3) {
		t.Errorf("the same: %+v", same)
	}
	wrong := kernelText(t, &g, name, "params.eps", "(params.eps + 1.0)")
	bad := do(session.Command{Kind: session.Lab, Edit: edit(wrong), N: 3}).Tried
	if o := bad.Outputs[0]; o.Differ == 0 || !(o.MaxAbs > 0) || o.Own == o.New || bad.Gap == nil {
		t.Errorf("wrong: %+v, error %+v", o, bad.Gap)
	} else if bad.Gap.Share <= 1 {
		t.Errorf("wrong, but its error is %+v", bad.Gap)
	}
	for from, to := range map[string]string{
		"fn main(":         "fn main((",          // syntax error
		"inverseSqrt(red":  "inverseSqrt(1u+red", // type error
		"params.eps":       "params.epsilon",
		"(lane, squares) ": "(lane) ",
	} {
		broken := strings.Replace(text, from, to, 1)
		_, err := s.Do(ctx, session.Command{Kind: session.Lab, Edit: edit(broken)})
		line := 1 + strings.Count(broken[:strings.Index(broken, to)], "\n")
		want := fmt.Sprintf("rms_norm.wgsl:%d:", line)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.ContainsAny(err.Error(), "\n│┌") {
			t.Errorf("broken in line %d: %v", line, err)
		}
	}
	do(session.Command{Kind: session.Run, N: 2})
	do(session.Command{Kind: session.Kernel, Edit: edit(wrong)})
	do(session.Command{Kind: session.Previous})
	do(session.Command{Kind: session.Next})
	tr := whole()
	last, before := &tr.Steps[len(tr.Steps)-1], &tr.Steps[len(tr.Steps)-2]
	if slices.Contains(ranBy(tr, last), name) || !slices.Contains(ranBy(tr, before), name) {
		t.Errorf("ran %v, then %v", ranBy(tr, before), ranBy(tr, last))
	}
}

// The test tries an equivalent source for every kernel of a prompt and of a decode step. The outputs must be
// identical and within tolerance. The text and the cache must not change.
func TestTryingKernelsKeepsTheText(t *testing.T) {
	type kernelOf struct {
		source string
		step   int
	}
	seen := map[kernelOf]bool{} // with an f16 cache, only kernels that read or write it are new
	tried := map[bool]int{}
	for _, half := range []bool{false, true} {
		steps := []int{0, 2}
		if testing.Short() {
			steps = steps[1:]
		}
		o := Options{Timing: engine.TimingStep, HalfKV: half, TopLogits: 3}
		run := func(between func(*live, *trace.Graph)) (logits []trace.Candidate) {
			s, whole := deviceSession(t, o)
			do := func(c session.Command) {
				if _, err := s.Do(context.Background(), c); err != nil {
					t.Fatalf("%s: %v", c.Kind, err)
				}
			}
			do(session.Command{Kind: session.Prompt, Text: "Once upon a time"})
			do(session.Command{Kind: session.Run, N: 2})
			g := s.runner.Net.Graph.Describe()
			between(s, &g)
			do(session.Command{Kind: session.Run, N: 3})
			for _, step := range whole().Steps {
				logits = append(logits, step.Top...)
			}
			return logits
		}
		want := run(func(*live, *trace.Graph) {})
		got := run(func(s *live, g *trace.Graph) {
			for _, k := range g.Kernels {
				for _, step := range steps {
					if seen[kernelOf{k.Source, step}] {
						continue
					}
					seen[kernelOf{k.Source, step}] = true
					c := session.Command{Kind: session.Lab, N: 1, Step: &step, Edit: &session.KernelEdit{
						Kernel: k.Name, Text: kernelText(t, g, k.Name, "\n", "\n// the same\n"),
					}}
					reply, err := s.Do(context.Background(), c)
					if err != nil {
						t.Fatalf("%s in step %d: %v", k.Name, step, err)
					}
					r := reply.Tried
					if r.Dispatch == nil {
						continue
					}
					tried[half]++
					for _, o := range r.Outputs {
						if o.Differ > 0 || o.Unwritten > 0 {
							t.Errorf("%s in step %d: %+v", k.Name, step, o)
						}
					}
					if len(r.Outputs) == 0 || r.Gap != nil && !(r.Gap.Share <= 1) {
						t.Errorf("%s in step %d: %d outputs, error %+v", k.Name, step, len(r.Outputs), r.Gap)
					}
				}
			}
		})
		if !slices.Equal(want, got) {
			t.Errorf("half %v: %v, want %v", half, got, want)
		}
	}
	if tried[false] < 10 || tried[true] == 0 {
		t.Errorf("number of tried kernels, by whether the cache is f16: %v", tried)
	}
}
