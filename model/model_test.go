package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/model/demo"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/rules"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/network"
	"gpuscope/session"
)

func TestEmbeddedModelIsWhatItSays(t *testing.T) {
	m, err := Read(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	info := m.Info()
	if info.Name != "gpuscope demo" || info.Layers != 6 || info.Quantization != "Q4_0" ||
		info.Source != demo.Name || info.Parameters != 11_015_040 {
		t.Errorf("info %+v", info)
	}
	if m.context != 1024 || m.maxChunk != 512 {
		t.Errorf("context %d, chunk %d", m.context, m.maxChunk)
	}
	shared, err := os.ReadFile(filepath.Join("..", "..", "shared", "models", "demo.gguf"))
	if err != nil {
		return // a clone without the shared folder
	}
	if string(shared) != string(demo.File) {
		t.Error("the embedded model is not shared/models/demo.gguf")
	}
}

// graphOf returns the graph of a model for a device with the minimum limits.
func graphOf(t *testing.T, o Options) *graph.Graph {
	t.Helper()
	m, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	g, err := m.Plan(gpu.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDispatchListsTheBindingsOfItsKernels(t *testing.T) {
	g := graphOf(t, Options{}).Describe()
	bound := map[string][]string{} // bindings of q in the first layer, by kernel
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		op := g.Ops[d.Op].Name
		if len(d.Bound) != len(d.Kernels) {
			t.Fatalf("%s: %d lists of %d kernels", op, len(d.Bound), len(d.Kernels))
		}
		for k, list := range d.Bound {
			for _, v := range list {
				if !slices.Contains(d.Reads, v) && !slices.Contains(d.Writes, v) {
					t.Errorf("%s: %s is bound to %s, and neither reads nor writes it", op, d.Kernels[k],
						g.Values[v].Name)
				}
				if op == "layers.0.attn.q" {
					bound[d.Kernels[k]] = append(bound[d.Kernels[k]], g.Values[v].Name)
				}
			}
		}
	}
	const norm = "layers.0.attn.norm"
	for kernel, names := range bound {
		one := strings.Contains(kernel, "gemv") // a kernel for one row, whose norm is deferred to it
		if slices.Contains(names, norm) == one || slices.Contains(names, norm+".weighted") != one {
			t.Errorf("%s is bound to %q", kernel, names)
		}
	}
	if len(bound) < 2 {
		t.Errorf("q has the kernels %v", bound)
	}
}

func TestGraphOfALayerReadsLikeThePaper(t *testing.T) {
	g := graphOf(t, Options{Fuse: "off"})
	want := []string{
		"embed embedding_q4gsw", "seq sym_size", "slice cos slice", "slice sin slice",
		"layers.0.attn.norm rms_norm", "layers.0.attn.q linear_q4gsw", "layers.0.attn.k linear_q4gsw",
		"layers.0.attn.v linear_q4gsw",
		"layers.0.attn.q_heads view", "layers.0.attn.k_heads view", "layers.0.attn.v_heads view",
		"layers.0.attn.rope apply_rotary_emb", "layers.0.attn.sdpa sdpa_with_kv_cache",
		"layers.0.attn.join view", "layers.0.attn.o linear_q4gsw", "layers.0.attn.add add",
		"layers.0.mlp.norm rms_norm", "layers.0.mlp.gate linear_q4gsw", "layers.0.mlp.up linear_q4gsw",
		"layers.0.mlp.silu_mul silu_mul",
		"layers.0.mlp.down linear_q4gsw", "layers.0.mlp.add add",
	}
	last := []string{
		"layers.5.attn.norm rms_norm", "layers.5.attn.q_last slice", "layers.5.attn.q linear_q4gsw",
		"layers.5.attn.k linear_q4gsw", "layers.5.attn.v linear_q4gsw",
		"layers.5.attn.q_heads view", "layers.5.attn.k_heads view", "layers.5.attn.v_heads view",
		"layers.5.attn.rope apply_rotary_emb", "layers.5.attn.sdpa sdpa_with_kv_cache",
		"layers.5.attn.join view", "layers.5.attn.o linear_q4gsw", "layers.5.attn.last slice",
		"layers.5.attn.add add", "layers.5.mlp.norm rms_norm",
		"layers.5.mlp.gate linear_q4gsw", "layers.5.mlp.up linear_q4gsw", "layers.5.mlp.silu_mul silu_mul",
		"layers.5.mlp.down linear_q4gsw", "layers.5.mlp.add add",
		"norm rms_norm", "lm_head linear_q4gsw", "argmax argmax",
	}
	var got []string
	for _, o := range g.Describe().Ops {
		got = append(got, o.Name+" "+o.Kind)
	}
	if d := cmp.Diff(want, got[:len(want)]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(last, got[len(got)-len(last):]); d != "" {
		t.Error(d)
	}
	if n := 4 + 6*18 + 2 + 3; len(got) != n {
		t.Errorf("%d operators, want %d", len(got), n)
	}
}

// The projections compute the residual sums. This saves two operators and two levels per layer, for prompt
// and decode steps.
func TestResidualsAreFusedInEveryLayer(t *testing.T) {
	type shape struct{ ops, prompt, decode int }
	var of [2]shape
	for i, fuse := range []string{"off", "residual"} {
		m, err := Read(Options{Fuse: fuse})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		net, err := m.build(gpu.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		desc := net.Graph.Describe()
		of[i] = shape{
			len(desc.Ops), len(fresh(t, net, 512, 0).Levels()), len(fresh(t, net, 1, 700).Levels()),
		}
		parts := map[string][]string{}
		for _, o := range desc.Ops {
			if o.Parts != nil {
				parts[o.Name] = o.Parts
			}
		}
		want := map[string][]string{}
		for layer := range m.Info().Layers {
			if fuse == "off" {
				break
			}
			attn, mlp := fmt.Sprintf("layers.%d.attn.", layer), fmt.Sprintf("layers.%d.mlp.", layer)
			want[attn+"o+add"] = []string{attn + "o", attn + "add"}
			want[mlp+"down+add"] = []string{mlp + "down", mlp + "add"}
		}
		if d := cmp.Diff(want, parts); d != "" {
			t.Errorf("--fuse %s: fused parts (-want +got)\n%s", fuse, d)
		}
	}
	if want := (shape{of[0].ops - 12, of[0].prompt - 12, of[0].decode - 12}); of[1] != want {
		t.Errorf("operators and levels %+v, fused %+v, want %+v", of[0], of[1], want)
	}
}

// fresh returns a graph that was planned for one step only.
func fresh(t *testing.T, net *network.Network, tokens, position int) *graph.Live {
	t.Helper()
	live, err := graph.NewLive(net.Graph, graph.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		live.SetDims(net.Tokens, 1, tokens), live.SetInt(net.Pos, int64(position)),
		live.Propagate(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	live.Commit()
	return live
}

// The three projections of attention can run concurrently, and so can the two of the MLP. Each group must be
// in one level.
func TestIndependentProjectionsStandSideBySide(t *testing.T) {
	g := graphOf(t, Options{Fuse: normsRun})
	l, err := graph.NewLive(g, graph.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := g.Describe()
	starts := map[int32]bool{}
	for _, id := range l.Levels() {
		starts[int32(id)] = true
	}
	var level []string
	seen := map[string]bool{}
	for _, id := range append(l.Active(), -1) {
		if id < 0 || starts[int32(id)] {
			seen[strings.Join(level, " ")] = true
			level = nil
		}
		if id >= 0 {
			level = append(level, d.Ops[d.Dispatches[id].Op].Name)
		}
	}
	for _, want := range []string{
		"layers.3.attn.q layers.3.attn.k layers.3.attn.v",
		"layers.3.mlp.gate layers.3.mlp.up",
	} {
		if !seen[want] {
			t.Errorf("no level contains exactly %s", want)
		}
	}
}

func TestFileThatCannotBeRunIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	tests := map[string]struct {
		change func(b *gguftest.Builder)
		o      Options
		usage  bool
	}{
		"another architecture": {
			change: set("general.architecture", "mamba"),
		},
		"no architecture": {
			change: func(b *gguftest.Builder) { *b = *gguftest.New() },
		},
		"layers of zero": {
			change: set("llama.block_count", 0),
		},
		"layers without end": {
			change: set("llama.block_count", uint32(1<<31)),
		},
		"layers as text": {
			change: set("llama.block_count", "two"),
		},
		"a layer too many": {
			change: set("llama.block_count", 3),
		},
		"a layer too few": {
			change: set("llama.block_count", 1),
		},
		"negative": {
			change: set("llama.embedding_length", -64),
		},
		"another width": {change: func(b *gguftest.Builder) {
			b.Set("llama.embedding_length", 96)
			b.Set("llama.attention.head_count", 3)
			b.Set("llama.attention.head_count_kv", 3)
		}},
		"no heads": {
			change: set("llama.attention.head_count", 0),
		},
		"heads do not share": {
			change: set("llama.attention.head_count_kv", 3),
		},
		"heads do not divide": {
			change: set("llama.attention.head_count", 3),
		},
		"no epsilon": {
			change: set("llama.attention.layer_norm_rms_epsilon", float32(-1)),
		},
		"not a number": {
			change: set("llama.rope.freq_base", float32(math.NaN())),
		},
		"half a rotation": {
			change: set("llama.rope.dimension_count", 16),
		},
		"long values": {
			change: set("llama.attention.value_length", 64),
		},
		"experts": {
			change: set("llama.expert_count", 8),
		},
		"rope scaling": {
			change: func(b *gguftest.Builder) {
				b.Set("llama.rope.scaling.type", "dynamic")
				b.Set("llama.rope.scaling.factor", float32(4))
			},
		},
		"rope scaling of a name that nobody knows": {
			change: set("llama.rope.scaling.type", "spiral"),
		},
		"linear rope scaling by nothing": {
			change: set("llama.rope.scaling.type", "linear"),
		},
		"rope scaling by NaN or Inf": {
			change: set("llama.rope.scaling.factor", float32(math.NaN())),
		},
		"rope scaling by a word": {
			change: set("llama.rope.scaling.factor", "2"),
		},
		"rope scaling by less than nothing": {
			change: set("llama.rope.scaling.factor", float32(-2)),
		},
		"rope scaling without end": {
			change: set("llama.rope.scale_linear", float32(1e-30)),
		},
		"rope scaling of attention by nothing": {
			change: set("llama.rope.scaling.attn_factor", float32(0)),
		},
		"long rope factors of another length": {change: func(b *gguftest.Builder) {
			b.F32("rope_factors_long.weight", []int{8}, make([]float32, 8))
		}},
		"rope frequencies of another length": {change: func(b *gguftest.Builder) {
			b.F32("rope_freqs.weight", []int{32}, make([]float32, 32))
		}},
		"rope frequencies of zero": {change: func(b *gguftest.Builder) {
			b.F32("rope_freqs.weight", []int{16}, make([]float32, 16))
		}},
		"bias": {change: func(b *gguftest.Builder) {
			b.F32("blk.0.attn_q.bias", []int{64},
				make([]float32, 64))
		}},
		"head of another type": {
			change: func(b *gguftest.Builder) {
				// No file is published with weights of these types.
				b.Tensor("output.weight", gguf.Q8_1, []int{tinyVocab, 64}, make([]byte, tinyVocab*2*36))
				b.Tensor("more", gguf.F64, []int{32}, make([]byte, 8*32))
			},
		},
		"rope frequencies of another type": {
			change: func(b *gguftest.Builder) {
				b.Tensor("rope_freqs.weight", gguf.I16, []int{16}, make([]byte, 32))
			},
		},
		"head of another shape": {
			change: func(b *gguftest.Builder) {
				b.Q4_0("output.weight", []int{64, 64},
					make([]float32, 64*64))
			},
		},
		"context over the model": {
			o:     Options{Context: 65},
			usage: true,
		},
		"negative context": {o: Options{Context: -1}, usage: true},
		"chunk over the context": {
			o:     Options{Context: 32, MaxChunk: 33},
			usage: true,
		},
		"negative chunk":      {o: Options{MaxChunk: -1}, usage: true},
		"negative candidates": {o: Options{TopLogits: -1}, usage: true},
		"cache over a binding": {
			change: set("llama.context_length", 1<<21), o: Options{Context: 1 << 21},
		},
		"positions that no kernel counts": {
			change: set("llama.context_length", math.MaxInt32), o: Options{Context: math.MaxInt32},
		},
		"no such device": {o: Options{Device: "7"}, usage: true},
		"no such route": {
			o:     Options{Routes: map[string]string{"linear_q4gsw": "warp"}},
			usage: true,
		},
		"route for fewer tokens than a step may take": {
			o:     Options{MaxChunk: 24, Routes: map[string]string{"linear_q4gsw@attn.q": "gemv"}},
			usage: true,
		},
		"route that only a fusion rule brings": {
			o:     Options{Routes: map[string]string{"sdpa_with_kv_cache": "split_decoding"}},
			usage: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := tiny()
			if test.change != nil {
				test.change(b)
			}
			test.o.Path, test.o.Driver = write(t, b.Bytes()), &fake.Driver{All: []fake.Options{{}}}
			s, err := Open(context.Background(), test.o, nil)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line", err)
			}
			golden.Text(name, inFolder(err, filepath.Dir(test.o.Path)))
			if errors.Is(err, session.ErrUsage) != test.usage {
				t.Errorf("error %v: usage error %v, want %v", err, !test.usage, test.usage)
			}
		})
	}
}

func set(key string, value any) func(*gguftest.Builder) {
	return func(b *gguftest.Builder) { b.Set(key, value) }
}

func TestSeparateOutputHeadIsUsed(t *testing.T) {
	b := tiny()
	b.Q4_0("output.weight", []int{tinyVocab, tinyDim}, make([]float32, tinyVocab*tinyDim))
	g := graphOf(t, Options{Path: write(t, b.Bytes())})
	for _, v := range g.Describe().Values {
		if strings.HasPrefix(v.Name, "output.weight") {
			return
		}
	}
	t.Error("the graph has no output.weight")
}

// A graph outlives its file. Reading a weight then returns an error instead of accessing unmapped memory.
func TestWeightsOfAClosedModelAreAnError(t *testing.T) {
	m, err := Read(Options{Path: write(t, tiny().Bytes())})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Plan(gpu.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for id := range g.Describe().Values {
		v := g.Value(graph.ValueID(id))
		if v.Load == nil || strings.HasPrefix(v.Name, "rope_") { // those are computed
			continue
		}
		if _, err := v.Load(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", v.Name, err)
		}
		refused++
	}
	if refused == 0 {
		t.Error("the graph has no weights")
	}
}

func TestNonModelFileIsRefusedInOneLine(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "model.gguf") // the extension is wrong for the contents
	if err := os.WriteFile(text, []byte("# a text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, filepath.Join(dir, "missing.gguf"), dir} {
		_, err := Read(Options{Path: path})
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// machineWithout is a driver without adapters.
type machineWithout struct{ fake.Driver }

func (*machineWithout) Adapters() ([]gpu.AdapterInfo, error) { return nil, gpu.ErrNoAdapter }

func TestMissingDeviceIsReported(t *testing.T) {
	golden := wordingtest.New(t)
	_, err := Open(context.Background(), Options{Driver: &machineWithout{}}, nil)
	if !errors.Is(err, gpu.ErrNoAdapter) || errors.Is(err, session.ErrUsage) {
		t.Errorf("error %v", err)
	}
	golden.Error("no adapter", err)
}

func TestDeviceIsGivenBackWhenOpeningFails(t *testing.T) {
	for _, kind := range []fake.Kind{fake.NewBuffer, fake.NewPipeline, fake.NewBindGroup, fake.Write} {
		driver := &failing{kind: kind}
		_, err := Open(context.Background(), Options{Path: write(t, tiny().Bytes()), Driver: driver}, nil)
		if !errors.Is(err, errInjected) {
			t.Fatalf("%s: %v", kind, err)
		}
		if driver.dev.Count(kind) != 2 {
			t.Errorf("%s was called %d times", kind, driver.dev.Count(kind))
		}
		if _, err := driver.dev.NewBuffer("late", 4, gpu.Storage); err == nil {
			t.Errorf("%s: the device was not released", kind)
		}
	}
}

var errInjected = errors.New("injected")

// failing is a driver whose device fails at the second call of the given kind.
type failing struct {
	kind fake.Kind
	dev  *fake.Device
}

func (f *failing) Adapters() ([]gpu.AdapterInfo, error) {
	return []gpu.AdapterInfo{{Name: "failing"}}, nil
}

func (f *failing) Open(int) (gpu.Device, error) {
	f.dev = fake.New(fake.Options{})
	f.dev.FailNth(f.kind, 2, errInjected)
	return f.dev, nil
}

// Opening can also be cancelled within each of its phases. It then stops after the current piece of work.
func TestCancelOfOpeningIsHeardAtEveryPiece(t *testing.T) {
	path := write(t, tiny().Bytes())
	open := func(cancelAt int) (told int, dev *fake.Device, err error) {
		driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s, err := Open(ctx, Options{Path: path, Driver: driver}, func(e session.Event) {
			if e.Progress == nil {
				return
			}
			if told == cancelAt {
				cancel()
			}
			told++
		})
		if err == nil {
			err = s.Close()
		}
		if len(driver.Opened) > 0 {
			dev = driver.Opened[0]
		}
		return told, dev, err
	}
	pieces, _, err := open(-1)
	if err != nil {
		t.Fatal(err)
	}
	if pieces < 20 {
		t.Fatalf("only %d pieces of progress", pieces)
	}
	for at := 0; at < pieces; at += 1 + pieces/7 {
		told, dev, err := open(at)
		if !errors.Is(err, context.Canceled) || told > at+2 { // a phase's end is reported with the next one
			t.Errorf("cancelled at piece %d of %d: %d more reported, error %v", at, pieces, told-at-1, err)
		}
		if dev != nil && dev.Live() != (rules.Live{}) {
			t.Errorf("cancelled at piece %d: not released: %+v", at, dev.Live())
		}
	}
}
