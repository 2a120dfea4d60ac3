package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/network"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

// Open reads a model and loads it onto a device. Open reports its progress to `emit`, which may be nil. After
// Open has returned, the session reports everything through its own events. The first of them is the trace's
// header. If ctx is cancelled, Open stops at the next progress report: between two phases, two tensors, or
// two kernels.
func Open(ctx context.Context, o Options, emit func(session.Event)) (session.Session, error) {
	if emit == nil {
		emit = func(session.Event) {}
	}
	progress := stepping.Opening(ctx, emit)
	if err := progress("read model", 0, 1); err != nil {
		return nil, err
	}
	begin := time.Now()
	m, err := Read(o)
	if err != nil {
		return nil, err
	}
	m.took("load", begin)
	m.warn(emit)
	s, err := m.open(ctx, progress, func(text string) {
		emit(session.Event{Log: &session.Log{Level: "info", Text: text}})
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return s, nil
}

func (m *Model) warn(emit func(session.Event)) {
	for _, w := range m.warnings {
		emit(session.Event{Log: &session.Log{Level: "warn", Text: w}})
	}
}

func (m *Model) open(ctx context.Context, progress engine.Progress, log func(string)) (*live, error) {
	if err := cmp.Or(progress("read model", 1, 1), progress("open device", 0, 1)); err != nil {
		return nil, err
	}
	if m.options.Device == trace.NoDevice {
		return m.openPlanned(ctx, progress, log)
	}
	dev, n, err := m.deviceAndGraph(progress, log)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ahead := n.PlanAhead(ctx, m.options.Live) // runs in the background while the weights are uploaded
	r, err := m.load(dev, n, progress, log)
	if err != nil {
		stop()
		<-ahead
		dev.Release()
		return nil, err
	}
	if changed := m.file.Changed(); changed != "" {
		log(changed)
	}
	header, planned := m.header(r), await(ahead, progress)
	if header.Forecast = planned.Forecast; planned.Err != nil {
		log(planned.Err.Error()) // the session opens nevertheless, because no step needs the forecast
	}
	return start(m, r, header), nil
}

// deviceAndGraph opens the selected device and builds the graph for its limits.
func (m *Model) deviceAndGraph(progress engine.Progress, log func(string)) (gpu.Device, *network.Network,
	error,
) {
	begin := time.Now()
	dev, why, err := stepping.OpenDevice(m.options.Driver, m.options.Device)
	if err != nil {
		return nil, nil, err
	}
	m.took("device", begin)
	log(fmt.Sprintf("device %s (%s): %s", dev.Info().Name, dev.Info().Type, why))
	n, err := m.graphFor(dev.Info().Limits, progress, log)
	if err != nil {
		dev.Release()
		return nil, nil, err
	}
	return dev, n, nil
}

// graphFor builds the graph for device limits.
func (m *Model) graphFor(limits gpu.Limits, progress engine.Progress, log func(string)) (*network.Network,
	error,
) {
	if err := cmp.Or(progress("open device", 1, 1), progress("build graph", 0, 1)); err != nil {
		return nil, err
	}
	begin := time.Now()
	n, err := m.build(limits)
	if err != nil {
		return nil, err
	}
	m.took("build", begin)
	log("device memory: " + stepping.MemoryLine(n.Graph))
	return n, progress("build graph", 1, 1)
}

// load loads a graph onto the device whose limits it was built for.
func (m *Model) load(dev gpu.Device, n *network.Network, progress engine.Progress, log func(string)) (
	*run.Runner, error,
) {
	exec, err := engine.Load(dev, n.Graph, m.options.Live, progress)
	m.file.Loaded()
	if err != nil {
		return nil, err
	}
	exec.SetCheck(m.options.Check)
	r := run.NewRunner(dev, exec, n)
	m.opening = append(m.opening, r.Phases()...)
	if dir := m.options.Shaders; dir != "" {
		said, err := r.UseShaders(dir)
		if err != nil {
			exec.Release()
			return nil, err
		}
		log(said)
	}
	if err := r.UseClockProbe(); err != nil {
		exec.Release()
		return nil, err
	}
	return r, nil
}

// took records how long a phase of opening the model took, from `begin` until now.
func (m *Model) took(phase string, begin time.Time) {
	m.opening = append(m.opening,
		trace.Opening{Phase: phase, NS: trace.Measured(time.Since(begin).Nanoseconds())})
}

// header returns the trace without steps: the model, the device and the settings.
func (m *Model) header(r *run.Runner) *trace.Trace {
	t := r.Header(m.options.Cache)
	t.Producer, t.Command, t.Static = m.options.Producer, m.options.Command, m.options.Live.Static
	t.Model, t.Opening = m.Info(), m.opening
	return t
}
