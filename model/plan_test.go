package model

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/network"
	"gpuscope/trace"
)

type shape = gguftest.Shape

// deviceLimits returns the limits of a large GPU.
func deviceLimits() gpu.Limits {
	l := gpu.DefaultLimits()
	l.MaxBufferSize, l.MaxStorageBinding = 1<<40, 1<<31
	l.MaxStorageBuffers, l.MaxWorkgroupStorage, l.MaxInvocations = 16, 48<<10, 1024
	return l
}

// deep returns the shape of a small model with the given number of layers.
func deep(layers int) shape {
	return shape{Layers: layers, Dim: 64, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96, Vocab: 257}
}

// hollow writes a model file of a shape without weights and returns its path.
func hollow(t testing.TB, s shape) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hollow.gguf")
	if err := gguftest.HollowLlama(s).WriteSparse(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// alone skips a test with -short if the test uses only one goroutine. The race detector has nothing to check
// there and takes five times as long.
func alone(t *testing.T) {
	if testing.Short() {
		t.Skip("planned by one goroutine")
	}
}

// planned returns the graph of a shape, for steps of at most 512 tokens.
func planned(t testing.TB, s shape, fuse string) *network.Network {
	t.Helper()
	return plan(t, hollow(t, s), fuse)
}

func plan(t testing.TB, path, fuse string) *network.Network {
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

// levelsAt returns the number of levels and compute passes of a step.
func levelsAt(t testing.TB, n *network.Network, tokens, pos int) (levels, passes int) {
	t.Helper()
	l := liveAt(t, n, tokens, pos)
	return len(l.Levels()), l.Passes()
}

// liveAt returns a graph with the shapes of its current step.
func liveAt(t testing.TB, n *network.Network, tokens, pos int) *graph.Live {
	t.Helper()
	l, err := broughtTo(n, tokens, pos)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func broughtTo(n *network.Network, tokens, pos int) (*graph.Live, error) {
	l, err := graph.NewLive(n.Graph, graph.LiveOptions{})
	if err != nil {
		return nil, err
	}
	if err := l.SetDims(n.Tokens, 1, tokens); err != nil {
		return nil, err
	}
	if err := l.SetInt(n.Pos, int64(pos)); err != nil {
		return nil, err
	}
	if err := l.Propagate(); err != nil {
		return nil, err
	}
	l.Commit()
	return l, nil
}

// points are steps that cover every route of a Llama: prompts and single tokens, at the start and later. more
// is the number of additional levels per layer without fusion. With fusion, fused is added to it.
//
// With many tokens, the sums of products with split columns take levels of their own. With fewer tokens, all
// products of a layer have such sums, and the sums of q run before k unless a rule runs them in the same
// level. A few tokens at a late position take attention in two dispatches, which adds a level per layer. One
// token takes one dispatch, or two at a late position, where the first also appends to the cache. With
// fusion, a layer has 5 of 13 levels left for one token, or 6 if attention takes two dispatches.
var points = []struct{ tokens, pos, more, fused int }{
	{512, 0, 5, -4},
	{512, 1024, 5, -4},
	{100, 0, 7, -6},
	{5, 700, 1, -3},
	{2, 9, 0, -3},
	{1, 0, -1, -7},
	{1, 512, 0, -8},
	{1, 4000, 0, -7},
}

// The test limits the memory and the levels of real model shapes. Each additional compute pass counts as one
// more level.
func TestLargeShapesTakeLittleMemoryAndFewLevels(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		name         string
		shape        shape
		bytes, fused int64 // most bytes of shared memory, without and with fusion
		levels       int
	}{{"1B", gguftest.Llama1B, 140e6, 112e6, 222}, {"8B", gguftest.Llama8B, 200e6, 182e6, 454}} {
		for _, fuse := range []string{"off", "on"} {
			n, most := planned(t, test.shape, fuse), test.bytes
			if fuse == "on" {
				most = test.fused
			}
			if got := n.Graph.AllocatedBytes()["shared"]; got > most {
				t.Errorf("%s, fuse %s: %d bytes are shared, want %d at most", test.name, fuse, got, most)
			}
			for _, at := range points {
				levels, passes := levelsAt(t, n, at.tokens, at.pos)
				if at.tokens == 1 && passes != 1 {
					t.Errorf("%s: a step of one token at %d is cut into %d passes", test.name, at.pos, passes)
				}
				more := at.more // additional levels per layer
				if fuse == "on" {
					more += at.fused
				}
				if want := test.levels + more*test.shape.Layers; levels+passes-1 > want {
					t.Errorf("%s, fuse %s, %+v: %d levels in %d passes, want %d in all at most", test.name,
						fuse, at, levels, passes, want)
				}
			}
		}
	}
}

func TestSharedMemoryDoesNotGrowWithDepth(t *testing.T) {
	alone(t)
	for _, test := range []struct {
		shape     shape
		few, many int // numbers of layers; few is as many as the first passes hold
	}{
		{gguftest.Llama8B, 48, 192},
		{gguftest.Llama1B, 96, 192},
		{shape{Dim: 2048, Heads: 16, KVHeads: 16, HeadDim: 128, FFN: 5632, Vocab: 999}, 32, 128},
		{shape{Dim: 512, Heads: 8, KVHeads: 1, HeadDim: 64, FFN: 512, Vocab: 1024}, 256, 512},
	} {
		bytes := func(layers int) int64 {
			test.shape.Layers = layers
			return planned(t, test.shape, "on").Graph.AllocatedBytes()["shared"]
		}
		// Only the end of the last pass may differ.
		if few, many := bytes(test.few), bytes(test.many); many > few+few/20 {
			t.Errorf("%+v: %d bytes, of %d layers %d", test.shape, many, test.few, few)
		}
	}
}

// layerLevels returns the operators of a layer in a step of one token, level by level.
func layerLevels(t *testing.T, n *network.Network, layer, pos int) (levels []string) {
	t.Helper()
	l := liveAt(t, n, 1, pos)
	d, begins := n.Graph.Describe(), l.Levels()
	was := -1
	for _, id := range l.Active() {
		op := &d.Ops[d.Dispatches[id].Op]
		if op.Layer == nil || *op.Layer != layer {
			continue
		}
		at := 0
		for at < len(begins) && begins[at] <= id {
			at++
		}
		if at != was {
			levels, was = append(levels, ""), at
		}
		level := &levels[len(levels)-1]
		*level = strings.TrimSpace(*level + " " + op.Name[strings.LastIndexByte(op.Name, '.')+1:])
	}
	return levels
}

// A kernel that only one layer runs costs the device another code fetch in each step.
func TestLayersOfAStepRunTheSameKernels(t *testing.T) {
	alone(t)
	for _, s := range []shape{gguftest.Llama1B, gguftest.Llama8B, deep(3)} {
		s.Layers = 3
		n := planned(t, s, "on")
		l := liveAt(t, n, 1, 700)
		d := n.Graph.Describe()
		sources := make([][]string, s.Layers)
		for _, id := range l.Active() {
			if op := &d.Ops[d.Dispatches[id].Op]; op.Layer != nil {
				_, k := l.Launch(id)
				sources[*op.Layer] = append(sources[*op.Layer], k.Source)
			}
		}
		for layer := range sources {
			if !slices.Equal(sources[layer], sources[1]) {
				t.Errorf("width %d: layer %d runs other kernels than layer 1", s.Dim, layer)
			}
		}
	}
}

// Fusion rules find different neighbours in each architecture. docs/internals/engine.md lists the remaining
// levels of a layer.
func TestLevelsOfALayerMatchTheDocs(t *testing.T) {
	alone(t)
	docs, err := os.ReadFile("../docs/internals/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range ggufArchitectures() {
		file := tinyWide(a, 128)
		file.Set(a.Name+".context_length", 4096)
		path := write(t, file.Bytes())
		on, off := plan(t, path, "on"), plan(t, path, "off")
		few := layerLevels(t, on, 0, 10)
		want := fmt.Sprintf("| %s | %s | %d, %d | %d, %d |\n", a.Name, strings.Join(few, " · "),
			len(few), len(layerLevels(t, on, 0, 3000)),
			len(layerLevels(t, off, 0, 10)), len(layerLevels(t, off, 0, 3000)))
		if !strings.Contains(string(docs), want) {
			t.Errorf("docs/internals/engine.md has no row\n%s", want)
		}
	}
}

// docs/internals/engine.md also lists the levels of Gemma 3 by model size, for a layer with full attention.
func TestLevelsOfLargeGemmasMatchTheDocs(t *testing.T) {
	gemma := func(dim, heads, kvHeads, headDim, ffn int) shape {
		return shape{
			Layers: 7, Dim: dim, Heads: heads, KVHeads: kvHeads, HeadDim: headDim, FFN: ffn, Vocab: 262144,
		}
	}
	for name, c := range map[string]struct {
		shape     shape
		few, many int
	}{
		"4B":  {gemma(2560, 8, 4, 256, 10240), 6, 7},
		"12B": {gemma(3840, 16, 8, 256, 15360), 7, 8},
		"27B": {gemma(5376, 32, 16, 128, 21504), 7, 8},
	} {
		path := filepath.Join(t.TempDir(), "hollow.gguf")
		if err := gguftest.HollowGemma3(c.shape).WriteSparse(path); err != nil {
			t.Fatal(err)
		}
		n := plan(t, path, "on")
		few, many := layerLevels(t, n, 5, 10), layerLevels(t, n, 5, 3000)
		if len(few) != c.few || len(many) != c.many {
			t.Errorf("%s has levels %v and %v, want %d and %d", name, few, many, c.few, c.many)
		}
	}
}

// docs/internals/engine.md lists the rules that match only the results of other rules.
func TestChainedRulesNeedTheirPredecessors(t *testing.T) {
	file := tinyWide(&arch.Gemma3, 128)
	file.Set("gemma3.context_length", 4096)
	path := write(t, file.Bytes())
	for rule, others := range map[string][]string{
		"norm_sum": {"norm_add"}, "spread_sum": {"norm_add", "norm_sum"}, "norm_attention": {"rope_attention", "qk_norm"}, "spread": {"gate_up"},
	} {
		finds := func(rules []string) bool {
			passes := plan(t, path, strings.Join(append(rules, rule), ",")).Graph.Passes()
			return slices.ContainsFunc(passes, func(p graph.PassReport) bool {
				return slices.ContainsFunc(p.Notes, func(n string) bool {
					return strings.HasSuffix(n, " × "+rule)
				})
			})
		}
		if !finds(slices.Clone(others)) {
			t.Errorf("%s does not match after %v", rule, others)
		}
		for i := range others {
			if without := slices.Delete(slices.Clone(others), i, i+1); finds(without) {
				t.Errorf("%s matches after only %v", rule, without)
			}
		}
	}
}

// In each architecture, o and down read an interleaved row. If attention and MLP are parallel, only the last
// layer's down does. Where sums are deferred to products, the products
// that compute these sums read interleaved rows too. The exceptions are the sum of which the last layer takes
// one row, and the last layer's own sum.
func TestRowsOfEachArchitectureAreInterleaved(t *testing.T) {
	for _, a := range ggufArchitectures() {
		spread := map[string]int{}
		file := tinyWide(a, 128)
		file.Set(a.Name+".context_length", 4096)
		n := plan(t, write(t, file.Bytes()), "on")
		for _, v := range n.Graph.Describe().Values {
			name, ok := strings.CutSuffix(v.Name, ".spread")
			if ok && v.Role == trace.RoleIntermediate {
				spread[name[strings.LastIndexByte(name, '.')+1:]]++
			}
		}
		want := map[string]int{"sdpa": tinyLayers, a.Gate.Name: tinyLayers}
		if a.Experts { // products with the matrices of experts read rows in plain order
			delete(want, a.Gate.Name)
		}
		switch a.Name {
		case "lfm2": // the first layer has no attention
			want["sdpa"] = 1
		case "qwen35moe": // as qwen35; the shared expert's product reads an interleaved row
			delete(want, "sdpa")
			want[a.Gate.Name] = tinyLayers
		case "qwen35": // nor has the other one attention that only a linear reads
			delete(want, "sdpa")
		}
		if a.Parallel { // down adds the sum of attention, whose rows are not known to be those of the norm
			want[a.Gate.Name] = 1
		}
		if a.PostNorms && !a.NoPreNorms && !a.LayerScales { // the scale of a layer is between sum and norm
			want["add"] = 2 * (tinyLayers - 1)
		}
		if !maps.Equal(spread, want) {
			t.Errorf("%s: interleaved rows %v, want %v", a.Name, spread, want)
		}
	}
}

// Planning time is linear in the number of layers. The test compares allocated bytes, because a time would
// depend on the machine.
func TestPlanningTimeGrowsLinearlyWithLayers(t *testing.T) {
	alone(t)
	allocated := func(layers int) uint64 {
		path := hollow(t, deep(layers))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan(t, path, "on")
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(50), allocated(400); many > 12*few {
		t.Errorf("planning 8 times the layers takes %d bytes instead of %d", many, few)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, layers := range []int{100, 800} {
		b.Run(fmt.Sprint(layers, " layers"), func(b *testing.B) {
			path := hollow(b, deep(layers))
			for b.Loop() {
				plan(b, path, "on")
			}
		})
	}
}
