package main

import (
	"context"
	"errors"
	"time"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/session"
	"gpuscope/trace"
)

// recording is the trace file of a run. A nil recording records nothing.
type recording struct {
	p    *program
	file *trace.StreamWriter
}

// endOfPipe is how long an interrupted run waits for the process that reads its trace from a pipe.
const endOfPipe = 2 * time.Second

// record creates the trace file. It returns nil if `path` is empty.
func (p *program) record(ctx context.Context, path string) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	file, err := trace.CreateStream(path)
	switch {
	case errors.Is(err, trace.ErrForm):
		return nil, cli.Usage(err.Error())
	case err != nil:
		return nil, err
	}
	if name := file.Partial(); name != "" {
		p.unfinished.Store(&name)
	}
	context.AfterFunc(ctx, func() { file.Expire(time.Now().Add(endOfPipe)) })
	return &recording{p, file}, nil
}

// take appends to the trace the parts of an event that a trace contains.
func (r *recording) take(e session.Event) error {
	if r == nil {
		return nil
	}
	if e.Opened != nil {
		return r.file.Begin(e.Opened)
	}
	for _, record := range e.Records {
		if err := r.file.Write(record); err != nil {
			return err
		}
	}
	return nil
}

// close completes the trace and moves it to its final name.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	defer r.p.unfinished.Store(nil)
	return r.file.Close()
}

// cancel removes the trace file of a run that never started.
func (r *recording) cancel() {
	if r == nil {
		return
	}
	r.file.Cancel()
	r.p.unfinished.Store(nil)
}
