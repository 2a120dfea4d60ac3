// Rotates each pair of neighboring elements of x. The cosine and the sine of the angle are a pair of freqs.
// All batches use the same freqs. An invocation rotates a pair.
struct Params {
  n: u32, // pairs of x
  period: u32, // pairs of freqs
}

@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> freqs: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let v = x[i];
  let f = freqs[i % params.period];
  y[i] = vec2<f32>(v.x * f.x - v.y * f.y, v.x * f.y + v.y * f.x);
}
