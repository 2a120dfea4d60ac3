package trace

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"

	"gpuscope/internal/printable"
)

// These are limits of what a file may contain. The numbers of real devices and models are far below them.
const (
	maxRank        = 16
	maxParamsBytes = 1 << 16
	maxTextBytes   = 1 << 16 // maximum size in bytes of a name or another text; not for a kernel's source
	maxPosition    = 1<<31 - 1
	maxBytes       = 1 << 44 // maximum size of a value in bytes
)

// MaxCosts is the maximum number of costs of a step.
const MaxCosts = 1 << 12

// These lists hold the allowed values of text fields whose Go type is string.
var (
	Orders     = []string{"", "topological", "fixpoint"}
	Hazards    = []string{"raw", "war", "waw"}
	GridRules  = []string{"linear", "rows", "tiles", "grid_stride"}
	ValueKinds = []string{"tensor", "symint"}
)

// Check returns an error if a trace is not consistent. It checks that every id is in range and equal to its
// index, that sizes are plausible, that no duration, count or token id is negative, that no value is an alias
// of itself, and that fields with a fixed set of values have one of them. Code that
// uses a checked trace need not check this again. The error names the invalid field.
func (t *Trace) Check() error {
	c := checker{t: t}
	c.texts()
	c.run()
	c.graph()
	c.aliases()
	c.forecast()
	c.trials()
	for i, s := range t.Stated {
		word(&c, s.Phase, Phases, "stated[%d].phase", i)
		c.notNegative(int64(s.Tokens), "stated[%d].tokens", i)
		ns, _ := s.WallNS.NS()
		c.notNegative(ns, "stated[%d].wall_ns", i)
	}
	c.plans()
	c.steps()
	for i, e := range t.Events {
		if e.Dispatch != nil {
			c.id(int(*e.Dispatch), len(t.Graph.Dispatches), "events[%d].dispatch", i)
		}
	}
	return c.err
}

type checker struct {
	t   *Trace
	err error
}

// refuse records the first error of a check and ignores later ones. `at` is a format string for the path of
// the invalid field, and `args` are its arguments.
func (c *checker) refuse(what, at string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %s", fmt.Sprintf(at, args...), what)
	}
}

func (c *checker) id(id, n int, at string, args ...any) {
	if id < 0 || id >= n {
		c.refuse(fmt.Sprintf("%d is out of range; the list has %d elements", id, n), at, args...)
	}
}

// place checks that the id of a list element is equal to its index.
func (c *checker) place(id, index int, at string) {
	if id != index {
		c.refuse(fmt.Sprintf("id %d differs from the element's index in the list", id), at+"[%d].id", index)
	}
}

// word checks that a word is in the list of allowed words.
func word[S ~string](c *checker, s S, words []S, at string, args ...any) {
	if !slices.Contains(words, s) {
		c.refuse(fmt.Sprintf("%q is not one of %q", printable.Short(string(s), 40), words), at, args...)
	}
}

func (c *checker) values(ids []ValueID, at string, args ...any) {
	for _, v := range ids {
		if v < 0 || int(v) >= len(c.t.Graph.Values) {
			c.id(int(v), len(c.t.Graph.Values), at, args...)
		}
	}
}

func (c *checker) dims(dims []int, at string, args ...any) {
	if len(dims) > maxRank {
		c.refuse(fmt.Sprintf("the shape has %d dims, but the maximum is %d", len(dims), maxRank), at, args...)
		return
	}
	for _, d := range dims {
		if d < 0 {
			c.refuse(fmt.Sprintf("%v has a negative dim", dims), at, args...)
			return
		}
	}
}

// text checks that texts are not too long. The screens measure the width of every displayed text in each
// frame, so long texts would make them slow.
func (c *checker) text(at string, texts ...string) {
	for _, s := range texts {
		if len(s) > maxTextBytes {
			c.refuse(fmt.Sprintf("a text has %d bytes, but the maximum is %d: %s", len(s), maxTextBytes,
				printable.Short(s, 40)), "%s", at)
		}
	}
}

func (c *checker) notNegative(n int64, at string, args ...any) {
	if n < 0 {
		c.refuse(fmt.Sprintf("%d is negative", n), at, args...)
	}
}

// ranges checks a list of byte ranges in a text of n bytes. The ranges must be in rising order and must not
// overlap.
func (c *checker) ranges(list [][2]int, n int, at string, args ...any) {
	last := 0
	for _, r := range list {
		if r[0] < last || r[1] <= r[0] || r[1] > n {
			c.refuse(fmt.Sprintf("the range from byte %d to %d is invalid: the text has %d bytes, and the "+
				"previous range ends at %d", r[0], r[1], n, last), at, args...)
			return
		}
		last = r[1]
	}
}

// workgroups checks that the counts of a grid are not negative and that their product fits into 62 bits.
func (c *checker) workgroups(g [3]int, at string, args ...any) {
	n := uint64(1)
	for _, d := range g {
		if d < 0 {
			c.refuse(fmt.Sprintf("%v has a negative count", g), at, args...)
			return
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if n = lo; hi != 0 || n >= 1<<62 {
			c.refuse(fmt.Sprintf("the product of the workgroup counts %v is 2^62 or more", g), at, args...)
			return
		}
	}
}

// texts checks every text that a table or a title may show.
func (c *checker) texts() {
	t, g := c.t, &c.t.Graph
	c.text("schema", t.Schema)
	c.text("engine", t.Engine)
	c.text("model", t.Model.Name, t.Model.Architecture, t.Model.Source, t.Model.Quantization)
	if q := t.Model.Quantized; q != nil {
		c.text("model.quantized", q.Format, q.Worst)
		c.text("model.quantized.from", q.From...)
	}
	c.text("device", t.Device.Name, t.Device.Backend, t.Device.Driver, string(t.Device.AdapterType))
	c.text("producer", t.Producer.Name, t.Producer.Version, t.Producer.Commit)
	for i := range g.Values {
		c.text("graph.values", g.Values[i].Name, g.Values[i].DType)
		if m := g.Values[i].Matrix; m != nil {
			c.text("graph.values.matrix", m.Format)
		}
	}
	for i := range g.SymInts {
		c.text("graph.symints", g.SymInts[i].Name)
	}
	for i := range g.Ops {
		o := &g.Ops[i]
		c.text("graph.ops", o.Name, o.Kind, o.Block, o.Class)
		c.text("graph.ops", o.Parts...)
	}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		c.text("graph.kernels", k.Name, k.Constants, k.Of)
		for _, p := range k.Params {
			c.text("graph.kernels.params", p.Name, p.Type)
		}
	}
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		c.text("graph.dispatches", d.Label)
		c.text("graph.dispatches.kernels", d.Kernels...)
	}
	for i := range t.Plans {
		p := &t.Plans[i]
		c.text("plans", p.Kernel, p.Route, p.Reason)
		if p.Grid != nil {
			for _, t := range p.Grid.Terms {
				c.text("plans.grid.terms", t.Name)
			}
		}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		c.text("steps.text", s.Text)
		for j := range s.Top {
			c.text("steps.top", s.Top[j].Text)
		}
		for j := range s.Costs {
			c.text("steps.costs", s.Costs[j].Name)
		}
		for j := range s.Blocks {
			c.text("steps.blocks", s.Blocks[j].Name)
		}
		for j := range s.Dispatches {
			if g := s.Dispatches[j].Error; g != nil {
				c.text("steps.dispatches.gap", g.Reference, g.Tolerance)
			}
		}
		for j := range s.CPU.Compiled {
			c.text("steps.cpu.compiled", s.CPU.Compiled[j].Kernel)
		}
		for name := range s.SymInts {
			c.text("steps.symints", name)
		}
	}
	for i := range t.Opening {
		c.text("opening", t.Opening[i].Phase)
	}
	for i := range t.Events {
		c.text("events", t.Events[i].Kind, t.Events[i].Text)
	}
}

func (c *checker) graph() {
	g := &c.t.Graph
	for i := range g.Values {
		v := &g.Values[i]
		c.place(int(v.ID), i, "graph.values")
		word(c, v.Kind, ValueKinds, "graph.values[%d].kind", i)
		word(c, v.Role, Roles, "graph.values[%d].role", i)
		c.dims(v.MaxDims, "graph.values[%d].max_dims", i)
		if v.Recurrent && (v.Role != RoleState || len(v.MaxDims) == 0) {
			c.refuse("only a value of the role state that has dims may be recurrent", "graph.values[%d].recurrent", i)
		}
		if v.Bytes < 0 || v.Bytes > maxBytes {
			c.refuse(fmt.Sprintf("%d is not between 0 and %d", v.Bytes, int64(maxBytes)),
				"graph.values[%d].bytes", i)
		}
		if v.AliasOf != nil {
			c.id(int(*v.AliasOf), len(g.Values), "graph.values[%d].alias_of", i)
		}
	}
	for i, s := range g.SymInts {
		c.place(int(s.ID), i, "graph.symints")
		c.id(int(s.Value), len(g.Values), "graph.symints[%d].value", i)
	}
	for i := range g.Ops {
		o := &g.Ops[i]
		c.place(int(o.ID), i, "graph.ops")
		c.values(o.Inputs, "graph.ops[%d].inputs", i)
		c.values(o.Outputs, "graph.ops[%d].outputs", i)
		c.values(o.Makes, "graph.ops[%d].makes", i)
		c.values(o.State, "graph.ops[%d].state", i)
	}
	names := map[string]bool{}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		if names[k.Name] {
			c.refuse(fmt.Sprintf("duplicate name %q", printable.Short(k.Name, 80)),
				"graph.kernels[%d].name", i)
		}
		names[k.Name] = true
		c.workgroups(k.WorkgroupSize, "graph.kernels[%d].workgroup_size", i)
		c.ranges(k.Filled, len(k.Source), "graph.kernels[%d].filled", i)
		c.ranges(k.Taken, len(k.Source), "graph.kernels[%d].taken", i)
		for j, p := range k.Params {
			if p.Offset < 0 || p.Offset > maxParamsBytes-4 {
				c.refuse(fmt.Sprintf("%d is not between 0 and %d", p.Offset, maxParamsBytes-4),
					"graph.kernels[%d].params[%d].offset", i, j)
			}
		}
	}
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		c.place(int(d.ID), i, "graph.dispatches")
		c.id(int(d.Op), len(g.Ops), "graph.dispatches[%d].op", i)
		if d.Joined != "" {
			word(c, d.Joined, Joins, "graph.dispatches[%d].joined", i)
		}
		if n := len(d.Bound); n > 0 && n != len(d.Kernels) {
			c.refuse(fmt.Sprintf("there are %d lists of values for %d kernels; each kernel needs one",
				n, len(d.Kernels)),
				"graph.dispatches[%d].bound", i)
		}
		for _, list := range d.Bound {
			c.values(list, "graph.dispatches[%d].bound", i)
		}
		c.values(d.Reads, "graph.dispatches[%d].reads", i)
		c.values(d.Writes, "graph.dispatches[%d].writes", i)
		c.workgroups(d.MaxWorkgroups, "graph.dispatches[%d].max_workgroups", i)
	}
}

// tiles checks the tiles of experts of plan i.
func (c *checker) tiles(e ExpertTiles, i int) {
	if e == (ExpertTiles{}) {
		return
	}
	for _, field := range []struct {
		name      string
		value, lo int64
	}{
		{"rows", int64(e.Rows), 1},
		{"groups", e.Groups, 1},
		{"bytes", e.Bytes, 0},
		{"active", e.Active, 0},
	} {
		if field.value < field.lo || field.value > maxBytes {
			c.refuse(fmt.Sprintf("%d is not between %d and %d", field.value, field.lo, int64(maxBytes)),
				"plans[%d].experts.%s", i, field.name)
		}
	}
}

// experts checks the choices of routers in step i.
func (c *checker) experts(list []ExpertCounts, i int) {
	for j := range list {
		c.id(int(list[j].Op), len(c.t.Graph.Ops), "steps[%d].experts[%d].op", i, j)
		last := -1
		for _, pair := range list[j].Tokens {
			expert, tokens := pair[0], pair[1]
			if expert <= last || expert > maxPosition || tokens < 1 || tokens > maxPosition {
				c.refuse(fmt.Sprintf("the pair %v is invalid: the number of the expert must rise, and the number of tokens must be at least 1", pair),
					"steps[%d].experts[%d].tokens", i, j)
				return
			}
			last = expert
		}
	}
}

func (c *checker) plans() {
	for i := range c.t.Plans {
		p := &c.t.Plans[i]
		c.place(int(p.ID), i, "plans")
		c.id(int(p.Dispatch), len(c.t.Graph.Dispatches), "plans[%d].dispatch", i)
		c.workgroups(p.Workgroups, "plans[%d].workgroups", i)
		c.workgroups(p.NeededGrid, "plans[%d].needed_workgroups", i)
		c.notNegative(p.NeededGroups, "plans[%d].needed_groups", i)
		c.notNegative(p.IdleLanes, "plans[%d].idle_lanes", i)
		if p.Grid != nil {
			word(c, p.Grid.Rule, GridRules, "plans[%d].grid.rule", i)
			for j, t := range p.Grid.Terms {
				c.notNegative(t.Value, "plans[%d].grid.terms[%d].value", i, j)
				c.notNegative(t.Times, "plans[%d].grid.terms[%d].times", i, j)
				c.notNegative(t.Most, "plans[%d].grid.terms[%d].most", i, j)
				if t.Per < 1 {
					c.refuse(fmt.Sprintf("%d is below 1", t.Per), "plans[%d].grid.terms[%d].per", i, j)
				}
			}
		}
		c.notNegative(p.Bytes, "plans[%d].bytes", i)
		c.notNegative(p.FLOPs, "plans[%d].flops", i)
		c.tiles(p.Experts, i)
		if len(p.Params) > 2*maxParamsBytes {
			c.refuse(fmt.Sprintf("the params have %d bytes, but the maximum is %d", len(p.Params)/2,
				maxParamsBytes),
				"plans[%d].params", i)
		} else if _, err := hex.DecodeString(p.Params); err != nil {
			c.refuse("not valid hex", "plans[%d].params", i)
		}
	}
}

func (c *checker) steps() {
	// ran holds for each dispatch the index of the last step that ran it, plus 1. It is 0 if no step ran it.
	ran := make([]int, len(c.t.Graph.Dispatches))
	shapes := c.newShapes()
	for i := range c.t.Steps {
		s := &c.t.Steps[i]
		if i > 0 && s.Index <= c.t.Steps[i-1].Index {
			c.refuse(fmt.Sprintf("index %d follows index %d, but indices must rise", s.Index,
				c.t.Steps[i-1].Index),
				"steps[%d].index", i)
		}
		if s.Position < 0 || s.Position > maxPosition {
			c.refuse(fmt.Sprintf("%d is not between 0 and %d", s.Position, maxPosition),
				"steps[%d].position", i)
		}
		word(c, s.Phase, Phases, "steps[%d].phase", i)
		word(c, s.Timing, TimingLevels, "steps[%d].timing", i)
		word(c, s.Resize.Order, Orders, "steps[%d].resize.order", i)
		for j, d := range s.Dims {
			c.id(int(d.Value), len(c.t.Graph.Values), "steps[%d].dims[%d].value", i, j)
			c.dims(d.Dims, "steps[%d].dims[%d].dims", i, j)
		}
		for j, d := range s.Levels {
			c.id(int(d), len(c.t.Graph.Dispatches), "steps[%d].levels[%d]", i, j)
		}
		for j, w := range s.Waits {
			c.id(int(w.Dispatch), len(c.t.Graph.Dispatches), "steps[%d].waits[%d].dispatch", i, j)
			c.id(int(w.Value), len(c.t.Graph.Values), "steps[%d].waits[%d].value", i, j)
			c.id(int(w.For), len(c.t.Graph.Dispatches), "steps[%d].waits[%d].for", i, j)
			word(c, w.Kind, Hazards, "steps[%d].waits[%d].kind", i, j)
		}
		c.stepValues(s, i)
		c.experts(s.Experts, i)
		c.costs(s, i)
		c.blocks(s, i)
		for j := range s.Resize.Passes {
			c.pass(&s.Resize.Passes[j], i, j)
		}
		for j := range s.Dispatches {
			c.stepDispatch(&s.Dispatches[j], ran, i, j)
		}
		if c.err == nil && c.t.TellsAbsent() {
			shapes.step(i)
		}
		if c.err != nil {
			return
		}
	}
}

// costs checks that each cost names at least one dispatch and that each median lies between its quartiles.
func (c *checker) costs(s *Step, step int) {
	if len(s.Costs) > MaxCosts {
		c.refuse(fmt.Sprintf("the list has %d costs, but the maximum is %d", len(s.Costs), MaxCosts), "steps[%d].costs", step)
		return
	}
	median := func(q1, ns, q3 int64, n int, at string, args ...any) {
		switch {
		case n < 1:
			c.refuse(fmt.Sprintf("the number of samples is %d, but a median needs at least 1", n), at,
				args...)
		case q1 > ns || ns > q3:
			c.refuse(fmt.Sprintf("median %d is not between its quartiles %d and %d", ns, q1, q3), at, args...)
		}
	}
	if w := s.Whole; w != nil {
		median(w.Q1NS, w.NS, w.Q3NS, w.N, "steps[%d].whole", step)
		c.notNegative(w.Q1NS, "steps[%d].whole.q1_ns", step)
		if !(0 <= w.CanaryQ1 && w.CanaryQ1 <= w.Canary && w.Canary <= w.CanaryQ3) {
			c.refuse(fmt.Sprintf("median %v is not between its quartiles %v and %v", w.Canary,
				w.CanaryQ1, w.CanaryQ3),
				"steps[%d].whole.canary", step)
		}
	}
	for j := range s.Costs {
		cost := &s.Costs[j]
		median(cost.Q1NS, cost.NS, cost.Q3NS, cost.N, "steps[%d].costs[%d]", step, j)
		off, _ := cost.OffNS.NS()
		c.notNegative(off, "steps[%d].costs[%d].off_ns", step, j)
		if len(cost.Dispatches) == 0 {
			c.refuse("the list is empty", "steps[%d].costs[%d].dispatches", step, j)
		}
		for k, d := range cost.Dispatches {
			if d < 0 || int(d) >= len(c.t.Graph.Dispatches) {
				c.id(int(d), len(c.t.Graph.Dispatches), "steps[%d].costs[%d].dispatches[%d]", step, j, k)
			}
			if k > 0 && d <= cost.Dispatches[k-1] {
				c.refuse(fmt.Sprintf("id %d follows id %d, but ids must rise", d, cost.Dispatches[k-1]),
					"steps[%d].costs[%d].dispatches[%d]",
					step, j, k)
			}
		}
	}
}

// blocks checks that the blocks of a step together cover its dispatches.
func (c *checker) blocks(s *Step, step int) {
	left := len(s.Dispatches)
	for j := range s.Blocks {
		b := &s.Blocks[j]
		if b.Dispatches < 0 || b.Dispatches > left {
			c.refuse(fmt.Sprintf("the block has %d dispatches, but only %d are not in earlier blocks",
				b.Dispatches, left),
				"steps[%d].blocks[%d].dispatches", step, j)
			return
		}
		left -= b.Dispatches
		if ns, _ := b.GPUNS.NS(); ns < 0 {
			c.notNegative(ns, "steps[%d].blocks[%d].gpu_ns", step, j)
		}
	}
	if len(s.Blocks) > 0 && left > 0 {
		c.refuse(fmt.Sprintf("the last %d dispatches of the step are in no block", left), "steps[%d].blocks",
			step)
	}
}

func (c *checker) stepDispatch(d *StepDispatch, ran []int, step, i int) {
	if d.Plan < 0 || int(d.Plan) >= len(c.t.Plans) {
		c.id(int(d.Plan), len(c.t.Plans), "steps[%d].dispatches[%d].plan", step, i)
		return
	}
	id := c.t.Plans[d.Plan].Dispatch
	if id < 0 || int(id) >= len(ran) {
		return // c.plans has already rejected this id
	}
	if ran[id] == step+1 {
		c.refuse(fmt.Sprintf("dispatch %d runs twice in the step", id), "steps[%d].dispatches[%d]", step, i)
	}
	ran[id] = step + 1
	if ns, _ := d.GPUNS.NS(); ns < 0 {
		c.notNegative(ns, "steps[%d].dispatches[%d].gpu_ns", step, i)
	}
	if g := d.Error; g != nil {
		if g.Value != nil {
			c.id(int(*g.Value), len(c.t.Graph.Values), "steps[%d].dispatches[%d].gap.value", step, i)
		}
		c.notNegative(int64(min(g.Element, g.Compared, g.Elements, g.NotFinite)),
			"steps[%d].dispatches[%d].gap", step, i)
	}
	for _, ns := range d.Samples {
		if ns < 0 {
			c.notNegative(ns, "steps[%d].dispatches[%d].samples", step, i)
		}
	}
}

func (c *checker) pass(p *Pass, step, pass int) {
	c.values(p.Dirty, "steps[%d].resize.passes[%d].dirty", step, pass)
	for k := range p.Hooks {
		h := &p.Hooks[k]
		c.id(int(h.Op), len(c.t.Graph.Ops), "steps[%d].resize.passes[%d].hooks[%d].op", step, pass, k)
		c.values(h.Triggers, "steps[%d].resize.passes[%d].hooks[%d].triggers", step, pass, k)
		for _, ch := range h.Changed {
			c.id(int(ch.Value), len(c.t.Graph.Values), "steps[%d].resize.passes[%d].hooks[%d].changed", step,
				pass, k)
		}
		for _, ch := range h.Plans {
			for _, id := range []*PlanID{ch.From, ch.To} {
				if id != nil {
					c.id(int(*id), len(c.t.Plans), "steps[%d].resize.passes[%d].hooks[%d].plans", step, pass,
						k)
				}
			}
		}
	}
}
