//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
)

// pidEnv names the file into which an engine process writes its number.
const pidEnv = "GPUSCOPE_TEST_PID"

// follows is the token that comes after another on a fake device.
func follows(id uint32) uint32 { return 'a' + (id*7+3)%26 }

// faking opens models on a device that computes nothing, in a step of a few milliseconds.
func faking(p *program) opener {
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	p.driver = driver
	return func(ctx context.Context, o *modelOptions, emit func(session.Event)) (session.Session, error) {
		pid := []byte(strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(os.Getenv(pidEnv), pid, 0o600); err != nil {
			return nil, err
		}
		s, err := p.openModel(ctx, o, emit)
		if err != nil || o.device == trace.NoDevice {
			return s, err
		}
		dev := driver.Opened[0]
		var first uint32 // of the step's tokens
		dev.OnDispatch = func(d fake.Dispatch) {
			switch {
			case strings.Contains(d.Pipeline, "embedding"):
				first = binary.LittleEndian.Uint32(d.Bound[2].Bytes) // behind the table: nibbles and scales
				time.Sleep(3 * time.Millisecond)
			case d.Pipeline == "topk_merge": // whose ids the next step may take in
				binary.LittleEndian.PutUint32(d.Bound[3].Bytes, follows(first))
			}
		}
		dev.OnRead = func(label string, offset uint64, dst []byte) {
			for i := range len(dst) / 4 {
				if label == "outputs" && offset == 0 {
					binary.LittleEndian.PutUint32(dst[4*i:], follows(first)+uint32(i))
				}
			}
		}
		return s, nil
	}
}

// forget takes away what the terminal was sent, so that what is expected is what comes.
func (x *terminal) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen.Reset()
}

var stepShown = regexp.MustCompile(`s(?:tep )?(\d+) (?:\(newest s?(\d+)\) )?(?:prefill|decode)`)

// lastStep is the number of the newest step that the terminal was told of last.
func (x *terminal) lastStep() int {
	all := stepShown.FindAllStringSubmatch(x.text(), -1)
	if all == nil {
		x.Fatalf("no step is shown; the terminal was sent:\n%q", x.text())
	}
	last := all[len(all)-1]
	n, err := strconv.Atoi(cmp.Or(last[2], last[1]))
	if err != nil {
		x.Fatal(err)
	}
	return n
}

// The engine's process is killed again and again, at any moment: while it runs, in a step, while it opens,
// while the text runs again. The screen stays, what was recorded can be exported without an engine, and each
// engine goes on with the text where the last one was.
func TestTheScreenOutlivesItsEngines(t *testing.T) {
	t.Parallel()
	kills := 50
	if testing.Short() {
		kills = 5
	}
	dir := t.TempDir()
	pidFile, exported := filepath.Join(dir, "pid"), filepath.Join(dir, "x.json")
	x := startTerminalWith(t, []string{pidEnv + "=" + pidFile}, "fake",
		"--context", "1024", "--timing", "step", "-p", "Once")
	random := rand.New(rand.NewPCG(1, 9))
	last, killed := 0, 0
	rounds := 0                // of kills after which an engine went on
	kill := func(within int) { // so many ms
		t.Helper()
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			b, _ := os.ReadFile(pidFile)
			if pid, err := strconv.Atoi(string(b)); err == nil && pid != last {
				last = pid
				break
			}
			if time.Since(begin) > patience {
				t.Fatal("no engine was started")
			}
		}
		time.Sleep(time.Duration(random.IntN(within)) * time.Millisecond)
		x.forget()
		if err := syscall.Kill(last, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed++
		x.expect("[ENGINE CRASHED]")
	}
	step := func() { // one more than the screen shows
		t.Helper()
		n := x.lastStep()
		x.forget()
		x.press("s")
		x.expect(fmt.Sprintf("%d decode", n+1))
		x.expect("[PAUSED]")
	}
	export := func() *trace.Trace { // what is recorded so far
		t.Helper()
		x.forget()
		x.press("x")
		x.expect("export to")
		x.press("\x15" + exported + "\r")
		x.expect("wrote")
		tr, err := trace.ReadFile(exported)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(exported); err != nil {
			t.Fatal(err)
		}
		followsUp(t, tr)
		return tr
	}
	exports := 0 // without an engine
	kill(1)      // before the model is open
	x.press("r")
	x.expect("step 0 prefill")
	x.expect("[PAUSED]")
	for ; killed < kills; rounds++ {
		if random.IntN(4) > 0 {
			x.press(" ")
		}
		kill(60)
		if rounds%5 == 0 {
			export()
			exports++
		}
		for x.forget(); ; x.forget() {
			x.press("r")
			if killed == kills || random.IntN(5) > 0 {
				break
			}
			kill(60) // while it opens, or runs the text again
		}
		x.expect("[PAUSED]")
		step()
	}
	x.forget()
	x.press(" ")
	x.expect("[RUNNING]")
	time.Sleep(50 * time.Millisecond)
	x.press(" ")
	x.expect("[PAUSED]")
	tr := export()
	x.press("q")
	x.leaves(exitDone)

	at := map[int]bool{} // the steps at which an engine was there again: each has one behind it
	for _, e := range tr.Events {
		if e.Kind == "engine_restarted" {
			at[e.Step] = true
			if strings.Contains(e.Text, "another token") {
				t.Error(e.Text)
			}
		}
	}
	if len(at) < rounds {
		t.Errorf("engines were there again at %d steps, want at least %d: one for each time that one went on",
			len(at), rounds)
	}
	t.Logf("%d kills, %d engines that went on, %d exports without one, %d steps", killed, rounds, exports,
		len(tr.Steps))
}

// An editor has the terminal to itself: a ctrl+c that ends it leaves the screen and its steps.
func TestCtrlCInTheEditorIsTheEditors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	editor := filepath.Join(dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\necho EDITING\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{pidEnv + "=" + filepath.Join(dir, "pid"), "VISUAL=", "EDITOR=" + editor}
	x := startTerminalWith(t, env, "fake", "-p", "Once")
	x.expect("step 0 prefill")
	x.expect("[PAUSED]")
	x.press("je")
	x.expect("EDITING")
	x.press("\x03")
	x.expect("signal: interrupt")
	x.forget()
	x.press("q")
	x.leaves(exitDone)
}

// followsUp says that each step of a trace follows from the one before it, with the token that is right.
func followsUp(t *testing.T, tr *trace.Trace) {
	t.Helper()
	for i := range tr.Steps {
		s := &tr.Steps[i]
		if s.Index != i || s.Token == nil || uint32(*s.Token) != follows(uint32(s.Tokens[0])) {
			t.Fatalf("step %d: index %d, tokens %v gave %v", i, s.Index, s.Tokens, s.Token)
		}
		if i == 0 {
			continue
		}
		if b := &tr.Steps[i-1]; s.Position != b.Position+len(b.Tokens) || s.Tokens[0] != *b.Token {
			t.Fatalf("step %d, at position %d with token %v, does not follow from that before, at %d with %d",
				i, s.Position, s.Tokens, b.Position, *b.Token)
		}
	}
}
