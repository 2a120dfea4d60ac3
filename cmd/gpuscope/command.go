package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/cmd/gpuscope/replays"
	"gpuscope/cmd/gpuscope/scripts"
	"gpuscope/cmd/gpuscope/traces"
	"gpuscope/internal/printable"
	"gpuscope/tui"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitBug    = 2 // the exit status of a Go program after a panic
)

// commands returns all commands in the order of the help.
func (p *program) commands() cli.Commands {
	all := cli.Commands{
		rootCommand(p), runCommand(p), verifyCommand(p), benchCommand(p), graphCommand(p), tokenizeCommand(p),
		labTryCommand(p), captureCommand(p), replays.Command(&p.Env, p.driver),
	}
	all = append(all, traces.Commands(&p.Env, producer())...)
	all = append(all, devicesCommand(p))
	all = append(all, scripts.Commands(&p.Env, p.commands, version, buildDate())...)
	return append(all, versionCommand(p), engineCommand(p))
}

// main runs the command in `args` and returns the exit status.
func (p *program) main(ctx context.Context, args []string) int {
	p.Args = args
	defer p.cleanOutput()()
	all := p.commands()
	c, args, err := all.Pick(args)
	if err != nil {
		return p.report(ctx, c, err)
	}
	if p.heed != nil && !c.Screen {
		ctx = p.heed(ctx)
	}
	return p.report(ctx, c, all.Run(ctx, &p.Env, c, args))
}

// report prints a command's error unless it is nil, and returns the exit status.
func (p *program) report(ctx context.Context, c *cli.Command, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, syscall.EPIPE):
		return exitDone // the process that reads the output, such as head, closed the pipe on purpose
	}
	name := "gpuscope"
	if c.Name != "" && !c.Hidden {
		name += " " + c.Name
	}
	if bug, ok := errors.AsType[*tui.Panic](err); ok { // the screen has already been closed
		fmt.Fprintf(p.Stderr, "%s\n%s: %s\n", bytes.TrimSpace(bug.Stack), name, cli.OneLine(err))
		return exitBug
	}
	if _, ok := errors.AsType[cli.ReportedError](err); ok {
		return exitFailed
	}
	var usage cli.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(p.Stderr, "%s: %s (%s -h shows how)\n", name, cli.OneLine(err), name)
		return exitUsage
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("stopped by %w", cause)
	}
	fmt.Fprintf(p.Stderr, "%s: %s\n", name, cli.OneLine(err))
	return exitFailed
}

// cleanOutput makes standard error remove control characters, because names and texts of models and traces
// may contain terminal escape sequences. It does the same for standard output if that is a terminal. Any
// other standard output gets the original bytes. The caller must call the returned function after the last
// write.
func (p *program) cleanOutput() (end func()) {
	err := printable.NewWriter(p.Stderr)
	p.Stderr = err
	end = func() { _ = err.Flush() }
	if p.Watched {
		out := printable.NewWriter(p.Stdout)
		p.Stdout = out
		end = func() { _, _ = out.Flush(), err.Flush() }
	}
	return end
}
