package tui

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/tui/tuitest"
)

// The engine goes, the screen stays: it says what was done and what was said last, the trace is there to be
// exported, and another engine goes on where the first one stood.
func TestAnEngineThatHasGoneIsStartedAgainWhereItWas(t *testing.T) {
	var engines []*tuitest.Session
	refuse := false
	x := start(t, context.Background(), func(context.Context) (session.Session, error) {
		if refuse {
			return nil, errors.New("no adapter")
		}
		s := tuitest.Play(llama, tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
			if c.Kind == session.Run {
				<-ctx.Done()
			}
			return nil
		}})
		engines = append(engines, s)
		return s, nil
	}, Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("step 1 decode").press("s").sees("step 2 decode")
	engines[0].Die(errors.New("signal: killed; its last words:\n  out of memory"))
	x.sees("[ENGINE GONE]", "the engine has gone; r starts it again. signal: killed", "step 2 at position", "r restart")
	x.press("s").sees("token: the engine has gone; r starts it again").press("1").sees("[1 Step]")
	path := filepath.Join(t.TempDir(), "x.json")
	x.press("x").sees("export to").press("\x15" + path + "\r").sees("wrote")
	if tr, err := trace.ReadFile(path); err != nil || len(tr.Steps) != 3 {
		t.Errorf("%v", err)
	}
	refuse = true
	x.press(escape).misses("the engine has gone").press("r").sees("[ENGINE GONE]", "no adapter")
	refuse = false
	x.press(escape).misses("no adapter").press("r").sees("[PAUSED]", "step 2 decode", "the engine is back at position 44")
	x.press("s").sees("step 3 decode").press("S").sees("step 2")
	engines[1].Die(errors.New("device lost"))
	x.sees("[ENGINE GONE]", "device lost").press("r").sees("[PAUSED]").press("s").sees("step 4 decode")
	x.press("r").sees("restart: the engine is there")
	engines[2].Die(errors.New("signal: killed")) // which was seen before it was told
	x.sees("[PAUSED]", "the engine is back at position ").misses("r starts it again")
	x.press("0").sees("the engine had gone: it is started again")
	x.press("s").sees("step 5 decode").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}
