package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// The screen survives an engine that crashes before the model is open. Quitting then returns the reason of
// the crash. A restart opens the model and sends the first prompt.
func TestEngineCrashedWhileOpeningRestarts(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("%w: signal: killed", session.ErrLost)
	for _, again := range []bool{false, true} {
		starts := 0
		x := start(t, context.Background(), func(context.Context) (session.Session, error) {
			if starts++; starts > 2 {
				return tuitest.Play(llama, tuitest.Script{}), nil
			}
			return tuitest.Play(llama, tuitest.Script{
				Lost: lost, Progress: []session.Progress{{Phase: "upload weights", Done: 1, Total: 7}},
			}), nil
		}, Options{Prompt: "once"})
		x.sees("[ENGINE CRASHED]", "signal: killed", "r restart").misses("export")
		for i := range all.Views {
			x.press(all.Views[i].Key + "scR?")
			x.sees("Help: " + all.Views[i].Name).press(escape).misses("Help: ")
		}
		if !again {
			x.press("1q")
			if err := x.ends(); !errors.Is(err, lost) {
				t.Errorf("the program ended with %v", err)
			}
			continue
		}
		x.press("1r").sees("[ENGINE CRASHED]", "signal: killed").press("r").sees("[PAUSED]", "step 0 prefill").press("s")
		x.sees("step 1 decode").press("q")
		if err := x.ends(); err != nil {
			t.Error(err)
		}
	}
}

// If a session ends at once, the screen must learn that it opened before it learns that it ended, however
// late. Otherwise the next key would go to the dead session instead of its replacement.
func TestASessionIsThereBeforeItHasEnded(t *testing.T) {
	t.Parallel()
	d := bare(t, Options{})
	messages, ended := make(chan any, 10), make(chan bool)
	d.app.runs(widget.NewRunner(t.Context(), func(m any) {
		switch m.(type) {
		case openedMsg:
			select {
			case <-ended:
			case <-time.After(100 * time.Millisecond):
			}
		case endedMsg:
			close(ended)
		}
		messages <- m
	}, func(p *Panic) { panic(p) }))
	d.app.starts = func(context.Context) openedMsg {
		return openedMsg{session: tuitest.Play(llama, tuitest.Script{Lost: session.ErrLost})}
	}
	d.app.start()
	first := <-messages
	if _, ok := first.(openedMsg); !ok {
		t.Errorf("the first message is %T", first)
	}
	<-ended
	d.app.runner.Wg.Wait()
}

// The screen survives an engine crash. It shows the last command and the last output of the engine, the trace
// can be exported, and a new engine continues at the same position.
func TestCrashedEngineRestartsWhereItWas(t *testing.T) {
	t.Parallel()
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
	engines[0].Die(errors.New("signal: killed; its last output:\n  out of memory"))
	x.sees("[ENGINE CRASHED]", "signal: killed", "r restart")
	x.press("s").sees("token: ").press("1").sees("[1 Step]")
	path := filepath.Join(t.TempDir(), "x.json")
	x.press("x").sees("export to").press("\x15" + path + "\r").sees("wrote")
	if tr, err := trace.ReadFile(path); err != nil || len(tr.Steps) != 3 {
		t.Errorf("%v", err)
	}
	refuse = true
	x.press(escape).misses("signal: killed").press("r").sees("[ENGINE CRASHED]", "no adapter")
	refuse = false
	x.press(escape).misses("no adapter").press("r").sees("[PAUSED]", "step 2 decode", " position 44")
	x.press("s").sees("step 3 decode").press("S").sees("step 2")
	engines[1].Die(errors.New("device lost"))
	x.sees("[ENGINE CRASHED]", "device lost").press("r").sees("[PAUSED]").press("s").sees("step 4 decode")
	x.press("r").sees("restart: ")
	engines[2].Die(errors.New("signal: killed")) // the user saw the crash before the program did
	x.sees("[PAUSED]", " position ").misses("r restarts it")
	x.press("0").sees(engineHadCrashed)
	x.press("s").sees("step 5 decode").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// dying crashes at the first step and answers that command late.
type dying struct {
	*tuitest.Session
	answer chan struct{}
}

func (d *dying) Do(ctx context.Context, c session.Command) (session.Reply, error) {
	if c.Kind != session.Next {
		return d.Session.Do(ctx, c)
	}
	d.Die(errors.New("signal: killed"))
	<-d.answer
	return session.Reply{}, session.ErrClosed
}

// A command that the crashed engine has not answered is dropped, however late the answer comes. Nothing in
// the new engine waits for it.
func TestRestartedEngineForgetsQueuedCommands(t *testing.T) {
	t.Parallel()
	first := &dying{tuitest.Play(llama, tuitest.Script{}), make(chan struct{})}
	engines := []session.Session{first, tuitest.Play(llama, tuitest.Script{})}
	x := start(t, context.Background(), func(context.Context) (s session.Session, err error) {
		s, engines = engines[0], engines[1:]
		return s, nil
	}, Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("[ENGINE CRASHED]", "the engine crashed while")
	x.press("r").sees("[PAUSED]", "the engine was restarted at position")
	close(first.answer)
	x.press("s").sees("step 1 decode").press("q")
	if err := x.ends(); err != nil {
		t.Error(err)
	}
}
