package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/session"
)

// The screen runs the engine in a separate process, which is this program with the command "engine". The
// native WebGPU library ends its process on some errors, and the profiler should survive this. The two
// processes use the session protocol over pipes. Output of native code to file descriptor 2 is shown in the
// log view and does not disturb the screen.

// endWithin is how long an engine may take to end after it was asked to end. It may be waiting for the GPU.
const endWithin = 5 * time.Second

// engineName is the name of the command that serves as the engine process.
const engineName = "engine"

func engineCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: engineName, Operand: "[MODEL]", Hidden: true,
		Doc: "serve as the engine process: run the model for the gpuscope process that started this one",
		Setup: func(flags *pflag.FlagSet) cli.Action {
			r := declareRoot(flags)
			return func(ctx context.Context, operands []string) error {
				if err := r.validate(operands); err != nil {
					return err
				}
				// Keys such as Ctrl+C are meant for the screen process. That process tells the engine process
				// when to end.
				signal.Ignore(os.Interrupt, syscall.SIGQUIT)
				requests := &endReader{
					p.Stdin,
					func() { time.AfterFunc(endWithin, func() { os.Exit(exitFailed) }) },
				}
				var refused error
				err := session.Serve(ctx, requests, p.Stdout,
					func(ctx context.Context, emit func(session.Event)) (s session.Session, err error) {
						s, refused = p.open(ctx, r.model, emit)
						return s, refused
					})
				if err != nil && err == refused {
					return cli.Reported(err) // the screen has already shown this error
				}
				return err
			}
		},
	}
}

// endReader is a reader that calls a function at the end of the input. The engine process reads its requests
// through an endReader. When the screen process ends, the requests end, so the engine process ends soon
// after, even if the engine is stuck.
type endReader struct {
	io.Reader
	ended func()
}

func (r *endReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		r.ended()
	}
	return n, err
}

// engineArgs returns the arguments of the engine process: the engine command and the arguments of this
// program.
func (p *program) engineArgs() []string { return append([]string{engineName}, p.Args...) }

// screenProcessors is the maximum number of CPU cores that the screen process uses while a model runs in the
// engine. With more cores, the Go runtime would wake all of them to look for work, at each wake-up and each
// garbage collection. This would take CPU time from the engine.
const screenProcessors = 2

// screenGarbage is the GOGC percentage of the screen process. It is higher than the default because the
// recording is large, and scanning it is the main cost of a garbage collection.
const screenGarbage = 200

// startEngine starts the engine process and connects to its session.
func (p *program) startEngine() (session.Session, error) {
	file, err := p.executable()
	if err != nil {
		return nil, fmt.Errorf("start the engine process: %w", err)
	}
	cmd := exec.Command(file, p.engineArgs()...)
	cmd.WaitDelay = endWithin
	requests, err1 := cmd.StdinPipe()
	messages, err2 := cmd.StdoutPipe()
	stderr, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("start the engine process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the engine process: %w", err)
	}
	runtime.GOMAXPROCS(min(screenProcessors, runtime.GOMAXPROCS(0)))
	debug.SetGCPercent(screenGarbage)
	messages = unwatched(messages)
	return session.Connect(session.Peer{
		Messages: messages,
		Room:     widen(messages),
		Requests: &killer{WriteCloser: requests, process: cmd.Process},
		Stderr:   stderr,
		Wait: func() error {
			_ = messages.Close()
			return cmd.Wait()
		},
	}), nil
}

// killer ends a process that is still running some time after its input was closed.
type killer struct {
	io.WriteCloser
	process *os.Process
}

func (k *killer) Close() error {
	// Kill fails if the process has already ended. That is the normal case, so the error is ignored.
	time.AfterFunc(endWithin+time.Second, func() { _ = k.process.Kill() })
	return k.WriteCloser.Close()
}

// progress shows the progress of opening a model or measuring. On a terminal it is one line that is
// overwritten.
type progress struct {
	w, stderr io.Writer
	shown     bool
}

func newProgress(p *program) *progress {
	return &progress{w: cmp.Or[io.Writer](p.Status, io.Discard), stderr: p.Stderr}
}

// opening shows progress and warnings while a model is opened.
func (g *progress) opening(e session.Event) {
	g.show(e)
	g.log(e)
}

// log prints a log event, unless its level is info.
func (g *progress) log(e session.Event) {
	if e.Log != nil && e.Log.Level != "info" {
		g.done()
		fmt.Fprintf(g.stderr, "%s: %s\n", e.Log.Level, e.Log.Text)
	}
}

func (g *progress) show(e session.Event) {
	if e.Progress != nil {
		fmt.Fprintf(g.w, "\r\x1b[K%s %s", printable.Clean(e.Progress.Phase), e.Progress.Amount())
		g.shown = true
	}
}

func (g *progress) done() {
	if g.shown {
		fmt.Fprint(g.w, "\r\x1b[K")
		g.shown = false
	}
}
