// y = rows of a table. An invocation copies {{.Vec}} words.
{{- $T := "u32"}}{{if eq .Vec 4}}{{$T = "vec4<u32>"}}{{end}}
struct Params {
  n: u32, // invocations
  width: u32, // invocations of a row
  vocabulary: u32,
}

@group(0) @binding(0) var<storage, read> table: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let row = u32(clamp(indices[i / params.width], 0, i32(params.vocabulary) - 1));
  y[i] = table[row * params.width + i % params.width];
}
