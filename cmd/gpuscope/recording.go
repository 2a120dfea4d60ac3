package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/record"
)

// recording is the trace file of a run. A nil recording records nothing.
type recording struct {
	p    *program
	file *record.File
}

// endOfPipe is how long an interrupted run waits for the process that reads its trace from a pipe.
const endOfPipe = 2 * time.Second

// traceNames says which format a recording has, depending on the name of its file.
var traceNames = trace.Storable() + "; or a write-only format, which gpuscope trace convert -h lists"

// recordingFlags say what is recorded and where.
type recordingFlags struct {
	path, steps, limit string
	options            record.Options
}

func (f *recordingFlags) declare(flags *pflag.FlagSet) {
	flags.StringVar(&f.path, "trace", "", "record the run to `FILE`: "+traceNames)
	flags.StringVar(&f.steps, "steps", "",
		"with --trace, record only the steps in the range `FROM:TO`, such as 10:50, 10: or :50, or one step, such as 10")
	flags.StringVar(&f.limit, "trace-limit", "",
		"with --trace, keep only the newest steps that fit into `SIZE` of memory with their plans, such as 64MB (at least 1MiB), and write them when the run ends (default: write each step when it ends)")
	flags.BoolVar(&f.options.NoText, noText, false,
		"with --trace, leave the prompt, the generated text and all token ids out of the trace")
}

// noText is the name of the flag that leaves texts out of traces.
const noText = "no-text"

// errNoRecording is the error for --no-text without --trace.
var errNoRecording = cli.Usage("--no-text applies to a recording: give the name of its file with --trace")

// check reads the values of the flags. It returns an error if one is invalid.
func (f *recordingFlags) check(flags *pflag.FlagSet) (err error) {
	if flags.Changed("trace") && f.path == "" {
		return cli.Usagef(`--trace "": want the name of a file`)
	}
	if f.path == "" && (f.steps != "" || f.limit != "") {
		return cli.Usagef("--steps and --trace-limit limit a recording: give the name of its file with --trace")
	}
	if f.path == "" && f.options.NoText {
		return errNoRecording
	}
	if err := checkTracePath(f.path, flags); err != nil {
		return err
	}
	if f.options.Steps, err = record.ParseRange(f.steps); err != nil {
		return cli.Usagef("--steps %v", err)
	}
	if f.limit != "" {
		if f.options.Limit, err = record.ParseSize(f.limit); err != nil {
			return cli.Usagef("--trace-limit %v", err)
		}
	}
	return nil
}

// inputFlags lists the flags with the names of files or folders that a command reads.
var inputFlags = []string{"tokenizer", "data", "input", "shaders"}

// checkTracePath returns an error if recording to the path would overwrite the model or another input of the
// command.
func checkTracePath(path string, flags *pflag.FlagSet) error {
	inputs := flags.Args()
	for _, name := range inputFlags {
		switch f := flags.Lookup(name); {
		case f == nil:
		case f.Value.Type() == "stringArray":
			inputs = append(inputs, f.Value.(pflag.SliceValue).GetSlice()...)
		default:
			inputs = append(inputs, f.Value.String())
		}
	}
	return cli.CheckOutput(path, inputs...)
}

// record creates the trace file. It returns nil if `path` is empty.
func (p *program) record(ctx context.Context, path string, o record.Options) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	file, err := record.Create(path, o)
	switch {
	case errors.Is(err, trace.ErrForm):
		return nil, cli.Usage(err.Error())
	case err != nil:
		return nil, err
	}
	file.Warn(p.Stderr)
	if name := file.Partial(); name != "" {
		p.unfinished.Store(&name)
	}
	context.AfterFunc(ctx, func() { file.Expire(time.Now().Add(endOfPipe)) })
	return &recording{p, file}, nil
}

// take begins the trace when the model was opened, and then appends the records of each event to the trace.
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
