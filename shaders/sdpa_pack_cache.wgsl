// Writes rows to an f16 cache, two halves to a word. An invocation packs 4 elements.
struct Params {
  n: u32, // fours
  start: u32, // where in the cache, in fours
}

@group(0) @binding(0) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> cache: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i < params.n) {
    cache[params.start + i] = vec2<u32>(pack2x16float(src[i].xy), pack2x16float(src[i].zw));
  }
}
