package workclass

import (
	"slices"
	"testing"

	"gpuscope/trace"
)

func TestNamesOfOperatorsTellTheirClass(t *testing.T) {
	layer := 3
	for _, c := range []struct {
		op   trace.Op
		want Class
	}{
		{trace.Op{Name: "embed", Kind: "embedding_q4_0"}, Embedding},
		{trace.Op{Name: "layers.3.attn.norm", Kind: "rms_norm", Layer: &layer, Block: "attn"}, Norms},
		{trace.Op{Name: "layers.3.attn.q", Kind: "linear_q4_0", Layer: &layer, Block: "attn"}, QO},
		{trace.Op{
			Name: "layers.3.attn.o+add", Kind: "linear_q4_0", Layer: &layer, Block: "attn",
			Parts: []string{"layers.3.attn.last", "layers.3.attn.o", "layers.3.attn.add"},
		}, QO},
		{trace.Op{Name: "layers.3.attn.v", Kind: "linear_f16", Layer: &layer, Block: "attn"}, KV},
		{
			trace.Op{Name: "layers.3.attn.rope", Kind: "apply_rotary_emb_hf", Layer: &layer, Block: "attn"},
			Attention,
		},
		{trace.Op{
			Name: "layers.3.attn.rope+sdpa", Kind: "sdpa_with_kv_cache", Layer: &layer, Block: "attn",
			Parts: []string{"layers.3.attn.rope", "layers.3.attn.sdpa"},
		}, Attention},
		{trace.Op{
			Name: "layers.3.mlp.gate+up+silu_mul", Kind: "linear_q4_0", Layer: &layer, Block: "mlp",
			Parts: []string{"layers.3.mlp.gate", "layers.3.mlp.up", "layers.3.mlp.silu_mul"},
		}, GateUp},
		{trace.Op{Name: "layers.3.mlp.silu_mul", Kind: "silu_mul", Layer: &layer, Block: "mlp"}, GateUp},
		{
			trace.Op{Name: "layers.3.shared.silu_mul", Kind: "silu_mul", Layer: &layer, Block: "shared"},
			Experts,
		},
		{trace.Op{
			Name: "layers.3.mlp.down+add", Kind: "linear_q4_0", Layer: &layer, Block: "mlp",
			Parts: []string{"layers.3.mlp.down", "layers.3.mlp.add"},
		}, Down},
		{
			trace.Op{Name: "layers.3.mlp.down", Kind: "linear_experts_q4_0", Layer: &layer, Block: "mlp"},
			Experts,
		},
		{trace.Op{Name: "layers.3.mlp.router", Kind: "linear", Layer: &layer, Block: "mlp"}, Router},
		{trace.Op{Name: "layers.3.shared.up", Kind: "linear_f16", Layer: &layer, Block: "shared"}, Experts},
		{trace.Op{Name: "layers.3.delta.qkv", Kind: "linear_f16", Layer: &layer, Block: "delta"}, Recurrent},
		{
			trace.Op{Name: "layers.3.delta.conv", Kind: "causal_conv1d", Layer: &layer, Block: "delta"},
			Recurrent,
		},
		{trace.Op{Name: "lm_head", Kind: "linear_q6_k"}, Head},
		{trace.Op{Name: "argmax", Kind: "argmax"}, Other},
		{trace.Op{Name: "MUL_MAT q4_0 m=2048 k=2048", Kind: "MUL_MAT", Class: string(QO)}, QO},
		{trace.Op{Name: "FLASH_ATTN_EXT", Kind: "FLASH_ATTN_EXT"}, Attention},
		{trace.Op{Name: "GLU", Kind: "GLU"}, GateUp},
	} {
		if got := OfOp(&c.op); got != c.want {
			t.Errorf("%s: %s, want %s", c.op.Name, got, c.want)
		}
	}
}

func TestActivationOfExpertsBelongsToThem(t *testing.T) {
	dense, sparse := 0, 1
	g := &trace.Graph{Ops: []trace.Op{
		{Name: "layers.0.mlp.gate", Kind: "linear_f16", Layer: &dense, Block: "mlp"},
		{Name: "layers.0.mlp.silu_mul", Kind: "silu_mul", Layer: &dense, Block: "mlp"},
		{Name: "layers.1.mlp.gate", Kind: "linear_experts_q4_0", Layer: &sparse, Block: "mlp"},
		{Name: "layers.1.mlp.silu_mul", Kind: "silu_mul", Layer: &sparse, Block: "mlp"},
	}}
	if got := Of(g); !slices.Equal(got, []Class{GateUp, GateUp, Experts, Experts}) {
		t.Errorf("classes %v", got)
	}
	unnamed := &trace.Graph{Ops: []trace.Op{{Name: "MUL_MAT", Kind: "MUL_MAT"}, {Name: "GLU", Kind: "GLU"}}}
	if got := Of(unnamed); !slices.Equal(got, []Class{Other, Other}) {
		t.Errorf("classes of a profile without names: %v", got)
	}
}

// A program numbers its operators, so their order in a layer tells which matrix is which.
func TestOrderClassifiesNumberedMatrices(t *testing.T) {
	g := &trace.Graph{}
	layer := 0
	add := func(kind, block string) {
		o := trace.Op{ID: trace.OpID(len(g.Ops)), Name: "7." + kind, Kind: kind, Block: block}
		if block != "" {
			o.Layer = &layer
		}
		g.Ops = append(g.Ops, o)
	}
	add("embedding_q4gsw", "")
	for _, kind := range []string{
		"rms_norm", "linear_q4gsw", "linear_q4gsw", "linear_q4gsw", "apply_rotary_emb", "sdpa_with_kv_cache",
		"linear_q4gsw", "add",
	} {
		add(kind, "attn")
	}
	for _, kind := range []string{"rms_norm", "linear_q4gsw", "linear_q4gsw", "mul", "linear_q4gsw", "add"} {
		add(kind, "mlp")
	}
	add("rms_norm", "")
	add("linear_q4gsw", "")
	want := []Class{
		Embedding, Norms, QO, KV, KV, Attention, Attention, QO, Other, Norms, GateUp, GateUp, GateUp, Down,
		Other, Norms, Head,
	}
	if got := Of(g); !slices.Equal(got, want) {
		t.Errorf("classes %v, want %v", got, want)
	}
}
