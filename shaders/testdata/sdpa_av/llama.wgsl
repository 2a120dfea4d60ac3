// kernel sdpa_av_d64_heads6_kvheads2, workgroup [256 1 1], 8192 bytes of workgroup memory
// binding 0: p
// binding 1: cache
// binding 2: y (written)
// param at 0: u32 rows
// param at 4: u32 context
// param at 8: u32 position

// Output of attention: y[s][h] = sum over c of p[h][s][c] * v[c][h / group], the p of what a row does not see being 0. A workgroup takes a tile of
// 64 rows by 64 dims of a head, 16 positions at a time; each of its 256 lanes 4 by 4 of it.
struct Params {
  rows: u32, // S
  context: u32, // position + S
  position: u32,
}

@group(0) @binding(0) var<storage, read> p: array<f32>; // [6, S, context]
@group(0) @binding(1) var<storage, read> cache: array<vec4<f32>>; // [C, 2, 64]
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [S, 6, 64]
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> p_tile: array<vec4<f32>, 256>; // [16 positions][64 rows]
var<workgroup> v_tile: array<vec4<f32>, 256>; // [16 positions][64 dims]

// Four elements of the KV cache.
fn cache_load(i: u32) -> vec4<f32> {
  return cache[i];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let d0 = wid.x * 16u; // in fours of dims
  let s0 = wid.y * 64u;
  let head = wid.z;
  let end = min(params.context, params.position + s0 + 64u);
  let tx = lane % 16u;
  let ty = lane / 16u;
  var acc0 = vec4<f32>();
  var acc1 = vec4<f32>();
  var acc2 = vec4<f32>();
  var acc3 = vec4<f32>();
  for (var c0 = 0u; c0 < end; c0 += 16u) {
    for (var i = 0u; i < 4u; i++) {
      let row = ty + i * 16u;
      var weight = 0.0;
      if (s0 + row < params.rows && c0 + tx < end) {
        weight = p[(head * params.rows + s0 + row) * params.context + c0 + tx];
      }
      p_tile[tx * 16u + row / 4u][row % 4u] = weight;
    }
    var value = vec4<f32>();
    if (c0 + ty < end && d0 + tx < 16u) {
      value = cache_load(((c0 + ty) * 2u + head / 3u) * 16u + d0 + tx);
    }
    v_tile[lane] = value;
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
      let left = p_tile[i * 16u + ty];
      let right = v_tile[i * 16u + tx];
      acc0 += left.x * right;
      acc1 += left.y * right;
      acc2 += left.z * right;
      acc3 += left.w * right;
    }
    workgroupBarrier();
  }
  if (d0 + tx < 16u) {
    let base = ((s0 + ty * 4u) * 6u + head) * 16u + d0 + tx;
    let left = params.rows - min(params.rows, s0 + ty * 4u);
    if (left > 0u) { y[base] = acc0; }
    if (left > 1u) { y[base + 96u] = acc1; }
    if (left > 2u) { y[base + 192u] = acc2; }
    if (left > 3u) { y[base + 288u] = acc3; }
  }
}
