package main

import (
	"context"
	"errors"
	"time"

	"gpuscope/session"
	"gpuscope/trace"
)

// recording is the file that a run is recorded to; nil records nothing.
type recording struct {
	p    *program
	file *trace.StreamWriter
}

// endOfPipe is how long a run that was told to end waits for who reads its trace from a pipe.
const endOfPipe = 2 * time.Second

// record makes the file for a trace, nil where none is named.
func (p *program) record(ctx context.Context, path string) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	file, err := trace.CreateStream(path)
	switch {
	case errors.Is(err, trace.ErrForm):
		return nil, usageError{err.Error()}
	case err != nil:
		return nil, err
	}
	if name := file.Partial(); name != "" {
		p.unfinished.Store(&name)
	}
	context.AfterFunc(ctx, func() { file.Expire(time.Now().Add(endOfPipe)) })
	return &recording{p, file}, nil
}

// take appends what of an event belongs to a trace.
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

// close puts the trace in its place.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	defer r.p.unfinished.Store(nil)
	return r.file.Close()
}

// cancel leaves no trace of a run that did not begin.
func (r *recording) cancel() {
	if r == nil {
		return
	}
	r.file.Cancel()
	r.p.unfinished.Store(nil)
}
