// Appends the rows of k and v to their caches. An invocation copies four elements of each.
struct Params {
  n: u32, // vectors of 4 elements in all rows
  first: u32, // index in the caches at which the first vector is stored
}

@group(0) @binding(0) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> v: array<vec4<f32>>;
{{- $T := "vec4<f32>"}}{{if .HalfCache}}{{$T = "vec2<u32>"}}{{end}}
@group(0) @binding(2) var<storage, read_write> k_cache: array<{{$T}}>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<{{$T}}>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
{{- if .HalfCache}}
  let key = k[i];
  let value = v[i];
  k_cache[params.first + i] = vec2<u32>(pack2x16float(key.xy), pack2x16float(key.zw));
  v_cache[params.first + i] = vec2<u32>(pack2x16float(value.xy), pack2x16float(value.zw));
{{- else}}
  k_cache[params.first + i] = k[i];
  v_cache[params.first + i] = v[i];
{{- end}}
}
