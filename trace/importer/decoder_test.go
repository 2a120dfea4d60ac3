package importer

import (
	"fmt"

	"gpuscope/trace"
)

// decoder returns the operators of a language model as gpuscope builds them: width 64, 4 heads of 16, 2 of
// them for keys and values, 128 hidden numbers, 1,000 tokens.
func decoder(layers int) Run {
	var r Run
	r.Model.Name = "small.gguf"
	r.Model.Dims = map[string]int{"head_dim": 16}
	value := func(v trace.Value) trace.ValueID {
		v.ID, v.Kind = trace.ValueID(len(r.Values)), "tensor"
		r.Values = append(r.Values, v)
		return v.ID
	}
	weight := func(dims ...int) trace.ValueID {
		v := trace.Value{Name: "weight", Role: trace.RoleConstant, MaxDims: dims}
		if len(dims) == 2 {
			v.MaxDims, v.Matrix = nil, &trace.Matrix{Format: "q4_0", Rows: dims[0], Cols: dims[1]}
		}
		return value(v)
	}
	layer, block, prefix := -1, "", ""
	add := func(name, kind string, inputs ...trace.ValueID) trace.ValueID {
		o := trace.Op{
			ID: trace.OpID(len(r.Ops)), Name: prefix + name, Kind: kind, Block: block, Inputs: inputs,
			Outputs: []trace.ValueID{value(trace.Value{Name: prefix + name, Role: trace.RoleIntermediate})},
		}
		if layer >= 0 {
			o.Layer = new(layer)
		}
		r.Ops = append(r.Ops, o)
		return o.Outputs[0]
	}
	x := add("embed", "embedding_q4_0", weight(1000, 64))
	for layer = range layers {
		block, prefix = "attn", fmt.Sprintf("layers.%d.attn.", layer)
		n := add("norm", "rms_norm", x, weight(64))
		q := add("q", "linear_q4_0", n, weight(64, 64))
		k := add("k", "linear_q4_0", n, weight(32, 64))
		v := add("v", "linear_q4_0", n, weight(32, 64))
		a := add("sdpa", "sdpa_with_kv_cache", add("rope", "apply_rotary_emb", q, k), v)
		x = add("add", "add", x, add("o", "linear_q4_0", a, weight(64, 64)))
		block, prefix = "mlp", fmt.Sprintf("layers.%d.mlp.", layer)
		n = add("norm", "rms_norm", x, weight(64))
		h := add("silu_mul", "silu_mul", add("gate", "linear_q4_0", n, weight(128, 64)),
			add("up", "linear_q4_0", n, weight(128, 64)))
		x = add("add", "add", x, add("down", "linear_q4_0", h, weight(64, 128)))
	}
	layer, block, prefix = -1, "", ""
	add("argmax", "argmax", add("lm_head", "linear_q4_0", add("norm", "rms_norm", x, weight(64)),
		weight(1000, 64)))
	return r
}

// rows lists the rows of a step: name of the dispatch, µs, and how the row was joined.
func rows(t *trace.Trace, step int) (list []string) {
	for _, d := range t.Steps[step].Dispatches {
		p := &t.Plans[d.Plan]
		of := &t.Graph.Dispatches[p.Dispatch]
		ns, ok := d.GPUNS.NS()
		time := "–"
		if ok {
			time = fmt.Sprint(float64(ns) / 1e3)
		}
		list = append(list, fmt.Sprintf("%s %s %s", of.Named(t.Graph.Ops[of.Op].Name), time, of.Joined))
	}
	return list
}
