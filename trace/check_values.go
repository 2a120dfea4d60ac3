package trace

import (
	"fmt"
	"strconv"
)

// These checks refuse values that no run can have. Instants may have any value, because the axis of time
// begins at a different point in each recording.

// number is a number that must not be negative.
type number struct {
	name  string
	value float64
}

// ns returns a duration in ns for a list of numbers. It is 0 if it was not measured.
func ns(t Time) float64 {
	n, _ := t.NS()
	return float64(n)
}

// noneNegative checks that the numbers in a list are not negative. `at` is the path of the object with the
// numbers.
func (c *checker) noneNegative(list []number, at string, args ...any) {
	for _, n := range list {
		if n.value < 0 {
			c.refuse(strconv.FormatFloat(n.value, 'f', -1, 64)+" is negative", at+"."+n.name, args...)
		}
	}
}

// run checks the numbers of the host, the device, the clock, the model and the run as a whole.
func (c *checker) run() {
	t := c.t
	c.notNegative(int64(t.DroppedSteps), "dropped_steps")
	c.notNegative(int64(t.Host.CPUs), "host.cpus")
	c.noneNegative([]number{
		{"ns_per_tick", t.Clock.NSPerTick},
		{"error_ns", ns(t.Clock.ErrorNS)},
		{"quantum_ns", t.Clock.QuantumNS},
		{"samples", float64(t.Clock.Samples)},
		{"canary_ns", ns(t.Clock.CanaryNS)},
	}, "clock")
	c.noneNegative([]number{{"parameters", float64(t.Model.Parameters)}, {"layers", float64(t.Model.Layers)}}, "model")
	if q := t.Model.Quantized; q != nil {
		c.noneNegative([]number{{"group_size", float64(q.GroupSize)}, {"matrices", float64(q.Matrices)}},
			"model.quantized")
	}
	for i := range t.Graph.Values {
		v := &t.Graph.Values[i]
		if m := v.Matrix; m != nil {
			c.noneNegative([]number{{"rows", float64(m.Rows)}, {"cols", float64(m.Cols)}}, "graph.values[%d].matrix", i)
		}
		if v.Slot != nil {
			c.notNegative(int64(*v.Slot), "graph.values[%d].slot", i)
		}
	}
	for i := range t.Graph.Ops {
		if layer := t.Graph.Ops[i].Layer; layer != nil {
			c.notNegative(int64(*layer), "graph.ops[%d].layer", i)
		}
	}
	if s := t.Device.Ceilings; s != nil {
		c.noneNegative([]number{
			{"flops_per_s", s.FlopsPerS},
			{"dispatch_ns", ns(s.DispatchNS)},
			{"timed_pass_ns", ns(s.TimedPassNS)},
			{"fill_workgroups", float64(s.FillWorkgroups)},
			{"n", float64(s.N)},
		}, "device.ceilings")
		for i, r := range s.CopyBytesPerS {
			c.noneNegative([]number{{"bytes", float64(r.Bytes)}, {"per_s", r.PerS}},
				"device.ceilings.copy_bytes_per_s[%d]", i)
		}
	}
	for i, o := range t.Opening {
		c.noneNegative([]number{{"ns", ns(o.NS)}}, "opening[%d]", i)
	}
	if o := t.Observer; o != nil {
		c.noneNegative([]number{
			{"untimed_ns", ns(o.UntimedNS)},
			{"timed_ns", ns(o.TimedNS)},
			{"span_ns", ns(o.SpanNS)},
			{"untimed_off_ns", ns(o.UntimedOff)},
			{"span_off_ns", ns(o.SpanOff)},
			{"n", float64(o.N)},
		}, "observer")
	}
}

// aliases checks that no value is an alias of itself, directly or through other aliases.
func (c *checker) aliases() {
	values := c.t.Graph.Values
	visited := make([]int, len(values)) // by which walk, from 1
	for i := range values {
		for at := i; visited[at] == 0; {
			visited[at] = i + 1
			next := values[at].AliasOf
			if next == nil || *next < 0 || int(*next) >= len(values) {
				break
			}
			if at = int(*next); visited[at] == i+1 {
				c.refuse(fmt.Sprintf("value %d is an alias of itself", at), "graph.values[%d].alias_of", i)
				return
			}
		}
	}
}

// stepValues checks the numbers of step i.
func (c *checker) stepValues(s *Step, i int) {
	c.notNegative(int64(s.Index), "steps[%d].index", i)
	for j, id := range s.Tokens {
		c.notNegative(int64(id), "steps[%d].tokens[%d]", i, j)
	}
	if s.Token != nil {
		c.notNegative(int64(*s.Token), "steps[%d].token", i)
	}
	for j := range s.Top {
		c.notNegative(int64(s.Top[j].ID), "steps[%d].top[%d].id", i, j)
	}
	u := &s.CPU
	c.noneNegative([]number{
		{"cpu.resize_ns", ns(u.ResizeNS)},
		{"cpu.upload_ns", ns(u.UploadNS)},
		{"cpu.encode_ns", ns(u.EncodeNS)},
		{"cpu.submit_ns", ns(u.SubmitNS)},
		{"cpu.wait_ns", ns(u.WaitNS)},
		{"cpu.sample_ns", ns(u.SampleNS)},
		{"cpu.total_ns", ns(u.TotalNS)},
		{"cpu.overlapped_ns", ns(u.OverlappedNS)},
		{"cpu.gc_ns", ns(u.GCNS)},
		{"cpu.passes", float64(u.Passes)},
		{"cpu.submits", float64(u.Submits)},
		{"cpu.writes", float64(u.Writes)},
		{"cpu.write_bytes", float64(u.WriteBytes)},
		{"cpu.bind_groups", float64(u.BindGroups)},
		{"cpu.polls", float64(u.Polls)},
		{"cpu.gcs", float64(u.GCs)},
		{"canary", s.Canary},
		{"resize.ns", ns(s.Resize.NS)},
		{"memory.allocated_bytes", float64(s.Memory.AllocatedBytes)},
		{"memory.live_bytes", float64(s.Memory.LiveBytes)},
	}, "steps[%d]", i)
	for j := range s.Resize.Passes {
		p := &s.Resize.Passes[j]
		c.notNegative(int64(p.Index), "steps[%d].resize.passes[%d].index", i, j)
		for k := range p.Hooks {
			n, _ := p.Hooks[k].NS.NS()
			c.notNegative(n, "steps[%d].resize.passes[%d].hooks[%d].ns", i, j, k)
		}
	}
	for j := range u.Compiled {
		c.noneNegative([]number{{"ns", ns(u.Compiled[j].NS)}}, "steps[%d].cpu.compiled[%d]", i, j)
	}
	if g := s.GPU; g != nil {
		c.noneNegative([]number{{"busy_ns", ns(g.BusyNS)}, {"span_ns", ns(g.SpanNS)}}, "steps[%d].gpu", i)
	}
	if w := s.Whole; w != nil {
		c.noneNegative([]number{
			{"off_ns", ns(w.OffNS)}, {"wall_ns", ns(w.WallNS)}, {"wall_off_ns", ns(w.WallOff)},
		}, "steps[%d].whole", i)
	}
}
