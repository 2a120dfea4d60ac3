package tui

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/sources"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

func TestMain(m *testing.M) {
	// What a screen shows must not depend on where and when the test runs.
	flag.Set("rapid.nofailfile", "true")
	os.Unsetenv("NO_COLOR")
	os.Unsetenv("TMUX")
	os.Setenv("TERM", "xterm-256color")
	time.Local = time.UTC
	readFor = 0 // the clock stands still
	sources.WatchEvery = 200 * time.Millisecond
	widget.Now = func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	os.Exit(m.Run())
}

// driver presses keys on an App without a terminal. It handles every message before the next key.
type driver struct {
	t        testing.TB
	app      *App
	session  *tuitest.Session
	messages chan any
	frames   []time.Duration // durations of Update and View
	cpu      []time.Duration // CPU times of Update and View, where available
	pressed  []string        // keys since the last call of reads
}

// bare returns an app before anything is opened.
func bare(t testing.TB, o Options) *driver {
	t.Helper()
	o.Output = io.Discard
	if o.Cache == "" {
		o.Cache = t.TempDir()
	}
	if o.Color == "" {
		o.Color = "never"
	}
	if o.Theme == "" {
		o.Theme = "dark"
	}
	a, err := newApp(o)
	if err != nil {
		t.Fatal(err)
	}
	a.current = dispatches // most tests are about this view
	a.starts = func(context.Context) openedMsg { return openedMsg{err: errors.New("nothing to start")} }
	d := &driver{t: t, app: a, messages: make(chan any, 100)}
	a.runs(widget.NewRunner(context.Background(), func(m any) {
		select {
		case d.messages <- m:
		case <-a.runner.Ctx.Done():
		}
	}, func(p *Panic) { panic(string(p.Stack) + p.Error()) }))
	t.Cleanup(func() {
		a.runner.Cancel()
		a.runner.Wg.Wait()
	})
	return d
}

// drive opens the app on a session that plays a trace back. Without a script it opens the trace itself.
func drive(t testing.TB, w, h int, recorded *trace.Trace, script *tuitest.Script, o Options) *driver {
	t.Helper()
	o.Width, o.Height = w, h
	d := bare(t, o)
	if script == nil {
		d.update(openedTrace(recorded, nil))
		d.settle()
		return d
	}
	d.app.starts = func(context.Context) openedMsg {
		return openedMsg{session: tuitest.Play(recorded, *script)}
	}
	d.session = tuitest.Play(recorded, *script)
	d.update(openedMsg{session: d.session})
	d.settle()
	return d
}

// update handles a message and draws a frame, as the program does.
func (d *driver) update(m any) {
	begun := time.Now()
	had, known := cpuTime()
	d.app.Update(m)
	d.app.View()
	d.frames = append(d.frames, time.Since(begun))
	if has, _ := cpuTime(); known {
		d.cpu = append(d.cpu, has-had)
	}
}

// events handles everything that the session has sent.
func (d *driver) events() {
	var list eventsMsg
	for d.session != nil {
		select {
		case e := <-d.session.Events():
			list = append(list, e)
			continue
		default:
		}
		break
	}
	if len(list) > 0 {
		d.update(list)
	}
}

// settle waits until no command is running and everything to be shown is computed.
func (d *driver) settle() {
	busy := func() bool { return d.app.job != nil || d.app.jobs.Busy > 0 || len(d.app.doing) > 0 }
	for d.events(); busy() || len(d.messages) > 0; {
		select {
		case m := <-d.messages:
			d.events() // these were sent before the command ended
			d.update(m)
		case <-time.After(time.Minute):
			d.t.Fatalf("a command or %d jobs did not end in time", d.app.jobs.Busy)
		}
	}
}

// keyMessages maps the names of keys without a letter to their messages.
var keyMessages = map[string]tea.KeyMsg{
	"enter": {Type: tea.KeyEnter}, "esc": {Type: tea.KeyEsc}, "tab": {Type: tea.KeyTab},
	"space": {Type: tea.KeySpace, Runes: []rune(" ")},
	"up":    {Type: tea.KeyUp}, "down": {Type: tea.KeyDown}, "left": {Type: tea.KeyLeft},
	"right": {Type: tea.KeyRight},
	"pgup":  {Type: tea.KeyPgUp}, "pgdown": {Type: tea.KeyPgDown}, "home": {Type: tea.KeyHome},
	"end":       {Type: tea.KeyEnd},
	"backspace": {Type: tea.KeyBackspace}, "ctrl+c": {Type: tea.KeyCtrlC}, "ctrl+d": {Type: tea.KeyCtrlD},
	"ctrl+u": {Type: tea.KeyCtrlU}, `ctrl+\`: {Type: tea.KeyCtrlBackslash},
	"ctrl+w": {Type: tea.KeyCtrlW}, "ctrl+z": {Type: tea.KeyCtrlZ}, "delete": {Type: tea.KeyDelete},
}

// press presses keys and waits for everything that they start.
func (d *driver) press(keys ...string) *driver {
	d.t.Helper()
	d.pressed = append(d.pressed, keys...)
	for _, k := range keys {
		d.touch(k)
		d.settle()
	}
	return d
}

// touch presses a key without waiting.
func (d *driver) touch(k string) {
	m, ok := keyMessages[k]
	if !ok {
		m = tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
	}
	d.update(m)
}

// typed enters text in one message.
func (d *driver) typed(text string) *driver {
	d.pressed = append(d.pressed, strconv.Quote(text))
	d.update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)})
	d.settle()
	return d
}

// screen returns the text on the screen, without colour.
func (d *driver) screen() string { return ansi.Strip(d.app.View()) }

// line returns the first line of the screen that contains text, or "".
func (d *driver) line(text string) string {
	for l := range strings.SplitSeq(d.screen(), "\n") {
		if strings.Contains(l, text) {
			return l
		}
	}
	return ""
}

// sees fails the test if a text is not on the screen.
func (d *driver) sees(texts ...string) *driver {
	d.t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.screen(), text) {
			d.t.Fatalf("the screen has no %q:\n%s", text, d.screen())
		}
	}
	return d
}

func (d *driver) misses(texts ...string) *driver {
	d.t.Helper()
	for _, text := range texts {
		if strings.Contains(d.screen(), text) {
			d.t.Fatalf("the screen has %q:\n%s", text, d.screen())
		}
	}
	return d
}

var llama = func() *trace.Trace {
	t := tracetest.Llama(16, 24)
	t.Forecast = tracetest.Forecast(16)
	return t
}()

// live returns an app on a session that has processed the prompt and decoded a few tokens.
func live(t testing.TB, w, h int) *driver { return playing(t, w, h, llama) }

func playing(t testing.TB, w, h int, recorded *trace.Trace) *driver {
	d := drive(t, w, h, recorded, &tuitest.Script{}, Options{Prompt: "Once upon a time"})
	d.settle()
	return d.press("s", "s", "s")
}

var _ session.Session = (*tuitest.Session)(nil)

// viewKeys returns the keys of all views.
func viewKeys() []string {
	var keys []string
	for i := range all.Views {
		keys = append(keys, all.Views[i].Key)
	}
	return keys
}
