package ops

import (
	"strings"
	"testing"

	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// An edited kernel may replace the planned one only if its bindings and params match. Otherwise a plan would
// write the value of one field into another.
func TestEditedSourceKeepsPlannedBindingsAndParams(t *testing.T) {
	was := kind.NewKernel(tinyBuilder(), "rms_norm", shaders.Constants{"Lanes": 64, "Vec": 4, "Both": false, "Residual": false, "Each": 0})
	for _, c := range []struct{ name, from, to, want string }{
		{"changed body", "params.eps", "(params.eps * 1.0)", ""},
		{
			"two fields swapped", "  rows: u32,\n  width: u32,", "  width: u32,\n  rows: u32,",
			"param 0 of kernel",
		},
		{"renamed field", "eps: f32", "epsilon: f32", "param 2 of kernel"},
		{"renamed binding", "weight: array", "bias: array", "binding 1 of kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(was.Source, c.from, c.to, 1)
			if changed == was.Source {
				t.Fatalf("the source has no %q", c.from)
			}
			k, err := shaders.Read(changed)
			if err != nil {
				t.Fatal(err)
			}
			now, err := kind.FromSource("changed", k)
			if err != nil {
				t.Fatal(err)
			}
			err = now.CanReplace(was)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The workgroup memory of a kernel must be known, because the GPU library does not check the device's limit.
func TestUnknownWorkgroupMemoryIsRefused(t *testing.T) {
	was := kind.NewKernel(tinyBuilder(), "rms_norm", shaders.Constants{"Lanes": 64, "Vec": 4, "Both": false, "Residual": false, "Each": 0})
	k, err := shaders.Read(was.Source)
	if err != nil {
		t.Fatal(err)
	}
	k.Source += "struct Pair { a: f32, b: f32 }\nvar<workgroup> pairs: array<Pair, 64>;\n"
	if _, err := kind.FromSource("pairs", k); err == nil || !strings.Contains(err.Error(), "kernel pairs: ") {
		t.Errorf("got %v", err)
	}
}
