// sdpa_fd_split with HeadGroups 4, HeadQuads 16, Heads 1, Lanes 256, Leaves 64, Row 4, Whole: workgroup [256 1 1], 6288 bytes of workgroup memory
// binding 0: q
// binding 1: k
// binding 2: v
// binding 3: k_cache (read and written)
// binding 4: v_cache (read and written)
// binding 5: y (written)
// param at 0: u32 context
// param at 4: u32 start
// param at 8: u32 kv_heads
// param at 12: f32 scale

// Attention of one token for 1 query head of a KV head, over all positions that it sees.
// The last split also appends the token's k and v to the caches.
// What it gives lies as the lanes of a GEMV load it.
//
// A workgroup goes through its positions in blocks, with the next block on its way. The key of a position is
// shared by 4 lanes, its value by 16, a column each. Lanes that have the values of the
// same positions are a part, with a largest score and a sum of its own: a block takes one barrier, and
// another stands before the parts are put together.
struct Params {
  context: u32, // positions, the token's own included
  start: u32, // the first position that it sees
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [q_heads, 16]
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>; // [kv_heads, 16]
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
// [positions, kv_heads, 16]
@group(0) @binding(3) var<storage, read_write> k_cache: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>; // [q_heads, 64], spread
@group(0) @binding(6) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
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
  let at = head * 16u;
  return q[at + quad];
}

// Vector quad of the token's key.
fn key_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * 16u;
  return k[at + quad];
}

// f32 has a value for each query head. Products are those of two blocks by turns, a product a lane.
var<workgroup> products: array<f32, 512>;
var<workgroup> own_products: array<f32, 4>; // of the token's own key
// What each part has in the end.
var<workgroup> sums: array<f32, 1024>;
var<workgroup> largests: array<f32, 16>;
var<workgroup> totals: array<f32, 16>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let head_group = id;
  let kv_head = head_group / 4u;
  if (kv_head >= params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let head0 = head_group * 1u;
  // What the caches hold is taken from begin to end.
  let begin = params.start;
  let end = params.context - 1u;
  let appends = true;
  let last = max(end, 1u) - 1u;
  let place = lane / 4u;
  let part = lane / 16u;
  let column = lane % 16u;
  let quad0 = min(lane % 4u + 0u, 15u);
  let quad1 = min(lane % 4u + 4u, 15u);
  let quad2 = min(lane % 4u + 8u, 15u);
  let quad3 = min(lane % 4u + 12u, 15u);
  let new_key0 = key_of(kv_head, quad0);
  let new_key1 = key_of(kv_head, quad1);
  let new_key2 = key_of(kv_head, quad2);
  let new_key3 = key_of(kv_head, quad3);
  let new_value = v[kv_head * 16u + column];
  var row = (min(begin + place, last) * params.kv_heads + kv_head) * 16u;
  var k0 = k_cache[row + quad0];
  var k1 = k_cache[row + quad1];
  var k2 = k_cache[row + quad2];
  var k3 = k_cache[row + quad3];
  row = (min(begin + part + 0u, last) * params.kv_heads + kv_head) * 16u;
  var v0 = v_cache[row + column];
  row = (min(begin + part + 16u, last) * params.kv_heads + kv_head) * 16u;
  var v1 = v_cache[row + column];
  row = (min(begin + part + 32u, last) * params.kv_heads + kv_head) * 16u;
  var v2 = v_cache[row + column];
  row = (min(begin + part + 48u, last) * params.kv_heads + kv_head) * 16u;
  var v3 = v_cache[row + column];
  let q0_0 = params.scale * query_of(head0 + 0u, quad0);
  let query0_0 = f32(q0_0.x);
  let query0_1 = f32(q0_0.y);
  let query0_2 = f32(q0_0.z);
  let query0_3 = f32(q0_0.w);
  let q0_1 = params.scale * query_of(head0 + 0u, quad1);
  let query1_0 = f32(q0_1.x);
  let query1_1 = f32(q0_1.y);
  let query1_2 = f32(q0_1.z);
  let query1_3 = f32(q0_1.w);
  let q0_2 = params.scale * query_of(head0 + 0u, quad2);
  let query2_0 = f32(q0_2.x);
  let query2_1 = f32(q0_2.y);
  let query2_2 = f32(q0_2.z);
  let query2_3 = f32(q0_2.w);
  let q0_3 = params.scale * query_of(head0 + 0u, quad3);
  let query3_0 = f32(q0_3.x);
  let query3_1 = f32(q0_3.y);
  let query3_2 = f32(q0_3.z);
  let query3_3 = f32(q0_3.w);
  // The workgroups of other query heads of the KV head append the same.
  var own_value = vec4<f32>(0.0);
  if (appends) {
    let dst = ((params.context - 1u) * params.kv_heads + kv_head) * 16u;
    if (place == 0u) {
      var product = f32(0.0);
      let key0 = stored(new_key0);
      k_cache[dst + quad0] = key0;
      let own0 = reread(key0);
      product = fma(f32(own0.x), query0_0, product);
      product = fma(f32(own0.y), query0_1, product);
      product = fma(f32(own0.z), query0_2, product);
      product = fma(f32(own0.w), query0_3, product);
      let key1 = stored(new_key1);
      k_cache[dst + quad1] = key1;
      let own1 = reread(key1);
      product = fma(f32(own1.x), query1_0, product);
      product = fma(f32(own1.y), query1_1, product);
      product = fma(f32(own1.z), query1_2, product);
      product = fma(f32(own1.w), query1_3, product);
      let key2 = stored(new_key2);
      k_cache[dst + quad2] = key2;
      let own2 = reread(key2);
      product = fma(f32(own2.x), query2_0, product);
      product = fma(f32(own2.y), query2_1, product);
      product = fma(f32(own2.z), query2_2, product);
      product = fma(f32(own2.w), query2_3, product);
      let key3 = stored(new_key3);
      k_cache[dst + quad3] = key3;
      let own3 = reread(key3);
      product = fma(f32(own3.x), query3_0, product);
      product = fma(f32(own3.y), query3_1, product);
      product = fma(f32(own3.z), query3_2, product);
      product = fma(f32(own3.w), query3_3, product);
      own_products[lane] = product;
    }
    if (part == 0u) {
      let value = stored(new_value);
      v_cache[dst + column] = value;
      own_value = reread(value);
    }
  }
  workgroupBarrier();
  var largest = f32(-1e30);
  var total = f32(0.0);
  var o0 = f32(0.0);
  var o1 = f32(0.0);
  var o2 = f32(0.0);
  var o3 = f32(0.0);
  var turn = 0u;
  for (var first = begin; first < end; first += 64u) {
    let next = first + 64u;
    row = (min(next + place, last) * params.kv_heads + kv_head) * 16u;
    let next_k0 = k_cache[row + quad0];
    let next_k1 = k_cache[row + quad1];
    let next_k2 = k_cache[row + quad2];
    let next_k3 = k_cache[row + quad3];
    row = (min(next + part + 0u, last) * params.kv_heads + kv_head) * 16u;
    let next_v0 = v_cache[row + column];
    row = (min(next + part + 16u, last) * params.kv_heads + kv_head) * 16u;
    let next_v1 = v_cache[row + column];
    row = (min(next + part + 32u, last) * params.kv_heads + kv_head) * 16u;
    let next_v2 = v_cache[row + column];
    row = (min(next + part + 48u, last) * params.kv_heads + kv_head) * 16u;
    let next_v3 = v_cache[row + column];
    var product = f32(0.0);
    let key0 = cached(k0);
    product = fma(f32(key0.x), query0_0, product);
    product = fma(f32(key0.y), query0_1, product);
    product = fma(f32(key0.z), query0_2, product);
    product = fma(f32(key0.w), query0_3, product);
    let key1 = cached(k1);
    product = fma(f32(key1.x), query1_0, product);
    product = fma(f32(key1.y), query1_1, product);
    product = fma(f32(key1.z), query1_2, product);
    product = fma(f32(key1.w), query1_3, product);
    let key2 = cached(k2);
    product = fma(f32(key2.x), query2_0, product);
    product = fma(f32(key2.y), query2_1, product);
    product = fma(f32(key2.z), query2_2, product);
    product = fma(f32(key2.w), query2_3, product);
    let key3 = cached(k3);
    product = fma(f32(key3.x), query3_0, product);
    product = fma(f32(key3.y), query3_1, product);
    product = fma(f32(key3.z), query3_2, product);
    product = fma(f32(key3.w), query3_3, product);
    products[turn + lane] = product;
    workgroupBarrier();
    if (part < 16u) {
      let before = largest;
      let place0 = part + 0u;
      let seen0 = first + place0 < end;
      let at0 = turn + min(place0, 63u) * 4u;
      let score0 = select(f32(-1e30), products[at0] +
        products[at0 + 1u] +
        products[at0 + 2u] +
        products[at0 + 3u], seen0);
      largest = max(largest, score0);
      let place1 = part + 16u;
      let seen1 = first + place1 < end;
      let at1 = turn + min(place1, 63u) * 4u;
      let score1 = select(f32(-1e30), products[at1] +
        products[at1 + 1u] +
        products[at1 + 2u] +
        products[at1 + 3u], seen1);
      largest = max(largest, score1);
      let place2 = part + 32u;
      let seen2 = first + place2 < end;
      let at2 = turn + min(place2, 63u) * 4u;
      let score2 = select(f32(-1e30), products[at2] +
        products[at2 + 1u] +
        products[at2 + 2u] +
        products[at2 + 3u], seen2);
      largest = max(largest, score2);
      let place3 = part + 48u;
      let seen3 = first + place3 < end;
      let at3 = turn + min(place3, 63u) * 4u;
      let score3 = select(f32(-1e30), products[at3] +
        products[at3 + 1u] +
        products[at3 + 2u] +
        products[at3 + 3u], seen3);
      largest = max(largest, score3);
      let shrink = exp(before - largest);
      total *= shrink;
      o0 *= shrink;
      o1 *= shrink;
      o2 *= shrink;
      o3 *= shrink;
      let weight0 = exp(score0 - largest);
      let value0 = cached(v0);
      total += weight0;
      o0 = fma(weight0, f32(value0.x), o0);
      o1 = fma(weight0, f32(value0.y), o1);
      o2 = fma(weight0, f32(value0.z), o2);
      o3 = fma(weight0, f32(value0.w), o3);
      let weight1 = exp(score1 - largest);
      let value1 = cached(v1);
      total += weight1;
      o0 = fma(weight1, f32(value1.x), o0);
      o1 = fma(weight1, f32(value1.y), o1);
      o2 = fma(weight1, f32(value1.z), o2);
      o3 = fma(weight1, f32(value1.w), o3);
      let weight2 = exp(score2 - largest);
      let value2 = cached(v2);
      total += weight2;
      o0 = fma(weight2, f32(value2.x), o0);
      o1 = fma(weight2, f32(value2.y), o1);
      o2 = fma(weight2, f32(value2.z), o2);
      o3 = fma(weight2, f32(value2.w), o3);
      let weight3 = exp(score3 - largest);
      let value3 = cached(v3);
      total += weight3;
      o0 = fma(weight3, f32(value3.x), o0);
      o1 = fma(weight3, f32(value3.y), o1);
      o2 = fma(weight3, f32(value3.z), o2);
      o3 = fma(weight3, f32(value3.w), o3);
    }
    turn = 256u - turn;
    k0 = next_k0;
    k1 = next_k1;
    k2 = next_k2;
    k3 = next_k3;
    v0 = next_v0;
    v1 = next_v1;
    v2 = next_v2;
    v3 = next_v3;
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
  if (part < 16u && column == 0u) {
    largests[part] = largest;
    totals[part] = total;
  }
  if (part < 16u) {
    sums[part * 64u + 0u + column] = o0;
    sums[part * 64u + 16u + column] = o1;
    sums[part * 64u + 32u + column] = o2;
    sums[part * 64u + 48u + column] = o3;
  }
  workgroupBarrier();
  if (lane >= 64u) {
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
  let largest8 = largests[8];
  let largest9 = largests[9];
  let largest10 = largests[10];
  let largest11 = largests[11];
  let largest12 = largests[12];
  let largest13 = largests[13];
  let largest14 = largests[14];
  let largest15 = largests[15];
  largest = largest0;
  largest = max(largest, largest1);
  largest = max(largest, largest2);
  largest = max(largest, largest3);
  largest = max(largest, largest4);
  largest = max(largest, largest5);
  largest = max(largest, largest6);
  largest = max(largest, largest7);
  largest = max(largest, largest8);
  largest = max(largest, largest9);
  largest = max(largest, largest10);
  largest = max(largest, largest11);
  largest = max(largest, largest12);
  largest = max(largest, largest13);
  largest = max(largest, largest14);
  largest = max(largest, largest15);
  total = f32(0.0);
  var sum = f32(0.0);
  let weight0 = exp(largest0 - largest);
  total = fma(totals[0], weight0, total);
  sum = fma(sums[0u + lane], weight0, sum);
  let weight1 = exp(largest1 - largest);
  total = fma(totals[1], weight1, total);
  sum = fma(sums[64u + lane], weight1, sum);
  let weight2 = exp(largest2 - largest);
  total = fma(totals[2], weight2, total);
  sum = fma(sums[128u + lane], weight2, sum);
  let weight3 = exp(largest3 - largest);
  total = fma(totals[3], weight3, total);
  sum = fma(sums[192u + lane], weight3, sum);
  let weight4 = exp(largest4 - largest);
  total = fma(totals[4], weight4, total);
  sum = fma(sums[256u + lane], weight4, sum);
  let weight5 = exp(largest5 - largest);
  total = fma(totals[5], weight5, total);
  sum = fma(sums[320u + lane], weight5, sum);
  let weight6 = exp(largest6 - largest);
  total = fma(totals[6], weight6, total);
  sum = fma(sums[384u + lane], weight6, sum);
  let weight7 = exp(largest7 - largest);
  total = fma(totals[7], weight7, total);
  sum = fma(sums[448u + lane], weight7, sum);
  let weight8 = exp(largest8 - largest);
  total = fma(totals[8], weight8, total);
  sum = fma(sums[512u + lane], weight8, sum);
  let weight9 = exp(largest9 - largest);
  total = fma(totals[9], weight9, total);
  sum = fma(sums[576u + lane], weight9, sum);
  let weight10 = exp(largest10 - largest);
  total = fma(totals[10], weight10, total);
  sum = fma(sums[640u + lane], weight10, sum);
  let weight11 = exp(largest11 - largest);
  total = fma(totals[11], weight11, total);
  sum = fma(sums[704u + lane], weight11, sum);
  let weight12 = exp(largest12 - largest);
  total = fma(totals[12], weight12, total);
  sum = fma(sums[768u + lane], weight12, sum);
  let weight13 = exp(largest13 - largest);
  total = fma(totals[13], weight13, total);
  sum = fma(sums[832u + lane], weight13, sum);
  let weight14 = exp(largest14 - largest);
  total = fma(totals[14], weight14, total);
  sum = fma(sums[896u + lane], weight14, sum);
  let weight15 = exp(largest15 - largest);
  total = fma(totals[15], weight15, total);
  sum = fma(sums[960u + lane], weight15, sum);
  y[4u * spread((head0 + 0u) * 16u + column, 64u) + part] = sum / total;
}
