package shaders

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"

	"github.com/google/go-cmp/cmp"
)

// BenchmarkExpand measures how long a short and a long kernel take to expand. A graph has about fifty
// kernels.
func BenchmarkExpand(b *testing.B) {
	for _, name := range []string{"linear_gemv", "linear_tiled"} {
		b.Run(name, func(b *testing.B) {
			c := variantNamed(b, name+"/q4").constants(b)
			for b.Loop() {
				if _, err := Expand(name, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var declaredRE = regexp.MustCompile(`(?m)^(?:fn|const|alias|struct|var<\w+>) (\w+)`)

// holdUsed checks that every function, type, constant and variable of a kernel is used.
func holdUsed(t *testing.T, source string) {
	src := commentRE.ReplaceAllString(source, " ")
	for _, m := range declaredRE.FindAllStringSubmatch(src, -1) {
		uses := regexp.MustCompile(`\b`+m[1]+`\b`).FindAllString(src, 2)
		if len(uses) < 2 && m[1] != "main" {
			t.Errorf("%s is declared but not used", m[1])
		}
	}
}

func TestDescribeRefusesWhatTheEngineCannotUse(t *testing.T) {
	messages := wordingtest.New(t)
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
	for _, c := range []struct{ name, from, to string }{
		{"no entry point", "fn main", "fn other"},
		{
			"a second entry point", "fn main() {}", "fn main() {} @compute @workgroup_size(1) fn more() {}",
		},
		{"an entry point of another name", "fn main", "fn mian"},
		{"a workgroup size that is no literal", "size(8, 4)", "size(lanes)"},
		{
			"a gap in the bindings", "@binding(1)", "@binding(3)",
		},
		{"a binding twice", "@binding(1)", "@binding(0)"},
		{"another group", "@group(0) @binding(1)", "@group(1) @binding(1)"},
		{"a vector in the params", "n: u32", "n: vec2<u32>"},
		{"params that are no struct", "params: Params", "params: u32"},
		{"a keyword that is too new", "const tile", "override tile"},
		{"too many params", "n: u32,", strings.Repeat("n: u32,", 65)},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := strings.Replace(ok, c.from, c.to, 1)
			if c.name == "no entry point" {
				src = strings.Replace(ok, "@compute @workgroup_size(8, 4)", "", 1)
			}
			messages.Error(c.name, (&Kernel{Source: src}).describe())
		})
	}
}

func TestExpandNamesTheFileAndTheConstant(t *testing.T) {
	messages := wordingtest.New(t)
	for _, c := range []struct {
		name, template string
		constants      Constants
	}{
		{
			"a template that is not there", "nothing", nil,
		},
		{"a constant that is missing", "rms_norm", Constants{"Vec": 4, "Both": false, "Residual": false, "Each": 0}},
		{
			"a constant that nothing uses", "rms_norm",
			Constants{"Vec": 4, "Lanes": 64, "Both": false, "Residual": false, "Each": 0, "Tile": 8},
		},
		{
			"a format without a file", "embedding",
			Constants{"Format": "q9", "Partial": false, "Lanes": 64},
		},
		{
			"a format for a template that reads no matrix", "rms_norm",
			Constants{"Vec": 4, "Lanes": 64, "Both": false, "Residual": false, "Each": 0, "Format": "q4"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Expand(c.template, c.constants)
			messages.Error(c.name, err)
		})
	}
}

// Any source is described or refused without a crash.
func FuzzDescribe(f *testing.F) {
	for _, v := range readVariants(f) {
		f.Add(v.expand(f).Source)
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

func TestKernelAccessIsReadFromItsSource(t *testing.T) {
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
		"let n = arrayLength(&y);":            true, // it looks like a read
		"p.y = 2.0; let q = p.y; y[0] = q.x;": false,
		"yy[i] = y_other;":                    false,
	} {
		src := "@group(0) @binding(1) var<storage, read_write> y : array<f32>;\nfn main() { " + body + " }"
		if got := reads(src, "y"); got != want {
			t.Errorf("%s: reads %v, want %v", body, got, want)
		}
	}
}
