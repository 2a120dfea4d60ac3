// Command gpuscope profiles language models on WebGPU and shows their graphs, in the terminal and headless.
// This package is flags, subcommands, exit codes and wiring; what the commands compute is in the packages
// below.
//
// Results go to standard output, everything else to standard error. The exit status is 0 where the command
// did what it was asked, 1 where it failed, 2 where it was called wrongly.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/wgpu"
	"gpuscope/internal/printable"
)

func main() {
	os.Exit(newProgram().main(context.Background(), os.Args[1:]))
}

// newProgram is the program in this process's surroundings.
func newProgram() *program {
	// ctrl+\ before the screen reads the terminal, or after it: goroutines help nobody.
	signal.Ignore(syscall.SIGQUIT)
	watched := term.IsTerminal(int(os.Stdout.Fd()))
	p := &program{
		stdin:      os.Stdin,
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		terminal:   term.IsTerminal(int(os.Stdin.Fd())) && watched,
		watched:    watched,
		config:     configFile(),
		cache:      cacheFolder(),
		driver:     wgpu.New(),
		executable: os.Executable,
	}
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		p.columns = w
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		p.status = os.Stderr
	}
	p.open, p.heed = p.openModel, p.heedSignals
	return p
}

// program is what the commands have of the world around them. Tests put their own in.
type program struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	status         io.Writer // standard error where it is a terminal, for a line that is written over
	terminal       bool      // both standard input and standard output are one
	watched        bool      // standard output is one: people read it
	columns        int       // of that terminal
	cache          string    // folder for what was measured of devices; "" for none
	config         string    // the file with a person's settings
	settled        []setting // those in force
	driver         gpu.Driver
	open           opener
	executable     func() (string, error)                // this program's file, to start the engine with
	heed           func(context.Context) context.Context // begins to listen to signals
	unfinished     atomic.Pointer[string]                // the file that holds a recording until its end
}

// heedSignals cancels the context it returns at the first signal and ends the process at the second, with a
// word on where a recording is that has no end. A write to a closed pipe becomes an error of that write, and
// not the end of the process with its temporary files left.
func (p *program) heedSignals(ctx context.Context) context.Context {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		stop(interrupted{<-signals})
		again := <-signals
		if name := p.unfinished.Load(); name != nil {
			fmt.Fprintf(p.stderr, "gpuscope: ended by %v; the recording so far is in %s, which can be opened\n",
				interrupted{again}, printable.Clean(*name))
		}
		os.Exit(exitFailed)
	}()
	return ctx
}

// interrupted is why a command was cancelled.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "signal: " + i.signal.String() }
