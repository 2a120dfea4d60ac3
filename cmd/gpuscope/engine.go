package main

import (
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

	"gpuscope/session"
)

// Behind the screen the engine runs in a process of its own: this same program, as the command "engine". The
// native WebGPU library ends its process on some errors, and a profiler should survive what it profiles. The
// two speak session over pipes, and what native code writes to descriptor 2 reaches the log view, not
// the screen.

// endWithin is how long an engine may take to end after it was told to; it may be waiting for the GPU.
const endWithin = 5 * time.Second

func engineCommand() *command {
	return &command{
		name: "engine", operand: "[MODEL]", hidden: true,
		doc: "serve a model to the screen that started this process",
		setup: func(p *program, flags *pflag.FlagSet) action {
			r := declareRoot(flags)
			return func(ctx context.Context, operands []string) error {
				if err := r.validate(operands); err != nil {
					return err
				}
				// Keys of the terminal are meant for the screen, which tells us when to end.
				signal.Ignore(os.Interrupt, syscall.SIGQUIT)
				requests := &endReader{
					p.stdin,
					func() { time.AfterFunc(endWithin, func() { os.Exit(exitFailed) }) },
				}
				var refused error
				err := session.Serve(ctx, requests, p.stdout,
					func(ctx context.Context, emit func(session.Event)) (s session.Session, err error) {
						s, refused = p.open(ctx, r.model, emit)
						return s, refused
					})
				if err != nil && err == refused {
					return saidError{err} // by the screen, which was told
				}
				return err
			}
		},
	}
}

// endReader calls ended when the input ends: whatever this process is stuck in, it does not outlive its
// screen by much.
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

// engineArgs are the arguments of the engine process: those that this program was given, as they were given.
func (p *program) engineArgs() []string { return append([]string{engineCommand().name}, p.args...) }

// screenProcessors is how many processors the screen has at most beside a running model, which it must leave
// the others to: each time that it is woken, and each time that its garbage is collected, all that it has
// look for work.
const screenProcessors = 2

// screenGarbage is how much garbage the screen collects at a time beside a running model, in percent of what
// it keeps: its recording is large, and going through it is what collecting takes.
const screenGarbage = 200

// startEngine starts the engine process and is the session that it serves.
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

// killer ends a process that does not end by itself after its input was closed.
type killer struct {
	io.WriteCloser
	process *os.Process
}

func (k *killer) Close() error {
	// fails where it has ended, as it should
	time.AfterFunc(endWithin+time.Second, func() { _ = k.process.Kill() })
	return k.WriteCloser.Close()
}
