package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/plain"
	"gpuscope/tui/tuitest"
)

// plainly runs plain mode on a session. The input has one command per line.
func plainly(open func(context.Context) (session.Session, error), prompt, input string) (out string,
	err error,
) {
	var text strings.Builder
	err = Run(context.Background(), open,
		Options{Plain: true, Prompt: prompt, Output: &text, Input: strings.NewReader(input)})
	return text.String(), err
}

// requireFailures checks how many commands of a script failed, and returns the first error.
func requireFailures(t *testing.T, err error, n int) error {
	t.Helper()
	var f *plain.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v, want %d failed commands", err, n)
	}
	if f.Commands != n {
		t.Errorf("%d commands failed, want %d: %v", f.Commands, n, err)
	}
	return f.First
}

// requireSaid compares the output of plain mode, without its tables, with testdata/TEST.golden.
func requireSaid(t *testing.T, outs ...string) {
	t.Helper()
	var b strings.Builder
	for _, out := range outs {
		for l := range strings.Lines(unplaced(out)) {
			if l[0] > ' ' && !strings.Contains(strings.TrimSpace(l), "  ") {
				b.WriteString(l)
			}
		}
		b.WriteString("--\n")
	}
	requireRead(t, b.String())
}

// refusing returns a script that refuses commands of a kind.
func refusing(kind session.CommandKind) tuitest.Script {
	return tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == kind {
			return session.Refusef("the %s is refused", kind)
		}
		return nil
	}}
}

// gated returns a script in which a command of a kind waits for the gate, before it runs and at each of its
// steps.
func gated(kind session.CommandKind, gate <-chan struct{}) tuitest.Script {
	return tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
		if c.Kind != kind {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// bubble is synctest.Test for code that listens to signals. The first listener of a process starts a
// goroutine in os/signal, which must not belong to a bubble.
func bubble(t *testing.T, f func(*testing.T)) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	signal.Stop(signals)
	synctest.Test(t, f)
}

// Plain mode reports that a model cannot be opened, whatever was typed and however late the engine fails.
func TestPlainModeReportsOpenErrors(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "q\n", "s\nq\n"} {
		for _, prompt := range []string{"", "once"} {
			bubble(t, func(t *testing.T) {
				open := func(context.Context) (session.Session, error) {
					events := make(chan session.Event)
					go func() {
						time.Sleep(time.Second) // long after the end of the input
						close(events)
					}()
					return justEvents{events: events, reason: errors.New("m.gguf: no such file")}, nil
				}
				out, err := plainly(open, prompt, input)
				if err == nil || err.Error() != "m.gguf: no such file" || out != "" {
					t.Errorf("prompt %q, typed %q: error %v, output %q", prompt, input, err, out)
				}
			})
		}
	}
}

func TestPlainModeReportsOpeningOnceASecond(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		open := func(context.Context) (session.Session, error) {
			events := make(chan session.Event)
			go func() {
				for _, phase := range []string{"read", "upload"} {
					for i := range 251 {
						to := session.Progress{Phase: phase, Done: i, Total: 250}
						events <- session.Event{Progress: &to}
						time.Sleep(10 * time.Millisecond)
					}
				}
				close(events)
			}()
			return justEvents{events: events, reason: errors.New("enough")}, nil
		}
		out, _ := plainly(open, "", "")
		want := ""
		for _, phase := range []string{"read", "upload"} {
			for _, done := range []int{0, 100, 200, 250} {
				want += fmt.Sprintf("loading: %s %d of 250\n", phase, done)
			}
		}
		if out != want {
			t.Errorf("output:\n%s", out)
		}
	})
}

func TestPlainModeEndsAtRefusedFirstPrompt(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(refusing(session.Prompt)), "once", "s\nq\n")
	if !errors.Is(err, session.ErrUsage) || err.Error() != "the prompt is refused" {
		t.Errorf("error %v", err)
	}
	if strings.Contains(out, "step 0") {
		t.Errorf("output:\n%s", out)
	}
}

func TestPlainModeReportsFailuresToScripts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "no folder", "x.json")
	out, err := plainly(opens(refusing(session.Repeat)), "once", "R\ns\nx "+path+"\nq\n")
	first := requireFailures(t, err, 2)
	if !errors.Is(first, session.ErrUsage) || errors.Is(err, session.ErrUsage) {
		t.Errorf("error %v", err)
	}
	if n := strings.Count(out, "error: "); n != 2 || !strings.Contains(out, "error: "+first.Error()+"\nstep 1:") {
		t.Errorf("output:\n%s", out)
	}
}

// As in the full-screen program, an export does not replace a file.
func TestPlainExportKeepsExistingFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := plainly(opens(tuitest.Script{}), "once", "x "+path+"\nx "+path+".gz\n")
	requireFailures(t, err, 1)
	if !strings.Contains(out, path+" exists; choose another name\nwrote "+path+".gz\n") {
		t.Errorf("output:\n%s", out)
	}
	if got, err := os.ReadFile(path); string(got) != "kept" || err != nil {
		t.Errorf("the file has %.20q, %v", got, err)
	}
}

// A line that is not understood, or only in part, counts as a failed command.
func TestPlainModeFailsOnUnknownLines(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{}), "once", "s s S S R p\nbogus\ns\n")
	requireFailures(t, err, 2)
	if strings.Count(out, "\nstep ") != 2 {
		t.Errorf("output:\n%s", out)
	}
	requireSaid(t, out)
}

// plainLines returns the commands of plain mode.
func plainLines() (list []command.Line) {
	for i := range command.Table {
		if command.Table[i].Plain.Word != "" {
			list = append(list, command.Table[i].Plain)
		}
	}
	return list
}

// Asking for the commands prints each on one line, and is not an error.
func TestPlainModeListsItsCommands(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{}), "once", "?\nhelp\n")
	if err != nil {
		t.Error(err)
	}
	for _, c := range plainLines() {
		if n := strings.Count(out, "\n  "+strings.TrimSpace(c.Word+" "+c.Takes)+": "); n != 3 {
			t.Errorf("%s is listed %d times, want 3:\n%s", c.Word, n, out)
		}
	}
}

func TestPlainModeSaysWhereAStepBackLeads(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{}), "once", "s\ns\nS\nX\n")
	if err != nil {
		t.Error(err)
	}
	requireSaid(t, out)
}

func TestPlainModePrintsAnyTable(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{}), "", "d\nx\np once\nd\nd steps\nd nonsense\n")
	first := requireFailures(t, err, 3)
	for _, want := range []string{
		"  d [TABLE]: ", "  w NAME: ", "\n  x FILE: ", strings.Repeat("error: "+first.Error()+"\n", 2) + "step 0:",
		"lm_head", "prefill  ", `"nonsense"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// Plain mode has the selections, baselines, filters and explanations of the screen.
func TestPlainModeHasScreenSelectionsAndFilters(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other.json")
	if err := trace.WriteFile(other, llama); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := ShowTrace(t.Context(), func(context.Context) (*trace.Trace, error) { return llama, nil },
		Options{Plain: true, Output: &out, Input: strings.NewReader(strings.Join([]string{
			"scope 3-7", "d resize", "filter lm_head", "scope prefill", "d", "scope decode", "base prefill", "d", "d resize",
			"base " + other, "filter re:[", "d", "filter op:>>", "d", "filter", "scope", "base", "w lm_head", "w nobody",
			"scope nobody", "base nobody", "w", "scope 3-7", "d steps",
		}, "\n"))})
	requireFailures(t, err, 6)
	requireSaid(t, out.String())
}

// Commands accept the names that tables print, which may contain blanks. A name that occurs in several layers
// means the first layer.
func TestPlainModeTakesTheNamesThatItPrints(t *testing.T) {
	t.Parallel()
	var got []string
	script := tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Op != nil {
			got = append(got, fmt.Sprint(llama.Graph.Ops[*c.Op].Name, c.Lengths))
		}
		for _, p := range c.Parts {
			got = append(got, p.Name)
		}
		return nil
	}}
	out, err := plainly(opens(script), "once",
		"s\nw q\nw slice cos\no q 1 16\no slice cos 1\nc q, slice cos\na slice cos\no nobody 1\n")
	if first := requireFailures(t, err, 1); !strings.Contains(first.Error(), `"nobody"`) {
		t.Errorf("error %v", first)
	}
	want := []string{"layers.0.attn.q[1 16]", "slice cos[1]", "q + slice cos", "slice cos"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	requireSaid(t, out)
}

// A recorded trace accepts the commands that need no session.
func TestPlainModeTakesCommandsOnATrace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.json")
	plainly := func(input string) (string, error) {
		var out strings.Builder
		err := ShowTrace(t.Context(), func(context.Context) (*trace.Trace, error) { return llama, nil },
			Options{Plain: true, Prompt: "once", Output: &out, Input: strings.NewReader(input)})
		return out.String(), err
	}
	out, err := plainly("d\nx " + path + "\nq\ns\n")
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"step 0: prefill", "\n  d [TABLE]: ", "\n  w NAME: ", "lm_head", "\nwrote " + path + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if got, err := trace.ReadFile(path); err != nil || len(got.Steps) != len(llama.Steps) {
		t.Errorf("the export: %v", err)
	}
	var needSession []string
	for _, c := range plainLines() {
		if !c.Recorded {
			needSession = append(needSession, c.Word)
		}
	}
	const refused = command.IsRecorded
	out, err = plainly(strings.Join(needSession, "\n") + "\nd steps")
	n := len(needSession)
	if first := requireFailures(t, err, n); first.Error() != refused ||
		strings.Count(out, "error: "+refused+"\n") != n || errors.Is(err, session.ErrUsage) {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	if !strings.Contains(out[strings.LastIndex(out, refused):], "decode") {
		t.Errorf("the last command was not run:\n%s", out)
	}
}

// Before the first step, and in a trace without steps, the tables of the graph are available.
func TestPlainModePrintsTheGraphWithoutSteps(t *testing.T) {
	t.Parallel()
	bare := *llama
	bare.Steps, bare.Events = nil, nil
	var shown strings.Builder
	err := ShowTrace(t.Context(), func(context.Context) (*trace.Trace, error) { return &bare, nil },
		Options{Plain: true, Output: &shown, Input: strings.NewReader("d\nx x.json\nd graph\nd memory\nd kernels\n")})
	if first := requireFailures(t, err, 2); !strings.Contains(shown.String(),
		"\nerror: "+first.Error()+"\n") {
		t.Errorf("error %v, output:\n%s", err, &shown)
	}
	live, err := plainly(opens(tuitest.Script{}), "", "d graph\nd memory\nd kernels\n")
	if err != nil {
		t.Error(err)
	}
	for _, out := range []string{shown.String(), live} {
		for _, want := range []string{"lm_head", "slot", "rms_norm"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	}
}

func TestPlainModeListsTheTokensOfAText(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{}), "", "t the \x1b[31mcat\n")
	if err != nil || !strings.Contains(out, "\n2 tokens, 0 \"the \", 1 \"\\x1b[31mcat\"\n") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
}

func TestPlainModeRefusesALineWithoutEnd(t *testing.T) {
	t.Parallel()
	_, err := plainly(opens(tuitest.Script{}), "", "p "+strings.Repeat("x", plain.LongestLine)+"\n")
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(plain.LongestLine)) {
		t.Errorf("error %v", err)
	}
	out, err := plainly(opens(tuitest.Script{}), "", "p "+strings.Repeat("x", 1<<17)+"\n")
	if err != nil || !strings.Contains(out, "step 0: prefill") {
		t.Errorf("a prompt of 128 KiB: %v", err)
	}
}

// signalSelf sends this process a signal.
func signalSelf(sig syscall.Signal) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(sig)
}

// closing counts how often a session was closed.
type closing struct {
	session.Session
	n *int
}

// Close takes a while and gets the signal a second time: timeout(1) sends it to the process and to its group.
func (c closing) Close() error {
	*c.n++
	if err := signalSelf(syscall.SIGTERM); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	return c.Session.Close()
}

func TestPlainModeClosesTheSessionAtASignal(t *testing.T) {
	closed := 0
	open := func(context.Context) (session.Session, error) {
		return closing{tuitest.Play(llama, tuitest.Script{}), &closed}, nil
	}
	in, typing := io.Pipe() // no input
	defer typing.Close()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		out := &waiting{want: "open: ", there: make(chan struct{})}
		done := make(chan error, 1)
		go func() {
			done <- Run(context.Background(), open, Options{Plain: true, Output: out, Input: in})
		}()
		<-out.there
		if err := signalSelf(sig); err != nil {
			t.Fatal(err)
		}
		var i *Interrupted
		if err := <-done; !errors.As(err, &i) || i.Signal != sig {
			t.Errorf("%v: %v", sig, err)
		}
	}
	if closed != 4 {
		t.Errorf("the session was closed %d times, want 4", closed)
	}
}

// waiting is an output that closes there when a text has been written.
type waiting struct {
	want  string
	seen  string
	there chan struct{}
}

func (w *waiting) Write(b []byte) (int, error) {
	before := strings.Contains(w.seen, w.want)
	if w.seen += string(b); !before && strings.Contains(w.seen, w.want) {
		close(w.there)
	}
	return len(b), nil
}

// The notes in a recording, for example that it was cut, are shown when it is opened.
func TestATraceSaysWhatItNoted(t *testing.T) {
	t.Parallel()
	tr := tracetest.Tiny()
	tr.Events = append(tr.Events, trace.Event{Kind: "cut", Text: "the stream was cut"})
	load := func(context.Context) (*trace.Trace, error) { return tr, nil }
	var out strings.Builder
	if err := ShowTrace(t.Context(), load, Options{
		Plain: true, Output: &out, Input: strings.NewReader(""),
	}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "note: the stream was cut\n") {
		t.Errorf("output:\n%s", out.String())
	}
	d := bare(t, Options{Width: 80, Height: 24})
	d.update(openedMsg{trace: tr, index: analyze.NewIndex(tr)})
	d.settle()
	lines, _ := d.app.log.Snapshot()
	if len(lines) == 0 || lines[len(lines)-1].Text != "the stream was cut" {
		t.Errorf("the log has %v", lines)
	}
}

// Plain mode shows the size of a large export before it writes the file, as the screen does.
func TestPlainModeShowsTheSizeOfALargeExport(t *testing.T) {
	t.Chdir(t.TempDir())
	const script = "s\nx small.json\nr 150\nx large.ct.json\n"
	out, err := plainly(opensOn(tracetest.Llama(16, 200)), "once", script)
	if err != nil {
		t.Fatal(err, out)
	}
	for path, large := range map[string]bool{"small.json": false, "large.ct.json": true} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Size() >= command.LargeExport; got != large {
			t.Fatalf("%s has %d bytes", path, info.Size())
		}
		if said := strings.Contains(out, " to "+path); said != large {
			t.Errorf("%s: size shown: %t, want %t: %s", path, said, large, out)
		}
	}
}
