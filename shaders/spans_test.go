package shaders

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked returns a source with inserted text between ‹ and ›, and included text between « and ».
func marked(k Kernel) string {
	var b strings.Builder
	at := func(list []Span, place, end int) bool {
		for _, s := range list {
			if s[end] == place {
				return true
			}
		}
		return false
	}
	for i := range len(k.Source) + 1 {
		for _, m := range []struct {
			list []Span
			end  int
			mark string
		}{{k.Filled, 1, "›"}, {k.Taken, 1, "»"}, {k.Taken, 0, "«"}, {k.Filled, 0, "‹"}} {
			if at(m.list, i, m.end) {
				b.WriteString(m.mark)
			}
		}
		b.WriteString(k.Source[i:min(i+1, len(k.Source))])
	}
	return b.String()
}

var silu = Constants{"Lanes": 64, "Vec": 4, "Act": "silu", "Expr": Text("(v / (1.0 + exp(-v))) * up[i]"), "Width": 0}

// A kernel knows which parts of its source come from its constants.
func TestAnExpansionSaysWhatConstantsMadeOfIt(t *testing.T) {
	k, err := Expand("gated", silu)
	if err != nil {
		t.Fatal(err)
	}
	want := `// y = ‹silu›(gate) * up. An invocation computes ‹4› elements.
struct Params {
  n: u32, // invocations
}

«@group(0) @binding(0) var<storage, read> gate: array<‹vec4<f32>›>;
@group(0) @binding(1) var<storage, read> up: array<‹vec4<f32>›>;»
@group(0) @binding(2) var<storage, read_write> y: array<‹vec4<f32>›>;
@group(0) @binding(3) var<uniform> params: Params;

«// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * ‹64›u);
}
»
@compute @workgroup_size(‹64›)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }«
  let v = gate[i];
  y[i] = ‹(v / (1.0 + exp(-v))) * up[i]›;»
}
`
	if d := cmp.Diff(want, marked(k)); d != "" {
		t.Error(d)
	}
	again, err := Expand("gated", silu)
	if err != nil || marked(again) != marked(k) {
		t.Error("the second expansion has other marks")
	}
}

// In every pinned expansion, every unmarked name is in the template, apart from the numbers of unrolled code.
// Marked parts are in order.
func TestUnmarkedNamesBelongToTheTemplate(t *testing.T) {
	names, numbers := regexp.MustCompile(`[a-z_][a-z_0-9]+`), regexp.MustCompile(`[0-9]`)
	for _, v := range readVariants(t) {
		template, err := Template(v.template())
		if err != nil {
			t.Fatal(err)
		}
		template = strings.ReplaceAll(template, "{{binding}}", "group binding")
		known := regexp.MustCompile(`{{[^}]*}}`).ReplaceAllString(numbers.ReplaceAllString(template, ""), "")
		k := v.expand(t)
		own := []byte(k.Source)
		for _, list := range [][]Span{k.Filled, k.Taken} {
			last := 0
			for _, s := range list {
				if s[0] < last || s[1] <= s[0] || s[1] > len(k.Source) {
					t.Fatalf("%s: %v of %d bytes, after %d", v.Name, s, len(k.Source), last)
				}
				last = s[1]
				for i := s[0]; i < s[1]; i++ {
					own[i] = '\n'
				}
			}
		}
		if len(k.Filled) == 0 && strings.Contains(template, "{{.") {
			t.Errorf("%s: nothing was inserted", v.Name)
		}
		for _, word := range names.FindAllString(string(own), -1) {
			if !strings.Contains(known, numbers.ReplaceAllString(word, "")) {
				t.Errorf("%s: %q is neither marked nor in the template", v.Name, word)
			}
		}
	}
}
