// sdpa_fd_split with HeadGroups 1, HeadQuads 2, Heads 2, Lanes 16, Row 4: workgroup [16 1 1], 928 bytes of workgroup memory
// binding 0: q
// binding 1: k
// binding 2: v
// binding 3: k_cache (read and written)
// binding 4: v_cache (read and written)
// binding 5: parts (written)
// param at 0: u32 context
// param at 4: u32 start
// param at 8: u32 splits
// param at 12: u32 split_len
// param at 16: u32 kv_heads
// param at 20: f32 scale

// Attention of one token for 2 query heads of a KV head, over one split of the positions: the sum
// of v weighted by exp(score - max), not yet divided by the sum of the weights, and that sum and max.
// The last split also appends the token's k and v to the caches.
//
// A workgroup goes through its positions in blocks, with the next block on its way. The key of a position is
// shared by 4 lanes, its value by 2, a column each. Lanes that have the values of the
// same positions are a part, with a largest score and a sum of its own: a block takes one barrier, and
// another stands before the parts are put together.
struct Params {
  context: u32, // positions, the token's own included
  start: u32, // the first position that it sees
  splits: u32,
  split_len: u32,
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [q_heads, 2]
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>; // [kv_heads, 2]
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
// [positions, kv_heads, 2]
@group(0) @binding(3) var<storage, read_write> k_cache: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<vec4<f32>>;
// [splits, q_heads, 8 sums, then the largest score, the sum of the weights and two zeros]
@group(0) @binding(5) var<storage, read_write> parts: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Four elements of a cache.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Four elements as a cache has them.
fn stored(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// The same as whoever reads them from the cache has them.
fn reread(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Vector quad of a query head.
fn query_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * 2u;
  return q[at + quad];
}

// Vector quad of the token's key.
fn key_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * 2u;
  return k[at + quad];
}

// vec2<f32> has a value for each query head. Products are those of two blocks by turns, a product a lane.
var<workgroup> products: array<vec2<f32>, 32>;
var<workgroup> own_products: array<vec2<f32>, 4>; // of the token's own key
// What each part has in the end.
var<workgroup> sums: array<vec2<f32>, 64>;
var<workgroup> largests: array<vec2<f32>, 8>;
var<workgroup> totals: array<vec2<f32>, 8>;

@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let split = id % params.splits;
  let head_group = id / params.splits;
  let kv_head = head_group / 1u;
  if (kv_head >= params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let head0 = head_group * 2u;
  // What the caches hold is taken from begin to end.
  let begin = params.start + split * params.split_len;
  let end = min(begin + params.split_len, params.context - 1u);
  let appends = begin + params.split_len >= params.context;
  let last = max(end, 1u) - 1u;
  let place = lane / 4u;
  let part = lane / 2u;
  let column = lane % 2u;
  let quad0 = min(lane % 4u + 0u, 1u);
  let new_key0 = key_of(kv_head, quad0);
  let new_value = v[kv_head * 2u + column];
  var row = (min(begin + place, last) * params.kv_heads + kv_head) * 2u;
  var k0 = k_cache[row + quad0];
  row = (min(begin + part + 0u, last) * params.kv_heads + kv_head) * 2u;
  var v0 = v_cache[row + column];
  let q0_0 = params.scale *
    select(vec4<f32>(0.0), query_of(head0 + 0u, quad0), lane % 4u + 0u < 2u);
  let q1_0 = params.scale *
    select(vec4<f32>(0.0), query_of(head0 + 1u, quad0), lane % 4u + 0u < 2u);
  let query0_0 = vec2<f32>(q0_0.x, q1_0.x);
  let query0_1 = vec2<f32>(q0_0.y, q1_0.y);
  let query0_2 = vec2<f32>(q0_0.z, q1_0.z);
  let query0_3 = vec2<f32>(q0_0.w, q1_0.w);
  // The workgroups of other query heads of the KV head append the same.
  var own_value = vec4<f32>(0.0);
  if (appends) {
    let dst = ((params.context - 1u) * params.kv_heads + kv_head) * 2u;
    if (place == 0u) {
      var product = vec2<f32>(0.0);
      let key0 = stored(new_key0);
      k_cache[dst + quad0] = key0;
      let own0 = reread(key0);
      product = fma(vec2<f32>(own0.x), query0_0, product);
      product = fma(vec2<f32>(own0.y), query0_1, product);
      product = fma(vec2<f32>(own0.z), query0_2, product);
      product = fma(vec2<f32>(own0.w), query0_3, product);
      own_products[lane] = product;
    }
    if (part == 0u) {
      let value = stored(new_value);
      v_cache[dst + column] = value;
      own_value = reread(value);
    }
  }
  workgroupBarrier();
  var largest = vec2<f32>(-1e30);
  var total = vec2<f32>(0.0);
  var o0 = vec2<f32>(0.0);
  var o1 = vec2<f32>(0.0);
  var o2 = vec2<f32>(0.0);
  var o3 = vec2<f32>(0.0);
  var turn = 0u;
  for (var first = begin; first < end; first += 4u) {
    let next = first + 4u;
    row = (min(next + place, last) * params.kv_heads + kv_head) * 2u;
    let next_k0 = k_cache[row + quad0];
    row = (min(next + part + 0u, last) * params.kv_heads + kv_head) * 2u;
    let next_v0 = v_cache[row + column];
    var product = vec2<f32>(0.0);
    let key0 = cached(k0);
    product = fma(vec2<f32>(key0.x), query0_0, product);
    product = fma(vec2<f32>(key0.y), query0_1, product);
    product = fma(vec2<f32>(key0.z), query0_2, product);
    product = fma(vec2<f32>(key0.w), query0_3, product);
    products[turn + lane] = product;
    workgroupBarrier();
    if (part < 8u) {
      let before = largest;
      let place0 = part + 0u;
      let seen0 = first + place0 < end && place0 < 4u;
      let at0 = turn + min(place0, 3u) * 4u;
      let score0 = select(vec2<f32>(-1e30), products[at0] +
        products[at0 + 1u] +
        products[at0 + 2u] +
        products[at0 + 3u], seen0);
      largest = max(largest, score0);
      let shrink = exp(before - largest);
      total *= shrink;
      o0 *= shrink;
      o1 *= shrink;
      o2 *= shrink;
      o3 *= shrink;
      let weight0 = exp(score0 - largest);
      let value0 = cached(v0);
      total += weight0;
      o0 = fma(weight0, vec2<f32>(value0.x), o0);
      o1 = fma(weight0, vec2<f32>(value0.y), o1);
      o2 = fma(weight0, vec2<f32>(value0.z), o2);
      o3 = fma(weight0, vec2<f32>(value0.w), o3);
    }
    turn = 16u - turn;
    k0 = next_k0;
    v0 = next_v0;
  }
  if (appends && part == 0u) {
    let score = own_products[0] +
      own_products[1] +
      own_products[2] +
      own_products[3];
    let before = largest;
    largest = max(before, score);
    let shrink = exp(before - largest);
    let weight = exp(score - largest);
    total = fma(total, shrink, weight);
    o0 = fma(o0, shrink, weight * own_value.x);
    o1 = fma(o1, shrink, weight * own_value.y);
    o2 = fma(o2, shrink, weight * own_value.z);
    o3 = fma(o3, shrink, weight * own_value.w);
  }
  if (part < 8u && column == 0u) {
    largests[part] = largest;
    totals[part] = total;
  }
  if (part < 8u) {
    sums[part * 8u + 0u + column] = o0;
    sums[part * 8u + 2u + column] = o1;
    sums[part * 8u + 4u + column] = o2;
    sums[part * 8u + 6u + column] = o3;
  }
  workgroupBarrier();
  if (lane >= 8u) {
    return;
  }
  let largest0 = largests[0];
  let largest1 = largests[1];
  let largest2 = largests[2];
  let largest3 = largests[3];
  let largest4 = largests[4];
  let largest5 = largests[5];
  let largest6 = largests[6];
  let largest7 = largests[7];
  largest = largest0;
  largest = max(largest, largest1);
  largest = max(largest, largest2);
  largest = max(largest, largest3);
  largest = max(largest, largest4);
  largest = max(largest, largest5);
  largest = max(largest, largest6);
  largest = max(largest, largest7);
  total = vec2<f32>(0.0);
  var sum = vec2<f32>(0.0);
  let weight0 = exp(largest0 - largest);
  total = fma(totals[0], weight0, total);
  sum = fma(sums[0u + lane], weight0, sum);
  let weight1 = exp(largest1 - largest);
  total = fma(totals[1], weight1, total);
  sum = fma(sums[8u + lane], weight1, sum);
  let weight2 = exp(largest2 - largest);
  total = fma(totals[2], weight2, total);
  sum = fma(sums[16u + lane], weight2, sum);
  let weight3 = exp(largest3 - largest);
  total = fma(totals[3], weight3, total);
  sum = fma(sums[24u + lane], weight3, sum);
  let weight4 = exp(largest4 - largest);
  total = fma(totals[4], weight4, total);
  sum = fma(sums[32u + lane], weight4, sum);
  let weight5 = exp(largest5 - largest);
  total = fma(totals[5], weight5, total);
  sum = fma(sums[40u + lane], weight5, sum);
  let weight6 = exp(largest6 - largest);
  total = fma(totals[6], weight6, total);
  sum = fma(sums[48u + lane], weight6, sum);
  let weight7 = exp(largest7 - largest);
  total = fma(totals[7], weight7, total);
  sum = fma(sums[56u + lane], weight7, sum);
  let element = 4u * column + part;
  let at0 = (split * params.kv_heads * 2u + head0 + 0u) *
    12u;
  parts[at0 + element] = sum.x;
  let at1 = (split * params.kv_heads * 2u + head0 + 1u) *
    12u;
  parts[at1 + element] = sum.y;
  if (lane == 0u) {
    parts[at0 + 8u] = largest.x;
    parts[at0 + 9u] = total.x;
    parts[at0 + 10u] = 0.0;
    parts[at0 + 11u] = 0.0;
    parts[at1 + 8u] = largest.y;
    parts[at1 + 9u] = total.y;
    parts[at1 + 10u] = 0.0;
    parts[at1 + 11u] = 0.0;
  }
}
