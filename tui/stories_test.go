package tui

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/tty"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// The stories run the real program in a terminal in memory.

const ctrlC, escape, enter = "\x03", "\x1b", "\r"

// opens returns a function that opens a session that plays llama back.
func opens(s tuitest.Script) func(context.Context) (session.Session, error) {
	return func(context.Context) (session.Session, error) { return tuitest.Play(llama, s), nil }
}

func TestATypedPromptIsSteppedBackAndForth(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{})
	x.sees("[PAUSED]", "Press i ")
	x.press("i").sees("prompt:").press("qs? yes").sees("prompt: qs? yes").press(enter)
	x.sees("step 0 prefill pos 0", "342 dispatches")
	x.press("1").sees("qs? yes")
	x.press("s").sees("step 1 decode pos 42").press("s").sees("step 2 decode pos 43").press("S").sees("step 1 decode pos 42", "[ cat]")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestARunIsPausedAndAnswersMeanwhile(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	x := start(t, context.Background(),
		opens(gated(session.Run, gate)), Options{Prompt: "once"})
	x.sees("[PAUSED]", "step 0 prefill").press(" ").sees("[RUNNING]")
	gate <- struct{}{}
	gate <- struct{}{}
	x.sees("step 2 decode", "[RUNNING]", "space pause")
	x.press("?").sees("Help: Step").press(escape).misses("Help:") // the screen responds during the run
	x.press(" ").sees("[PAUSED]", "step 2 decode", "space run")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestExportedTraceMatchesTheScreen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json.gz")
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("step 1 decode")
	x.press("x").sees("export to (tab: other formats): gpuscope-20261121-120000.json.gz")
	x.press("\x15" + path + enter).sees("wrote ")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	got, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		return // comparing traces takes ten seconds under the race detector, in one goroutine
	}
	want := *llama
	want.Steps, want.Plans = llama.Steps[:2], got.Plans
	want.Events = []trace.Event{{Kind: "prompt", Text: "prompt"}}
	if diff := cmp.Diff(&want, got, cmp.AllowUnexported(trace.Trace{}),
		cmp.FilterPath(unexported, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

func unexported(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && f.Name()[0] >= 'a' && f.Name()[0] <= 'z'
}

func TestAnErrorStaysUntilItIsDismissed(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(),
		opens(tuitest.Script{Before: func(_ context.Context, c session.Command) error {
			if c.Kind == session.Next {
				return errors.New("device lost: the driver was reset; start gpuscope again")
			}
			return nil
		}}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("✗ next: device lost: the driver was reset")
	x.press("j").press("1").sees("[1 Step]", "device lost").press(escape).misses("device lost")
	x.press("0").sees("error", "device lost") // it is in the log
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestCtrlCCancelsFirstAndThenQuits(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(),
		opens(tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
			if c.Kind == session.Next {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("[RUNNING]").press(ctrlC).sees("[PAUSED]",
		"cancelled; press ctrl+c again to quit")
	x.press(ctrlC)
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// A second ctrl+c quits only if it follows the first directly. After another key, or after a command that
// ended, it does not.
func TestCtrlCTwiceNeedsTheSameJob(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	x := start(t, context.Background(),
		opens(tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
			if c.Kind == session.Next || c.Kind == session.Repeat {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("[RUNNING]").press(ctrlC).sees("[PAUSED]", "cancelled; press ctrl+c again")
	x.press("R").sees("[REPEATING").misses("again to quit").press(ctrlC).sees("[PAUSED]", "cancelled; press ctrl+c again")
	x.press(ctrlC)
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	d := drive(t, 80, 24, llama, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Ceilings {
			<-release
		}
		return nil
	}}, Options{Prompt: "once"})
	d.touch("L")
	d.touch("i")
	d.touch("ctrl+c")
	d.sees("[MEASURING").reads("bottom")
	close(release)
	d.settle()
	if d.reads("notice").press("ctrl+c").reads("bottom"); d.app.leaving {
		t.Error("ctrl+c quits after a command that ended")
	}
}

func TestQuitDoesNotWaitForHungEngine(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	x := start(t, context.Background(),
		opens(tuitest.Script{Before: func(_ context.Context, c session.Command) error {
			if c.Kind == session.Next {
				<-hang
			}
			return nil
		}}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("[RUNNING]").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestAPanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(),
		opens(tuitest.Script{Before: func(_ context.Context, c session.Command) error {
			if c.Kind == session.Next {
				panic("a bug in the session")
			}
			return nil
		}}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s")
	var p *Panic
	if err := x.ends(); !errors.As(err, &p) || p.Value != "a bug in the session" ||
		!strings.Contains(string(p.Stack), "tuitest") {
		t.Errorf("Run returned %v", err)
	}
}

func TestASignalRestoresTheTerminal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
		x.sees("step 0 prefill")
		if err := signalSelf(sig); err != nil {
			t.Fatal(err)
		}
		var i *Interrupted
		if err := x.ends(); !errors.As(err, &i) || i.Signal != sig {
			t.Errorf("%v: Run returned %v", sig, err)
		}
	}
}

func TestTheEndOfTheContextEndsTheProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	x := start(t, ctx, opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("step 0 prefill")
	cancel()
	if err := x.ends(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
}

func TestAnExportWritesOverNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, []byte("weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("x").sees("export to").press("\x15" + path +
		enter).sees("choose another name")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "weights" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

func TestFirstFrameDoesNotWaitForModel(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	x := start(t, context.Background(), func(ctx context.Context) (session.Session, error) {
		<-ready
		return tuitest.Play(llama, tuitest.Script{}), nil
	}, Options{})
	x.sees("[LOADING]", "q quit")
	close(ready)
	x.sees("[PAUSED]").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// The error goes to the shell, where it stays visible.
func TestUnopenableModelEndsTheProgram(t *testing.T) {
	t.Parallel()
	cause := errors.New("no adapter: apt-get install libvulkan1 mesa-vulkan-drivers")
	x := start(t, context.Background(), func(context.Context) (session.Session, error) { return nil, cause },
		Options{})
	if err := x.ends(); !errors.Is(err, cause) {
		t.Errorf("Run returned %v", err)
	}
}

func TestCrashedEngineKeepsTheTrace(t *testing.T) {
	t.Parallel()
	s := tuitest.Play(llama, tuitest.Script{})
	x := start(t, context.Background(), func(context.Context) (session.Session, error) { return s, nil },
		Options{Prompt: "once"})
	x.sees("step 0 prefill")
	s.Close()
	x.sees("[ENGINE CRASHED]", "✗ ").press(escape).misses("✗ ").press("1").sees("1 step: 1 prefill")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestPlainModeWritesLinesAndNothingElse(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Run(context.Background(), opens(tuitest.Script{}),
		Options{Plain: true, Prompt: "once", Output: &out, Input: strings.NewReader("s\ns\nS\nbogus\nq\n")})
	requireFailures(t, err, 1)
	requireSaid(t, out.String())
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Errorf("control characters in %q", out.String())
	}
}

func TestPlainModeReturnsTheOpenError(t *testing.T) {
	t.Parallel()
	events := make(chan session.Event)
	close(events)
	open := func(context.Context) (session.Session, error) {
		return justEvents{events: events, reason: errors.New("m.gguf: no such file")}, nil
	}
	err := Run(context.Background(), open,
		Options{Plain: true, Output: io.Discard, Input: strings.NewReader("")})
	if err == nil || err.Error() != "m.gguf: no such file" {
		t.Errorf("error %v", err)
	}
}

// justEvents is a session that has only events.
type justEvents struct {
	session.Session
	events chan session.Event
	reason error // returned by Close
}

func (s justEvents) Events() <-chan session.Event { return s.events }
func (s justEvents) Close() error                 { return s.reason }

func TestAThousandEventsAreFewFrames(t *testing.T) {
	t.Parallel()
	events := make(chan session.Event, 1000)
	for i := range 1000 {
		events <- session.Event{Log: &session.Log{Level: "info", Text: fmt.Sprint(i)}}
	}
	close(events)
	var sent []any
	done := make(chan struct{})
	r := widget.NewRunner(context.Background(), func(m any) {
		sent = append(sent, m)
		if _, ok := m.(endedMsg); ok {
			close(done)
		}
	}, func(p *Panic) { panic(p) })
	begun := time.Now()
	r.Start(func(ctx context.Context) { pump(ctx, r, justEvents{events: events}) })
	<-done
	most := int(time.Since(begun)/frameTime) + 3
	total := 0
	for _, m := range sent {
		if b, ok := m.(eventsMsg); ok {
			total += len(b)
		}
	}
	if len(sent) > most || total != 1000 {
		t.Errorf("%d messages with %d events, want at most %d with 1000", len(sent), total, most)
	}
}

// The messages about a session and about its first events come from two goroutines. The first prompt must run
// whichever comes first.
func TestFirstPromptRunsInAnyOrderOfMessages(t *testing.T) {
	t.Parallel()
	for _, eventsFirst := range []bool{false, true} {
		d := bare(t, Options{Prompt: "once", Width: 80, Height: 24})
		d.session = tuitest.Play(llama, tuitest.Script{})
		opened := func() { d.update(openedMsg{session: d.session}) }
		if !eventsFirst {
			opened()
		}
		d.update(eventsMsg{<-d.session.Events()})
		if eventsFirst {
			opened()
		}
		d.settle()
		if n := len(d.app.mirror.Trace.Steps); n != 1 {
			t.Errorf("events first %v: %d steps after the first prompt, want 1", eventsFirst, n)
		}
	}
}

// An error stays visible until it is dismissed, even while the help is open.
func TestAnErrorStaysInSightUnderHelp(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1])
		d.update(endedMsg{command.ErrEnded})
		d.press("?").sees("Help: Dispatches", "the engine crashed")
		if n := strings.Count(d.app.View(), "\n"); n != size[1]-1 {
			t.Errorf("%d lines on a screen of %d", n+1, size[1])
		}
		for line := range strings.SplitSeq(d.screen(), "\n") {
			if widget.Width(line) > size[0] {
				t.Errorf("%d cells: %q", widget.Width(line), line)
			}
		}
	}
}

// A very long error is shown only in part, so that frames stay fast.
func TestALongErrorIsShownInPart(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24)
	d.update(noteMsg{err: errors.New("begin\n" + strings.Repeat("x ", 1<<20) + "end")})
	d.sees("✗ begin").reads("notice")
	if n := len(d.app.failure); n > 4*view.MostShown {
		t.Errorf("%d bytes are wrapped for every frame", n)
	}
	if lines, _ := d.app.log.Snapshot(); !strings.HasSuffix(lines[len(lines)-1].Text, "end") {
		t.Error("the log does not have the whole error")
	}
}

// The whole row or text is copied to the terminal's clipboard. By default tmux drops it, and the program says
// so.
func TestTheSelectedRowIsCopied(t *testing.T) {
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("[1 Step]", "[PAUSED]").press("2")
	x.sees("[PAUSED]", "▌  0 ▾ prologue").press("jy").sees("▌  0   embed", "copied ").press("?").sees("Help:")
	t.Setenv("TMUX", "/tmp/tmux-0/default,1,0")
	x.press("y").sees("set-clipboard").press(escape).misses("Help:").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	var copied []string
	for _, part := range strings.Split(x.raw.String(), "\x1b]52;c;")[1:] {
		coded, _, _ := strings.Cut(part, "\a")
		text, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			t.Fatal(err)
		}
		copied = append(copied, string(text))
	}
	if len(copied) != 2 || !strings.HasPrefix(copied[0], "0\t") ||
		!strings.Contains(copied[0], "\tembed\t") ||
		!strings.HasPrefix(copied[1], "In Dispatches\n  enter") {
		t.Errorf("copied %.200q, want the row of embed, and the help", copied)
	}
}

// Every frame is written between its begin and end marks, and no frame clears the screen. While a model runs
// and keys are held, no frame has blank lines.
func TestNoFrameFlickers(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	x := start(t, context.Background(),
		opens(gated(session.Run, gate)), Options{Prompt: "once"})
	x.press("2").sees("[PAUSED]", "▌  0 ▾ prologue")
	x.mu.Lock()
	before := x.raw.Len()
	x.frame = func(screen string) {
		for y, line := range strings.Split(screen, "\n")[:10] {
			if strings.TrimSpace(line) == "" {
				t.Errorf("line %d of a frame is empty between two that are not:\n%s", y, screen)
			}
		}
	}
	x.mu.Unlock()
	x.press(" ").sees("[RUNNING]")
	for i := range 12 {
		gate <- struct{}{}
		shown := "step %d decode"
		if i >= 3 && i < 6 { // the prefill is selected
			shown = "step 0 (newest %d) prefill"
		}
		x.press(string("jFkvjFVjkFjF"[i])).sees(fmt.Sprintf(shown, i+1))
	}
	x.press(" ").sees("[PAUSED]").press(",").sees("step 11 (newest 12)").press("g.").sees("step 12 decode")
	x.mu.Lock()
	raw := x.raw.String()[before:]
	x.frame = nil
	x.mu.Unlock()
	if strings.Contains(raw, "\x1b[2J") || strings.Contains(raw, "\x1b[3J") {
		t.Errorf("a frame clears the screen: %.300q", raw)
	}
	for i, part := range strings.Split(raw, tty.BeginFrame) {
		if _, after, _ := strings.Cut(part, tty.EndFrame); i > 0 && after != "" || i == 0 && part != "" {
			t.Errorf("output outside of frames: %.100q", after)
		}
	}
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}
