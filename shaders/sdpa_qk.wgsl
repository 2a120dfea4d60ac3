// Scores of attention: scores[h][s][c] = scale * dot(q[s][h], k[c][h / group]), for the c that row s may see (c <= position + s) and, in tiles that
// the diagonal crosses, some that it may not: sdpa_softmax does not look at these. A workgroup takes a tile of 64 rows by 64 positions
// of a head, 16 dims at a time; each of its 256 lanes 4 by 4 of it.
struct Params {
  rows: u32, // S
  context: u32, // position + S
  position: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [S, {{.Heads}}, {{.D}}]
@group(0) @binding(1) var<storage, read> cache: array<{{if .Half}}vec2<u32>{{else}}vec4<f32>{{end}}>; // [C, {{.KVHeads}}, {{.D}}]
@group(0) @binding(2) var<storage, read_write> scores: array<f32>; // [{{.Heads}}, S, context]
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> q_tile: array<vec4<f32>, 256>; // [16 dims][64 rows]
var<workgroup> k_tile: array<vec4<f32>, 256>; // [16 dims][64 positions]

{{template "cache_load" .}}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let c0 = wid.x * 64u;
  let s0 = wid.y * 64u;
  let head = wid.z;
  // No row of the tile sees any of its positions. The whole workgroup leaves.
  if (c0 > params.position + s0 + 63u) {
    return;
  }
  // For loading, a lane has a row of the tile and 4 of the 16 dims.
  let row = lane / 4u;
  let part = lane % 4u;
  let tx = lane % 16u;
  let ty = lane / 16u;
  var acc0 = vec4<f32>();
  var acc1 = vec4<f32>();
  var acc2 = vec4<f32>();
  var acc3 = vec4<f32>();
  for (var d = 0u; d < {{div .D 4}}u; d += 4u) {
    var a = vec4<f32>();
    var b = vec4<f32>();
    if (d + part < {{div .D 4}}u) {
      if (s0 + row < params.rows) {
        a = q[((s0 + row) * {{.Heads}}u + head) * {{div .D 4}}u + d + part];
      }
      if (c0 + row < params.context) {
        b = cache_load(((c0 + row) * {{.KVHeads}}u + head / {{div .Heads .KVHeads}}u) * {{div .D 4}}u + d + part);
      }
    }
    for (var i = 0u; i < 4u; i++) {
      q_tile[(part * 4u + i) * 16u + row / 4u][row % 4u] = a[i];
      k_tile[(part * 4u + i) * 16u + row / 4u][row % 4u] = b[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
      let left = q_tile[i * 16u + ty];
      let right = k_tile[i * 16u + tx];
      acc0 += left.x * right;
      acc1 += left.y * right;
      acc2 += left.z * right;
      acc3 += left.w * right;
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < 4u; i++) {
    let s = s0 + ty * 4u + i;
    if (s >= params.rows) {
      break;
    }
    var acc = acc0;
    if (i == 1u) { acc = acc1; }
    if (i == 2u) { acc = acc2; }
    if (i == 3u) { acc = acc3; }
    let base = (head * params.rows + s) * params.context;
    for (var j = 0u; j < 4u; j++) {
      let c = c0 + tx * 4u + j;
      if (c < params.context) {
        scores[base + c] = acc[j] * params.scale;
      }
    }
  }
}
