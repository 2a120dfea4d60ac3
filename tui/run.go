package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// What a person chooses the looks of the screen from.
var (
	ThemeNames = widget.ThemeNames
	ColorNames = widget.ColorNames
	GlyphNames = widget.GlyphNames
)

type (
	// Panic is a bug that ended the program.
	Panic = widget.Panic
	// Interrupted is what Run returns when a signal ended the program.
	Interrupted = plain.Interrupted
	// Failure is the error of a script of plain mode some of whose commands failed.
	Failure = plain.Failure
	// Log keeps the last lines that anybody said.
	Log = widget.Log
)

// NewLog returns an empty log.
func NewLog() *Log { return widget.NewLog() }

// Options say how the program looks and where it draws. The zero Options are those of a person at a terminal.
type Options struct {
	Theme   string // of ThemeNames
	Color   string // of ColorNames
	Glyphs  string // of GlyphNames
	NoMouse bool
	// Keys are those of actions, by ActionNames, in place of their own.
	Keys map[string][]string

	Plain  bool   // no screen: a line of text for each event, nothing is ever overwritten
	Prompt string // typed for the person when the model is open
	// DefaultPrompt says that the user did not give the prompt: a session that refuses it begins without.
	DefaultPrompt bool
	Chat          bool // prompts are turns of the user in a conversation
	// Shaders is the folder of kernels' texts that are in force; without it texts that a person edits go to a
	// folder in Cache, or where that is "" in the system's for temporary files.
	Shaders, Cache string

	Log *Log // where others write what they have to say while the screen is in use; nil: a new one

	Input  io.Reader // os.Stdin
	Output io.Writer // os.Stdout
	// Width and Height are the size of the screen where Output is no terminal.
	Width, Height int

	editor string      // instead of the person's; tests have their own
	isDark func() bool // the terminal's background; nil: dark
}

func (o Options) output() io.Writer {
	if o.Output == nil {
		return os.Stdout
	}
	return o.Output
}

// leaveWithin is how long Run waits, after the person has left, for commands and the session to end.
const leaveWithin = 2 * time.Second

func init() { quiet.Restore() } // Bubble Tea has been initialised

// Run opens a session beside the first frame and is the program until the person leaves. It returns the error
// of open if that was what ended it, *Panic after a bug, *Interrupted after SIGTERM or SIGHUP; in every case
// the terminal is as it was.
func Run(ctx context.Context, open func(context.Context) (session.Session, error), o Options) error {
	return run(ctx, o, func(ctx context.Context) openedMsg {
		s, err := open(ctx)
		return openedMsg{session: s, err: err}
	})
}

// ShowTrace shows a recorded trace, which load reads beside the first frame.
func ShowTrace(ctx context.Context, load func(context.Context) (*trace.Trace, error), o Options) error {
	return run(ctx, o, func(ctx context.Context) openedMsg {
		t, err := load(ctx)
		return openedTrace(t, err)
	})
}

// openedTrace is the news that a trace was read.
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
			Output: o.output(),
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
	signals := make(chan os.Signal, 8) // a burst of them; each counts
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	shell := tty.NewJobControl()
	if terminal {
		shell.Control(out.(*os.File), signals)
	}
	var program *tea.Program
	if terminal && o.Input == nil && term.IsTerminal(int(os.Stdin.Fd())) {
		o.Input = tty.NewInput(os.Stdin, func(dark bool) { program.Send(backgroundMsg{dark}) })
		o.isDark = func() bool { return tty.DarkBackground(os.Stdin, out.(*os.File)) }
		// Bubble Tea gives back the mode that an editor left.
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
			go program.Kill() // the event loop may be the one that failed
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
					go program.Send(m) // the next signal may be what the event loop waits for
				case ours, sig == syscall.SIGINT && time.Now().UnixNano() < a.lent.Load():
					// a ctrl+c for who has the terminal
				default:
					signalled = sig
				}
			}
		}
		close(ended)
		go func() {
			time.Sleep(leaveWithin)
			program.Kill() // the event loop hangs
		}()
		program.Send(leaveMsg{})
	})
	if !terminal { // nobody else tells Bubble Tea how wide a line is
		size := tea.WindowSizeMsg{Width: a.w, Height: a.h}
		a.runner.Start(func(context.Context) { program.Send(size) })
	}
	a.starts = open
	a.start()
	a.runner.Start(func(ctx context.Context) { watch(ctx, a.log, a.runner.Send) })

	_, err = program.Run()
	a.runner.Cancel()
	a.runner.End(a.last.close, leaveWithin)
	if a.opts.Shaders == "" {
		removeUnchanged(a.lab.dir, a.lab.own)
	}
	signal.Stop(signals)
	<-heard
	once.Do(func() {}) // whoever panics from here on comes too late
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

// watch sends word when the log has grown.
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
		select { // a burst of lines is one redraw
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
