//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// playEnv makes the test binary run as gpuscope. Its value selects how models behave: they are real ("real"),
// run on a fake device ("fake"), play a recording ("play"), block at the second command until it is cancelled
// ("hang") or forever ("deaf"), kill their process at that command ("abort"), fail to open ("refuse"), never
// finish loading ("load"), or run a fixed number of steps per second on a fake device ("paced 480"). With
// "quit" the process sends itself SIGQUIT before and after everything that it does. With "shell play" it is a
// shell that runs gpuscope with the value "play" as its job. The engine process inherits the variable.
const playEnv = "GPUSCOPE_TEST_PLAY"

// lockEnv names a file. A process that opens a model locks the file until the process ends.
const lockEnv = "GPUSCOPE_TEST_LOCK"

func TestMain(m *testing.M) {
	how := os.Getenv(playEnv)
	if how == "" {
		os.Exit(m.Run())
	}
	if play, ok := strings.CutPrefix(how, underShell); ok {
		os.Exit(shell(play, os.Args[1:]))
	}
	p := newProgram()
	switch how {
	case "quit":
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		p.heed = nil // as under the screen, which handles signals itself
		status := p.main(context.Background(), os.Args[1:])
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		time.Sleep(50 * time.Millisecond) // another thread may handle the signal
		os.Exit(status)
	case "real":
	case "fake":
		p.open = faking(p)
	default:
		p.open = playing(how)
		if n, ok := strings.CutPrefix(how, paced); ok {
			steps, _ := strconv.Atoi(n)
			p.open = pacing(p, steps)
		}
	}
	os.Exit(p.main(context.Background(), os.Args[1:]))
}

// playing opens models that behave as the value of playEnv selects.
func playing(how string) opener {
	return func(ctx context.Context, _ *modelOptions, emit func(session.Event)) (session.Session, error) {
		if path := os.Getenv(lockEnv); path != "" {
			if _, err := lock(path); err != nil {
				return nil, err
			}
		}
		emit(session.Event{Progress: &session.Progress{Phase: "compile kernels", Done: 1, Total: 9}})
		switch how {
		case "refuse":
			return nil, errors.New("demo.gguf: no tensor token_embd.weight")
		case "load":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		commands := 0
		return tuitest.Play(tracetest.Llama(2, 6),
			tuitest.Script{Before: func(ctx context.Context, _ session.Command) error {
				if commands++; commands < 2 {
					return nil
				}
				switch how {
				case "abort":
					fmt.Fprintln(os.Stderr, "thread panicked: mapped buffer")
					return syscall.Kill(os.Getpid(), syscall.SIGKILL)
				case "hang":
					<-ctx.Done()
				case "deaf":
					select {}
				}
				return ctx.Err()
			}}), nil
	}
}

// lock locks a file exclusively, as long as the returned file is open.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	locks = append(locks, f) // an unreferenced file would be closed
	return f, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

var locks []*os.File

// terminal is gpuscope running in a pseudo-terminal.
type terminal struct {
	testing.TB
	cmd           *exec.Cmd
	master, slave *os.File
	before        *term.State

	mu     sync.Mutex
	seen   bytes.Buffer
	more   chan struct{} // receives an element when seen has grown
	exited chan error
}

// startTerminal starts gpuscope in a terminal of 80x24.
func startTerminal(t testing.TB, play string, args ...string) *terminal {
	t.Helper()
	return startTerminalWith(t, nil, play, args...)
}

// startTerminalWith does the same with additional environment variables.
func startTerminalWith(t testing.TB, env []string, play string, args ...string) *terminal {
	t.Helper()
	x := newTerminal(t, env, play, args...)
	x.start()
	return x
}

// newTerminal creates the terminal without starting gpuscope in it.
func newTerminal(t testing.TB, env []string, play string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{
		TB: t, cmd: exec.Command(file, args...), master: master, slave: slave, before: before,
		more: make(chan struct{}, 1), exited: make(chan error, 1),
	}
	x.cmd.Env = append(os.Environ(), playEnv+"="+play, "TERM=xterm-256color", "COLORTERM=", "COLORFGBG=",
		"NO_COLOR=", "CI=")
	x.cmd.Env = append(x.cmd.Env, env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return x
}

func (x *terminal) start() {
	x.Helper()
	if err := x.cmd.Start(); err != nil {
		x.Fatal(err)
	}
	go x.read()
	go func() { x.exited <- x.cmd.Wait() }()
	x.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		x.master.Close()
		x.slave.Close()
	})
}

func (x *terminal) read() {
	buf := make([]byte, 1<<12)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.seen.Write(buf[:n])
		x.mu.Unlock()
		select {
		case x.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.String()
}

const patience = time.Minute

// expect waits until the terminal has received a text.
func (x *terminal) expect(want string) {
	x.Helper()
	x.until(func(text string) bool { return strings.Contains(text, want) }, want)
}

// until waits until right accepts the text that the terminal has received.
func (x *terminal) until(right func(text string) bool, what string) {
	x.Helper()
	deadline := time.After(patience)
	for !right(x.text()) {
		select {
		case <-x.more:
		case <-deadline:
			x.Fatalf("the terminal never showed %q; it received:\n%q", what, x.text())
		}
	}
}

func (x *terminal) press(keys string) {
	x.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.Fatal(err)
	}
}

// leaves waits until gpuscope exits and checks the exit status and that the terminal was restored.
func (x *terminal) leaves(status int) {
	x.Helper()
	select {
	case err := <-x.exited:
		got := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			got = exit.ExitCode()
		}
		if got != status {
			x.Errorf("exit status %d, want %d; the terminal received:\n%q", got, status, x.text())
		}
	case <-time.After(patience):
		x.Fatalf("gpuscope did not exit; the terminal received:\n%q", x.text())
	}
	after, err := term.GetState(int(x.slave.Fd()))
	if err != nil {
		x.Fatal(err)
	}
	if !reflect.DeepEqual(after, x.before) {
		x.Error("the terminal's mode was not restored")
	}
	x.until(func(text string) bool { // the terminal may report the last output after the program has ended
		return strings.Contains(text, "\x1b[?25h") && // the cursor is visible
			strings.LastIndex(text, "\x1b[?1049l") > strings.LastIndex(text, "\x1b[?1049h")
	}, "the end of the alternate screen")
}

// firstStep is a part of the sentence that the view Step has about the first step.
const firstStep = " took "

func TestScreenOpensStepsAndQuits(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "play")
	x.expect(firstStep)
	x.press("s")
	x.expect("step 1 decode")
	x.press("q")
	x.leaves(exitDone)
}

func TestEmbeddedModelOpensOnThisDevice(t *testing.T) {
	gputest.Open(t).Release()
	x := startTerminal(t, "real")
	x.expect(firstStep)
	x.press("s")
	x.expect("step 1 decode")
	x.press("q")
	x.leaves(exitDone)
}

// While the editor runs, it has the terminal and its keys. Afterwards the screen takes over the terminal, in
// whatever mode the editor left it. At exit the terminal's original mode is restored.
func TestEditedKernelIsTriedOnThisDevice(t *testing.T) {
	gputest.Open(t).Release()
	editor := filepath.Join(t.TempDir(), "editor")
	script := "#!/bin/sh\nprintf 'your word: '\nread word\necho \"// $word\" >> \"$1\"\nstty raw -echo\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"VISUAL=", "EDITOR=" + editor, "XDG_CACHE_HOME=" + t.TempDir()}
	x := startTerminalWith(t, env, "real")
	x.expect(firstStep)
	x.press("s")
	x.expect("step 1 decode")
	x.press("2")
	x.expect("prologue")
	x.press("e")
	x.expect("your word: ")
	x.press("faster\n")
	x.expect(" equal ") // all elements equal those of the original kernel
	x.press("U")
	x.expect("is used from the next step on")
	x.press("q")
	x.leaves(exitDone)
}

// This terminal does not answer queries. A command without a screen must not send any, because it would wait
// for the answers.
func TestCommandsAskTheTerminalNothing(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "play", "version")
	if err := <-x.exited; err != nil {
		t.Error(err)
	}
	x.expect("gpuscope " + version)
	if text := x.text(); strings.Contains(text, "\x1b") {
		t.Errorf("the terminal received %q", text)
	}
}

func TestLightBackgroundIsHeard(t *testing.T) {
	t.Parallel()
	colors := map[string]string{}
	for _, answer := range []string{
		"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c",
		"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c",
	} {
		x := startTerminal(t, "play")
		x.expect("\x1b]11;?")
		x.press(answer)
		x.expect(firstStep)
		x.press("q")
		x.leaves(exitDone)
		found := regexp.MustCompile(`\x1b\[[0-9;]*38;[0-9;]*m`).FindAllString(x.text(), -1)
		if found == nil {
			t.Fatalf("no colour in %q", x.text())
		}
		// On a busy machine the first frame may be drawn before the answer arrives.
		colors[answer] = found[len(found)-1]
		if strings.Contains(x.text(), "rgb:") {
			t.Errorf("the answer was echoed as text")
		}
	}
	if len(colors) != 2 ||
		colors["\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c"] == colors["\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c"] {
		t.Errorf("the same colours on dark and light: %q", colors)
	}
}

func TestTraceOpensWithoutADevice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json.gz")
	if err := trace.WriteFile(path, tracetest.Llama(2, 6)); err != nil {
		t.Fatal(err)
	}
	x := startTerminal(t, "refuse", path)
	x.expect(firstStep)
	x.press("q")
	x.leaves(exitDone)
}

func TestSIGTERMRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "play")
	x.expect(firstStep)
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.leaves(exitFailed)
}

// While the screen does not read the terminal (before it starts and after it ends), ctrl+\ sends SIGQUIT to
// the screen and the engine.
func TestSIGQUITEndsNeitherScreenNorEngine(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "play")
	x.expect(firstStep)
	if err := syscall.Kill(-x.cmd.Process.Pid, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	x.press("s")
	x.expect("step 1 decode")
	x.press("q")
	x.leaves(exitDone)
	if text := x.text(); strings.Contains(text, "goroutine") {
		t.Errorf("the terminal received %q", text)
	}
}

// From the start of the program to its end, ctrl+\ never prints a dump of goroutines.
func TestSIGQUITIsBlockedFromBeginToEnd(t *testing.T) {
	t.Parallel()
	for begin, args := range map[string][]string{
		"gpuscope ": {"version"}, "step 0: ": {"--plain", "testdata/llama.json.gz"},
	} {
		out, err := headless(t, "quit", args...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), begin) {
			t.Errorf("%s: %v, output %.200q", args, err, out)
		}
	}
}

func TestScreenSaysWhyAModelDoesNotOpen(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "refuse")
	x.expect("no tensor token_embd.weight")
	x.press("q")
	x.leaves(exitFailed)
	x.expect("gpuscope: demo.gguf: no tensor token_embd.weight")
}

func TestScreenSurvivesTheEngine(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "abort")
	x.expect(firstStep)
	x.press("s")
	x.expect("thread panicked: mapped")
	x.press("q")
	x.leaves(exitDone)
}

// headless returns a command that runs gpuscope without a terminal.
func headless(t *testing.T, play string, args ...string) *exec.Cmd {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), playEnv+"="+play)
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // still runs only if the test failed
		}
	})
	return cmd
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) { interruptsRun(t, sig) })
	}
}

func interruptsRun(t *testing.T, sig syscall.Signal) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.json")
	cmd := headless(t, "hang", "run", "-n", "5", "--trace", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1)
	if _, err := io.ReadFull(stdout, said); err != nil { // the first token: the run has started
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != exitFailed ||
		stderr.String() != "gpuscope run: stopped by signal: "+sig.String()+"\n" {
		t.Errorf("exit %d, stderr %q", status, &stderr)
	}
	if !slices.Contains(speedRows(string(rest)), speedRow{"prefill", 1, 42}) {
		t.Errorf("no profile: %q", rest)
	}
	if recorded, err := trace.ReadFile(path); err != nil || len(recorded.Steps) != 1 {
		t.Errorf("trace: %v", err)
	}
}

func TestEngineProcessEndsWithItsScreen(t *testing.T) {
	t.Parallel()
	cmd := headless(t, "hang", "engine")
	requests, err1 := cmd.StdinPipe()
	messages, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	written := &counted{WriteCloser: requests, more: make(chan struct{}, 2)}
	s := session.Connect(session.Peer{Messages: messages, Requests: written})
	for range 2 { // the second one hangs
		go func() { _, _ = s.Do(t.Context(), session.Command{Kind: session.Prompt, Text: "a"}) }()
		<-written.more
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// counted sends to more after every write.
type counted struct {
	io.WriteCloser
	more chan struct{}
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.WriteCloser.Write(b)
	c.more <- struct{}{}
	return n, err
}

// A script sees from the exit status and stderr that nothing ran, and why.
func TestPlainModeFailsForAnUnreadableModel(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--plain"}, {"--plain", "-p", ""}, {}} {
		cmd := headless(t, "refuse", args...)
		if len(args) == 0 {
			cmd.Env = append(cmd.Env, "TERM=dumb")
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		if status := cmd.ProcessState.ExitCode(); status != exitFailed ||
			stderr.String() != "gpuscope: demo.gguf: no tensor token_embd.weight\n" ||
			stdout.String() != "loading: compile kernels 1 of 9\n" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, status, &stdout, &stderr)
		}
	}
}

func TestEngineEndsWithItsParentDuringLoading(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		path := filepath.Join(t.TempDir(), "lock")
		cmd := headless(t, "load", "--plain")
		cmd.Env = append(cmd.Env, lockEnv+"="+path)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, len("loading: compile kernels"))
		if _, err := io.ReadFull(stdout, said); err != nil || string(said) != "loading: compile kernels" {
			t.Fatalf("%q, %v", said, err)
		}
		if _, err := lock(path); err == nil {
			t.Fatal("no engine process holds the lock")
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			f, err := lock(path)
			if err == nil { // the process that held the lock has ended
				f.Close()
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%v: the engine process outlives its parent", sig)
			}
		}
	}
}
