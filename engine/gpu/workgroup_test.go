package gpu

import "testing"

func TestWorkgroupBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, source string
		bytes        uint64
		ok           bool
	}{
		{"none", "@compute @workgroup_size(1) fn main() {}", 0, true},
		{"scalar", "var<workgroup> a: u32;", 4, true},
		{"array", "var<workgroup> a: array<f32, 256>;", 1024, true},
		{"spaces and suffixes", "var < workgroup >  a : array< vec4<f32> , 16u >;", 256, true},
		{"array of arrays", "var<workgroup> a: array<array<f32, 33>, 32>;", 4 * 33 * 32, true},
		{"array of vec3 is padded", "var<workgroup> a: array<vec3<f32>, 4>;", 64, true},
		{"short names", "var<workgroup> a: array<vec2f, 3>; var<workgroup> b: mat4x4f;", 24 + 8 + 64, true},
		{"alignment between variables", "var<workgroup> a: u32; var<workgroup> b: vec4<u32>;", 32, true},
		{
			"constants", "const T = 16u; const K: u32 = T * 2; var<workgroup> a: array<f32, T * K>;",
			4 * 16 * 32, true,
		},
		{"atomics", "var<workgroup> a: array<atomic<u32>, 8>;", 32, true},
		{
			"comments",
			"// var<workgroup> a: array<f32, 9>;\n/* var<workgroup> b: u32; */ var<workgroup> c: u32;", 4,
			true,
		},
		{
			"other variables",
			"var<private> a: array<f32, 9>; @group(0) @binding(0) var<storage> b: array<f32>;", 0, true,
		},
		{"struct", "struct S { x: u32 } var<workgroup> a: S;", 0, false},
		{"length that is not read", "var<workgroup> a: array<f32, 4 + 4>;", 0, false},
		{
			"too long to be true",
			"var<workgroup> a: array<array<array<f32, 2000000000>, 2000000000>, 2000000000>;", 0, false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if bytes, ok := WorkgroupBytes(tt.source); bytes != tt.bytes || ok != tt.ok {
				t.Errorf("WorkgroupBytes = %d, %v; want %d, %v", bytes, ok, tt.bytes, tt.ok)
			}
		})
	}
}

func FuzzWorkgroupBytes(f *testing.F) {
	f.Add("const T = 16u; var<workgroup> a: array<array<vec4<f32>, T>, 4>;")
	f.Add("var<workgroup> a: array<,>;")
	f.Fuzz(func(t *testing.T, source string) { WorkgroupBytes(source) })
}
