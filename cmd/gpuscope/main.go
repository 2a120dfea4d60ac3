// Command gpuscope profiles language models on WebGPU and shows their graphs, both in a terminal user
// interface and without one. This package contains the flags, the subcommands, the exit statuses and the
// wiring. Other packages compute the results.
//
// Results go to standard output, and everything else goes to standard error. The exit status is 0 for
// success, 1 for failure and 2 for wrong usage.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/wgpu"
	"gpuscope/internal/printable"
)

func main() {
	os.Exit(newProgram().main(context.Background(), os.Args[1:]))
}

// newProgram returns a program that uses the real environment of this process.
func newProgram() *program {
	// Ctrl+\ can be pressed while the screen does not read the terminal. It would end the program with a
	// stack dump, which does not help users.
	signal.Ignore(syscall.SIGQUIT)
	watched := term.IsTerminal(int(os.Stdout.Fd()))
	p := &program{
		Env: cli.Env{
			Stdin:    os.Stdin,
			Stdout:   os.Stdout,
			Stderr:   os.Stderr,
			Terminal: term.IsTerminal(int(os.Stdin.Fd())) && watched,
			Watched:  watched,
		},
		config:     configFile(),
		cache:      cacheFolder(),
		driver:     wgpu.New(),
		executable: os.Executable,
	}
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		p.Columns = w
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		p.Status = os.Stderr
	}
	p.open, p.heed = p.openModel, p.heedSignals
	return p
}

// program holds the parts of the environment that commands use, so that tests can replace them.
type program struct {
	cli.Env
	cache      string    // folder for cached device measurements; "" disables the cache
	config     string    // path of the user's settings file
	settled    []setting // settings that set a flag in this run
	driver     gpu.Driver
	open       opener
	executable func() (string, error)                // path of this program, for starting the engine
	heed       func(context.Context) context.Context // starts handling signals
	unfinished atomic.Pointer[string]                // name of the recording that is not complete yet
}

// heedSignals returns a context that the first signal cancels. A second signal ends the process, and the
// program reports where the incomplete recording is. SIGPIPE is caught, so a write to a closed pipe fails
// with an error and does not end the process. Temporary files are therefore still removed.
func (p *program) heedSignals(ctx context.Context) context.Context {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		stop(interrupted{<-signals})
		again := <-signals
		if name := p.unfinished.Load(); name != nil {
			fmt.Fprintf(p.Stderr, "gpuscope: ended by %v; the recording so far is in %s, which can be opened\n",
				interrupted{again}, printable.Clean(*name))
		}
		os.Exit(exitFailed)
	}()
	return ctx
}

// interrupted is the cause of a cancelled command.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "signal: " + i.signal.String() }
