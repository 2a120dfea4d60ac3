package tracetest

import (
	"math"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"gpuscope/trace"
)

// Random fills every field of a trace with random data of its type and then corrects ids and words, so that
// the trace is valid.
func Random(t *rapid.T) *trace.Trace {
	tr := &trace.Trace{}
	fill(t, reflect.ValueOf(tr).Elem())
	tr.Schema = rapid.SampledFrom([]string{"gpuscope.trace/1", trace.Schema}).Draw(t, "schema")
	f := fixer{tr: tr, t: t}
	f.floats()
	f.graph()
	f.forecast()
	f.trials()
	for i := range tr.Plans {
		f.plan(i)
	}
	for i := range tr.Steps {
		f.step(i)
	}
	if tr.TellsAbsent() {
		f.shapes()
	}
	for i := range tr.Events {
		f.optionalDispatch(&tr.Events[i].Dispatch)
	}
	return tr
}

var texts = rapid.SampledFrom([]string{"", "norm", "a\"b\\c", "</script>&", "\n\t\x00", "é—日本", "x: 1", "\\"})

func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case trace.Time:
		if rapid.Bool().Draw(t, "measured") {
			v.Set(reflect.ValueOf(trace.Measured(rapid.Int64Range(0, 1<<62).Draw(t, "ns"))))
		}
		return
	case *trace.Unknown:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "len"), 3))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 2).Draw(t, "len") {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(t, value)
			v.SetMapIndex(reflect.ValueOf(texts.Draw(t, "key")), value)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(rapid.OneOf(rapid.Just[any]("eps"), rapid.Just[any](1.5), rapid.Just[any](true),
			rapid.Just[any]([]any{1.0, "a"})).Draw(t, "any")))
	case reflect.String:
		v.SetString(texts.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32Range(0, 5).Draw(t, "id")))
	default:
		v.SetInt(rapid.Int64Range(0, 100_000).Draw(t, "int"))
	}
}

// fixer corrects a random trace so that it passes Check.
type fixer struct {
	tr *trace.Trace
	t  *rapid.T
}

// pick sets a word to a random element of a list.
func pick[S ~string](f fixer, s *S, of []S) { *s = rapid.SampledFrom(of).Draw(f.t, "word") }

// ids brings ids into the range 0 to n-1, or removes them if n is 0.
func ids[T ~int32](list *[]T, n int) {
	if n == 0 {
		*list = nil
	}
	for i := range *list {
		(*list)[i] %= T(n)
	}
}

// kernelName returns the name of the i-th kernel of a graph. The i-th plan uses this kernel.
func kernelName(i int) string { return string(rune('a' + i)) }

// floats makes the rates and times of the run positive.
func (f fixer) floats() {
	list := []*float64{&f.tr.Clock.NSPerTick, &f.tr.Clock.QuantumNS}
	if c := f.tr.Device.Ceilings; c != nil {
		list = append(list, &c.FlopsPerS)
		for i := range c.CopyBytesPerS {
			list = append(list, &c.CopyBytesPerS[i].PerS)
		}
	}
	for i := range f.tr.Steps {
		list = append(list, &f.tr.Steps[i].Canary)
	}
	for _, x := range list {
		*x = math.Abs(*x)
	}
}

func (f fixer) graph() {
	for i := range f.tr.Stated {
		pick(f, &f.tr.Stated[i].Phase, trace.Phases)
	}
	g := &f.tr.Graph
	n := len(g.Values)
	for i := range g.Values {
		v := &g.Values[i]
		v.ID = trace.ValueID(i)
		pick(f, &v.Kind, trace.ValueKinds)
		pick(f, &v.Role, trace.Roles)
		v.Recurrent = v.Recurrent && v.Role == trace.RoleState && len(v.MaxDims) > 0
		if i == 0 {
			v.AliasOf = nil
		} else if v.AliasOf != nil {
			*v.AliasOf %= trace.ValueID(i) // an earlier value, so that there are no cycles
		}
	}
	if n == 0 {
		g.SymInts = nil
	}
	for i := range g.SymInts {
		g.SymInts[i].ID = trace.SymIntID(i)
		g.SymInts[i].Value %= trace.ValueID(n)
	}
	for i := range g.Ops {
		o := &g.Ops[i]
		o.ID = trace.OpID(i)
		ids(&o.Inputs, n)
		ids(&o.Outputs, n)
		ids(&o.Makes, n)
		ids(&o.State, n)
	}
	for i := range g.Kernels {
		g.Kernels[i].Name = kernelName(i)
		f.ranges(&g.Kernels[i].Filled, len(g.Kernels[i].Source))
		f.ranges(&g.Kernels[i].Taken, len(g.Kernels[i].Source))
		for j := range g.Kernels[i].Params {
			g.Kernels[i].Params[j].Offset %= 64
		}
	}
	if len(g.Ops) == 0 {
		g.Dispatches = nil
	}
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		d.ID = trace.DispatchID(i)
		d.Op %= trace.OpID(len(g.Ops))
		pick(f, &d.Joined, trace.Joins)
		for j := range d.Kernels {
			d.Kernels[j] = kernelName(j)
		}
		d.Bound = slices.Grow(d.Bound, len(d.Kernels))[:min(len(d.Bound), 1)*len(d.Kernels)]
		for j := range d.Bound {
			ids(&d.Bound[j], n)
		}
		ids(&d.Reads, n)
		ids(&d.Writes, n)
	}
	if len(g.Dispatches) == 0 {
		f.tr.Plans = nil
	}
}

func (f fixer) trials() {
	if len(f.tr.Graph.Ops) == 0 {
		f.tr.Trials = nil
	}
	for i := range f.tr.Trials {
		r := &f.tr.Trials[i]
		r.Op %= trace.OpID(len(f.tr.Graph.Ops))
		r.NS, r.Q3NS, r.N = r.Q1NS+r.NS, r.Q1NS+r.NS+r.Q3NS, r.N+1
	}
}

// forecast makes lines of a random length with valid numbers.
func (f fixer) forecast() {
	if f.tr.Forecast == nil {
		return
	}
	lines := f.tr.Forecast.Lines
	for i := range lines {
		l := &lines[i]
		pick(f, &l.Along, trace.Axes)
		l.Dispatches = make([]int, len(f.tr.Graph.Dispatches))
		if len(l.Courses) == 0 {
			l.Courses = make([]trace.Course, 1)
		}
		for j := range l.Dispatches {
			l.Dispatches[j] = j % len(l.Courses)
		}
		l.To = l.From + 9
		for j := range l.Courses {
			c := &l.Courses[j]
			if len(c.Stretches) == 0 {
				c.Stretches = make([]trace.Stretch, 1)
			}
			for k := range c.Stretches {
				s := &c.Stretches[k]
				s.From = l.From + 3*k
				rules := []*trace.Rule{&s.NeededGroups, &s.IdleLanes, &s.Bytes, &s.FLOPs}
				for _, grid := range []*[3]trace.Rule{&s.Workgroups, s.NeededGrid} {
					for d := 0; grid != nil && d < len(grid); d++ {
						rules = append(rules, &grid[d])
					}
				}
				for _, r := range rules {
					r[1], r[2] = r[1]%5, r[2]%3
				}
			}
		}
	}
}

// ranges sets the list to ordered ranges of one byte each in a text of n bytes, as many as fit.
func (f fixer) ranges(list *[][2]int, n int) {
	*list = (*list)[:min(len(*list), n)]
	if len(*list) == 0 {
		*list = nil
	}
	for i := range *list {
		(*list)[i] = [2]int{i, i + 1}
	}
}

func (f fixer) plan(i int) {
	p := &f.tr.Plans[i]
	p.ID = trace.PlanID(i)
	p.Dispatch %= trace.DispatchID(len(f.tr.Graph.Dispatches))
	p.Kernel = kernelName(i)
	if p.Grid != nil {
		pick(f, &p.Grid.Rule, trace.GridRules)
		for j := range p.Grid.Terms {
			p.Grid.Terms[j].Per = max(1, p.Grid.Terms[j].Per)
		}
	}
	if e := &p.Experts; *e != (trace.ExpertTiles{}) {
		e.Rows, e.Groups = max(1, e.Rows), max(1, e.Groups)
		e.Bytes, e.Active = e.Bytes%(1<<40), e.Active%(1<<20)
	}
	p.Params = rapid.SampledFrom([]string{"", "00", "01000000", "010000000000803f"}).Draw(f.t, "params")
}

func (f fixer) step(i int) {
	tr := f.tr
	s := &tr.Steps[i]
	s.Index = 3*i + 1
	pick(f, &s.Phase, trace.Phases)
	pick(f, &s.Timing, trace.TimingLevels)
	pick(f, &s.Resize.Order, trace.Orders)
	ids(&s.Levels, len(tr.Graph.Dispatches))
	if len(tr.Graph.Values) == 0 || len(tr.Graph.Dispatches) == 0 {
		s.Waits = nil
	}
	for j := range s.Waits {
		w := &s.Waits[j]
		w.Value %= trace.ValueID(len(tr.Graph.Values))
		w.Dispatch %= trace.DispatchID(len(tr.Graph.Dispatches))
		w.For %= trace.DispatchID(len(tr.Graph.Dispatches))
		pick(f, &w.Kind, trace.Hazards)
	}
	if len(tr.Graph.Values) == 0 {
		s.Dims = nil
	}
	for j := range s.Dims {
		s.Dims[j].Value %= trace.ValueID(len(tr.Graph.Values))
	}
	if len(tr.Graph.Ops) == 0 {
		s.Experts = nil
	}
	for j := range s.Experts {
		s.Experts[j].Op %= trace.OpID(len(tr.Graph.Ops))
		for k := range s.Experts[j].Tokens {
			s.Experts[j].Tokens[k] = [2]int{3 * k, 1 + k}
		}
	}
	ran := map[trace.DispatchID]bool{}
	var kept []trace.StepDispatch
	for _, d := range s.Dispatches {
		if len(tr.Plans) == 0 {
			break
		}
		d.Plan %= trace.PlanID(len(tr.Plans))
		if d.Error != nil && d.Error.Value != nil {
			if n := len(tr.Graph.Values); n > 0 {
				*d.Error.Value %= trace.ValueID(n)
			} else {
				d.Error.Value = nil
			}
		}
		if id := tr.Plans[d.Plan].Dispatch; !ran[id] {
			ran[id] = true
			kept = append(kept, d)
		}
	}
	s.Dispatches = kept
	f.costs(s)
	left := len(kept)
	for j := range s.Blocks {
		b := &s.Blocks[j]
		if b.Dispatches = min(b.Dispatches, left); j == len(s.Blocks)-1 {
			b.Dispatches = left
		}
		left -= b.Dispatches
	}
	for j := range s.Resize.Passes {
		f.pass(&s.Resize.Passes[j])
	}
}

func (f fixer) costs(s *trace.Step) {
	median := func(q1, ns, q3 *int64, n *int) {
		sorted := []int64{*q1, *ns, *q3}
		slices.Sort(sorted)
		*q1, *ns, *q3, *n = sorted[0], sorted[1], sorted[2], max(1, *n)
	}
	if w := s.Whole; w != nil {
		median(&w.Q1NS, &w.NS, &w.Q3NS, &w.N)
		speeds := []float64{math.Abs(w.CanaryQ1), math.Abs(w.Canary), math.Abs(w.CanaryQ3)}
		slices.Sort(speeds)
		w.CanaryQ1, w.Canary, w.CanaryQ3 = speeds[0], speeds[1], speeds[2]
	}
	for j := range s.Costs {
		c := &s.Costs[j]
		median(&c.Q1NS, &c.NS, &c.Q3NS, &c.N)
		c.NS, c.Q1NS = c.NS-c.Q3NS, c.Q1NS-c.Q3NS // makes some times negative
		c.Q3NS = 0
		ids(&c.Dispatches, len(f.tr.Graph.Dispatches))
		slices.Sort(c.Dispatches)
		c.Dispatches = slices.Compact(c.Dispatches)
	}
	s.Costs = slices.DeleteFunc(s.Costs, func(c trace.Cost) bool { return len(c.Dispatches) == 0 })
}

func (f fixer) pass(p *trace.Pass) {
	values := len(f.tr.Graph.Values)
	ids(&p.Dirty, values)
	if len(f.tr.Graph.Ops) == 0 {
		p.Hooks = nil
	}
	for i := range p.Hooks {
		h := &p.Hooks[i]
		h.Op %= trace.OpID(len(f.tr.Graph.Ops))
		ids(&h.Triggers, values)
		if values == 0 {
			h.Changed = nil
		}
		for j := range h.Changed {
			h.Changed[j].Value %= trace.ValueID(values)
		}
		if len(f.tr.Plans) == 0 {
			h.Plans = nil
		}
		for _, c := range h.Plans {
			for _, id := range []*trace.PlanID{c.From, c.To} {
				if id != nil {
					*id %= trace.PlanID(len(f.tr.Plans))
				}
			}
		}
	}
}

// shapes makes each change start at the live shape and end at a different shape. It makes some values
// absent if no dispatch binds them.
func (f fixer) shapes() {
	tr, live := f.tr, map[trace.ValueID][]int{}
	tr.DroppedSteps = 0
	for i := range tr.Graph.Values {
		live[trace.ValueID(i)] = append([]int{}, tr.Graph.Values[i].MaxDims...)
	}
	bound := map[trace.ValueID]bool{}
	for i := range tr.Plans {
		for _, v := range tr.BoundTo(&tr.Plans[i]) {
			bound[v] = true
		}
	}
	for i := range tr.Steps {
		s := &tr.Steps[i]
		become := func(v trace.ValueID, dims []int) {
			if rapid.Bool().Draw(f.t, "absent") && !bound[v] {
				dims = nil
			}
			live[v] = dims
		}
		s.Dims = slices.DeleteFunc(s.Dims, func(d trace.LiveDims) bool {
			return tr.Graph.Values[d.Value].Kind == "symint"
		})
		changed := map[trace.ValueID]bool{}
		for j := range s.Resize.Passes {
			for k := range s.Resize.Passes[j].Hooks {
				h := &s.Resize.Passes[j].Hooks[k]
				var list []trace.Change
				for _, c := range h.Changed {
					was := live[c.Value]
					if tr.Graph.Values[c.Value].Kind == "symint" {
						continue
					}
					become(c.Value, c.To)
					c.From, c.To = was, live[c.Value]
					if (c.From == nil) != (c.To == nil) || !slices.Equal(c.From, c.To) {
						list = append(list, c)
						changed[c.Value] = true
					}
				}
				h.Changed = list
			}
		}
		for j := range s.Dims {
			d := &s.Dims[j]
			if !changed[d.Value] {
				become(d.Value, d.Dims)
				changed[d.Value] = true
			}
			d.Dims = live[d.Value]
		}
		for v := range len(tr.Graph.Values) {
			if v := trace.ValueID(v); changed[v] {
				s.Dims = append(s.Dims, trace.LiveDims{Value: v, Dims: live[v]})
			}
		}
	}
}

func (f fixer) optionalDispatch(d **trace.DispatchID) {
	if n := len(f.tr.Graph.Dispatches); *d != nil && n > 0 {
		**d %= trace.DispatchID(n)
	} else {
		*d = nil
	}
}
