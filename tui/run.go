package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/tui/command"
	"gpuscope/tui/internal/quiet"
	"gpuscope/tui/plain"
	"gpuscope/tui/tty"
	"gpuscope/tui/widget"
)

// Names of the themes, color modes and glyph sets that the user can choose.
var (
	ThemeNames = widget.ThemeNames
	ColorNames = widget.ColorNames
	GlyphNames = widget.GlyphNames
)

type (
	// Panic reports a bug that ended the program.
	Panic = widget.Panic
	// Interrupted is the error that Run returns when a signal ended the program.
	Interrupted = plain.Interrupted
	// Failure is the error of a plain-mode script in which some commands failed.
	Failure = plain.Failure
	// Log keeps the last messages of the program.
	Log = widget.Log
)

// NewLog returns an empty log.
func NewLog() *Log { return widget.NewLog() }

// Options control how the program looks and where it draws. The zero value suits a user at a terminal.
type Options struct {
	Theme, Color, Glyphs string // one each of ThemeNames, ColorNames and GlyphNames
	NoMouse              bool
	// Keys replaces the default keys of actions. It maps names from ActionNames to keys.
	Keys map[string][]string

	Plain  bool   // plain mode, without a screen: prints a line of text for each event
	Prompt string // prompt to send when the model is open
	// DefaultPrompt reports that the user did not choose Prompt. If the session rejects a default prompt,
	// the program starts without a prompt.
	DefaultPrompt bool
	Chat          bool // each prompt is the user's turn in a conversation
	// Shaders is the folder of kernel sources that the session uses; "": edited sources go to a new
	// folder in Cache. If Cache is empty too, the new folder is in the system's folder for temporary
	// files.
	Shaders, Cache string

	// File is the path of the trace that ShowTrace shows, or "". It is not offered as a baseline.
	File string

	// NoText leaves texts and token ids out of exported traces (see package redact).
	NoText bool

	// Budget is the memory limit in bytes for the steps that are kept; 0 means trace.DefaultBudget.
	Budget int64

	Log *Log // receives messages of other packages while the screen is in use; nil: a new log

	Input  io.Reader // nil: os.Stdin
	Output io.Writer // nil: os.Stdout
	// Width and Height are the size of the screen if Output is not a terminal.
	Width, Height int

	editor string      // replaces the user's editor; used by tests
	isDark func() bool // reports whether the terminal's background is dark; nil: always dark
}

func (o Options) output() io.Writer {
	if o.Output == nil {
		return os.Stdout
	}
	return o.Output
}

// leaveWithin is how long Run waits, after the user has quit, for commands and the session to end.
const leaveWithin = 2 * time.Second

func init() { quiet.Restore() } // Bubble Tea is initialized by now

// Run opens a session in the background and runs the program until the user quits. It returns the error of
// `open` if `open` failed, *Panic after a bug, and *Interrupted after SIGTERM or SIGHUP. It always restores
// the terminal.
func Run(ctx context.Context, open func(context.Context) (session.Session, error), o Options) error {
	return run(ctx, o, func(ctx context.Context) openedMsg {
		s, err := open(ctx)
		return openedMsg{session: s, err: err}
	})
}

// ShowTrace shows a recorded trace until the user quits. It draws the first frame while load is still
// running.
func ShowTrace(ctx context.Context, load func(context.Context) (*trace.Trace, error), o Options) error {
	return run(ctx, o, func(ctx context.Context) openedMsg {
		t, err := load(ctx)
		return openedTrace(t, err)
	})
}

// openedTrace returns the message that reports a loaded trace, or the error of loading it.
func openedTrace(t *trace.Trace, err error) openedMsg {
	if err != nil {
		return openedMsg{err: err}
	}
	return openedMsg{trace: t, index: analyze.NewIndex(t)}
}

func run(ctx context.Context, o Options, open func(context.Context) openedMsg) error {
	if o.Plain {
		return plain.Run(ctx, plain.Options{
			Prompt: o.Prompt, DefaultPrompt: o.DefaultPrompt, Chat: o.Chat, Input: o.Input,
			Output: o.output(), Budget: o.Budget, NoText: o.NoText,
		},
			func(ctx context.Context) plain.Opened {
				m := open(ctx)
				return plain.Opened{Session: m.session, Trace: m.trace, Err: m.err}
			})
	}
	out, terminal := o.output(), false
	if f, ok := out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width, o.Height, terminal = w, h, true
		}
	}
	shell := tty.NewJobControl()
	listen := []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT}
	if terminal {
		listen = append(listen, shell.Control(out.(*os.File))...)
	}
	signals, stop := tty.Notify(listen...)
	defer stop()
	var program *tea.Program
	if terminal && o.Input == nil && term.IsTerminal(int(os.Stdin.Fd())) {
		o.Input = tty.NewInput(os.Stdin, func(dark bool) { program.Send(backgroundMsg{dark}) })
		o.isDark = func() bool { return tty.DarkBackground(os.Stdin, out.(*os.File)) }
		// Bubble Tea may restore the terminal mode that an editor has left, not the original mode.
		// Therefore restore the original mode here.
		if before, err := term.GetState(int(os.Stdin.Fd())); err == nil {
			defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
		}
	}
	if len(o.Keys) > 0 {
		list, err := bound(o.Keys)
		if err != nil {
			return err
		}
		command.Table = list
	}
	a, err := newApp(o)
	if err != nil {
		return err
	}
	a.shell = shell
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithAltScreen(), tea.WithoutSignalHandler(),
		tea.WithOutput(tty.Synchronized(out)), tea.WithFPS(writes),
	}
	if o.Input != nil {
		options = append(options, tea.WithInput(o.Input))
	}
	if a.mouse {
		options = append(options, tea.WithMouseCellMotion())
	}
	program = tea.NewProgram(&paced{App: a}, options...)

	var once sync.Once
	var fault *Panic
	a.runs(widget.NewRunner(ctx, func(m any) { program.Send(m) }, func(p *Panic) {
		once.Do(func() {
			fault = p
			go program.Kill() // in a goroutine, because the caller may be the event loop
		})
	}))
	var signalled os.Signal
	ended := make(chan struct{})
	shell.Ended = ended
	heard := make(chan struct{})
	a.runner.Start(func(ctx context.Context) {
		defer close(heard)
		for signalled == nil {
			select {
			case <-ctx.Done():
				return
			case sig := <-signals:
				switch m, ours := shell.Hear(sig); {
				case m != nil:
					go program.Send(m) // in a goroutine: the event loop may be waiting for a signal
				case ours, sig == syscall.SIGINT && time.Now().UnixNano() < a.lent.Load():
					// Ignore the signal. Either Hear has handled it, or it was meant for
					// the program that was lent the terminal.
				default:
					signalled = sig
				}
			}
		}
		close(ended)
		go func() {
			time.Sleep(leaveWithin)
			program.Kill() // the event loop has not ended in time
		}()
		program.Send(leaveMsg{})
	})
	if !terminal { // without a terminal, Bubble Tea does not know the width of a line
		size := tea.WindowSizeMsg{Width: a.w, Height: a.h}
		a.runner.Start(func(context.Context) { program.Send(size) })
	}
	a.starts = open
	a.start()
	a.runner.Start(func(ctx context.Context) { watch(ctx, a.log, a.runner.Send) })

	_, err = program.Run()
	a.runner.Cancel()
	a.runner.End(a.last.close, leaveWithin)
	a.lab.End()
	stop()
	<-heard
	once.Do(func() {}) // do not report a panic from here on
	switch {
	case fault != nil:
		return fault
	case signalled != nil:
		return &Interrupted{Signal: signalled}
	case errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return a.opening
}

// watch sends logMsg when the log has grown.
func watch(ctx context.Context, l *Log, send func(any)) {
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Changed:
			send(logMsg{})
		}
		select { // combine a burst of lines into one redraw
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
