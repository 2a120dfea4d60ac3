package recurrent

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Delta has the tensors and numbers of a gated delta rule with Hk key heads of size D and Hv value heads of
// size V.
type Delta struct {
	QKV   graph.ValueID // [1, S, 2*Hk*D + Hv*V]: for each token all queries, then all keys, then all values
	Alpha graph.ValueID // [1, S, Hv], determines the decay
	Beta  graph.ValueID // [1, S, Hv]; its sigmoid is the strength of a write
	A     graph.ValueID // [Hv], factor of the decay, at most 0
	DT    graph.ValueID // [Hv], added to alpha
	State graph.ValueID // State [slots, Hv, D, V]
	Eps   float32       // epsilon of the norms of queries and keys
	// Tiled says which key head a value head uses. If Tiled is true, as for GGUF files, value head h uses
	// key head h % Hk. Otherwise it uses key head h / (Hv/Hk).
	Tiled bool
}

// DeltaRule adds gated_delta_rule. The state of a value head is a matrix that maps keys to values. A token
// first lets the state decay. It then compares the state's value for its key with its own value, and corrects
// the state by a part of the difference. The result is the value that the state has for the query:
//
//	q, k = q / |q| / sqrt(D), k / |k|
//	g    = exp(a * softplus(alpha + dt))
//	d    = (v - g * state' k) * sigmoid(beta)
//	state = g * state + k d'
//	y    = state' q
//
//	y    [1, S, Hv, V]
//
// |x| is sqrt(sum of x^2 + eps). D is a multiple of 4.
//
// A workgroup keeps some columns of the state of one head in registers, and processes all tokens of the step
// one after the other. It loads and normalizes several tokens at a time in workgroup memory. Each step reads
// and writes the state once. A step of one token has a kernel of its own (route `decode`), which has more
// workgroups and fewer barriers. Both kernels add up in the same order, so the result does not depend on how
// a prompt is divided into steps.
//
// Source: Yang and others, Gated Delta Networks (2024).
func DeltaRule(b *graph.Builder, name string, d Delta, at Slots) graph.ValueID {
	return kindDeltaRule.BuildOne(b, name, at.args(kind.Args{
		"qkv": d.QKV, "alpha": d.Alpha, "beta": d.Beta, "a": d.A, "dt": d.DT, "state": d.State,
		"eps": d.Eps, "tiled": d.Tiled,
	}))
}

var kindDeltaRule = kind.Kind{
	Name: "gated_delta_rule",
	Doc: "Linear attention with a state of fixed size, which maps keys to values. For each token, the state" +
		" decays, its value for the key is corrected, and its value for the query is the output.",
	Args: slices.Concat([]kind.Arg{
		kind.Required("qkv", kind.F32Tensor), kind.Required("alpha", kind.F32Tensor),
		kind.Required("beta", kind.F32Tensor), kind.Required("a", kind.F32Tensor),
		kind.Required("dt", kind.F32Tensor), kind.Required("state", kind.F32State),
	}, slotArgs, []kind.Arg{
		kind.Required("eps", kind.FloatType), kind.Optional("tiled", kind.BoolType, false),
	}),
	Constructors: []string{"DeltaRule"}, Routes: deltaRoutes, Add: addDeltaRule,
}

// deltaDecode and deltaChunk are the routes of the delta rule: for one token, and for any number of tokens.
const (
	deltaDecode = iota
	deltaChunk
)

var deltaRoutes = []string{deltaDecode: "decode", deltaChunk: "chunk"}

func addDeltaRule(c *kind.Call) []graph.ValueID {
	o := &deltaRule{
		Delta: Delta{
			QKV: c.ArgTensor("qkv"), Alpha: c.ArgTensor("alpha"), Beta: c.ArgTensor("beta"),
			A: c.ArgTensor("a"), DT: c.ArgTensor("dt"), State: c.ArgTensor("state"),
			Eps: float32(c.ArgFloat("eps")), Tiled: c.ArgBool("tiled"),
		},
		at: slotsOf(c),
	}
	if !o.readDims(c) {
		return nil
	}
	if !o.shape.choose(o.keyDim, o.valueDim) {
		return c.Fail("each key has %d elements; these are too many, or the lanes of a workgroup cannot share them evenly",
			o.keyDim)
	}
	o.y = c.Out("", graph.F32)
	s := &o.shape
	o.chunk = c.NewKernel("gated_delta_rule", shaders.Constants{
		"KeyHeads": o.keyHeads, "ValueHeads": o.valueHeads, "KeyDim": o.keyDim, "ValueDim": o.valueDim,
		"Cols": s.cols, "Down": s.down, "Rows": o.keyDim / s.down, "Tokens": s.tokens, "Tiled": o.Tiled,
		"Eps": o.Eps,
	})
	if o.decodes() {
		o.decode = c.NewKernel("gated_delta_rule_decode", shaders.Constants{
			"KeyHeads": o.keyHeads, "ValueHeads": o.valueHeads, "KeyDim": o.keyDim, "ValueDim": o.valueDim,
			"Cols": s.decodeCols, "Down": s.down, "Tiled": o.Tiled, "Eps": o.Eps,
		})
	}
	return c.AddOp(o, o.y)
}

// decodes reports whether the kernel for one token can compute the operator. The kernel loads four columns at
// a time, so the number of columns must be a multiple of 4. It adds up in two stages, and in the first stage
// each lane computes one sum. The kernel has enough lanes for this if keyDim / down is at least 16.
func (o *deltaRule) decodes() bool {
	return o.valueDim%4 == 0 && o.keyDim/o.shape.down >= 16
}

type deltaRule struct {
	Delta
	at                                     Slots
	y                                      graph.ValueID
	keyHeads, valueHeads, keyDim, valueDim int
	shape                                  deltaShape
	chunk                                  *graph.Kernel
	decode                                 *graph.Kernel // kernel for one token, or nil (see decodes)
}

// deltaShape describes how the kernels divide the state of a head. A workgroup processes `cols` columns of
// the state. Each column is divided among `down` lanes, which hold an equal number of its rows. A workgroup
// loads `tokens` tokens at a time. In the kernel for one token, a workgroup has `decodeCols` columns.
type deltaShape struct{ cols, down, tokens, decodeCols int }

// mostRows is the largest number of elements of the state that a lane holds in registers, and mostLanes is
// the largest size of a workgroup.
const (
	mostRows  = 32
	mostLanes = 256
)

// choose sets the shape for a size of keys and values. It returns false if no shape fits.
func (s *deltaShape) choose(keyDim, valueDim int) bool {
	s.down = 1
	for keyDim > mostRows*s.down || keyDim%(4*s.down) != 0 {
		if s.down++; s.down > mostLanes/4 || keyDim > 1024 {
			return false
		}
	}
	s.cols = 32
	for s.cols > 4 && (s.cols >= 2*valueDim || s.lanes() > mostLanes) {
		s.cols /= 2
	}
	s.decodeCols = 16
	for s.decodeCols > 4 && (s.decodeCols >= 2*valueDim || s.decodeLanes(keyDim) > mostLanes) {
		s.decodeCols /= 2
	}
	s.tokens = 1
	for s.tokens < 8 && 2*s.tokens*keyDim <= 1024 && 2*s.tokens <= s.cols {
		s.tokens *= 2
	}
	return true
}

func (s *deltaShape) lanes() int { return s.cols * s.down }

// decodeLanes returns the number of lanes of the kernel for one token. Each holds four rows of four columns.
func (s *deltaShape) decodeLanes(keyDim int) int { return s.decodeCols / 4 * (keyDim / 4) }

// readDims sets the numbers and sizes of the heads. If the dims of the arguments do not fit each other, it
// records an error and returns false.
func (o *deltaRule) readDims(c *kind.Call) bool {
	qkv, state := c.MaxDims(o.QKV), c.MaxDims(o.State)
	if len(qkv) != 3 || qkv[0] != 1 || c.MinDims(o.QKV)[2] != qkv[2] {
		c.Fail("qkv has dims %v, want [1, S, channels] with a fixed number of channels", qkv)
		return false
	}
	if len(state) != 4 || state[0] < 2 || state[2]%4 != 0 {
		c.Fail("state has dims %v, want [slots, Hv, D, V] with at least 2 slots, where D is a multiple of 4",
			state)
		return false
	}
	o.valueHeads, o.keyDim, o.valueDim = state[1], state[2], state[3]
	keys := qkv[2] - o.valueHeads*o.valueDim
	o.keyHeads = keys / (2 * o.keyDim)
	if keys <= 0 || keys%(2*o.keyDim) != 0 || o.valueHeads%o.keyHeads != 0 {
		c.Fail("qkv has %d channels, want %d for the values plus 2 * %d for each key head; the number of "+
			"value heads (%d) must be a multiple of the number of key heads",
			qkv[2], o.valueHeads*o.valueDim, o.keyDim, o.valueHeads)
		return false
	}
	for i, v := range [2]graph.ValueID{o.Alpha, o.Beta} {
		if d := c.MaxDims(v); !slices.Equal(d, []int{1, qkv[1], o.valueHeads}) {
			c.Fail("input %s has dims %v, want [1, %d, %d]", [2]string{"alpha", "beta"}[i], d,
				qkv[1], o.valueHeads)
			return false
		}
	}
	for i, v := range [2]graph.ValueID{o.A, o.DT} {
		if d := c.MinDims(v); !slices.Equal(d, []int{o.valueHeads}) {
			c.Fail("input %s has dims %v, want [%d]", [2]string{"a", "dt"}[i], d, o.valueHeads)
			return false
		}
	}
	if !(o.Eps >= 0) { // also refuses NaN
		c.Fail("eps is %g, want at least 0", o.Eps)
		return false
	}
	return true
}

func (o *deltaRule) Spec() graph.Spec {
	bind := []graph.Binding{
		graph.Bind("qkv", o.QKV), graph.Bind("alpha", o.Alpha), graph.Bind("beta", o.Beta),
		graph.Bind("a", o.A), graph.Bind("dt", o.DT), graph.Bind("state", o.State), graph.Bind("y", o.y),
	}
	uses := []graph.Use{deltaDecode: {}, deltaChunk: {Kernel: o.chunk, Bind: bind}}
	if o.decode != nil {
		uses[deltaDecode] = graph.Use{Kernel: o.decode, Bind: bind}
	}
	return graph.Spec{
		Kind: "gated_delta_rule", Routes: deltaRoutes,
		Inputs: o.at.operands(o.QKV, o.Alpha, o.Beta, o.A, o.DT),
		State:  []graph.ValueID{o.State}, Recurrent: true, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{Uses: uses}},
		Attrs: o.at.attrs(map[string]any{
			"key_heads": o.keyHeads, "value_heads": o.valueHeads, "key_dim": o.keyDim,
			"value_dim": o.valueDim, "eps": o.Eps,
		}),
	}
}

func (o *deltaRule) Corners(r *graph.Ranges) []graph.Corner {
	return o.at.ends(r, o.QKV, o.Alpha, o.Beta)
}

// stateSize returns the number of elements of the state of all heads.
func (o *deltaRule) stateSize() int { return o.valueHeads * o.keyDim * o.valueDim }

func (o *deltaRule) Plan(p *graph.Planner) error {
	tokens := p.Dim(o.QKV, 1)
	if p.Dim(o.Alpha, 1) != tokens || p.Dim(o.Beta, 1) != tokens {
		return p.Errorf("qkv has %d tokens, alpha has %d and beta has %d, want the same number in each",
			tokens, p.Dim(o.Alpha, 1), p.Dim(o.Beta, 1))
	}
	at, err := o.at.at(p, o.State)
	if err != nil {
		return err
	}
	p.SetDims(o.y, 1, tokens, o.valueHeads, o.valueDim)
	routes := [...]kind.Route{
		deltaDecode: {Name: "decode", Why: kind.OneToken, Only: true},
		deltaChunk:  {Name: "chunk", Why: kind.ManyTokens, UpTo: kind.Always},
	}
	if o.decode != nil {
		routes[deltaDecode].UpTo = 1
	}
	size := o.stateSize()
	heads := grid.Each("value heads", o.valueHeads)
	var l *graph.Launch
	if kind.Routes(routes[:]).Choose(p, "M", tokens) == deltaDecode {
		l = p.Dispatch(0, p.Tiles(o.shape.decodeLanes(o.keyDim),
			grid.Split("value dim", o.valueDim, o.shape.decodeCols), heads))
		l.Params.U32("state_from", at.from*size/4).U32("state_to", at.to*size/4).U32("fresh", at.fresh)
	} else {
		l = p.Dispatch(0, p.Tiles(o.shape.lanes(), grid.Split("value dim", o.valueDim, o.shape.cols),
			heads))
		l.Params.U32("tokens", tokens).U32("state_from", at.from*size).U32("state_to", at.to*size).
			U32("fresh", at.fresh)
	}
	l.Bytes = 4 * (int64(2-at.fresh)*int64(size) +
		int64(tokens)*int64(2*o.keyHeads*o.keyDim+2*o.valueHeads*(o.valueDim+1)) + 2*int64(o.valueHeads))
	l.FLOPs = int64(tokens) * (7*int64(size) + int64(o.valueHeads)*int64(6*o.keyDim+20))
	return nil
}

// deltaToken is a token as the delta rule of a head sees it: the normalized query and key, the value, the
// decay and the strength of the write.
type deltaToken struct {
	q, k, v        []float64
	decay, written float64
	log            float64 // logarithm of the decay
}

// token returns token s of value head h.
func (o *deltaRule) token(r *reference.Ref, s, h int) deltaToken {
	row, of := r.Tensor(o.QKV).Row(s), h/(o.valueHeads/o.keyHeads)
	if o.Tiled {
		of = h % o.keyHeads
	}
	normed := func(x []float64, scale float64) []float64 {
		y := slices.Clone(x)
		scale /= math.Sqrt(reference.Dot(x, x) + float64(o.Eps))
		for i := range y {
			y[i] *= scale
		}
		return y
	}
	keys := o.keyHeads * o.keyDim
	x := r.Tensor(o.Alpha).Row(s)[h] + r.Tensor(o.DT).Data[h]
	log := r.Tensor(o.A).Data[h] * (max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))))
	return deltaToken{
		q:     normed(row[of*o.keyDim:][:o.keyDim], 1/math.Sqrt(float64(o.keyDim))),
		k:     normed(row[keys+of*o.keyDim:][:o.keyDim], 1),
		v:     row[2*keys+h*o.valueDim:][:o.valueDim],
		decay: math.Exp(log), log: log, written: 1 / (1 + math.Exp(-r.Tensor(o.Beta).Row(s)[h])),
	}
}

// run computes all tokens of one head. It changes `state`, which has keyDim rows of valueDim columns. After
// each token it calls `each` with the differences that the token wrote, and with the result of the token.
func (o *deltaRule) run(r *reference.Ref, h, tokens int, state []float64,
	each func(s int, t *deltaToken, d, y []float64),
) {
	d, y := make([]float64, o.valueDim), make([]float64, o.valueDim)
	for s := range tokens {
		t := o.token(r, s, h)
		copy(d, t.v)
		for i, k := range t.k {
			for j, x := range state[i*o.valueDim:][:o.valueDim] {
				d[j] -= t.decay * x * k
			}
		}
		clear(y)
		for j := range d {
			d[j] *= t.written
		}
		for i, k := range t.k {
			row := state[i*o.valueDim:][:o.valueDim]
			for j := range row {
				row[j] = t.decay*row[j] + k*d[j]
				y[j] += row[j] * t.q[i]
			}
		}
		each(s, &t, d, y)
	}
}

// heads calls f for each value head in parallel, with a copy of its state before the step.
func (o *deltaRule) heads(r *reference.Ref, f func(h int, state []float64)) {
	before, _ := o.at.in(r, o.State, o.stateSize())
	list := make([]int, o.valueHeads)
	for h := range list {
		list[h] = h
	}
	size := o.keyDim * o.valueDim
	reference.InParallel(list, func(piece []int) {
		for _, h := range piece {
			f(h, slices.Clone(before[h*size:][:size]))
		}
	})
}

func (o *deltaRule) Reference(r *reference.Ref) {
	tokens := r.Tensor(o.QKV).Dims[1]
	y := r.Result(o.y, 1, tokens, o.valueHeads, o.valueDim)
	_, after := o.at.in(r, o.State, o.stateSize())
	o.heads(r, func(h int, state []float64) {
		o.run(r, h, tokens, state, func(s int, _ *deltaToken, _, of []float64) {
			copy(y.Row(s*o.valueHeads+h), of)
		})
		copy(after[h*len(state):], state)
	})
	r.Set(o.y, y)
}

// Tolerance follows the error of a column of the state from token to token. The correction of a token cannot
// enlarge an error: keys have a length of at most 1, and at most the whole difference is written. So the
// errors of earlier tokens decay with the state. Each token adds errors in proportion to the length of the
// column, and to the difference that it writes.
func (o *deltaRule) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	tokens := r.Tensor(o.QKV).Dims[1]
	sums := reference.SumRoundings(o.keyDim) * reference.Rounding
	norms := sums + reference.ULPs(4)
	worst := make([]float64, o.valueHeads)
	o.heads(r, func(h int, state []float64) {
		off := 0.0 // error of the longest column
		a := math.Abs(r.Tensor(o.A).Data[h])
		lengths := make([]float64, o.valueDim)
		longest := func() float64 {
			clear(lengths)
			for i, x := range state {
				lengths[i%o.valueDim] += x * x
			}
			return math.Sqrt(slices.Max(lengths))
		}
		before := longest()
		o.run(r, h, tokens, state, func(_ int, t *deltaToken, d, _ []float64) {
			now := longest()
			// WGSL allows log an absolute error of 2^-21 near 1, and exp an error of 3 + 2 |x| ulp.
			decay := a*0x1p-21 + reference.ULPs(6+4*math.Abs(t.log))
			part := reference.ExpTolerance.Rel // relative error of the strength of the write
			off = t.decay*off + (decay+2*sums+2*norms)*(before+now) + (part+norms)*reference.Largest(d) +
				sums*reference.Largest(t.v)
			before = now
			worst[h] = max(worst[h], off+(sums+norms)*now)
		})
	})
	t := reference.Tolerance{
		Abs: slices.Max(worst), Why: fmt.Sprintf("%d tokens change the state one after the other", tokens),
	}
	if v == o.y { // a query has length 1 / sqrt(D)
		t.Abs /= math.Sqrt(float64(o.keyDim))
	}
	return t
}
