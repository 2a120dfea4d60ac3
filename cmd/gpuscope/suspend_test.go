//go:build unix

package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// underShell is the prefix of the values of playEnv that start a shell. The rest of the value selects how its
// job behaves.
const underShell = "shell "

// shell runs gpuscope as the foreground job of the terminal, like a shell with job control. It takes the
// terminal back when the job stops. It reads commands from descriptor 3: "fg" gives the terminal to the job
// and continues only its first process, "bg" continues the job without the terminal, and "take" takes the
// terminal from a running job. It writes to descriptor 4 the process ID of the job, a line for each stop, and
// nothing more after the job has ended.
func shell(play string, args []string) int {
	commands, said := bufio.NewScanner(os.NewFile(3, "commands")), os.NewFile(4, "said")
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	file, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), playEnv+"="+play)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	signal.Ignore(syscall.SIGTTOU) // after the start, because a job would inherit this
	job := cmd.Process.Pid
	give := func(group int) {
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(said, job)
	go func() {
		for commands.Scan() {
			switch commands.Text() {
			case "fg":
				give(job)
				_ = unix.Kill(job, unix.SIGCONT)
			case "bg":
				_ = unix.Kill(-job, unix.SIGCONT)
			case "take":
				give(unix.Getpgrp())
				fmt.Fprintln(said, "taken")
			}
		}
	}()
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(job, &status, unix.WUNTRACED, nil); err == unix.EINTR {
			continue
		} else if err != nil {
			panic(err)
		}
		give(unix.Getpgrp())
		if !status.Stopped() {
			return status.ExitStatus()
		}
		fmt.Fprintln(said, "stopped")
	}
}

// jobTerminal is gpuscope as the job of a shell in a pseudo-terminal.
type jobTerminal struct {
	*terminal
	commands *os.File
	said     *bufio.Scanner
	job      int
}

func startJob(t *testing.T, play string) *jobTerminal {
	t.Helper()
	x := &jobTerminal{terminal: newTerminal(t, nil, underShell+play)}
	theirCommands, commands, err1 := os.Pipe()
	said, theirSaid, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	x.commands, x.said = commands, bufio.NewScanner(said)
	x.cmd.ExtraFiles = []*os.File{theirCommands, theirSaid}
	x.start()
	theirCommands.Close()
	theirSaid.Close()
	t.Cleanup(func() {
		commands.Close()
		said.Close()
		if x.job > 0 {
			_ = syscall.Kill(-x.job, syscall.SIGKILL) // still runs only if the test failed
		}
	})
	if !x.said.Scan() {
		t.Fatal("the shell did not start a job")
	}
	if _, err := fmt.Sscan(x.said.Text(), &x.job); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *jobTerminal) signal(sig syscall.Signal) {
	x.Helper()
	if err := syscall.Kill(x.job, sig); err != nil {
		x.Fatal(err)
	}
}

func (x *jobTerminal) command(word string) {
	x.Helper()
	if _, err := fmt.Fprintln(x.commands, word); err != nil {
		x.Fatal(err)
	}
}

// says waits for the shell's next line and compares it.
func (x *jobTerminal) says(want string) {
	x.Helper()
	late := time.AfterFunc(patience, func() { _ = x.cmd.Process.Kill() })
	defer late.Stop()
	if !x.said.Scan() || x.said.Text() != want {
		x.Fatalf("the shell reported %q, want %q; the terminal received:\n%q", x.said.Text(), want, x.text())
	}
}

var modeSet = regexp.MustCompile(`\x1b\[\?(\d+)([hl])`)

// modes returns the terminal modes that are on after a text: alternate screen, visible cursor, mouse (its
// buttons and their notation), bracketed paste.
func modes(text string) map[string]bool {
	on := map[string]bool{}
	for _, m := range modeSet.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "1049", "25", "1002", "1006", "2004":
			if m[2] == "h" {
				on[m[1]] = true
			} else {
				delete(on, m[1])
			}
		}
	}
	return on
}

// cooked reports whether the terminal has the mode that it had at the start.
func (x *jobTerminal) cooked() bool {
	x.Helper()
	mode, err := term.GetState(int(x.slave.Fd()))
	if err != nil {
		x.Fatal(err)
	}
	return reflect.DeepEqual(mode, x.before)
}

// However a job is stopped, the shell gets its terminal back in the original mode, and fg restores the screen
// with its modes, its content and its engine.
func TestStopsAndContinuesLikeAnyJob(t *testing.T) {
	t.Parallel()
	ofShell := map[string]bool{"25": true}
	ofScreen := map[string]bool{"1049": true, "1002": true, "1006": true, "2004": true}
	for name, c := range map[string]struct {
		stop   func(x *jobTerminal)
		unseen bool // the program does not see the stop, so it cannot restore the terminal
		raw    bool // the terminal's mode is not restored
	}{
		"ctrl+z":  {stop: func(x *jobTerminal) { x.press("\x1a") }},
		"SIGTSTP": {stop: func(x *jobTerminal) { x.signal(syscall.SIGTSTP) }},
		"SIGTTIN": {stop: func(x *jobTerminal) { x.signal(syscall.SIGTTIN) }},
		"SIGSTOP": {stop: func(x *jobTerminal) { x.signal(syscall.SIGSTOP) }, unseen: true, raw: true},
		"a read in the background": {stop: func(x *jobTerminal) {
			x.command("take")
			x.says("taken")
			x.press("j")
		}, unseen: true, raw: true},
		"SIGCONT in the background": {stop: func(x *jobTerminal) {
			x.signal(syscall.SIGSTOP)
			x.says("stopped")
			x.command("bg") // SIGCONT and, for its read, SIGTTIN may arrive in either order
		}, unseen: true, raw: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startJob(t, "play")
			x.expect(firstStep)
			for range 2 {
				c.stop(x)
				x.says("stopped")
				if !c.unseen { // the terminal may report the last output after the shell reports the stop
					x.until(func(text string) bool { return maps.Equal(modes(text), ofShell) }, "the shell's modes")
				}
				before := x.text()
				if !c.raw && !x.cooked() {
					t.Error("stopped in raw mode")
				}
				x.command("fg")
				x.until(func(text string) bool {
					_, screen, again := strings.Cut(text[len(before):], "\x1b[?1049h")
					return again && strings.Contains(screen, firstStep) && maps.Equal(modes(text), ofScreen)
				}, "its screen again")
				if x.cooked() {
					t.Error("continued without raw mode")
				}
			}
			x.press("s")
			x.expect("step 1 decode")
			x.press("q")
			x.leaves(exitDone)
		})
	}
}
