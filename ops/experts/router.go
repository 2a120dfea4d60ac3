package experts

import (
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Limits of a router. Its kernels keep the logits of a token in workgroup memory.
const (
	MaxExperts = 2048
	MaxChosen  = 64 // largest number of experts that are chosen for a token
)

// RouterOptions says how a router computes the weights of the chosen experts.
type RouterOptions struct {
	K int // number of experts for each token
	// Sigmoid is true if the scores are the sigmoid of the logits, instead of their softmax.
	Sigmoid bool
	// Normalize is true if the weights of a token are divided by their sum. With softmax, this is the softmax
	// over the chosen logits only.
	Normalize bool
	Scale     float64       // every weight is multiplied by Scale
	Bias      graph.ValueID // f32 [E] or None: added to sigmoid scores for the choice
	Factors   graph.ValueID // f32 [E] or None: an expert's weight is multiplied by its factor
}

// Router adds router, which chooses the k experts with the largest logits of each token, and computes the
// weights of their results. Among equal logits, the expert with the lowest index is the better one. Each
// token has k slots, one for each of its experts. A pair is a token and one of its slots: pair p is slot p%k
// of token p/k.
//
//	logits   [1, S, E]
//	bias     [E] or none: is added to sigmoid scores for the choice, not for the weights
//	factors  [E] or none: the weight of an expert is multiplied by its factor
//	experts  [1, S, k], i32: the chosen experts, the best first
//	weights  [1, S, k]: softmax or sigmoid of their logits, divided by their sum (normalize), times scale
//	counts   [E], i32: number of tokens of each expert
//	sorted   [E+1 + S*k], i32: for each expert e the number of pairs with an expert below e, then the number
//	         of all pairs, then the numbers p of all pairs, sorted by their expert
//
// Softmax over all logits, followed by normalize, equals softmax over the chosen logits. One token needs one
// dispatch. For more tokens, a second dispatch counts and sorts the pairs. The same input always produces
// the same bytes.
//
// Source: Shazeer et al., Outrageously Large Neural Networks (2017); Muennighoff et al., OLMoE (2024).
func Router(b *graph.Builder, name string, logits graph.ValueID, o RouterOptions) Routing {
	out := kindRouter.Build(b, name, kind.Args{
		"logits": logits, "k": o.K, "sigmoid": o.Sigmoid, "normalize": o.Normalize, "scale": o.Scale,
		"bias": o.Bias, "factors": o.Factors,
	})
	if out == nil {
		return Routing{graph.None, graph.None, graph.None, graph.None}
	}
	return Routing{out[0], out[1], out[2], out[3]}
}

var kindRouter = kind.Kind{
	Name: "router",
	Doc: "For each token, the k experts with the largest logits, and the weights of these experts. Also a list of " +
		"all pairs of a token and one of its experts, sorted by expert.",
	Args: []kind.Arg{
		kind.Required("logits", kind.F32Tensor), kind.Required("k", kind.IntType),
		kind.Optional("sigmoid", kind.BoolType, false), kind.Optional("normalize", kind.BoolType, true),
		kind.Optional("scale", kind.FloatType, 1.0), kind.Optional("bias", kind.F32Tensor, graph.None),
		kind.Optional("factors", kind.F32Tensor, graph.None),
	},
	Constructors: []string{"Router"}, Routes: []string{"token", "tokens"}, Add: addRouter,
}

func addRouter(c *kind.Call) []graph.ValueID {
	o := &router{
		logits: c.ArgTensor("logits"), bias: c.ArgTensor("bias"), factors: c.ArgTensor("factors"),
		k: c.ArgInt("k"), sigmoid: c.ArgBool("sigmoid"), normalize: c.ArgBool("normalize"),
		scale: float32(c.ArgFloat("scale")),
	}
	highest, lowest := c.MaxDims(o.logits), c.MinDims(o.logits)
	if len(highest) != 3 || highest[0] != 1 || highest[2] != lowest[2] || highest[2] > MaxExperts {
		return c.Fail("logits %s has dims %v, want [1, S, E] with a fixed number of experts E, at most %d",
			c.Name(o.logits), highest, MaxExperts)
	}
	o.n = highest[2]
	if most := min(MaxChosen, o.n); o.k < 1 || o.k > most {
		return c.Fail("k is %d for %d experts, want 1 to %d", o.k, o.n, most)
	}
	if o.bias != graph.None && !o.sigmoid {
		return c.Fail("bias is %s, but a bias is supported only with sigmoid", c.Name(o.bias))
	}
	for _, v := range []graph.ValueID{o.bias, o.factors} {
		if v != graph.None && !slices.Equal(c.MaxDims(v), []int{o.n}) {
			return c.Fail("%s has dims %v, want [%d]", c.Name(v), c.MaxDims(v), o.n)
		}
	}
	o.Experts, o.Weights = c.Out(".experts", graph.I32), c.Out(".weights", graph.F32)
	o.Counts, o.Sorted = c.Out(".counts", graph.I32), c.Out(".sorted", graph.I32)
	constants := func(single bool) shaders.Constants {
		return shaders.Constants{
			"Lanes": kind.LanesFor(c.Builder, max(o.n, o.k)), "Experts": o.n, "K": o.k, "Sigmoid": o.sigmoid,
			"Normalize": o.normalize, "Scale": o.scale, "Bias": o.bias != graph.None,
			"Factors": o.factors != graph.None, "Single": single,
		}
	}
	o.lanes, o.sortLanes = kind.LanesFor(c.Builder, max(o.n, o.k)), kind.LanesFor(c.Builder, 256)
	o.one = kind.NewKernelAs(c.Builder, "router_token", "router", constants(true))
	o.many = c.NewKernel("router", constants(false))
	o.sort = c.NewKernel("router_sort", shaders.Constants{"Lanes": o.sortLanes, "Experts": o.n})
	return c.AddOp(o, o.Experts, o.Weights, o.Counts, o.Sorted)
}

type router struct {
	logits, bias, factors graph.ValueID
	Routing
	n, k               int // number of experts, and of chosen experts for each token
	sigmoid, normalize bool
	scale              float32
	lanes, sortLanes   int
	one, many, sort    *graph.Kernel
}

// routerRoutes are the routes of a router: one token, and several.
var routerRoutes = kind.Routes{
	{Name: "token", UpTo: 1, Only: true, Why: kind.OneToken},
	{Name: "tokens", UpTo: kind.Always, Why: kind.ManyTokens},
}

func (o *router) Spec() graph.Spec {
	top := []graph.Binding{graph.Bind("logits", o.logits)}
	inputs := []graph.ValueID{o.logits}
	if o.bias != graph.None {
		top, inputs = append(top, graph.Bind("bias", o.bias)), append(inputs, o.bias)
	}
	if o.factors != graph.None {
		top, inputs = append(top, graph.Bind("factors", o.factors)), append(inputs, o.factors)
	}
	top = append(top, graph.Bind("experts", o.Experts), graph.Bind("weights", o.Weights))
	sorted := []graph.Binding{graph.Bind("counts", o.Counts), graph.Bind("sorted", o.Sorted)}
	chosen := graph.Bind("experts", o.Experts)
	return graph.Spec{
		Kind: "router", Inputs: inputs,
		Outputs:  []graph.ValueID{o.Experts, o.Weights, o.Counts, o.Sorted},
		Readback: []graph.ValueID{o.Counts}, Routes: kindRouter.Routes,
		Slots: []graph.Slot{
			{Label: "top", Uses: []graph.Use{
				{Kernel: o.one, Bind: slices.Concat(top, sorted)}, {Kernel: o.many, Bind: top},
			}},
			{Label: "sort", Uses: []graph.Use{
				{}, {Kernel: o.sort, Bind: append([]graph.Binding{chosen}, sorted...)},
			}},
		},
		Attrs: map[string]any{
			"experts": o.n, "k": o.k, "score": map[bool]string{false: "softmax", true: "sigmoid"}[o.sigmoid],
			"normalize": o.normalize,
		},
	}
}

func (o *router) Corners(r *graph.Ranges) []graph.Corner {
	corners := r.Ends(o.logits)
	if r.Min(o.logits)[1] <= 1 {
		corners = append(corners, graph.Corner{{Value: o.logits, Dims: []int{1, 1, o.n}}})
	}
	return corners
}

func (o *router) Plan(p *graph.Planner) error {
	dims := p.Dims(o.logits)
	if len(dims) != 3 || dims[0] != 1 || dims[2] != o.n {
		return p.Errorf("logits has dims %v, want [1, S, %d]", dims, o.n)
	}
	tokens := dims[1]
	pairs := tokens * o.k
	p.SetDims(o.Experts, 1, tokens, o.k)
	p.SetDims(o.Weights, 1, tokens, o.k)
	p.SetDims(o.Counts, o.n)
	p.SetDims(o.Sorted, o.n+1+pairs)
	route := routerRoutes.Choose(p, "S", tokens)
	l := p.Dispatch(0, p.Rows(o.lanes, o.n, grid.RowsOf(tokens*o.n, o.n)))
	l.Bytes = 4*int64(tokens)*int64(o.n) + 8*int64(pairs)
	l.FLOPs = int64(tokens) * int64(o.n) * int64(o.n)
	if route == 0 {
		l.Bytes += 4 * int64(2*o.n+1+pairs)
		return nil
	}
	l.Params.U32("tokens", tokens)
	l = p.Dispatch(1, p.Rows(o.sortLanes, min(o.sortLanes, pairs), grid.Each("elements", o.n)))
	l.Params.U32("pairs", pairs).U32("each", shape.DivUp(pairs, o.sortLanes))
	l.Bytes = 4 * int64(2*pairs+2*o.n+1)
	l.FLOPs = 2 * int64(pairs) * int64(o.n)
	return nil
}

func (o *router) Reference(r *reference.Ref) {
	logits := r.Tensor(o.logits)
	tokens, n := logits.Rows()
	experts, weights := reference.Zeros(1, tokens, o.k), reference.Zeros(1, tokens, o.k)
	counts, sorted := reference.Zeros(n), reference.Zeros(n+1+tokens*o.k)
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	var pairs [][2]int // each element: an expert and a pair
	order := make([]int, n)
	for t := range tokens {
		row, scores := logits.Row(t), slices.Clone(logits.Row(t))
		for e := range order {
			order[e] = e
			if o.bias != graph.None {
				scores[e] = sigmoid(row[e]) + r.Tensor(o.bias).Data[e]
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return byRank(scores[a], scores[b]) })
		largest, total := slices.Max(row), 0.0
		for _, v := range row {
			total += math.Exp(v - largest)
		}
		w := weights.Row(t)
		sum := 0.0
		for j, e := range order[:o.k] {
			experts.Row(t)[j] = float64(e)
			counts.Data[e]++
			pairs = append(pairs, [2]int{e, t*o.k + j})
			if w[j] = math.Exp(row[e]-largest) / total; o.sigmoid {
				w[j] = sigmoid(row[e])
			}
			sum += w[j]
		}
		for j, e := range order[:o.k] {
			if o.normalize {
				w[j] /= sum
			}
			if w[j] *= float64(o.scale); o.factors != graph.None {
				w[j] *= r.Tensor(o.factors).Data[e]
			}
		}
	}
	for e := range n {
		sorted.Data[e+1] = sorted.Data[e] + counts.Data[e]
	}
	slices.SortStableFunc(pairs, func(a, b [2]int) int { return a[0] - b[0] })
	for i, p := range pairs {
		sorted.Data[n+1+i] = float64(p[1])
	}
	r.Set(o.Experts, experts)
	r.Set(o.Weights, weights)
	r.Set(o.Counts, counts)
	r.Set(o.Sorted, sorted)
}

// Tolerance is zero for integer outputs. The order of two experts is the same as in float64, because logits
// are compared without rounding. The order can differ only with a bias, for two sums whose difference is not
// larger than a rounding error.
func (o *router) Tolerance(r *reference.Ref, v graph.ValueID) reference.Tolerance {
	if v != o.Weights {
		return reference.Exact
	}
	terms := o.n
	if o.normalize {
		terms = o.k
	}
	t := reference.ExpTolerance
	t.Rel = 2*t.Rel + (reference.SumRoundings(terms)+8)*reference.Rounding
	t.Why = fmt.Sprintf("exp of a logit, divided by a sum of %d such numbers in f32; %s", terms, t.Why)
	return t
}

// byRank is a comparison function that sorts the largest number first, and NaN before any number.
func byRank(a, b float64) int {
	switch aNaN, bNaN := math.IsNaN(a), math.IsNaN(b); {
	case aNaN && bNaN || a == b:
		return 0
	case aNaN || a > b && !bNaN:
		return -1
	default:
		return 1
	}
}
