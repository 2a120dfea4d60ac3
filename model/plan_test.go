package model

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/model/gguf"
	"gpuscope/model/gguf/gguftest"
)

// shape is a Llama's, for files that have everything but weights.
type shape struct{ layers, dim, heads, kvHeads, headDim, ffn, vocab int }

var (
	shape1B = shape{layers: 16, dim: 2048, heads: 32, kvHeads: 8, headDim: 64, ffn: 8192, vocab: 128256}
	shape8B = shape{layers: 32, dim: 4096, heads: 32, kvHeads: 8, headDim: 128, ffn: 14336, vocab: 128256}
)

// deviceLimits are those of a large GPU.
func deviceLimits() gpu.Limits {
	l := gpu.DefaultLimits()
	l.MaxBufferSize, l.MaxStorageBinding = 1<<40, 1<<31
	l.MaxStorageBuffers, l.MaxWorkgroupStorage, l.MaxInvocations = 16, 48<<10, 1024
	return l
}

// hollow is a model file of a shape without weights.
func hollow(t testing.TB, s shape) string {
	t.Helper()
	b := gguftest.New()
	for key, value := range map[string]any{
		"general.architecture": "llama", "general.name": "hollow",
		"llama.block_count": s.layers, "llama.context_length": 131072,
		"llama.embedding_length": s.dim, "llama.feed_forward_length": s.ffn,
		"llama.attention.head_count": s.heads, "llama.attention.head_count_kv": s.kvHeads,
		"llama.rope.dimension_count":             s.headDim,
		"llama.attention.layer_norm_rms_epsilon": float32(1e-5), "llama.rope.freq_base": float32(500000),
		"llama.vocab_size": s.vocab,
	} {
		b.Set(key, value)
	}
	matrix := func(name string, rows, cols int) { b.Hollow(name, gguf.Q4_0, []int{rows, cols}) }
	vector := func(name string) { b.Hollow(name, gguf.F32, []int{s.dim}) }
	matrix("token_embd.weight", s.vocab, s.dim)
	vector("output_norm.weight")
	for layer := range s.layers {
		blk := fmt.Sprintf("blk.%d.", layer)
		vector(blk + "attn_norm.weight")
		matrix(blk+"attn_q.weight", s.heads*s.headDim, s.dim)
		matrix(blk+"attn_k.weight", s.kvHeads*s.headDim, s.dim)
		matrix(blk+"attn_v.weight", s.kvHeads*s.headDim, s.dim)
		matrix(blk+"attn_output.weight", s.dim, s.heads*s.headDim)
		vector(blk + "ffn_norm.weight")
		matrix(blk+"ffn_gate.weight", s.ffn, s.dim)
		matrix(blk+"ffn_up.weight", s.ffn, s.dim)
		matrix(blk+"ffn_down.weight", s.dim, s.ffn)
	}
	path := filepath.Join(t.TempDir(), "hollow.gguf")
	if err := b.WriteSparse(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// planned is the graph of a shape, for steps of at most 512 tokens.
func planned(t testing.TB, s shape, fuse string) *network {
	t.Helper()
	return plan(t, hollow(t, s), fuse)
}

func plan(t testing.TB, path, fuse string) *network {
	t.Helper()
	m, err := Read(Options{Path: path, Context: 4096, Fuse: fuse})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	n, err := m.build(deviceLimits())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// levelsAt is how many levels and compute passes a step of some tokens at a position has.
func levelsAt(t testing.TB, n *network, tokens, pos int) (levels, passes int) {
	t.Helper()
	l, err := engine.NewLive(n.graph, engine.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetDims(n.tokens, 1, tokens); err != nil {
		t.Fatal(err)
	}
	if err := l.SetInt(n.pos, int64(pos)); err != nil {
		t.Fatal(err)
	}
	if err := l.Propagate(); err != nil {
		t.Fatal(err)
	}
	l.Commit()
	return len(l.Levels()), l.Passes()
}

// points are steps of every route that a Llama has: prompts and single tokens, at the start and later. Few
// rows take attention in three dispatches with a barrier before each, two levels a layer more than the rest.
var points = []struct{ tokens, pos, more int }{
	{512, 0, 0}, {512, 1024, 0}, {100, 0, 2}, {5, 700, 2}, {2, 9, 2}, {1, 0, 0}, {1, 512, 0}, {1, 4000, 0},
}

// What barriers and memory cost at the shapes of real models. A compute pass more is counted as a level more.
func TestLargeShapesTakeLittleMemoryAndFewLevels(t *testing.T) {
	for _, test := range []struct {
		name   string
		shape  shape
		bytes  int64
		levels int
	}{{"1B", shape1B, 240e6, 214}, {"8B", shape8B, 300e6, 422}} {
		for fuse, fewer := range map[string]int{"off": 0, "on": 2} { // levels a layer
			n := planned(t, test.shape, fuse)
			if got := n.graph.AllocatedBytes()["shared"]; got > test.bytes {
				t.Errorf("%s, fuse %s: %d bytes are shared, want %d at most", test.name, fuse, got,
					test.bytes)
			}
			for _, at := range points {
				levels, passes := levelsAt(t, n, at.tokens, at.pos)
				if at.tokens == 1 && passes != 1 {
					t.Errorf("%s: a step of one token at %d is cut into %d passes", test.name, at.pos, passes)
				}
				if want := test.levels + (at.more-fewer)*test.shape.layers; levels+passes-1 > want {
					t.Errorf("%s, fuse %s, %+v: %d levels in %d passes, want %d in all at most", test.name,
						fuse, at, levels, passes, want)
				}
			}
		}
	}
}

func TestSharedMemoryDoesNotGrowWithDepth(t *testing.T) {
	for _, test := range []struct {
		shape     shape
		few, many int // layers; the few are as many as the first passes take
	}{
		{shape8B, 16, 64},
		{shape1B, 16, 64},
		{shape{dim: 2048, heads: 16, kvHeads: 16, headDim: 128, ffn: 5632, vocab: 999}, 16, 64},
		{shape{dim: 512, heads: 8, kvHeads: 1, headDim: 64, ffn: 512, vocab: 1024}, 64, 192},
	} {
		bytes := func(layers int) int64 {
			test.shape.layers = layers
			return planned(t, test.shape, "on").graph.AllocatedBytes()["shared"]
		}
		// What differs is where the last pass ends.
		if few, many := bytes(test.few), bytes(test.many); many > few+few/20 {
			t.Errorf("%+v: %d bytes, of %d layers %d", test.shape, many, test.few, few)
		}
	}
}

// Planning is linear in the layers, told by what it allocates: a time would depend on the machine.
func TestPlanningTakesTwiceAsMuchForTwiceTheLayers(t *testing.T) {
	allocated := func(layers int) uint64 {
		path := hollow(t, shape{layers, 64, 2, 1, 32, 96, 257})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan(t, path, "on")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(50), allocated(400); many > 12*few {
		t.Errorf("8 times the layers take %d bytes in place of %d to plan", many, few)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, layers := range []int{100, 800} {
		b.Run(fmt.Sprint(layers, " layers"), func(b *testing.B) {
			path := hollow(b, shape{layers, 64, 2, 1, 32, 96, 257})
			for b.Loop() {
				plan(b, path, "on")
			}
		})
	}
}
