package vulkan_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// weights looks up the keys of ptetest.ExampleGraph.
func weights(key string) (pte.Data, error) {
	if key == "weight" {
		return pte.Of(make([]byte, 140), "weights.ptd"), nil
	}
	return pte.Data{}, pte.ErrNoData
}

func parse(data []byte) (*vulkan.Graph, error) {
	return vulkan.Parse(pte.Of(data, "test.pte"), weights)
}

func example(t testing.TB) *vulkan.Graph {
	t.Helper()
	g, err := parse(ptetest.ExampleGraph().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGraphIsRead(t *testing.T) {
	t.Parallel()
	g := example(t)
	if !cmp.Equal(g.Inputs, []int{0, 1}) || !cmp.Equal(g.Outputs, []int{6}) || g.Version != "0" {
		t.Errorf("inputs %v, outputs %v, version %q", g.Inputs, g.Outputs, g.Version)
	}
	want := []vulkan.Value{
		vulkan.SymInt{},
		vulkan.SymInt{},
		vulkan.SymInt{},
		int64(0), nil, 0.5, true,
		[]int64{1, 2},
		[]float64{1},
		[]bool{true},
		vulkan.ValueList{0, 8},
		"a\nb",
	}
	if diff := cmp.Diff(want, g.Values[7:19]); diff != "" {
		t.Error(diff)
	}
	tensor := &vulkan.Tensor{
		Type: pte.Float32, Staging: pte.Float32, Dims: []int{16, 4}, Constant: -1, Storage: 255, Layout: 255,
	}
	if diff := cmp.Diff(tensor, g.Values[0]); diff != "" {
		t.Error(diff)
	}
	for i, want := range []struct {
		key, file string
		bytes     int64
	}{{"weight", "weights.ptd", 140}, {"", "test.pte", 32}, {"", "test.pte", 1024}} {
		c := &g.Constants[i]
		if file, _ := c.Data.Place(); c.Key != want.key || file != want.file || c.Data.Size() != want.bytes {
			t.Errorf("constant %d: %q in %s, %d bytes", i, c.Key, file, c.Data.Size())
		}
	}
	op := &g.Operators[3]
	if op.ID != 3 || op.Name != "aten.linear.default" || !cmp.Equal(op.Args, []int{0, 2, 3, 4}) {
		t.Errorf("%+v", op)
	}
}

func TestArgumentsHaveNames(t *testing.T) {
	t.Parallel()
	g := example(t)
	for i, want := range map[int][]string{
		3: {"input", "weight", "bias", "out"}, 5: {"value", "cache", "start_pos", "out"},
		6: {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5", "arg6", "arg7", "out"},
	} {
		if op := &g.Operators[i]; !cmp.Equal(op.Arguments(), want) || op.Known() != (i < 6) {
			t.Errorf("%s: %q, known %v", op.Name, op.Arguments(), op.Known())
		}
	}
	another := vulkan.Operator{Name: "aten.linear.default", Args: []int{1, 2}}
	if !cmp.Equal(another.Arguments(), []string{"arg0", "out"}) || another.Known() {
		t.Errorf("another number of arguments: %q", another.Arguments())
	}
	if none := (vulkan.Operator{}); none.Arguments() != nil {
		t.Errorf("no arguments: %q", none.Arguments())
	}
}

func TestUsesAndMemoryPlanAreFound(t *testing.T) {
	t.Parallel()
	g := example(t)
	update := &g.Operators[5] // updates a state in place
	if got := g.Writes(update); !cmp.Equal(got, []int{5, 11}) {
		t.Errorf("written %v", got)
	}
	if got := g.Reads(update); !cmp.Equal(got, []int{19, 5, 7}) {
		t.Errorf("read %v", got)
	}
	if got := g.Reads(&g.Operators[4]); !cmp.Equal(got, []int{4, 0, 8}) { // reads through a list
		t.Errorf("read by a view %v", got)
	}
	if got := g.Mutable(); !cmp.Equal(got, []int{5}) {
		t.Errorf("mutable %v", got)
	}
	want := []vulkan.Object{{ID: 0, Bytes: 512, Values: []int{0, 6}}, {ID: 1, Bytes: 512, Values: []int{4}}}
	if diff := cmp.Diff(want, g.Objects()); diff != "" {
		t.Error(diff)
	}
	in, out, err := g.Split([]int{7, 8, 9})
	if !cmp.Equal(in, []int{7, 8}) || !cmp.Equal(out, []int{9}) || err != nil {
		t.Errorf("%v, %v, %v", in, out, err)
	}
	if _, _, err := g.Split([]int{7, 8}); err == nil {
		t.Error("Split accepted two arguments instead of three")
	}
}

// An absent field has its default value. The default of constant_id and mem_obj_id is 0.
func TestAbsentConstantIsTheFirst(t *testing.T) {
	t.Parallel()
	graph := ptetest.Graph{
		Values: []ptetest.Table{{0: ptetest.One(5, ptetest.Table{
			0: int8(1), 1: []uint32{4},
			6: int8(7),
		})}},
		Constants: []ptetest.Table{ptetest.Inline(0, 4)}, Data: []byte("data"),
	}
	g, err := parse(graph.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := &vulkan.Tensor{Type: pte.Uint8, Staging: pte.Int64, Dims: []int{4}, Storage: 255, Layout: 255}
	if diff := cmp.Diff(want, g.Values[0]); diff != "" {
		t.Error(diff)
	}
}

func TestMissingWeightsAreNoted(t *testing.T) {
	t.Parallel()
	none := func(string) (pte.Data, error) { return pte.Data{}, pte.ErrNoData }
	g, err := vulkan.Parse(pte.Of(ptetest.ExampleGraph().Bytes(), "test.pte"), none)
	if err != nil {
		t.Fatal(err)
	}
	if c := &g.Constants[0]; !errors.Is(c.Missing, pte.ErrNoData) || c.Data.Size() != 0 || c.Key != "weight" {
		t.Errorf("%+v", c)
	}
	twice := func(string) (pte.Data, error) { return pte.Data{}, pte.ErrTwice }
	if _, err = vulkan.Parse(pte.Of(ptetest.ExampleGraph().Bytes(), ""), twice); !errors.Is(err,
		pte.ErrTwice) {
		t.Errorf("weights in two files: %v", err)
	}
}

func TestBrokenGraphsAreNamed(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	header := func(change func(b []byte)) []byte {
		b := ptetest.ExampleGraph().Bytes()
		change(b)
		return b
	}
	type table = ptetest.Table
	graph := func(change func(g *ptetest.Graph)) []byte {
		g := ptetest.ExampleGraph()
		change(g)
		return g.Bytes()
	}
	tensor := func(fields table) []byte {
		return graph(func(g *ptetest.Graph) { g.Values[0] = table{0: ptetest.One(5, fields)} })
	}
	list := make([]int32, 4096)
	for name, c := range map[string]struct {
		data         []byte
		table, field string
	}{
		"another format": {
			[]byte("\x10\x00\x00\x00VK00\x00\x00\x00\x00"), "Vulkan delegate",
			"identifier",
		},
		"empty":             {nil, "Vulkan delegate", "identifier"},
		"cut in the header": {ptetest.ExampleGraph().Bytes()[:20], "VH00 header", "size"},
		"a short header": {
			header(func(b []byte) { le.PutUint16(b[8:], 29) }), "VH00 header",
			"size",
		},
		"a graph in the header":    {header(func(b []byte) { le.PutUint32(b[10:], 29) }), "VH00 header", "FlatBuffer"},
		"no graph":                 {header(func(b []byte) { le.PutUint32(b[14:], 0) }), "VH00 header", "FlatBuffer"},
		"constants in the graph":   {header(func(b []byte) { le.PutUint32(b[18:], 40) }), "VH00 header", "constants"},
		"constants past the end":   {header(func(b []byte) { le.PutUint64(b[22:], 1<<63) }), "VH00 header", "constants"},
		"constants after the end":  {header(func(b []byte) { le.PutUint32(b[18:], 1<<31); le.PutUint64(b[22:], 0) }), "VH00 header", "constants"},
		"another graph":            {header(func(b []byte) { b[36] = 'X' }), "VkGraph", "identifier"},
		"an argument out of range": {graph(func(g *ptetest.Graph) { g.Operators[0][2] = []int32{99} }), "OperatorCall", "args"},
		"a negative argument":      {graph(func(g *ptetest.Graph) { g.Operators[0][2] = []int32{-1} }), "OperatorCall", "args"},
		"an input out of range": {
			graph(func(g *ptetest.Graph) { g.Inputs[0] = 99 }), "VkGraph",
			"input_ids",
		},
		"a SymInt as input": {
			graph(func(g *ptetest.Graph) { g.Inputs[0] = 7 }), "VkGraph",
			"input_ids",
		},
		"a number as output":       {graph(func(g *ptetest.Graph) { g.Outputs[0] = 10 }), "VkGraph", "output_ids"},
		"an unknown type of value": {graph(func(g *ptetest.Graph) { g.Values[0] = table{0: ptetest.One(12, table{})} }), "VkValue", "value_type"},
		"a list out of range":      {graph(func(g *ptetest.Graph) { g.Values[17] = ptetest.GraphList(99) }), "VkGraph", "values"},
		"an unknown element type":  {tensor(table{0: int8(8), 2: int32(-1)}), "VkTensor", "datatype"},
		"an unset element type":    {tensor(table{0: int8(127), 2: int32(-1)}), "VkTensor", "datatype"},
		"an unknown staging type": {
			tensor(table{2: int32(-1), 6: int8(8)}), "VkTensor",
			"staging_datatype",
		},
		"a dim that is too large": {tensor(table{1: []uint32{1 << 31}, 2: int32(-1)}), "VkTensor", "dims"},
		"dims that overflow":      {tensor(table{1: []uint32{1 << 30, 1 << 30}, 2: int32(-1)}), "VkTensor", "dims"},
		"too many dims": {
			tensor(table{1: make([]uint32, 65), 2: int32(-1)}), "VkTensor",
			"dims",
		},
		"a constant out of range":     {tensor(table{2: int32(3)}), "VkTensor", "constant_id"},
		"a constant too short":        {tensor(table{0: int8(5), 1: []uint32{9}, 2: int32(1)}), "VkTensor", "constant_id"},
		"a negative memory object":    {tensor(table{2: int32(-1), 3: int32(-2)}), "VkTensor", "mem_obj_id"},
		"inline bytes past the end":   {graph(func(g *ptetest.Graph) { g.Constants[1] = ptetest.Inline(1<<62, 4) }), "VkBytes", "offset"},
		"a constant without location": {graph(func(g *ptetest.Graph) { g.Constants[1] = ptetest.ByKey("", 4) }), "VkBytes", "named_key"},
		"a list read too often": {graph(func(g *ptetest.Graph) {
			g.Values[17] = ptetest.GraphList(list...)
			for range 100 {
				g.Operators = append(g.Operators, ptetest.Operator(9, "aten.cat.default", 17, 10, 4))
			}
		}), "VkGraph", "chain"},
	} {
		_, err := parse(c.data)
		var e *pte.Error
		if !errors.As(err, &e) || e.Table != c.table || e.Field != c.field || e.File != "test.pte" {
			t.Errorf("%s: got %v, want table %q, field %q", name, err, c.table, c.field)
		}
		if other := name == "another format" || name == "empty" || name == "another graph"; errors.Is(err,
			pte.ErrFormat) != other {
			t.Errorf("%s: errors.Is(err, ErrFormat) is %v", name, !other)
		}
	}
}

func TestCutAndFlippedGraphsNeverPanic(t *testing.T) {
	t.Parallel()
	original := ptetest.ExampleGraph().Bytes()
	for n := range original {
		if _, err := parse(original[:n]); err == nil {
			t.Errorf("the first %d of %d bytes cause no error", n, len(original))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		data := append([]byte{}, original...)
		for range rapid.IntRange(1, 8).Draw(t, "flips") {
			at := rapid.IntRange(0, len(data)-1-1056).Draw(t, "at") // inline constants follow
			data[at] = rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), rapid.Byte()).Draw(t, "byte")
		}
		use(t, data)
	})
}

// use parses a graph and calls every accessor.
func use(t interface{ Fatalf(string, ...any) }, data []byte) {
	g, err := parse(data)
	if err != nil {
		if e := (*pte.Error)(nil); !errors.As(err, &e) || e.Table == "" {
			t.Fatalf("not a *pte.Error of a table: %v", err)
		}
		return
	}
	for i := range g.Operators {
		op := &g.Operators[i]
		if names := op.Arguments(); len(names) != len(op.Args) {
			t.Fatalf("%d names of %d arguments", len(names), len(op.Args))
		}
		g.Reads(op)
		g.Writes(op)
	}
	g.Mutable()
	g.Objects()
}

// FuzzParse looks for graphs that panic, hang or allocate too much memory.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(ptetest.ExampleGraph().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		use(t, data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(500*len(data)+1<<20) {
			t.Errorf("%d bytes were allocated for %d", n, len(data))
		}
	})
}

// Programs exported by ExecuTorch are read completely: each argument has a name, and each weight has its
// bytes.
func TestRealDelegatesAreReadInFull(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "pte")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	graphs := 0
	for _, pattern := range []string{"*.pte", "dynamic/*.pte", "ops/*.pte"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			graphs += readDelegates(t, path)
		}
	}
	if graphs < 226 {
		t.Errorf("%d graphs, want one of each of 226 programs", graphs)
	}
}

func readDelegates(t *testing.T, path string) (graphs int) {
	f, err := pte.Open(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer f.Close()
	for _, m := range f.Methods {
		for _, c := range m.Chains {
			for _, in := range c.Instructions {
				if in.Op != pte.DelegateCall {
					continue
				}
				d := m.Delegates[in.Target]
				g, err := vulkan.Parse(d.Data, f.Lookup)
				if err != nil {
					t.Error(err)
					continue
				}
				graphs++
				if _, _, err := g.Split(in.Args); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				for i := range g.Operators {
					if op := &g.Operators[i]; !op.Known() {
						t.Errorf("%s: %s with %d arguments is not known", path, op.Name, len(op.Args))
					}
				}
				for i := range g.Constants {
					if data, err := g.Constants[i].Data.Bytes(); err != nil || len(data) == 0 {
						t.Errorf("%s: constant %d: %d bytes, %v", path, i, len(data), err)
					}
				}
			}
		}
	}
	return graphs
}

func TestRealModelHasCachesOfItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "..", "..", "shared", "pte", "llama-demo-4w.pte")
	f, err := pte.Open(path)
	if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") != "true" {
		t.Skipf("the test programs are missing: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.Method("forward")
	if err != nil {
		t.Fatal(err)
	}
	g, err := vulkan.Parse(m.Delegates[0].Data, f.Lookup)
	if err != nil {
		t.Fatal(err)
	}
	caches := g.Mutable()
	if len(caches) != 12 { // keys and values of six layers
		t.Errorf("mutable %v", caches)
	}
	first := g.Values[caches[0]].(*vulkan.Tensor)
	for _, id := range caches {
		v := g.Values[id].(*vulkan.Tensor)
		if !slices.Equal(v.Dims, []int{1, 256, 2, 64}) ||
			g.Constants[v.Constant].Data != g.Constants[first.Constant].Data {
			t.Errorf("value %d: %+v", id, v)
		}
	}
	if len(g.Operators) != 156 || len(g.Inputs) != 2 {
		t.Errorf("%d operators, inputs %v", len(g.Operators), g.Inputs)
	}
}
