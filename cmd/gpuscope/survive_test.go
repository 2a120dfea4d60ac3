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

// pidEnv names the file to which an engine process writes its process ID.
const pidEnv = "GPUSCOPE_TEST_PID"

// follows returns the token that the fake device generates after another one.
func follows(id uint32) uint32 { return 'a' + (id*7+3)%26 }

// faking opens models on a fake device that computes nothing. A step takes a few milliseconds.
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
		var first uint32 // first token of the step
		dev.OnDispatch = func(d fake.Dispatch) {
			switch {
			case strings.Contains(d.Pipeline, "embedding"):
				first = binary.LittleEndian.Uint32(d.Bound[2].Bytes) // 0, 1: nibbles, scales
				time.Sleep(3 * time.Millisecond)
			case d.Pipeline == "topk_merge": // the next step may read its ids
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

// forget discards the received text, so that expect waits for new text.
func (x *terminal) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen.Reset()
}

var stepShown = regexp.MustCompile(`s(?:tep )?(\d+) (?:\(newest s?(\d+)\) )?(?:prefill|decode)`)

// lastStep returns the step number that the terminal showed last.
func (x *terminal) lastStep() int {
	all := stepShown.FindAllStringSubmatch(x.text(), -1)
	if all == nil {
		x.Fatalf("no step is shown; the terminal received:\n%q", x.text())
	}
	last := all[len(all)-1]
	n, err := strconv.Atoi(cmp.Or(last[2], last[1]))
	if err != nil {
		x.Fatal(err)
	}
	return n
}

// The engine process is killed repeatedly at random moments: while it runs, during a step, while it opens,
// and while it replays the text. The screen survives, the recording can be exported without an engine, and
// each new engine continues the text where the previous one stopped.
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
	rounds := 0                // kills after which a new engine continued
	kill := func(within int) { // waits up to within ms before the kill
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
	step := func() { // runs one more step
		t.Helper()
		n := x.lastStep()
		x.forget()
		x.press("s")
		x.expect(fmt.Sprintf("%d decode", n+1))
		x.expect("[PAUSED]")
	}
	export := func() *trace.Trace { // exports the recording so far
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
			kill(60) // while it opens or replays the text
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

	at := map[int]bool{} // a step follows each restart, so each has its own step number
	for _, e := range tr.Events {
		if e.Kind == "engine_restarted" {
			at[e.Step] = true
			if strings.Contains(e.Text, "another token") {
				t.Error(e.Text)
			}
		}
	}
	if len(at) < rounds {
		t.Errorf("engines restarted at %d steps, want at least %d, one for each engine that continued",
			len(at), rounds)
	}
	t.Logf("%d kills, %d engines that continued, %d exports without one, %d steps", killed, rounds, exports,
		len(tr.Steps))
}

// While an editor has the terminal, a ctrl+c ends only the editor. The screen and its steps remain.
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
	x.press("2")
	x.expect("prologue") // keys before the rows are shown do nothing
	x.press("je")
	x.expect("EDITING")
	x.press("\x03")
	x.expect("signal: interrupt")
	x.forget()
	x.press("q")
	x.leaves(exitDone)
}

// followsUp checks that each step of a trace continues the previous one and generates the expected token.
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
			t.Fatalf("step %d, at position %d with token %v, does not continue the previous step, at %d with %d",
				i, s.Position, s.Tokens, b.Position, *b.Token)
		}
	}
}
