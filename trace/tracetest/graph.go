package tracetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"gpuscope/trace"
)

// kernelParams lists the fields of each kernel's params block. All fields are u32.
var kernelParams = map[string][]string{
	"embedding_q4gsw":          {"tokens", "dim"},
	"slice":                    {"rows", "start"},
	"rms_norm":                 {"rows", "width"},
	"linear_q4gsw_coop4_bicol": {"m", "n", "k"},
	"linear_q4gsw_steel":       {"m", "n", "k"},
	"apply_rotary_emb":         {"tokens", "heads"},
	"update_cache":             {"tokens", "pos"},
	"sdpa_qk":                  {"s", "ctx"},
	"sdpa_softmax":             {"s", "ctx"},
	"sdpa_av":                  {"s", "ctx"},
	"fd_split":                 {"s", "ctx"},
	"fd_reduce":                {"s", "ctx"},
	"add":                      {"numel"},
	"mul":                      {"numel"},
	"sigmoid":                  {"numel"},
	"select":                   {"rows"},
}

func workgroupSize(kernel string) [3]int {
	switch kernel {
	case "add", "sigmoid", "update_cache", "linear_q4gsw_steel":
		return [3]int{256, 1, 1}
	case "sdpa_qk", "sdpa_av":
		return [3]int{16, 16, 1}
	}
	return [3]int{64, 1, 1}
}

func kernel(name string) trace.Kernel {
	k := trace.Kernel{Name: name, WorkgroupSize: workgroupSize(name)}
	k.Source = fmt.Sprintf("// %s\n@compute @workgroup_size(%d, %d, %d)\nfn main() {}\n", name,
		k.WorkgroupSize[0], k.WorkgroupSize[1], k.WorkgroupSize[2])
	sum := sha256.Sum256([]byte(k.Source))
	k.SourceSHA256 = hex.EncodeToString(sum[:])
	for i, p := range kernelParams[name] {
		k.Params = append(k.Params, trace.Param{Name: p, Type: "u32", Offset: 4 * i})
	}
	return k
}

// graph returns the graph of the model: the dispatch slots of the operators in order, with the kernels and
// grids for the largest and smallest shapes.
func (m *model) graph() trace.Graph {
	g := trace.Graph{
		Values:  m.values,
		SymInts: []trace.SymInt{{ID: 0, Value: m.pos, Name: "pos", Min: 0, Max: context - 1}},
	}
	slots := 0
	for i := range g.Values {
		if v := &g.Values[i]; v.Kind == "tensor" {
			slot := slots // each value has its own slot, so no memory is shared
			v.Slot = &slot
			slots++
		}
	}
	for i := range m.ops {
		o := &m.ops[i]
		g.Ops = append(g.Ops, o.Op)
		for slot, label := range o.slots {
			d := trace.Dispatch{
				ID: trace.DispatchID(len(g.Dispatches)), Op: o.ID, Label: label,
				Reads: m.tensors(slices.Concat(o.Inputs, o.State)), Writes: o.Outputs,
			}
			if o.Kind == "update_cache" {
				d.Reads, d.Writes = m.tensors(o.Inputs), o.State
			}
			if o.Kind == "sdpa_with_kv_cache" {
				d.Reads, d.Writes = attentionBuffers(o, label)
			}
			for _, at := range [][2]int{
				{1, context - 1},
				{1, 0},
				{maxChunk, context - maxChunk},
				{maxChunk, 0},
			} {
				for _, l := range o.launch(at[0], at[1]) {
					if l.slot != slot {
						continue
					}
					if !slices.Contains(d.Kernels, l.kernel) {
						d.Kernels = append(d.Kernels, l.kernel)
					}
					for axis := range 3 {
						d.MaxWorkgroups[axis] = max(d.MaxWorkgroups[axis], l.grid[axis])
					}
					if _, ok := m.kernels[l.kernel]; !ok {
						m.kernels[l.kernel] = kernel(l.kernel)
						g.Kernels = append(g.Kernels, m.kernels[l.kernel])
					}
				}
			}
			g.Dispatches = append(g.Dispatches, d)
		}
	}
	return g
}

func (m *model) tensors(ids []trace.ValueID) []trace.ValueID {
	var out []trace.ValueID
	for _, v := range ids {
		if m.values[v].Kind == "tensor" {
			out = append(out, v)
		}
	}
	return out
}

func attentionBuffers(o *operator, slot string) (reads, writes []trace.ValueID) {
	scratch := o.Attrs["scratch"].([]any)
	scores, partO := trace.ValueID(scratch[0].(float64)), trace.ValueID(scratch[1].(float64))
	q, k, v, out := o.Inputs[0], o.State[0], o.State[1], o.Outputs[0]
	switch slot {
	case "qk":
		return []trace.ValueID{q, k}, []trace.ValueID{scores}
	case "softmax":
		return []trace.ValueID{scores}, []trace.ValueID{scores}
	case "av":
		return []trace.ValueID{scores, v}, []trace.ValueID{out}
	case "split":
		return []trace.ValueID{q, k, v}, []trace.ValueID{partO}
	}
	return []trace.ValueID{partO}, []trace.ValueID{out}
}
