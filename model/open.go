package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/network"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Open reads a model and loads it onto a device. Open reports its progress to emit, which may be nil. After
// Open has returned, the session reports everything through its own events. The first of them is the trace's
// header. If ctx is cancelled, Open stops at the next progress report: between two phases, two tensors, or
// two kernels.
func Open(ctx context.Context, o Options, emit func(session.Event)) (session.Session, error) {
	if emit == nil {
		emit = func(session.Event) {}
	}
	progress := opening(ctx, emit)
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

// opening returns a function that reports the progress of Open as events. During the upload of the weights,
// the events include the rate in bytes per second.
func opening(ctx context.Context, emit func(session.Event)) engine.Progress {
	var uploading time.Time
	return func(phase string, done, total int) error {
		p := session.Progress{Phase: phase, Done: done, Total: total}
		if phase == engine.UploadPhase {
			if done == 0 {
				uploading = time.Now()
			}
			p.Bytes, p.PerSecond = true, float64(done)/max(time.Since(uploading).Seconds(), 1e-6)
		}
		emit(session.Event{Progress: &p})
		return ctx.Err()
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
	ahead := n.PlanAhead(ctx, m.options.Live) // computed during the upload, which takes longer
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

// ChooseDevice does the same as gpu.Choose, except that the error wraps session.ErrUsage if there are devices
// but none of them matches want.
func ChooseDevice(adapters []gpu.AdapterInfo, want string) (index int, reason string, err error) {
	index, reason, err = gpu.Choose(adapters, want)
	if err != nil && len(adapters) > 0 {
		err = session.Refusef("--device %s: %w", printable.Short(want, 80), err)
	}
	return index, reason, err
}

// OpenDevice opens the adapter that want selects, or the best adapter if want is empty.
func OpenDevice(d gpu.Driver, want string) (gpu.Device, string, error) {
	adapters, err := d.Adapters()
	if errors.Is(err, gpu.ErrNoAdapter) {
		err = fmt.Errorf("%w; use gpuscope --device none to plan steps without a device", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list devices: %w", err)
	}
	i, why, err := ChooseDevice(adapters, want)
	if err != nil {
		return nil, "", err
	}
	dev, err := d.Open(i)
	if err != nil {
		return nil, "", fmt.Errorf("open device %s: %w", adapters[i].Name, err)
	}
	return dev, why, nil
}

// deviceAndGraph opens the selected device and builds the graph for its limits.
func (m *Model) deviceAndGraph(progress engine.Progress, log func(string)) (gpu.Device, *network.Network,
	error,
) {
	begin := time.Now()
	dev, why, err := OpenDevice(m.options.Driver, m.options.Device)
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
	log("device memory: " + memoryLine(n.Graph))
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
	for _, part := range []struct {
		phase string
		time  time.Duration
	}{
		{"prepack", exec.Loading().Prepack},
		{"upload", exec.Loading().Upload},
		{"compile", exec.Loading().Compile},
	} {
		took := trace.Measured(part.time.Nanoseconds())
		m.opening = append(m.opening, trace.Opening{Phase: part.phase, NS: took})
	}
	exec.SetCheck(m.options.Check)
	r := run.NewRunner(dev, exec, n)
	if dir := m.options.Shaders; dir != "" {
		said, err := useShaders(r, dir)
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

// took records how long a phase of opening the model took, from begin until now.
func (m *Model) took(phase string, begin time.Time) {
	m.opening = append(m.opening,
		trace.Opening{Phase: phase, NS: trace.Measured(time.Since(begin).Nanoseconds())})
}

// memoryLine formats the device memory of a graph, as a total and by role.
func memoryLine(g *graph.Graph) string {
	byRole := g.AllocatedBytes()
	var total int64
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		total += byRole[role]
		parts = append(parts, fmt.Sprintf("%s %s", role, table.Memory(byRole[role])))
	}
	return fmt.Sprintf("%s (%s)", table.Memory(total), strings.Join(parts, ", "))
}

// header returns the trace as it is before the first step.
func (m *Model) header(r *run.Runner) *trace.Trace {
	device := r.Exec.Device()
	device.Ceilings = CachedCeilings(&device, m.options.Cache)
	return &trace.Trace{
		Schema: trace.Schema, Producer: m.options.Producer, Created: time.Now().UTC().Format(time.RFC3339),
		Command: m.options.Command, Static: m.options.Live.Static,
		Host:   trace.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Device: device, Clock: r.Exec.Clock(), Model: m.Info(),
		Opening: m.opening, Graph: r.Net.Graph.Describe(),
		Plans: []trace.Plan{}, Steps: []trace.Step{},
	}
}
