package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/lab"
	"gpuscope/tui/plain"
	"gpuscope/tui/sources"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/widget"
)

// sourced returns a recording whose kernels have sources.
func sourced() *trace.Trace {
	t := tracetest.Llama(2, 8)
	t.Graph.Kernels = append([]trace.Kernel(nil), t.Graph.Kernels...)
	for i := range t.Graph.Kernels {
		t.Graph.Kernels[i].Source = "// a kernel\nfn main() {}\n"
		t.Graph.Kernels[i].Constants = "Lanes 64"
	}
	return t
}

// editor writes an editor program that runs a shell script, and returns its path.
func editor(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "editor")
	script(t, path, text)
	return path
}

// script writes an executable shell script.
func script(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock() // a file that a child process holds open for writing cannot be executed
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// opensOn returns a function that opens a session on a recording.
func opensOn(recorded *trace.Trace) func(context.Context) (session.Session, error) {
	return func(context.Context) (session.Session, error) {
		return tuitest.Play(recorded, tuitest.Script{}), nil
	}
}

// texts returns the kernel source files in a folder.
func texts(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "shaders", "*", "*.wgsl"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The user edits a kernel in an editor. The result of the trial is shown over the view. A key uses the edited
// kernel and restores the original. A syntax error shows its line and changes nothing else.
func TestKernelIsEditedTriedAndUsed(t *testing.T) {
	t.Parallel()
	ed := editor(t, `echo "// faster" >> "$1"`)
	cache := t.TempDir()
	x := start(t, context.Background(), opensOn(sourced()), Options{editor: ed, Prompt: "once", Cache: cache})
	x.sees("[PAUSED]", "step 0 prefill").press("s").sees("step 1 decode")
	x.press("2").sees("prologue").press("e").sees("10.30 → 9.10 µs: -1.20 µs (-1.30 to -1.10, n=30)",
		"3 of 2,048 elements", "✓ 0.25 of ")
	files := texts(t, cache)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.HasPrefix(string(text), "// gpuscope kernel ") ||
		!strings.HasSuffix(string(text), "// faster\n") {
		t.Errorf("the file has %q, %v", text, err)
	}
	kernel := strings.TrimSuffix(filepath.Base(files[0]), ".wgsl")
	x.input.back()
	x.press("U").sees("press U again").press("U")
	x.sees(tuitest.EditedName(kernel)+lab.UsedFromNext, "edited").misses("10.30 → 9.10")
	x.press("U").sees(kernel + " itself" + lab.UsedFromNext).misses("edited")
	script(t, ed, `echo broken >> "$1"`)
	x.press("e").sees(".wgsl:3:5: parsing error", tuitest.EditedName(kernel), ".wgsl.last")
	x.input.back()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		if kept, err := os.ReadFile(files[0] + ".last"); err == nil && len(kept) == len(text) {
			break // a job writes the file
		}
	}
	if kept, err := os.ReadFile(files[0] + ".last"); err != nil || string(kept) != string(text) {
		t.Errorf("the kept file is %q, %v", kept, err)
	}
	x.press("U").sees(tuitest.EditedName(kernel) + lab.UsedFromNext).misses("parsing error")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// An edited kernel is no longer used after a crash and restart of the engine. The screen says so, and a key
// uses it again.
func TestEditedKernelIsNotUsedAfterRestart(t *testing.T) {
	t.Parallel()
	ed := editor(t, `echo "// faster" >> "$1"`)
	var engine *tuitest.Session
	x := start(t, context.Background(), func(context.Context) (session.Session, error) {
		engine = tuitest.Play(sourced(), tuitest.Script{})
		return engine, nil
	}, Options{editor: ed, Prompt: "once"})
	x.sees("[PAUSED]", "step 0 prefill").press("s").sees("step 1 decode").press("2").sees("prologue").press("e").sees("10.30 → 9.10")
	x.input.back()
	x.press("UU").sees("edited")
	engine.Die(errors.New("device lost"))
	x.sees("[ENGINE CRASHED]").press("r").sees("[PAUSED]", " U ")
	x.misses("kernel edited").press("U").sees("kernel edited").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// A kernel that was edited while the engine crashed is not lost, and is not reported as the original.
func TestEditDuringCrashIsTriedAfterRestart(t *testing.T) {
	t.Parallel()
	recorded := sourced()
	k := &recorded.Graph.Kernels[0]
	d := drive(t, 120, 40, recorded, &tuitest.Script{}, Options{Prompt: "once"})
	path := filepath.Join(t.TempDir(), k.Name+".wgsl")
	for text, said := range map[string]string{
		lab.FileText(k):                 k.Name + ".wgsl" + lab.OriginalSource,
		lab.FileText(k) + "// faster\n": k.Name + ".wgsl",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.update(endedMsg{errors.New("signal: killed")})
		d.update(lab.Edited{Kernel: k.Name, Path: path})
		d.settle()
		d.sees("[ENGINE CRASHED]", said)
	}
}

// Before the first step there is no dispatch to try a source on, so a changed source is used at once.
func TestFileChangedBeforeFirstStepIsUsed(t *testing.T) {
	t.Parallel()
	recorded := sourced()
	k := &recorded.Graph.Kernels[0]
	d := drive(t, 120, 40, recorded, &tuitest.Script{}, Options{Shaders: t.TempDir()})
	d.update(lab.Changed{Kernel: k.Name, Text: lab.FileText(k) + "// faster\n"})
	d.settle()
	if d.events(); d.app.lab.InPlace(k.Name) == "" {
		t.Errorf("the edited kernels are %v", d.app.mirror.State.Edited)
	}
}

// A source that changes in another editor is tried as well. If it is in the folder of Options.Shaders, it is
// also used.
func TestChangedFileIsTriedAndUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorded := sourced()
	k := &recorded.Graph.Kernels[0]
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".wgsl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(k.Name, lab.FileText(k))
	x := start(t, context.Background(), opensOn(recorded), Options{Prompt: "once", Shaders: dir})
	x.sees("[PAUSED]", "step 0 prefill")
	time.Sleep(10 * time.Millisecond) // so that the file's modification time changes
	put("of_another_model", "x")
	put(k.Name, lab.FileText(k)+"// faster\n")
	x.sees("The source compiles", "is used from the next step on").press("q").misses("The source compiles")
	put(k.Name, lab.FileText(k))
	x.sees(k.Name + " itself is used from the next step on").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// The watcher also notices changes of a symbolic link's target. It reports a file that is too large once.
func TestOnlyTextsOfFilesAreTried(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "text")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	if err := os.Symlink(other, filepath.Join(dir, "add.wgsl")); err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	wake, told, ended := make(chan struct{}), make(chan lab.Changed, 9), make(chan struct{})
	go func() {
		defer close(ended)
		sources.Watch(ctx, dir, wake, func(kernel, text string, err error) {
			told <- lab.Changed{Kernel: kernel, Text: text, Err: err}
		})
	}()
	wake <- struct{}{} // the watcher has read the folder
	put("ab")
	if m := <-told; m.Kernel != "add" || m.Text != "ab" || m.Err != nil {
		t.Errorf("%+v", m)
	}
	put(strings.Repeat("x", 1<<20+1))
	m := <-told
	if m.Err == nil || !strings.Contains(m.Err.Error(), "1048577 bytes") {
		t.Errorf("a file of over 1 MiB: %q, %v", m.Text, m.Err)
	}
	wake <- struct{}{}
	wake <- struct{}{}
	stop()
	<-ended
	if len(told) > 0 {
		t.Errorf("reported again: %+v", <-told)
	}
	d := drive(t, 120, 40, sourced(), &tuitest.Script{}, Options{Shaders: dir})
	d.update(m)
	d.reads("notice")
	_, err := plain.EditOfFile(filepath.Join(dir, "add.wgsl"))
	if err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("EditOfFile: %v", err)
	}
}

func TestWhatCannotBeEditedSaysWhy(t *testing.T) {
	drive(t, 120, 40, sourced(), nil, Options{}).press("2", "F", "F", "F", "e").sees("WGSL ").reads("over").
		press("q", "U").reads("bottom")
	d := drive(t, 120, 40, sourced(), &tuitest.Script{}, Options{Prompt: "once"}).press("s", "2", "F", "F", "F")
	d.press("U").reads("bottom")
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "no-such-editor --wait")
	d.press("e").reads("notice")
	t.Setenv("EDITOR", " ")
	if cmd, err := editorOf("x", "", nil, nil); err == nil && filepath.Base(cmd.Path) != "vi" {
		t.Errorf("without a configured editor, the editor is %s", cmd.Path)
	}
}

func TestARunPausesWhileAKernelIsEdited(t *testing.T) {
	t.Parallel()
	ed := editor(t, "exit 0")
	script := tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
		if c.Kind == session.Run {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	d := drive(t, 120, 40, sourced(), &script, Options{editor: ed, Prompt: "once"}).press("s", "2", "F", "F", "F")
	d.touch("space")
	d.press("e").sees("[PAUSED]") // a run that is not paused never ends
}

// The screen reports an editor that fails and an editor that changes nothing.
func TestAnEditorThatChangesNothingSaysSo(t *testing.T) {
	t.Parallel()
	ed := editor(t, "exit 0")
	d := drive(t, 120, 40, sourced(), &tuitest.Script{}, Options{editor: ed, Prompt: "once"})
	d.press("s", "2", "F", "F", "F", "e")
	files := texts(t, d.app.opts.Cache)
	kernel := strings.TrimSuffix(filepath.Base(files[0]), ".wgsl")
	d.update(lab.Edited{Kernel: kernel, Path: files[0]})
	d.settle()
	d.reads("bottom")
	d.update(lab.Edited{Kernel: kernel, Path: files[0], Err: os.ErrPermission})
	d.settle()
	d.reads("notice")
}

// At the end the program removes unedited sources from the folder that it created, and the folder if it is
// empty.
func TestUneditedSourcesAreRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script, sees, keys string
		want               int
	}{
		{"exit 0", lab.OriginalSource, "q", 0}, {`echo "// faster" >> "$1"`, "10.30 → 9.10", "UUq", 1},
	} {
		ed := editor(t, c.script)
		cache := t.TempDir()
		x := start(t, context.Background(), opensOn(sourced()),
			Options{editor: ed, Prompt: "once", Cache: cache})
		x.sees("[PAUSED]", "step 0 prefill").press("2").sees("prologue").press("e").sees(c.sees)
		x.input.back()
		x.press(c.keys)
		if err := x.ends(); err != nil {
			t.Fatal(err)
		}
		folders, err := os.ReadDir(filepath.Join(cache, "shaders"))
		if left := texts(t, cache); err != nil || len(folders) != c.want || len(left) != c.want {
			t.Errorf("%s: %d folders with %q, want %d: %v", c.script, len(folders), left, c.want, err)
		}
	}
}

// After the editor ends, the screen shows how it ended, and no longer that it started.
func TestAnEditorThatFailsSaysSo(t *testing.T) {
	t.Parallel()
	ed := editor(t, "exit 3")
	x := start(t, context.Background(), opensOn(sourced()),
		Options{editor: ed, Prompt: "once", Cache: t.TempDir()})
	x.sees("[PAUSED]", "step 0 prefill").press("2").sees("prologue").press("e").sees("exit status 3")
	x.input.back()
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	d := drive(t, 120, 40, sourced(), &tuitest.Script{},
		Options{editor: ed, Prompt: "once", Cache: t.TempDir()})
	d.press("s", "2", "F", "F", "F", "e")
	file := texts(t, d.app.opts.Cache)[0]
	kernel := strings.TrimSuffix(filepath.Base(file), ".wgsl")
	d.update(lab.Edited{Kernel: kernel, Path: file, Err: errors.New("exit status 3")})
	d.settle()
	d.reads("notice", "bottom")
}

// If the cache folder cannot be created, the error names the flag that sets another folder.
func TestNoFolderForTextsNamesTheFlag(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := drive(t, 160, 40, sourced(), &tuitest.Script{}, Options{Prompt: "once", Cache: file})
	d.press("s", "2", "F", "F", "F", "e").sees("✗ edit ").reads("notice")
}

// editing returns a driver that shows the dispatches of a decode step and has opened a kernel's source.
func editing(t *testing.T, w, h int) *driver {
	d := drive(t, w, h, sourced(), &tuitest.Script{}, Options{Prompt: "once", editor: editor(t, "exit 0")})
	return d.press("s", "2", "F", "F", "F", "e")
}

// edits adds a line to the source of the kernel that was edited last and closes the editor.
func (d *driver) edits(line string) *driver {
	d.t.Helper()
	path := texts(d.t, d.app.opts.Cache)[0]
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, line+"\n"...), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.update(lab.Edited{Kernel: strings.TrimSuffix(filepath.Base(path), ".wgsl"), Path: path})
	d.settle()
	return d
}

// The first line of a result is the verdict, in the color of its meaning. Other lines have no color.
func TestVerdictIsTheFirstLineInColor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		verdict session.Verdict
		paint   widget.Paint
	}{
		tuitest.Right:  {session.VerdictFaster, widget.Good},
		"slips":        {session.VerdictWrong, widget.Bad},
		tuitest.Broken: {"refused", widget.Bad},
	} {
		d := editing(t, 80, 24)
		d.edits("// " + text)
		pane := &d.app.over.text
		if !strings.Contains(pane.Lines[0], string(want.verdict)) || pane.Marks[0][0].Paint != want.paint {
			t.Errorf("%s: the first line is %q with %v", text, pane.Lines[0], pane.Marks[0])
		}
		for i, marks := range pane.Marks {
			l := pane.Lines[i]
			if marks != nil && (marks[0].To != len(l) || i > 0 && want.verdict == session.VerdictFaster) {
				t.Errorf("%s: line %q has %v", text, l, marks)
			}
		}
	}
}

// In plain mode, commands try and use a source by its file name.
func TestPlainModeTriesTheTextOfAFile(t *testing.T) {
	t.Parallel()
	recorded := sourced()
	k := &recorded.Graph.Kernels[0]
	file := filepath.Join(t.TempDir(), k.Name+".wgsl")
	if err := os.WriteFile(file, []byte(lab.FileText(k)+"// faster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []session.Command
	script := tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Edit != nil {
			got = append(got, c)
		}
		return nil
	}}
	var out strings.Builder
	lines := "l " + file + "\nu " + file + "\nu " + k.Name + "\nl x.txt\nu\nq\n"
	err := Run(context.Background(), func(context.Context) (session.Session, error) {
		return tuitest.Play(recorded, script), nil
	}, Options{Plain: true, Prompt: "once", Output: &out, Input: strings.NewReader(lines)})
	requireFailures(t, err, 2)
	text := lab.FileText(k) + "// faster\n"
	want := []session.Command{
		{Kind: session.Lab, Edit: &session.KernelEdit{Kernel: k.Name, Text: text}},
		{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: k.Name, Text: text}},
		{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: k.Name}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	// A kernel that ran and wrote wrong elements is used only after the user was told about them.
	if err := os.WriteFile(file, []byte(text+"// "+tuitest.Stray+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = nil
	said, err := plainly(func(context.Context) (session.Session, error) {
		return tuitest.Play(recorded, script), nil
	}, "once", "l "+file+"\nu "+file+"\nu "+file+"\n")
	if requireFailures(t, err, 1); len(got) != 2 {
		t.Errorf("%v, commands %v:\n%s", err, got, said)
	}
	requireSaid(t, out.String(), said)
	x := analyze.NewIndex(recorded)
	step := &recorded.Steps[2]
	ran := recorded.Plans[step.Dispatches[0].Plan].Kernel
	if got := command.WhichRun(x, ran); !strings.Contains(got, fmt.Sprint(len(recorded.Steps))) ||
		!strings.HasSuffix(got, fmt.Sprint(" ", recorded.Steps[len(recorded.Steps)-1].Index)) {
		t.Errorf("%s: %s", ran, got)
	}
	if got := command.WhichRun(x, "tanh"); strings.ContainsAny(got, "0123456789") {
		t.Errorf("of a kernel that did not run: %s", got)
	}
}

// A gain and its interval have no more digits than the times from which they are computed.
func TestAGainHasTheDigitsOfItsTimes(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		own, gain, q1, q3 int64
		want              string
	}{
		{90_455_000, 1_357_400, -6_081_800, 18_506_600, "90455 → 89098 µs: = (-18507 to +6082, n=30)"},
		{12_340, 500, 400, 600, "12.34 → 11.84 µs: -0.50 µs (-0.60 to -0.40, n=30)"},
		{2_000_400, 700, 600, 800, "2000 → 2000 µs: -0.7 µs (-0.8 to -0.6, n=30)"},
	} {
		turns := session.InTurns{
			Own: session.Spread{NS: is.own}, New: session.Spread{NS: is.own - is.gain},
			Gain: session.Spread{NS: is.gain, Q1NS: is.q1, Q3NS: is.q3}, N: 30,
		}
		if got := command.TurnsText(&turns); got != is.want {
			t.Errorf("%q, want %q", got, is.want)
		}
	}
}
