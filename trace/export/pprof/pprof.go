// Package pprof writes a trace as a profile for go tool pprof.
package pprof

import (
	"fmt"
	"io"
	"time"

	"github.com/google/pprof/profile"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/export/samples"
)

// Format is the export "pprof".
var Format = trace.Export{
	Name: "pprof", Doc: "profile for go tool pprof: dispatches, workgroups, GPU time",
	Suffix: ".pb.gz", Write: write,
}

// Untimed is the value of the label "gpu_time" that a sample has if its GPU time was not measured. The sample
// value gpu_time is then 0, and pprof does not show values of 0.
const Untimed = "not measured"

// write writes the profile of a trace, not compressed. It has a sample for each dispatch of each step, and
// for each block that was timed. A profile of a trace without GPU times has no sample type gpu_time.
func write(w io.Writer, t *trace.Trace) error {
	p := profileOf(t)
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return p.WriteUncompressed(w)
}

// writer builds a profile. Samples share what they can: the locations of a stack, and the labels of a step.
type writer struct {
	*profile.Profile
	from   *samples.Profile
	stacks [][]*profile.Location
	types  int // number of values of a sample
	// values is memory for the values of the next samples. One allocation serves many samples.
	values []int64
	blank  []profile.Sample // likewise for samples
}

func profileOf(t *trace.Trace) *profile.Profile {
	from := samples.Of(t)
	out := &writer{Profile: &profile.Profile{}, from: from, types: len(samples.Types)}
	if !from.Timed {
		out.types = samples.GPUTime
	}
	for _, typ := range samples.Types[:out.types] {
		out.SampleType = append(out.SampleType, &profile.ValueType{Type: typ.Name, Unit: typ.Unit})
	}
	out.DefaultSampleType = samples.Types[samples.GPUTime].Name
	if !from.Timed {
		out.DefaultSampleType = samples.Types[samples.Workgroups].Name
	}
	if created, err := time.Parse(time.RFC3339, t.Created); err == nil {
		out.TimeNanos = created.UnixNano()
	}
	out.DurationNanos = wallNS(t)
	out.locations(t.Model.Name)
	untimed := 0
	for i := range t.Steps {
		untimed += out.step(i, &t.Steps[i])
	}
	out.Comments = append(out.Comments, fmt.Sprintf("%s %s on %s", t.Producer.Name, t.Producer.Version,
		t.Device.Name))
	if from.Timed && untimed > 0 {
		out.Comments = append(out.Comments, fmt.Sprintf("samples without a measured gpu_time: %d of %d",
			untimed, len(out.Sample)))
	}
	return out.Profile
}

// wallNS returns the sum of the wall times of the steps. Steps whose time was not measured do not count.
func wallNS(t *trace.Trace) (sum int64) {
	for i := range t.Steps {
		ns, _ := t.Steps[i].CPU.TotalNS.NS()
		sum = analyze.Add(sum, ns)
	}
	return sum
}

// locations adds a function and a location for each function of the samples. pprof needs a mapping that says
// that all functions are known. The mapping's file is the model.
func (p *writer) locations(model string) {
	m := &profile.Mapping{
		ID: 1, File: model, HasFunctions: true, HasFilenames: true, HasLineNumbers: true,
	}
	p.Mapping = []*profile.Mapping{m}
	for i, f := range p.from.Functions {
		id := uint64(i + 1)
		p.Function = append(p.Function, &profile.Function{
			ID: id, Name: f.Name, SystemName: f.Name, Filename: f.File, StartLine: f.Line,
		})
		p.Location = append(p.Location, &profile.Location{
			ID: id, Mapping: m, Line: []profile.Line{{Function: p.Function[i], Line: f.Line}},
		})
	}
	for _, stack := range p.from.Stacks {
		var list []*profile.Location
		for _, f := range stack {
			list = append(list, p.Location[f])
		}
		p.stacks = append(p.stacks, list)
	}
}

// step adds the samples of a step. It returns how many of them have no measured time.
func (p *writer) step(i int, s *trace.Step) (untimed int) {
	phase, step := []string{string(s.Phase)}, map[string][]int64{"step": {int64(s.Index)}}
	labels := map[string][]string{"phase": phase}
	labelsUntimed := labels
	if p.from.Timed {
		labelsUntimed = map[string][]string{"phase": phase, "gpu_time": {Untimed}}
	}
	for sample := range p.from.Step(i) {
		const chunk = 1024
		if len(p.blank) == 0 {
			p.blank, p.values = make([]profile.Sample, chunk), make([]int64, chunk*p.types)
		}
		next, values := &p.blank[0], p.values[:p.types:p.types]
		p.blank, p.values = p.blank[1:], p.values[p.types:]
		all, measured := sample.Values()
		copy(values, all[:])
		*next = profile.Sample{
			Location: p.stacks[sample.Stack], Value: values, Label: labels, NumLabel: step,
		}
		if !measured {
			next.Label = labelsUntimed
			untimed++
		}
		p.Sample = append(p.Sample, next)
	}
	return untimed
}
