package tracetest

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"sort"

	"gpuscope/trace"
)

// runner records steps. Its maps hold the current plans and shapes.
type runner struct {
	t       *trace.Trace
	m       *model
	dims    map[trace.ValueID][]int
	inForce map[trace.DispatchID]trace.PlanID
	known   map[trace.Plan]trace.PlanID
	levels  []trace.DispatchID
	pos     int
	nextNS  int64
}

// quantum is the resolution of the device's clock in ns.
const quantum = 32

// noise returns a deterministic pseudo-random number from 0 to n-1 that depends only on the arguments.
func noise(n int, what ...int) int64 {
	h := fnv.New64a()
	for _, w := range what {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(w))
		h.Write(b[:])
	}
	return int64(h.Sum64() >> 20 % uint64(n))
}

// jitter changes a time by up to 3% and rounds it to a tick of the clock.
func jitter(ns int64, what ...int) int64 {
	return (ns*(970+noise(61, what...))/1000 + quantum/2) / quantum * quantum
}

// step records a step with the next n tokens.
func (r *runner) step(n int) {
	t, index := r.t, len(r.t.Steps)
	s := trace.Step{
		Index: index, Phase: trace.Decode, Position: r.pos, Timing: trace.TimingDispatch,
		SymInts: map[string]int64{"pos": int64(r.pos)}, Canary: 1,
	}
	if n > 1 {
		s.Phase = trace.Prefill
	}
	s.Cold = index == 0
	s.Dims, s.Resize = r.resize(n)
	at := r.nextNS
	var ids []trace.DispatchID
	for i := range r.m.ops {
		for _, l := range r.m.ops[i].launch(n, r.pos) {
			id := r.slot(i, l.slot)
			ns := jitter(l.ns, int(id), index)
			s.Dispatches = append(s.Dispatches, trace.StepDispatch{
				Plan: r.inForce[id], StartNS: trace.Measured(at), GPUNS: trace.Measured(ns),
				Raw: [2]trace.Tick{trace.Tick(1<<60 + at), trace.Tick(1<<60 + at + ns)},
			})
			ids = append(ids, id)
			at += ns + 1280 // the idle time before the next dispatch
		}
	}
	span := at - 1280 - r.nextNS
	busy := span - int64(len(ids)-1)*1280
	s.GPU = &trace.GPU{
		StartNS: trace.Measured(r.nextNS), BusyNS: trace.Measured(busy),
		SpanNS: trace.Measured(span),
	}
	if levels, waits := r.levelsOf(ids); !slices.Equal(levels, r.levels) {
		s.Levels, s.Waits, r.levels = levels, waits, levels
	}
	s.CPU = cpu(len(ids), span, index, s.Cold)
	total, _ := s.CPU.TotalNS.NS()
	r.nextNS += total
	for i := range n {
		s.Tokens = append(s.Tokens, (r.pos+i)*7%vocab)
	}
	token := (r.pos + n) * 7 % vocab
	s.Token, s.Text = &token, words[token%len(words)]
	for i, logit := range []float64{11.25, 10.5, 9} {
		s.Top = append(s.Top,
			trace.Candidate{
				ID: token + i, Text: words[(token+i)%len(words)], Logit: logit,
				P: 1 / float64(int(2)<<i),
			})
	}
	for _, dims := range r.dims {
		live := int64(4)
		for _, d := range dims {
			live *= int64(d)
		}
		s.Memory.LiveBytes += live
	}
	for _, v := range t.Graph.Values {
		s.Memory.AllocatedBytes += v.Bytes
	}
	t.Steps = append(t.Steps, s)
	r.pos += n
}

var words = []string{" the", " cat", " sat", " on", " a", " mat", ",", " and", " looked", "\n"}

func cpu(dispatches int, span int64, index int, cold bool) trace.CPU {
	encode := int64(dispatches) * 15_000 // 15 µs for each pass
	c := trace.CPU{
		ResizeNS: trace.Measured(41_000 + noise(900, index, 1)), UploadNS: trace.Measured(12_000),
		EncodeNS: trace.Measured(encode),
		SubmitNS: trace.Measured(95_000), WaitNS: trace.Measured(span + 120_000),
		SampleNS: trace.Measured(9_000),
		Passes:   dispatches, Submits: 1, Writes: 2, WriteBytes: 2304, BindGroups: 0, Polls: 3,
		GCNS: trace.Measured(0),
	}
	total := 41_000 + noise(900, index, 1) + 12_000 + encode + 95_000 + span + 120_000 + 9_000
	if cold {
		c.Compiled = []trace.Compiled{{Kernel: "linear_q4gsw_steel", NS: trace.Measured(18_400_000)}}
		c.BindGroups = dispatches
		total += 18_400_000
	}
	c.TotalNS = trace.Measured(total)
	return c
}

// slot returns the dispatch id of slot k of operator op.
func (r *runner) slot(op, k int) trace.DispatchID {
	of := r.t.Graph.Dispatches // in the order of the operators
	i := sort.Search(len(of), func(i int) bool { return int(of[i].Op) >= op })
	return of[i].ID + trace.DispatchID(k)
}

// resize plans every operator that depends on the number of tokens or the position, in one topological
// pass.
func (r *runner) resize(n int) (changed []trace.LiveDims, resize trace.Resize) {
	resize = trace.Resize{Order: "topological"}
	first := len(r.t.Steps) == 0
	woken := map[trace.ValueID]bool{}
	pass := trace.Pass{Hooks: []trace.Hook{}}
	tokens := trace.ValueID(0)
	if d := []int{1, n}; first || !slices.Equal(d, r.dims[tokens]) {
		changed = append(changed, trace.LiveDims{Value: tokens, Dims: d})
		r.dims[tokens] = d
		woken[tokens] = true
		pass.Dirty = append(pass.Dirty, tokens)
	}
	woken[r.m.pos] = true // the position changes in every step
	pass.Dirty = append(pass.Dirty, r.m.pos)
	total := int64(0)
	for i := range r.m.ops {
		o := &r.m.ops[i]
		h := trace.Hook{Op: o.ID, Triggers: []trace.ValueID{}}
		for _, v := range o.Inputs {
			if woken[v] && !slices.Contains(h.Triggers, v) {
				h.Triggers = append(h.Triggers, v)
			}
		}
		if len(h.Triggers) == 0 && !first {
			continue
		}
		if o.dims != nil {
			for k, d := range o.dims(n, r.pos) {
				v := o.Outputs[k]
				from, was := r.dims[v], r.t.Graph.Values[v].MaxDims
				if from != nil {
					was = from
				}
				if !slices.Equal(from, d) {
					if !slices.Equal(was, d) {
						h.Changed = append(h.Changed, trace.Change{Value: v, From: was, To: d})
					}
					changed = append(changed, trace.LiveDims{Value: v, Dims: d})
					r.dims[v], woken[v] = d, true
				}
			}
		}
		h.Plans = r.plan(i, n)
		h.Noop = len(h.Changed) == 0 && len(h.Plans) == 0
		ns := 400 + noise(300, i, len(r.t.Steps))
		h.NS, total = trace.Measured(ns), total+ns
		pass.Hooks = append(pass.Hooks, h)
	}
	resize.NS, resize.Passes = trace.Measured(total), []trace.Pass{pass}
	return changed, resize
}

// plan makes the plans of an operator current and returns the changes.
func (r *runner) plan(op, n int) (changes []trace.PlanChange) {
	launches := r.m.ops[op].launch(n, r.pos)
	for k := range r.m.ops[op].slots {
		id := r.slot(op, k)
		i := slices.IndexFunc(launches, func(l launch) bool { return l.slot == k })
		before, ran := r.inForce[id]
		if i < 0 {
			if ran {
				changes = append(changes, trace.PlanChange{From: &before})
				delete(r.inForce, id)
			}
			continue
		}
		now := r.intern(id, launches[i])
		switch {
		case !ran:
			changes = append(changes, trace.PlanChange{To: &now})
		case before != now:
			changes = append(changes, trace.PlanChange{From: &before, To: &now})
		}
		r.inForce[id] = now
	}
	return changes
}

func (r *runner) intern(id trace.DispatchID, l launch) trace.PlanID {
	var params []byte
	for _, p := range l.params {
		params = binary.LittleEndian.AppendUint32(params, p)
	}
	p := trace.Plan{
		Dispatch: id, Kernel: l.kernel, Route: l.route, Reason: l.reason, Workgroups: l.grid,
		NeededGrid:   l.grid,
		NeededGroups: l.groups, IdleLanes: l.idle, Params: hex.EncodeToString(params), Bytes: l.bytes,
		FLOPs: l.flops,
	}
	if known, ok := r.known[p]; ok {
		return known
	}
	key := p
	p.ID = trace.PlanID(len(r.t.Plans))
	r.known[key] = p.ID
	r.t.Plans = append(r.t.Plans, p)
	return p.ID
}

// levelsOf computes levels by a barrier rule. A dispatch begins a level if it conflicts with a dispatch
// after the last barrier: it reads what that dispatch wrote, or writes what that dispatch read or wrote.
func (r *runner) levelsOf(ids []trace.DispatchID) (levels []trace.DispatchID, waits []trace.Wait) {
	read, written := map[trace.ValueID]trace.DispatchID{}, map[trace.ValueID]trace.DispatchID{}
	for i, id := range ids {
		d := &r.t.Graph.Dispatches[id]
		before := len(waits)
		wait := func(v trace.ValueID, kind string, used map[trace.ValueID]trace.DispatchID) {
			if by, ok := used[v]; ok {
				waits = append(waits, trace.Wait{Dispatch: id, Value: v, Kind: kind, For: by})
			}
		}
		for _, v := range d.Reads {
			wait(v, "raw", written)
		}
		for _, v := range d.Writes {
			wait(v, "waw", written)
			wait(v, "war", read)
		}
		if i == 0 || len(waits) > before {
			levels = append(levels, id)
			clear(read)
			clear(written)
		}
		for _, v := range d.Reads {
			read[v] = id
		}
		for _, v := range d.Writes {
			written[v] = id
		}
	}
	return levels, waits
}

// repeat adds n samples of each dispatch to a step.
func (r *runner) repeat(step, n int) {
	s := &r.t.Steps[step]
	for i := range s.Dispatches {
		ns, _ := s.Dispatches[i].GPUNS.NS()
		for k := range n {
			s.Dispatches[i].Samples = append(s.Dispatches[i].Samples, jitter(ns, i, step, k))
		}
	}
}

// Reroute gives the attention of some steps another route, with another kernel, as if they had been at other
// positions.
func Reroute(t *trace.Trace, steps ...int) {
	for _, i := range steps {
		s := &t.Steps[i]
		s.Dispatches = slices.Clone(s.Dispatches)
		for k := range s.Dispatches {
			p := t.Plans[s.Dispatches[k].Plan]
			if t.Graph.Ops[t.Graph.Dispatches[p.Dispatch].Op].Kind == "sdpa_with_kv_cache" {
				p.Route, p.Kernel = "old", p.Kernel+".old"
				t.Plans = append(t.Plans, p)
				s.Dispatches[k].Plan = trace.PlanID(len(t.Plans) - 1)
			}
		}
	}
}

// Renumber returns a step in which each plan id is replaced by to(id).
func Renumber(s trace.Step, to func(trace.PlanID) trace.PlanID) trace.Step {
	s.Resize.Passes = slices.Clone(s.Resize.Passes)
	for i := range s.Resize.Passes {
		p := &s.Resize.Passes[i]
		p.Hooks = slices.Clone(p.Hooks)
		for j := range p.Hooks {
			h := &p.Hooks[j]
			h.Plans = slices.Clone(h.Plans)
			for k, c := range h.Plans {
				var moved trace.PlanChange
				if c.From != nil {
					id := to(*c.From)
					moved.From = &id
				}
				if c.To != nil {
					id := to(*c.To)
					moved.To = &id
				}
				h.Plans[k] = moved
			}
		}
	}
	s.Dispatches = slices.Clone(s.Dispatches)
	for i := range s.Dispatches {
		s.Dispatches[i].Plan = to(s.Dispatches[i].Plan)
	}
	return s
}
