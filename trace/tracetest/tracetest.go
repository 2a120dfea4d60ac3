// Package tracetest generates traces for tests. They are realistic, deterministic runs of a Llama model on
// an H200, with exact grids, params, levels and resize passes. The times resemble those of ExecuTorch's
// runtime. They are whole ticks of 32 ns and vary a little.
//
//	t := tracetest.Llama(16, 24) // prefill of 42 tokens, 22 decode steps, one repeated 20 times
package tracetest

import (
	"fmt"
	"slices"

	"gpuscope/trace"
)

// Repeats is the number of in-place repeats of the last step of Llama.
const Repeats = 20

// PromptTokens is the length of the prefill at the start of Llama.
const PromptTokens = 42

// Llama returns a run with the given numbers of layers (at least 1) and steps (at least 2): a cold prefill
// of PromptTokens tokens, then decode steps. At step 23 the context exceeds a multiple of 64, and the grid
// of the attention grows. The last step has Repeats samples, and the Observer refers to it.
func Llama(layers, steps int) *trace.Trace {
	chunks := slices.Repeat([]int{1}, steps)
	chunks[0] = PromptTokens
	t := Run(layers, chunks...)
	r, last := runner{t: t}, len(t.Steps)-1
	r.repeat(last, Repeats)
	t.Observer.Step = &last // the index of a step equals its place in the list
	return t
}

// Run returns a run with the given number of layers and a step for each chunk of tokens. A chunk of one
// token is a decode step, and a longer chunk is a prefill.
func Run(layers int, chunks ...int) *trace.Trace {
	m := newModel(layers)
	t := &trace.Trace{
		Schema:   trace.Schema,
		Producer: trace.Producer{Name: "gpuscope", Version: "0.1.0"},
		Created:  "2026-11-21T12:00:00Z",
		Command:  []string{"gpuscope", "run", "Llama-3.2-1B-Q4_0.gguf"},
		Host:     trace.Host{OS: "linux", Arch: "amd64", CPUs: 16},
		Device: trace.Device{
			Name: "NVIDIA H200", Backend: "vulkan", Driver: "570.86", AdapterType: trace.AdapterDiscrete,
			Limits: map[string]uint64{
				"max_compute_workgroups_per_dimension": 65535,
				"max_storage_buffer_binding_size":      2 << 30,
			},
			Ceilings: &trace.Ceilings{
				CopyBytesPerS: []trace.CopyRate{{Bytes: 1 << 30, PerS: 4.24e12}}, FlopsPerS: 50e12,
				DispatchNS: trace.Measured(1696), TimedPassNS: trace.Measured(4800), FillWorkgroups: 264,
				N: 20,
			},
		},
		Clock: trace.Clock{
			NSPerTick: 1, OffsetNS: trace.Measured(0), ErrorNS: trace.Measured(900),
			QuantumNS: 32, Samples: 200,
		},
		Model: trace.Model{
			Name: "Llama-3.2-1B-Q4_0.gguf", Architecture: "llama", Parameters: 981_000_000, Quantization: "q4_0",
			Layers: layers,
			Dims: map[string]int{
				"dim": dim, "heads": heads, "kv_heads": kvHeads, "ffn": ffn, "vocab": vocab,
				"context": context,
			},
		},
		Graph: m.graph(),
		Observer: &trace.Observer{
			UntimedNS: trace.Measured(7_700_000), TimedNS: trace.Measured(9_050_000),
			N:          8,
			UntimedOff: trace.Measured(1000),
		},
	}
	r := runner{
		t: t, m: m, inForce: map[trace.DispatchID]trace.PlanID{},
		known: map[trace.Plan]trace.PlanID{},
	}
	r.dims = map[trace.ValueID][]int{}
	for _, n := range chunks {
		r.step(n)
	}
	return t
}

// The constants are the shape of the model: Llama 1B with a small vocabulary.
const (
	dim, heads, kvHeads, headDim, ffn, vocab = 2048, 32, 8, 64, 8192, 4096
	context, maxChunk                        = 1024, 512
	split                                    = 64 // positions in one split of FlashDecoding
)

// launch describes what an operator runs in one dispatch slot at a live shape.
type launch struct {
	slot          int
	kernel, route string
	reason        string
	grid          [3]int
	groups        int64 // workgroups of `grid` that have work
	idle          int64
	params        []uint32
	bytes, flops  int64
	ns            int64 // undisturbed run time in ns
}

// operator is an operator of the model and its behaviour for m tokens at position pos.
type operator struct {
	trace.Op
	slots  []string
	dims   func(m, pos int) [][]int // shapes of the outputs
	launch func(m, pos int) []launch
}

type model struct {
	values  []trace.Value
	kernels map[string]trace.Kernel
	ops     []operator
	layer   *int
	block   string
	prefix  string
	pos     trace.ValueID
}

func newModel(layers int) *model {
	m := &model{kernels: map[string]trace.Kernel{}}
	tokens := m.value("tokens", "i32", trace.RoleInput, 1, maxChunk)
	m.pos = trace.ValueID(len(m.values))
	m.values = append(m.values, trace.Value{ID: m.pos, Name: "pos", Kind: "symint", Role: trace.RoleInput})
	x := m.embed(tokens)
	cos, sin := m.slice("slice cos"), m.slice("slice sin")
	for l := range layers {
		x = m.transformerLayer(l, x, cos, sin)
	}
	m.layer, m.block, m.prefix = nil, "", ""
	last := m.value("last", "f32", trace.RoleIntermediate, 1, dim)
	m.op("select last", "select", []trace.ValueID{x}, last, fixed(1, dim), func(n, _ int) []launch {
		return one("select", [3]int{32, 1, 1}, dim, 64, 2*4*dim, 0, 5900, uint32(n))
	})
	normed := m.rmsNorm(last, true)
	m.linear("lm_head", normed, dim, vocab, 13_100, true)
	m.values[len(m.values)-1].Role = trace.RoleOutput
	return m
}

func (m *model) transformerLayer(l int, x, cos, sin trace.ValueID) trace.ValueID {
	m.layer, m.block, m.prefix = &l, "attn", fmt.Sprintf("layers.%d.attn.", l)
	h := m.rmsNorm(x, false)
	q := m.linear("q", h, dim, dim, 10_200, false)
	k := m.linear("k", h, dim, kvHeads*headDim, 9_200, false)
	v := m.linear("v", h, dim, kvHeads*headDim, 9_300, false)
	q = m.rope("rope_q", q, cos, sin, heads, 5_600)
	k = m.rope("rope_k", k, cos, sin, kvHeads, 5_300)
	kc := m.value("k_cache", "f32", trace.RoleState, 1, context, kvHeads, headDim)
	vc := m.value("v_cache", "f32", trace.RoleState, 1, context, kvHeads, headDim)
	m.updateCache("cache_k", k, kc, 4_900)
	m.updateCache("cache_v", v, vc, 5_000)
	a := m.attention(q, kc, vc)
	a = m.linear("o", a, dim, dim, 10_100, false)
	x = m.elementwise("add", "add", 256, dim, 6_200, x, a)
	m.block, m.prefix = "mlp", fmt.Sprintf("layers.%d.mlp.", l)
	h = m.rmsNorm(x, false)
	gate := m.linear("gate", h, dim, ffn, 19_300, false)
	s := m.elementwise("sigmoid", "sigmoid", 256, ffn, 5_400, gate)
	gate = m.elementwise("mul_silu", "mul", 64, ffn, 6_200, gate, s)
	up := m.linear("up", h, dim, ffn, 19_500, false)
	h = m.elementwise("mul_gate", "mul", 64, ffn, 6_200, gate, up)
	h = m.linear("down", h, ffn, dim, 21_600, false)
	return m.elementwise("add", "add", 256, dim, 6_200, x, h)
}

func (m *model) value(name, dtype string, role trace.Role, dims ...int) trace.ValueID {
	bits := map[string]int{"f32": 32, "i32": 32, "q4": 4}[dtype]
	n := 1
	for _, d := range dims {
		n *= d
	}
	id := trace.ValueID(len(m.values))
	m.values = append(m.values, trace.Value{
		ID: id, Name: m.prefix + name, Kind: "tensor", DType: dtype, MaxDims: dims,
		Bytes: int64(n * bits / 8), Role: role,
	})
	return id
}

// op adds an operator with one slot and one output.
func (m *model) op(name, kind string, inputs []trace.ValueID, out trace.ValueID,
	dims func(n, pos int) [][]int, f func(n, pos int) []launch,
) *operator {
	m.ops = append(m.ops, operator{
		Op: trace.Op{
			ID: trace.OpID(len(m.ops)), Name: m.prefix + name, Kind: kind, Inputs: inputs,
			Outputs: []trace.ValueID{out},
			Layer:   m.layer, Block: m.block,
		},
		slots: []string{""}, dims: dims, launch: f,
	})
	return &m.ops[len(m.ops)-1]
}

func one(kernel string, grid [3]int, elements, lanes int, bytes, flops, ns int64, params ...uint32) []launch {
	groups := int64(grid[0]) * int64(grid[1]) * int64(grid[2])
	return []launch{{
		kernel: kernel, grid: grid, groups: groups, idle: max(0, groups*int64(lanes)-int64(elements)),
		params: params, bytes: bytes, flops: flops, ns: ns,
	}}
}

func fixed(dims ...int) func(int, int) [][]int {
	return func(int, int) [][]int { return [][]int{dims} }
}

func rows(width int) func(int, int) [][]int {
	return func(n, _ int) [][]int { return [][]int{{1, n, width}} }
}

func divUp(n, d int) int { return (n + d - 1) / d }

func (m *model) embed(tokens trace.ValueID) trace.ValueID {
	table := m.value("embed.weight", "q4", trace.RoleConstant, vocab, dim)
	x := m.value("x", "f32", trace.RoleIntermediate, 1, maxChunk, dim)
	m.op("embed", "embedding_q4gsw", []trace.ValueID{tokens, table}, x, rows(dim), func(n, _ int) []launch {
		return one("embedding_q4gsw", [3]int{n, 1, 1}, n*64, 64, int64(n)*dim*5, 0, 13_800+int64(n-1)*20,
			uint32(n), dim)
	})
	return x
}

func (m *model) slice(name string) trace.ValueID {
	table := m.value(name[6:]+".table", "f32", trace.RoleConstant, context, headDim/2)
	out := m.value(name[6:], "f32", "intermediate", maxChunk, headDim/2)
	m.op(name, "slice", []trace.ValueID{table, m.pos}, out,
		func(n, _ int) [][]int { return [][]int{{n, headDim / 2}} },
		func(n, pos int) []launch {
			return one("slice", [3]int{divUp(n*32, 64), 1, 1}, n*32, 64, int64(n)*32*8, 0, 5_800, uint32(n),
				uint32(pos))
		})
	return out
}

func (m *model) rmsNorm(x trace.ValueID, single bool) trace.ValueID {
	w := m.value("norm.weight", "f32", trace.RoleConstant, dim)
	dims, out := rows(dim), trace.ValueID(0)
	if single {
		dims, out = fixed(1, dim), m.value("normed", "f32", trace.RoleIntermediate, 1, dim)
	} else {
		out = m.value("normed", "f32", trace.RoleIntermediate, 1, maxChunk, dim)
	}
	m.op("norm", "rms_norm", []trace.ValueID{x, w}, out, dims, func(n, _ int) []launch {
		if single {
			n = 1
		}
		return one("rms_norm", [3]int{n, 1, 1}, n*64, 64, int64(n)*dim*8+dim*4, int64(n)*dim*4,
			10_900+int64(n-1)*2, uint32(n), dim)
	})
	return out
}

func (m *model) linear(name string, x trace.ValueID, k, n int, ns int64, single bool) trace.ValueID {
	w := m.value(name+".weight", "q4", trace.RoleConstant, n, k)
	scales := m.value(name+".scales", "f32", trace.RoleConstant, n, k/32)
	dims, out := rows(n), trace.ValueID(0)
	if single {
		dims, out = fixed(1, n), m.value(name, "f32", "intermediate", 1, n)
	} else {
		out = m.value(name, "f32", "intermediate", 1, maxChunk, n)
	}
	m.op(name, "linear_q4gsw", []trace.ValueID{x, w, scales}, out, dims, func(rows, _ int) []launch {
		if single {
			rows = 1
		}
		l := launch{
			params: []uint32{uint32(rows), uint32(n), uint32(k)},
			bytes:  int64(n)*int64(k)/2 + int64(n)*int64(k)/8 + 4*int64(rows)*int64(n+k),
			flops:  2 * int64(rows) * int64(n) * int64(k),
		}
		if rows == 1 {
			l.kernel, l.route, l.reason, l.ns = "linear_q4gsw_coop4_bicol", "bicol", "M=1 (else steel)", ns
			l.grid, l.groups = [3]int{n / 2, 1, 1}, int64(n/2)
		} else {
			l.kernel, l.route, l.reason = "linear_q4gsw_steel", "steel", fmt.Sprintf("M=%d > 1", rows)
			l.grid = [3]int{divUp(n, 64), divUp(rows, 64), 1}
			l.groups = int64(l.grid[0] * l.grid[1])
			l.idle = l.groups*256 - int64(divUp(rows*n, 16))
			l.ns = 30_000 + l.flops/1000 // about 1 TFLOP/s
		}
		return []launch{l}
	})
	return out
}

func (m *model) rope(name string, x, cos, sin trace.ValueID, h int, ns int64) trace.ValueID {
	out := m.value(name, "f32", "intermediate", 1, maxChunk, h, headDim)
	m.op(name, "apply_rotary_emb", []trace.ValueID{x, cos, sin}, out,
		func(n, _ int) [][]int { return [][]int{{1, n, h, headDim}} },
		func(n, _ int) []launch {
			pairs := n * h * headDim / 2
			return one("apply_rotary_emb", [3]int{divUp(pairs, 64), 1, 1}, pairs, 64, int64(pairs)*16,
				int64(pairs)*6, ns+int64(n-1)*10, uint32(n), uint32(h))
		})
	return out
}

func (m *model) updateCache(name string, x, cache trace.ValueID, ns int64) {
	op := m.op(name, "update_cache", []trace.ValueID{x, m.pos}, cache, nil, func(n, pos int) []launch {
		elements := n * kvHeads * headDim
		return one("update_cache", [3]int{divUp(elements, 256), 1, 1}, elements, 256, int64(elements)*8, 0,
			ns+int64(n-1)*2, uint32(n), uint32(pos))
	})
	op.State, op.Outputs = op.Outputs, nil
}

func (m *model) attention(q, k, v trace.ValueID) trace.ValueID {
	scores := m.value("scores", "f32", trace.RoleScratch, heads, maxChunk, context)
	partO := m.value("part_o", "f32", trace.RoleScratch, heads, context/split, headDim)
	out := m.value("attn", "f32", trace.RoleIntermediate, 1, maxChunk, heads*headDim)
	op := m.op("sdpa", "sdpa_with_kv_cache", []trace.ValueID{q, m.pos}, out, rows(heads*headDim),
		func(n, pos int) []launch {
			ctx := pos + n
			params := []uint32{uint32(n), uint32(ctx)}
			if n == 1 {
				splits := divUp(ctx, split)
				reason := "S=1, D=64 (else materialised)"
				return []launch{
					{
						slot: 3, kernel: "fd_split", route: "FlashDecoding", reason: reason, params: params,
						grid: [3]int{heads * splits, 1, 1}, groups: int64(heads * splits),
						idle:  int64(heads * (splits*split - ctx)),
						bytes: int64(ctx) * kvHeads * headDim * 8, flops: int64(ctx) * heads * headDim * 4,
						ns: 13_300 + int64(ctx-59)*20,
					},
					{
						slot: 4, kernel: "fd_reduce", route: "FlashDecoding", reason: reason, params: params,
						grid: [3]int{heads, 1, 1}, groups: heads, bytes: int64(heads*splits) * headDim * 4,
						ns: 5_800,
					},
				}
			}
			reason := fmt.Sprintf("S=%d > 1", n)
			cells := int64(heads) * int64(n) * int64(ctx)
			qk := launch{
				slot: 0, kernel: "sdpa_qk", route: "materialised", reason: reason, params: params,
				bytes: cells * 4, flops: cells * headDim * 2,
			}
			qk.grid = [3]int{divUp(ctx, 16), divUp(n, 16), heads}
			qk.groups = int64(qk.grid[0]*qk.grid[1]) * heads
			qk.ns, qk.idle = 12_000+cells/100, qk.groups*256-cells
			softmax := qk
			softmax.slot, softmax.kernel, softmax.grid, softmax.groups, softmax.idle = 1, "sdpa_softmax",
				[3]int{n * heads, 1, 1}, int64(n*heads), 0
			av := qk
			av.slot, av.kernel, av.grid = 2, "sdpa_av", [3]int{4, divUp(n, 16), heads}
			av.groups = int64(4*divUp(n, 16)) * heads
			av.idle = av.groups*256 - int64(n*heads*headDim)
			return []launch{qk, softmax, av}
		})
	op.slots = []string{"qk", "softmax", "av", "split", "reduce"}
	op.State = []trace.ValueID{k, v}
	op.Attrs = map[string]any{"scratch": []any{float64(scores), float64(partO)}}
	return out
}

func (m *model) elementwise(name, kernel string, lanes, width int, ns int64,
	in ...trace.ValueID,
) trace.ValueID {
	out := m.value(name, "f32", "intermediate", 1, maxChunk, width)
	m.op(name, kernel, in, out, rows(width), func(n, _ int) []launch {
		elements := n * width
		grid := [3]int{divUp(elements, lanes), 1, 1}
		if grid[0] > 65535 {
			grid = [3]int{256, divUp(grid[0], 256), 1}
		}
		return one(kernel, grid, elements, lanes, int64(elements)*4*int64(len(in)+1), int64(elements),
			ns+int64((n-1)*width/400), uint32(elements))
	})
	return out
}
