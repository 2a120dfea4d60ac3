// sdpa_fd_split/one_head: HeadGroups 1, HeadQuads 5, Heads 1, Lanes 32, Row 4, Turn neighbours, Whole
// workgroup [32 1 1], 832 bytes of workgroup memory
// bindings: q, k, v, cosine, sine, k_cache (read and written), v_cache (read and written), y (written)
// params: u32 context, u32 start, u32 kv_heads, f32 scale

// Attention of one token for 1 query head of a KV head, over all positions that the token sees.
// The last split also appends the token's k and v to the caches.
// The kernel rotates q and k as it loads them.
//
// A workgroup processes its positions in blocks, and loads the next block while it processes the current one.
// 4 lanes share the key of a position. 5 lanes share its value, and each of them has four
// columns. The lanes that have the values of the same positions form a part. Each part has its own largest
// score and its own sums, so a block needs only one barrier. One more barrier comes before the parts are
// combined.
struct Params {
  context: u32, // number of positions, including the token's own
  start: u32, // the first position that the token sees
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [q_heads, 5]
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>; // [kv_heads, 5]
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> cosine: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> sine: array<vec2<f32>>;
// [positions, kv_heads, 5]
@group(0) @binding(5) var<storage, read_write> k_cache: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>; // [q_heads, 20]
@group(0) @binding(8) var<uniform> params: Params;

// Returns the index of a workgroup in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Returns four elements of a cache that stores f32 numbers.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Returns four elements in the form in which a cache stores them.
fn stored(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Returns the elements as later steps will read them from the cache.
fn reread(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Rotates x, which is vector quad of a head.
fn turned(x: vec4<f32>, quad: u32) -> vec4<f32> {
  let c = cosine[quad];
  let s = sine[quad];
  return vec4<f32>(x.x * c.x - x.y * s.x, x.x * s.x + x.y * c.x, x.z * c.y - x.w * s.y,
    x.z * s.y + x.w * c.y);
}

// Returns vector quad of a query head.
fn query_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * 5u;
  return turned(q[at + quad], quad);
}

// Returns vector quad of the token's key.
fn key_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * 5u;
  return turned(k[at + quad], quad);
}

// A f32 has a value for each query head. The array products has one product for each lane, for two blocks,
// which alternate.
var<workgroup> products: array<f32, 64>;
var<workgroup> own_products: array<f32, 4>; // products with the token's own key
// The results of the parts.
var<workgroup> sums: array<f32, 128>;
var<workgroup> largests: array<f32, 6>;
var<workgroup> totals: array<f32, 6>;

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let head_group = id;
  let kv_head = head_group / 1u;
  if (kv_head >= params.kv_heads) {
    return; // the grid can be larger than the current shape needs
  }
  let head0 = head_group * 1u;
  // The caches are read from position begin to position end.
  let begin = params.start;
  let end = params.context - 1u;
  let appends = true;
  let last = max(end, 1u) - 1u;
  let place = lane / 4u;
  let part = lane / 5u;
  let column = lane % 5u;
  let quad0 = min(lane % 4u + 0u, 4u);
  let quad1 = min(lane % 4u + 4u, 4u);
  let new_key0 = key_of(kv_head, quad0);
  let new_key1 = key_of(kv_head, quad1);
  let new_value = v[kv_head * 5u + column];
  var row = (min(begin + place, last) * params.kv_heads + kv_head) * 5u;
  var k0 = k_cache[row + quad0];
  var k1 = k_cache[row + quad1];
  row = (min(begin + part + 0u, last) * params.kv_heads + kv_head) * 5u;
  var v0 = v_cache[row + column];
  row = (min(begin + part + 6u, last) * params.kv_heads + kv_head) * 5u;
  var v1 = v_cache[row + column];
  let q0_0 = params.scale * query_of(head0 + 0u, quad0);
  let query0_0 = f32(q0_0.x);
  let query0_1 = f32(q0_0.y);
  let query0_2 = f32(q0_0.z);
  let query0_3 = f32(q0_0.w);
  let q0_1 = params.scale *
    select(vec4<f32>(0.0), query_of(head0 + 0u, quad1), lane % 4u + 4u < 5u);
  let query1_0 = f32(q0_1.x);
  let query1_1 = f32(q0_1.y);
  let query1_2 = f32(q0_1.z);
  let query1_3 = f32(q0_1.w);
  // The workgroups for other query heads of the same KV head append the same k and v.
  var own_value = vec4<f32>(0.0);
  if (appends) {
    let dst = ((params.context - 1u) * params.kv_heads + kv_head) * 5u;
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
  for (var first = begin; first < end; first += 8u) {
    let next = first + 8u;
    row = (min(next + place, last) * params.kv_heads + kv_head) * 5u;
    let next_k0 = k_cache[row + quad0];
    let next_k1 = k_cache[row + quad1];
    row = (min(next + part + 0u, last) * params.kv_heads + kv_head) * 5u;
    let next_v0 = v_cache[row + column];
    row = (min(next + part + 6u, last) * params.kv_heads + kv_head) * 5u;
    let next_v1 = v_cache[row + column];
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
    products[turn + lane] = product;
    workgroupBarrier();
    if (part < 6u) {
      let before = largest;
      let place0 = part + 0u;
      let seen0 = first + place0 < end && place0 < 8u;
      let at0 = turn + min(place0, 7u) * 4u;
      let score0 = select(f32(-1e30), products[at0] +
        products[at0 + 1u] +
        products[at0 + 2u] +
        products[at0 + 3u], seen0);
      largest = max(largest, score0);
      let place1 = part + 6u;
      let seen1 = first + place1 < end && place1 < 8u;
      let at1 = turn + min(place1, 7u) * 4u;
      let score1 = select(f32(-1e30), products[at1] +
        products[at1 + 1u] +
        products[at1 + 2u] +
        products[at1 + 3u], seen1);
      largest = max(largest, score1);
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
    }
    turn = 32u - turn;
    k0 = next_k0;
    k1 = next_k1;
    v0 = next_v0;
    v1 = next_v1;
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
  if (part < 6u && column == 0u) {
    largests[part] = largest;
    totals[part] = total;
  }
  if (part < 6u) {
    sums[part * 20u + 0u + column] = o0;
    sums[part * 20u + 5u + column] = o1;
    sums[part * 20u + 10u + column] = o2;
    sums[part * 20u + 15u + column] = o3;
  }
  workgroupBarrier();
  if (lane >= 20u) {
    return;
  }
  let largest0 = largests[0];
  let largest1 = largests[1];
  let largest2 = largests[2];
  let largest3 = largests[3];
  let largest4 = largests[4];
  let largest5 = largests[5];
  largest = largest0;
  largest = max(largest, largest1);
  largest = max(largest, largest2);
  largest = max(largest, largest3);
  largest = max(largest, largest4);
  largest = max(largest, largest5);
  total = f32(0.0);
  var sum = f32(0.0);
  let weight0 = exp(largest0 - largest);
  total = fma(totals[0], weight0, total);
  sum = fma(sums[0u + lane], weight0, sum);
  let weight1 = exp(largest1 - largest);
  total = fma(totals[1], weight1, total);
  sum = fma(sums[20u + lane], weight1, sum);
  let weight2 = exp(largest2 - largest);
  total = fma(totals[2], weight2, total);
  sum = fma(sums[40u + lane], weight2, sum);
  let weight3 = exp(largest3 - largest);
  total = fma(totals[3], weight3, total);
  sum = fma(sums[60u + lane], weight3, sum);
  let weight4 = exp(largest4 - largest);
  total = fma(totals[4], weight4, total);
  sum = fma(sums[80u + lane], weight4, sum);
  let weight5 = exp(largest5 - largest);
  total = fma(totals[5], weight5, total);
  sum = fma(sums[100u + lane], weight5, sum);
  let element = 4u * column + part;
  y[(head0 + 0u) * 20u + element] = sum / total;
}
