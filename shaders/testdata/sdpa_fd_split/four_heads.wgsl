// sdpa_fd_split with HalfCache, HeadGroups 2, HeadQuads 4, Heads 4: workgroup [64 1 1], 6400 bytes of workgroup memory
// binding 0: q
// binding 1: k
// binding 2: v
// binding 3: k_cache (read and written)
// binding 4: v_cache (read and written)
// binding 5: part_o (written)
// binding 6: part_ml (written)
// param at 0: u32 context
// param at 4: u32 start
// param at 8: u32 splits
// param at 12: u32 split_len
// param at 16: u32 kv_heads
// param at 20: f32 scale

// Attention of one token over one split of the positions, for 4 query heads
// that share a KV head: the sum of v weighted by exp(score - max), not yet divided by the sum of the weights,
// and that sum and max. Of the last split it also appends the token's k and v to the caches.
struct Params {
  context: u32, // positions, the token's own included
  start: u32, // the first position that it sees
  splits: u32,
  split_len: u32,
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<f32>; // [q_heads, 16]
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>; // [kv_heads, 4]
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
// [positions, kv_heads, 4]
@group(0) @binding(3) var<storage, read_write> k_cache: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> part_o: array<vec4<f32>>; // [q_heads, splits, 4]
@group(0) @binding(6) var<storage, read_write> part_ml: array<vec2<f32>>; // [q_heads, splits]: max, sum
@group(0) @binding(7) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Four elements of a cache of halves, two to a word.
fn cached(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

// vec4<f32> has a value for each of the 4 query heads.
var<workgroup> query: array<vec4<f32>, 16>;
var<workgroup> partial: array<vec4<f32>, 64>;
var<workgroup> weight: array<vec4<f32>, 64>; // of the positions of a block
var<workgroup> sums: array<vec4<f32>, 256>; // [lane, 4]

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let split = id % params.splits;
  let head_group = id / params.splits;
  let kv_head = head_group / 2u;
  if (kv_head >= params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let head0 = head_group * 4u;
  let begin = params.start + split * params.split_len;
  let end = min(begin + params.split_len, params.context);
  for (var d = lane; d < 16u; d += 64u) {
    let at = head0 * 16u + d;
    query[d] = params.scale * vec4<f32>(q[at],
      q[at + 16u],
      q[at + 32u],
      q[at + 48u]);
  }
  // The workgroups of other query heads of the KV head write the same. Each reads what it wrote itself.
  if (begin < params.context && end == params.context && lane < 4u) {
    let src = kv_head * 4u + lane;
    let dst = (params.context - 1u) * params.kv_heads * 4u + src;
    k_cache[dst] = vec2<u32>(pack2x16float(k[src].xy), pack2x16float(k[src].zw));
    v_cache[dst] = vec2<u32>(pack2x16float(v[src].xy), pack2x16float(v[src].zw));
  }
  storageBarrier();
  workgroupBarrier();
  let column = lane % 4u;
  let part = lane / 4u;
  var largest = vec4<f32>(-1e30);
  var sum = vec4<f32>(0.0);
  var o0 = vec4<f32>(0.0);
  var o1 = vec4<f32>(0.0);
  var o2 = vec4<f32>(0.0);
  var o3 = vec4<f32>(0.0);
  // Blocks of 64 positions. First a lane has a position, then a column of v and every 16th position.
  for (var first = begin; first < end; first += 64u) {
    let there = first + lane < end;
    let row = (min(first + lane, end - 1u) * params.kv_heads + kv_head) * 4u;
    var score = vec4<f32>(0.0);
    let k0 = cached(k_cache[row + 0u]);
    score = fma(vec4<f32>(k0.w), query[3],
      fma(vec4<f32>(k0.z), query[2],
      fma(vec4<f32>(k0.y), query[1],
      fma(vec4<f32>(k0.x), query[0], score))));
    let k1 = cached(k_cache[row + 1u]);
    score = fma(vec4<f32>(k1.w), query[7],
      fma(vec4<f32>(k1.z), query[6],
      fma(vec4<f32>(k1.y), query[5],
      fma(vec4<f32>(k1.x), query[4], score))));
    let k2 = cached(k_cache[row + 2u]);
    score = fma(vec4<f32>(k2.w), query[11],
      fma(vec4<f32>(k2.z), query[10],
      fma(vec4<f32>(k2.y), query[9],
      fma(vec4<f32>(k2.x), query[8], score))));
    let k3 = cached(k_cache[row + 3u]);
    score = fma(vec4<f32>(k3.w), query[15],
      fma(vec4<f32>(k3.z), query[14],
      fma(vec4<f32>(k3.y), query[13],
      fma(vec4<f32>(k3.x), query[12], score))));
    partial[lane] = select(vec4<f32>(-1e30), score, there);
    workgroupBarrier();
    for (var s = 32u; s > 0u; s >>= 1u) {
      if (lane < s) {
        partial[lane] = max(partial[lane], partial[lane + s]);
      }
      workgroupBarrier();
    }
    let before = largest;
    largest = max(before, partial[0]);
    weight[lane] = select(vec4<f32>(0.0), exp(score - largest), there);
    workgroupBarrier();
    let shrink = exp(before - largest);
    sum *= shrink;
    o0 *= shrink;
    o1 *= shrink;
    o2 *= shrink;
    o3 *= shrink;
    if (part < 16u) {
      let positions = min(64u, end - first);
      for (var j = part; j < positions; j += 16u) {
        let value = cached(v_cache[((first + j) * params.kv_heads + kv_head) * 4u + column]);
        let w = weight[j];
        sum += w;
        o0 = fma(w, vec4<f32>(value.x), o0);
        o1 = fma(w, vec4<f32>(value.y), o1);
        o2 = fma(w, vec4<f32>(value.z), o2);
        o3 = fma(w, vec4<f32>(value.w), o3);
      }
    }
    workgroupBarrier();
  }
  partial[lane] = sum;
  sums[4u * lane + 0u] = o0;
  sums[4u * lane + 1u] = o1;
  sums[4u * lane + 2u] = o2;
  sums[4u * lane + 3u] = o3;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var p = 1u; p < 16u; p++) {
    sum += partial[p * 4u + column];
    o0 += sums[4u * (p * 4u + column) + 0u];
    o1 += sums[4u * (p * 4u + column) + 1u];
    o2 += sums[4u * (p * 4u + column) + 2u];
    o3 += sums[4u * (p * 4u + column) + 3u];
  }
  part_o[((head0 + 0u) * params.splits + split) * 4u + column] = vec4<f32>(o0.x,
    o1.x, o2.x, o3.x);
  part_o[((head0 + 1u) * params.splits + split) * 4u + column] = vec4<f32>(o0.y,
    o1.y, o2.y, o3.y);
  part_o[((head0 + 2u) * params.splits + split) * 4u + column] = vec4<f32>(o0.z,
    o1.z, o2.z, o3.z);
  part_o[((head0 + 3u) * params.splits + split) * 4u + column] = vec4<f32>(o0.w,
    o1.w, o2.w, o3.w);
  if (column == 0u) {
    part_ml[(head0 + 0u) * params.splits + split] = vec2<f32>(largest.x, sum.x);
    part_ml[(head0 + 1u) * params.splits + split] = vec2<f32>(largest.y, sum.y);
    part_ml[(head0 + 2u) * params.splits + split] = vec2<f32>(largest.z, sum.z);
    part_ml[(head0 + 3u) * params.splits + split] = vec2<f32>(largest.w, sum.w);
  }
}
