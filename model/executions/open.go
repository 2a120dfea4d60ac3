// Package executions opens ExecuTorch programs as sessions whose steps are executions of a method: inputs in,
// outputs out. It is for programs that are not language models.
//
//	s, err := executions.Open(ctx, executions.Options{Path: "a.pte", Driver: wgpu.New()}, nil)
//	_, err = s.Do(ctx, session.Command{Kind: session.Prompt, Text: "0.1=7"})
//	outputs := s.Outputs()
//
// A session runs with the inputs in the options, or else with random inputs. The command session.Prompt sets
// the dims of random inputs.
package executions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

// Options selects the program and the device, and how to run the program. The zero value of each field means
// its default.
type Options struct {
	Path   string
	Method string   // if "", MethodOf chooses the method
	Data   []string // files with further constants
	Driver gpu.Driver
	Device string // index of the device, or a part of its name; empty for the best device
	Timing engine.Timing
	Build  program.Options
	// Shaders is a folder with files called NAME.wgsl. Each file replaces the source of the kernel NAME.
	Shaders string
	// Inputs lists the inputs of each execution. If there are more executions than entries, the session
	// starts again with the first entry. If Inputs is empty, the inputs are random numbers from Seed.
	Inputs [][]*npy.Array
	Seed   uint64
	Live   []program.LiveDim // sizes of dims of random inputs; all other dims have their upper bounds
	// Ran is called with the outputs of each new execution. It may be nil. n is the number of the execution,
	// from 0.
	Ran   func(n int, outputs []*npy.Array) error
	Cache string // folder in which measured ceilings of devices are stored; if "", they are not stored
	// Producer and Command are written to the trace's header.
	Producer trace.Producer
	Command  []string
}

// Applies reports whether a program must run as executions, because it is not a language model. If `method`
// is empty, program.OpenLanguage chooses the method.
func Applies(path, method string, data []string) (bool, error) {
	f, err := pte.Open(path, data...)
	if err != nil {
		return false, err
	}
	_, err = program.OpenLanguage(f, method)
	return errors.Is(err, program.ErrNotLanguage), f.Close()
}

// MethodOf returns the name of the method to run. If `name` is "", this is "forward" or, if there is no such
// method, the only method that has instructions. Otherwise it is `name`.
func MethodOf(f *pte.File, name string) (string, error) {
	var names []string
	for _, m := range f.Methods {
		if m.Name == cmp.Or(name, "forward") {
			return m.Name, nil
		}
		if !m.Constant() {
			names = append(names, m.Name)
		}
	}
	switch {
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "" && len(names) > 1:
		return "", session.Refusef("%s has the methods %s; choose one with --method", f.Name(),
			strings.Join(names, ", "))
	}
	_, err := f.Method(cmp.Or(name, "forward"))
	return "", err
}

// Open loads a method onto a device. It reports its progress to `emit`, which may be nil. After Open has
// returned, the session reports everything through its own events, beginning with the trace's header. If the
// inputs do not fit the method, the error wraps session.ErrUsage.
func Open(ctx context.Context, o Options, emit func(session.Event)) (*Session, error) {
	if emit == nil {
		emit = func(session.Event) {}
	}
	progress := stepping.Opening(ctx, emit)
	if err := progress("read model", 0, 1); err != nil {
		return nil, err
	}
	if o.Device == trace.NoDevice {
		return nil, session.Refusef("--device none: %s is not a language model, and only steps of language models are planned. To show the program without a device, use gpuscope graph", o.Path)
	}
	begin := time.Now()
	f, err := pte.Open(o.Path, o.Data...)
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, file: f}
	s.took("load", begin)
	if err := s.open(progress, emit); err != nil {
		if s.Session != nil {
			s.Release()
		}
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// took records how long a phase of opening the program took, from `begin` until now.
func (s *Session) took(phase string, begin time.Time) {
	s.opening = append(s.opening,
		trace.Opening{Phase: phase, NS: trace.Measured(time.Since(begin).Nanoseconds())})
}

func (s *Session) open(progress engine.Progress, emit func(session.Event)) error {
	log := func(format string, args ...any) {
		emit(session.Event{Log: &session.Log{Level: "info", Text: fmt.Sprintf(format, args...)}})
	}
	name, err := MethodOf(s.file, s.options.Method)
	if err != nil {
		return err
	}
	if err := cmp.Or(progress("read model", 1, 1), progress("open device", 0, 1)); err != nil {
		return err
	}
	begin := time.Now()
	dev, why, err := stepping.OpenDevice(s.options.Driver, s.options.Device)
	if err != nil {
		return err
	}
	s.took("device", begin)
	log("device %s (%s): %s", dev.Info().Name, dev.Info().Type, why)
	if err := s.load(dev, name, progress, log); err != nil {
		if s.Session == nil {
			dev.Release()
		}
		return err
	}
	header := s.Header(s.options.Cache)
	header.Producer, header.Command = s.options.Producer, s.options.Command
	header.Static, header.Opening = s.options.Build.Live.Static, s.opening
	base := filepath.Base(s.options.Path)
	header.Model = trace.Model{Name: base, Source: base, Architecture: "ExecuTorch program"}
	header.Model.Parameters, header.Model.Quantization = s.method.Parameters()
	s.Start(host{s}, header, s.commands())
	return nil
}

// load builds the graph of the method, loads it onto the device, and chooses the first inputs.
func (s *Session) load(dev gpu.Device, method string, progress engine.Progress,
	log func(string, ...any),
) error {
	build := s.options.Build
	build.Progress = progress
	begin := time.Now()
	var err error
	if s.method, err = program.Build(s.file, method, dev.Info().Limits, build); err != nil {
		if errors.Is(err, graph.ErrRoute) {
			err = session.Refusef("--%w", err)
		}
		return err
	}
	s.took("build", begin)
	log("device memory: %s", stepping.MemoryLine(s.method.Graph))
	if err := s.choose(s.options.Live); err != nil {
		return err
	}
	if s.program, err = program.Load(dev, s.method); err != nil {
		return err
	}
	s.Session = stepping.New(stepping.NewDevice(dev, s.program.Executor()), s.options.Timing, s.options.Cache)
	s.opening = append(s.opening, s.Phases()...)
	if dir := s.options.Shaders; dir != "" {
		said, err := s.UseShaders(dir)
		if err != nil {
			return err
		}
		log("%s", said)
	}
	if s.accumulating = s.method.Accumulating(); len(s.accumulating) > 0 {
		log("the program updates %d buffers that are not KV caches: to step back, all executions since the reset are run again",
			len(s.accumulating))
	}
	if s.initial, err = s.save(); err != nil {
		return err
	}
	s.after = s.initial
	return s.UseClockProbe()
}
