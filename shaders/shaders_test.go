package shaders

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
)

var update = flag.Bool("update", false, "rewrite the expected expansions in testdata")

// Every template has a folder testdata/NAME, with CASE.json, the constants, beside CASE.wgsl, the expansion.
func TestExpansionsAreAsExpected(t *testing.T) {
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !slices.Contains(Names(), f.Name()) {
			t.Errorf("testdata/%s: there is no template of that name", f.Name())
		}
	}
	for _, name := range Names() {
		cases, err := filepath.Glob(filepath.Join("testdata", name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) == 0 {
			t.Errorf("%s.wgsl has no expected expansion: write its constants to testdata/%s/CASE.json and run the test with -update", name, name)
		}
		for _, file := range cases {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".json"),
				func(t *testing.T) { holdExpansion(t, name, file) })
		}
	}
}

func holdExpansion(t *testing.T, name, file string) {
	k, err := Expand(name, readConstants(t, file))
	if err != nil {
		t.Fatal(err)
	}
	got := summary(t, k) + "\n" + k.Source
	golden := strings.TrimSuffix(file, ".json") + ".wgsl"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	holdUsed(t, k.Source)
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("expansion differs from %s (- expected, + got); -update rewrites it\n%s", golden, d)
	}
}

// BenchmarkExpand is how long a short and a long kernel take to expand: of a graph some fifty are.
func BenchmarkExpand(b *testing.B) {
	for _, name := range []string{"linear_gemv", "linear_tiled"} {
		b.Run(name, func(b *testing.B) {
			c := readConstants(b, filepath.Join("testdata", name, "q4.json"))
			for b.Loop() {
				if _, err := Expand(name, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var declaredRE = regexp.MustCompile(`(?m)^(?:fn|const|alias|struct|var<\w+>) (\w+)`)

// holdUsed says which functions, types, constants and variables of a kernel nothing uses.
func holdUsed(t *testing.T, source string) {
	src := commentRE.ReplaceAllString(source, " ")
	for _, m := range declaredRE.FindAllStringSubmatch(src, -1) {
		uses := regexp.MustCompile(`\b`+m[1]+`\b`).FindAllString(src, 2)
		if len(uses) < 2 && m[1] != "main" {
			t.Errorf("%s is declared, and nothing uses it", m[1])
		}
	}
}

func readConstants(t testing.TB, file string) Constants {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	c := Constants{}
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for key, v := range c {
		if slices.Contains([]string{"Expr", "Needs", "Join", "Start"}, key) {
			c[key] = Text(v.(string))
		}
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				c[key] = int(i)
			} else if f, err := strconv.ParseFloat(n.String(), 32); err == nil {
				c[key] = float32(f)
			} else {
				t.Fatalf("%s: %s: %v", file, key, err)
			}
		}
	}
	return c
}

// summary is what was read back from an expansion, as a comment.
func summary(t *testing.T, k Kernel) string {
	var b strings.Builder
	memory, ok := gpu.WorkgroupBytes(k.Source)
	if !ok {
		t.Errorf("%s declares workgroup memory whose size cannot be read", k.Template)
	}
	fmt.Fprintf(&b, "// %s with %s: workgroup %v, %d bytes of workgroup memory\n", k.Template, k.Constants,
		k.WorkgroupSize, memory)
	for i, s := range k.Storage {
		use := map[[2]bool]string{{true, true}: " (read and written)", {false, true}: " (written)"}
		fmt.Fprintf(&b, "// binding %d: %s%s\n", i, s.Name, use[[2]bool{s.Read, s.Write}])
	}
	for _, p := range k.Params {
		fmt.Fprintf(&b, "// param at %d: %s %s\n", p.Offset, p.Type, p.Name)
	}
	return b.String()
}

func TestDescribeRefusesWhatTheEngineCannotUse(t *testing.T) {
	const ok = `
struct Params { n: u32, }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
const tile = 4u;
var<workgroup> held: array<array<vec4<f32>, tile * 2>, 8>;
@compute @workgroup_size(8, 4) fn main() {}
`
	k := Kernel{Source: ok}
	if err := k.describe(); err != nil {
		t.Fatal(err)
	}
	want := Kernel{
		Source: ok, WorkgroupSize: [3]int{8, 4, 1},
		Storage: []Storage{{"x", "f32", true, false}, {"y", "f32", false, true}},
		Params:  []Param{{"n", "u32", 0}},
	}
	if d := cmp.Diff(want, k); d != "" {
		t.Error(d)
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"no entry point", "fn main", "fn other", "0 compute entry points"},
		{
			"a second entry point", "fn main() {}", "fn main() {} @compute @workgroup_size(1) fn more() {}",
			"2 compute entry points",
		},
		{"an entry point of another name", "fn main", "fn mian", "its entry point is mian, want main"},
		{"a workgroup size that is no literal", "size(8, 4)", "size(lanes)", "workgroup_size(lanes)"},
		{
			"a gap in the bindings", "@binding(1)", "@binding(3)",
			"there is no binding 1 of group 0: the next, y, has number 3",
		},
		{"a binding twice", "@binding(1)", "@binding(0)", "y is group 0 binding 0, want group 0 binding 1"},
		{"another group", "@group(0) @binding(1)", "@group(1) @binding(1)", "group 1"},
		{"a vector in the params", "n: u32", "n: vec2<u32>", "field n is vec2<u32>, want u32, i32 or f32"},
		{"params that are no struct", "params: Params", "params: u32", "u32 is not a struct"},
		{"a keyword that is too new", "const tile", "override tile", "uses override"},
		{"too many params", "n: u32,", strings.Repeat("n: u32,", 65), "65 fields, want 1 to 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := strings.Replace(ok, c.from, c.to, 1)
			if c.name == "no entry point" {
				src = strings.Replace(ok, "@compute @workgroup_size(8, 4)", "", 1)
			}
			err := (&Kernel{Source: src}).describe()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestExpandNamesTheFileAndTheConstant(t *testing.T) {
	for _, c := range []struct {
		name, template string
		constants      Constants
		want           string
	}{
		{
			"a template that is not there", "nothing", nil,
			"shader nothing.wgsl: shader nothing: there is no such template",
		},
		{"a constant that is missing", "rms_norm", Constants{"Vec": 4, "Both": false, "Residual": false, "Each": 0}, `no entry for key "Lanes"`},
		{
			"a constant that nothing uses", "rms_norm",
			Constants{"Vec": 4, "Lanes": 64, "Both": false, "Residual": false, "Each": 0, "Tile": 8},
			"constant Tile is given and not used",
		},
		{
			"a format without a file", "embedding",
			Constants{"Format": "q9", "Partial": false, "Lanes": 64},
			"shader embedding.wgsl: format q9: there is no such file in include/format",
		},
		{
			"a format for a template that reads no matrix", "rms_norm",
			Constants{"Vec": 4, "Lanes": 64, "Both": false, "Residual": false, "Each": 0, "Format": "q4"},
			"constant Format is given and not used",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Expand(c.template, c.constants)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// Whatever the text, it is described or refused.
func FuzzDescribe(f *testing.F) {
	for _, name := range Names() {
		cases, err := filepath.Glob(filepath.Join("testdata", name, "*.wgsl"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range cases {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Add("var<workgroup> a: array<array<u32, 0>, 99999999999999999999>; @compute @workgroup_size(0) fn main() {}")
	f.Fuzz(func(t *testing.T, src string) {
		k := Kernel{Source: src}
		if err := k.describe(); err != nil {
			return
		}
		if len(k.Storage) == 0 || len(k.Params) > maxParams || slices.Min(k.WorkgroupSize[:]) < 1 {
			t.Errorf("described as %+v", k)
		}
	})
}

func TestWhatAKernelDoesWithWhatItMayWriteIsReadFromItsSource(t *testing.T) {
	for body, want := range map[string]bool{
		"":                                    false,
		"y[i] = 1.0;":                         false,
		"y[ at[i] + 2u*(j) ] = x[i];":         false,
		"y[i].x = 1.0;":                       false,
		"y[i] += 1.0;":                        true,
		"y[i] = y[i + 1u];":                   true,
		"if (y[i] == 0.0) { y[i] = 1.0; }":    true,
		"let z = y[i];":                       true,
		"atomicAdd(&y[i], 1u);":               true,
		"let n = arrayLength(&y);":            true, // it cannot be told from a use
		"p.y = 2.0; let q = p.y; y[0] = q.x;": false,
		"yy[i] = y_other;":                    false,
	} {
		src := "@group(0) @binding(1) var<storage, read_write> y : array<f32>;\nfn main() { " + body + " }"
		if got := reads(src, "y"); got != want {
			t.Errorf("%s: reads %v, want %v", body, got, want)
		}
	}
}
