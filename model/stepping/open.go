package stepping

import (
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
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Opening returns a function that reports the progress of opening a session as events. During the upload of
// the weights, the events include the rate in bytes per second.
func Opening(ctx context.Context, emit func(session.Event)) engine.Progress {
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

// ChooseDevice does the same as gpu.Choose. If there are devices but none matches `want`, the error wraps
// session.ErrUsage.
func ChooseDevice(adapters []gpu.AdapterInfo, want string) (index int, reason string, err error) {
	index, reason, err = gpu.Choose(adapters, want)
	if err != nil && len(adapters) > 0 {
		err = session.Refusef("--device %s: %w", printable.Short(want, 80), err)
	}
	return index, reason, err
}

// OpenDevice opens the adapter that want selects, or the best adapter if `want` is empty.
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

// MemoryLine formats the device memory of a graph, as a total and by role.
func MemoryLine(g *graph.Graph) string {
	byRole := g.AllocatedBytes()
	var total int64
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		total += byRole[role]
		parts = append(parts, fmt.Sprintf("%s %s", role, table.Memory(byRole[role])))
	}
	return fmt.Sprintf("%s (%s)", table.Memory(total), strings.Join(parts, ", "))
}

// Phases returns how long each phase of loading the graph took.
func (r *Device) Phases() []trace.Opening {
	l := r.Exec.Loading()
	return []trace.Opening{
		{Phase: "prepack", NS: trace.Measured(l.Prepack.Nanoseconds())},
		{Phase: "upload", NS: trace.Measured(l.Upload.Nanoseconds())},
		{Phase: "compile", NS: trace.Measured(l.Compile.Nanoseconds())},
	}
}

// Header returns a trace that describes only the host, the device and the graph. The caller adds all other
// parts. `cache` is the folder with the measured ceilings of the device.
func (r *Device) Header(cache string) *trace.Trace {
	device := r.Exec.Device()
	device.Ceilings = CachedCeilings(&device, cache)
	return &trace.Trace{
		Schema: trace.Schema, Created: time.Now().UTC().Format(time.RFC3339),
		Host:   trace.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Device: device, Clock: r.Exec.Clock(), Graph: r.Graph.Describe(),
		Plans: []trace.Plan{}, Steps: []trace.Step{},
	}
}
