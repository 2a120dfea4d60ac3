// Package facts lists what an export says about the run as a whole: where it ran, and how far its times can
// be trusted.
package facts

import (
	"gpuscope/trace"
	"gpuscope/trace/analyze/timeline"
)

// Fact is a property of a run. Value is a string, an int64, a float64 or a bool.
type Fact struct {
	Key   string
	Value any
}

// Of returns the facts that are known about the run of a trace. Keys that begin with "clock." describe the
// conversion of GPU times to the time axis of the host: ns for each tick of the GPU's clock, the offset and
// its error, the timer resolution ("quantum"), the number of measurements, and the number of steps whose GPU
// times were moved because they seemed to start before the submit.
func Of(t *trace.Trace, line *timeline.Timeline) (list []Fact) {
	add := func(key string, value any, known bool) {
		if known {
			list = append(list, Fact{key, value})
		}
	}
	for _, text := range [...]struct{ key, value string }{
		{"producer", t.Producer.Name + " " + t.Producer.Version},
		{"created", t.Created},
		{"engine", t.Engine},
		{"model", t.Model.Name},
		{"quantization", t.Model.Quantization},
		{"device", t.Device.Name},
		{"backend", t.Device.Backend},
		{"driver", t.Device.Driver},
	} {
		add(text.key, text.value, text.value != "")
	}
	add("steps_placed", line.Placed, true)
	add("dropped_steps", int64(t.DroppedSteps), t.DroppedSteps > 0)
	c := &t.Clock
	offset, hasOffset := c.OffsetNS.NS()
	uncertainty, hasError := c.ErrorNS.NS()
	add("clock.gpu_ns_per_tick", c.NSPerTick, c.NSPerTick > 0)
	add("clock.gpu_offset_ns", offset, hasOffset)
	add("clock.uncertainty_ns", uncertainty, hasError)
	add("clock.quantum_ns", c.QuantumNS, c.QuantumNS > 0)
	add("clock.samples", int64(c.Samples), c.Samples > 0)
	add("clock.clamped_steps", int64(line.Shifted), true)
	return list
}
