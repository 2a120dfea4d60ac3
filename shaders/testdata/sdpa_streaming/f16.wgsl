// sdpa_streaming with Group 3, HalfCache, HeadQuads 20, Quads 8, Tile 64: workgroup [256 1 1], 16384 bytes of workgroup memory
// binding 0: q
// binding 1: k_cache
// binding 2: v_cache
// binding 3: y (written)
// param at 0: u32 tokens
// param at 4: u32 context
// param at 8: u32 position
// param at 12: u32 window
// param at 16: u32 kv_heads
// param at 20: f32 scale

// Attention of a tile of 64 rows over the positions they may see, 64 at a time, with no scores in memory. A
// row is a token of a query head; the 3 query heads of a KV head make 3 rows of each token,
// so that they share what is loaded of k and v. The largest score and the sum of the weights of a row are
// carried along, and what was summed so far is scaled when a larger score comes. Source: Dao and others,
// FlashAttention-2 (2023).
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, these tokens' included
  position: u32, // of the first token
  window: u32, // positions that a token sees at most
  kv_heads: u32,
  scale: f32,
}

// [tokens, kv_heads, 3, 20]
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k_cache: array<vec2<u32>>; // [positions, kv_heads, 20]
@group(0) @binding(2) var<storage, read> v_cache: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>; // like q
@group(0) @binding(4) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Four elements of a cache of halves, two to a word.
fn cached(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

// Two tiles of 64 rows by 32 columns, one behind the other in workgroup memory, whose
// product 16 x 16 lanes compute: lane (tx, ty) has rows ty + 16 i of the first and tx + 16 j of the second.
var<workgroup> tiles: array<vec4<f32>, 1024>;
const second = 512u;

// In a tile the four columns of a vector lie together, and the vectors of a row change places from row to
// row: lanes that read one column of eight rows, or write eight vectors of a row, meet in no memory bank.

// The mask of the vectors' places in a row.
fn tile_mask(row: u32) -> u32 {
  return row & 7u;
}

// The place of vector quad of a row.
fn tile_place(row: u32, quad: u32) -> u32 {
  return row * 8u + (quad ^ tile_mask(row));
}

// The place of vector quad of a row of 64 weights, which take the place of both tiles.
fn weight_place(row: u32, quad: u32) -> u32 {
  return row * 16u + (quad ^ (row & 7u));
}

// The place of a row of q or y, less that of its KV head.
fn row_place(row: u32, kv_head: u32) -> u32 {
  return ((row / 3u * params.kv_heads + kv_head) * 3u +
    row % 3u) * 20u;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // The tiles of the last tokens have the most positions to go through, and start first.
  let rows = params.tokens * 3u;
  let row_tiles = (rows + 63u) / 64u;
  let id = flat_group(wid, groups);
  if (id >= row_tiles * params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let kv_head = id % params.kv_heads;
  let tile_row = (row_tiles - 1u - id / params.kv_heads) * 64u;
  let last_token = min(tile_row + 63u, rows - 1u) / 3u;
  let end = params.position + last_token + 1u;
  let first_end = params.position + tile_row / 3u + 1u;
  let begin = max(first_end, params.window) - params.window;
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % 8u;
  let row0 = (lane + 0u) / 8u;
  let q_row0 = row_place(min(tile_row + row0, rows - 1u), kv_head);
  let row1 = (lane + 256u) / 8u;
  let q_row1 = row_place(min(tile_row + row1, rows - 1u), kv_head);
  // What a lane keeps of its four rows. The totals are of its own positions.
  let token = (vec4<u32>(tile_row + ty) + vec4<u32>(0u, 16u, 32u, 48u)) / 3u;
  let last = vec4<u32>(params.position) + token;
  var largest = vec4<f32>(-1e30);
  var total = vec4<f32>(0.0);
  var o0_0 = vec4<f32>(0.0);
  var o0_1 = vec4<f32>(0.0);
  var o1_0 = vec4<f32>(0.0);
  var o1_1 = vec4<f32>(0.0);
  var o2_0 = vec4<f32>(0.0);
  var o2_1 = vec4<f32>(0.0);
  var o3_0 = vec4<f32>(0.0);
  var o3_1 = vec4<f32>(0.0);
  let column0 = min(tx + 0u, 19u);
  let column1 = min(tx + 16u, 19u);
  for (var tile_column = begin; tile_column < end; tile_column += 64u) {
  var sum0_0 = 0.0;
  var sum0_1 = 0.0;
  var sum0_2 = 0.0;
  var sum0_3 = 0.0;
  var sum1_0 = 0.0;
  var sum1_1 = 0.0;
  var sum1_2 = 0.0;
  var sum1_3 = 0.0;
  var sum2_0 = 0.0;
  var sum2_1 = 0.0;
  var sum2_2 = 0.0;
  var sum2_3 = 0.0;
  var sum3_0 = 0.0;
  var sum3_1 = 0.0;
  var sum3_2 = 0.0;
  var sum3_3 = 0.0;
  let row_a = ty * 8u;
  let row_b = second + tx * 8u;
  let mask_a = tile_mask(ty);
  let mask_b = tile_mask(tx);
    let k_row0 = (min(tile_column + row0, end - 1u) * params.kv_heads + kv_head) * 20u;
    let k_row1 = (min(tile_column + row1, end - 1u) * params.kv_heads + kv_head) * 20u;
    for (var first = 0u; first < 20u; first += 8u) {
      let at = min(first + quad, 19u);
      let there = first + quad < 20u;
      tiles[tile_place(row0, quad)] = select(vec4<f32>(0.0), q[q_row0 + at], there);
      tiles[second + tile_place(row0, quad)] = select(vec4<f32>(0.0), cached(k_cache[k_row0 + at]),
        there);
      tiles[tile_place(row1, quad)] = select(vec4<f32>(0.0), q[q_row1 + at], there);
      tiles[second + tile_place(row1, quad)] = select(vec4<f32>(0.0), cached(k_cache[k_row1 + at]),
        there);
      workgroupBarrier();
    {
      let a0 = tiles[row_a + 0u + (0u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (0u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (0u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (0u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (0u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (0u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (0u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (0u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (1u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (1u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (1u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (1u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (1u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (1u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (1u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (1u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (2u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (2u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (2u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (2u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (2u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (2u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (2u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (2u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (3u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (3u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (3u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (3u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (3u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (3u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (3u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (3u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (4u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (4u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (4u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (4u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (4u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (4u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (4u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (4u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (5u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (5u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (5u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (5u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (5u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (5u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (5u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (5u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (6u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (6u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (6u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (6u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (6u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (6u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (6u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (6u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
    {
      let a0 = tiles[row_a + 0u + (7u ^ mask_a)];
      let a1 = tiles[row_a + 128u + (7u ^ mask_a)];
      let a2 = tiles[row_a + 256u + (7u ^ mask_a)];
      let a3 = tiles[row_a + 384u + (7u ^ mask_a)];
      let b0 = tiles[row_b + 0u + (7u ^ mask_b)];
      sum0_0 = fma(a0.w, b0.w,
        fma(a0.z, b0.z, fma(a0.y, b0.y, fma(a0.x, b0.x, sum0_0))));
      sum1_0 = fma(a1.w, b0.w,
        fma(a1.z, b0.z, fma(a1.y, b0.y, fma(a1.x, b0.x, sum1_0))));
      sum2_0 = fma(a2.w, b0.w,
        fma(a2.z, b0.z, fma(a2.y, b0.y, fma(a2.x, b0.x, sum2_0))));
      sum3_0 = fma(a3.w, b0.w,
        fma(a3.z, b0.z, fma(a3.y, b0.y, fma(a3.x, b0.x, sum3_0))));
      let b1 = tiles[row_b + 128u + (7u ^ mask_b)];
      sum0_1 = fma(a0.w, b1.w,
        fma(a0.z, b1.z, fma(a0.y, b1.y, fma(a0.x, b1.x, sum0_1))));
      sum1_1 = fma(a1.w, b1.w,
        fma(a1.z, b1.z, fma(a1.y, b1.y, fma(a1.x, b1.x, sum1_1))));
      sum2_1 = fma(a2.w, b1.w,
        fma(a2.z, b1.z, fma(a2.y, b1.y, fma(a2.x, b1.x, sum2_1))));
      sum3_1 = fma(a3.w, b1.w,
        fma(a3.z, b1.z, fma(a3.y, b1.y, fma(a3.x, b1.x, sum3_1))));
      let b2 = tiles[row_b + 256u + (7u ^ mask_b)];
      sum0_2 = fma(a0.w, b2.w,
        fma(a0.z, b2.z, fma(a0.y, b2.y, fma(a0.x, b2.x, sum0_2))));
      sum1_2 = fma(a1.w, b2.w,
        fma(a1.z, b2.z, fma(a1.y, b2.y, fma(a1.x, b2.x, sum1_2))));
      sum2_2 = fma(a2.w, b2.w,
        fma(a2.z, b2.z, fma(a2.y, b2.y, fma(a2.x, b2.x, sum2_2))));
      sum3_2 = fma(a3.w, b2.w,
        fma(a3.z, b2.z, fma(a3.y, b2.y, fma(a3.x, b2.x, sum3_2))));
      let b3 = tiles[row_b + 384u + (7u ^ mask_b)];
      sum0_3 = fma(a0.w, b3.w,
        fma(a0.z, b3.z, fma(a0.y, b3.y, fma(a0.x, b3.x, sum0_3))));
      sum1_3 = fma(a1.w, b3.w,
        fma(a1.z, b3.z, fma(a1.y, b3.y, fma(a1.x, b3.x, sum1_3))));
      sum2_3 = fma(a2.w, b3.w,
        fma(a2.z, b3.z, fma(a2.y, b3.y, fma(a2.x, b3.x, sum2_3))));
      sum3_3 = fma(a3.w, b3.w,
        fma(a3.z, b3.z, fma(a3.y, b3.y, fma(a3.x, b3.x, sum3_3))));
    }
      workgroupBarrier();
    }
    let c0 = vec4<u32>(tile_column + tx + 0u);
    let seen0 = (c0 <= last) & (c0 + vec4<u32>(params.window) > last);
    let score0 = select(vec4<f32>(-1e30),
      params.scale * vec4<f32>(sum0_0, sum1_0, sum2_0, sum3_0), seen0);
    let c1 = vec4<u32>(tile_column + tx + 16u);
    let seen1 = (c1 <= last) & (c1 + vec4<u32>(params.window) > last);
    let score1 = select(vec4<f32>(-1e30),
      params.scale * vec4<f32>(sum0_1, sum1_1, sum2_1, sum3_1), seen1);
    let c2 = vec4<u32>(tile_column + tx + 32u);
    let seen2 = (c2 <= last) & (c2 + vec4<u32>(params.window) > last);
    let score2 = select(vec4<f32>(-1e30),
      params.scale * vec4<f32>(sum0_2, sum1_2, sum2_2, sum3_2), seen2);
    let c3 = vec4<u32>(tile_column + tx + 48u);
    let seen3 = (c3 <= last) & (c3 + vec4<u32>(params.window) > last);
    let score3 = select(vec4<f32>(-1e30),
      params.scale * vec4<f32>(sum0_3, sum1_3, sum2_3, sum3_3), seen3);
    // The largest score of each row: of a lane's own, then of the 16 lanes that share the row.
    tiles[lane] = max(max(score0, score1), max(score2, score3));
    workgroupBarrier();
    let before = largest;
    for (var i = 0u; i < 16u; i++) {
      largest = max(largest, tiles[(lane & 240u) + i]);
    }
    workgroupBarrier();
    let shrink = exp(before - largest);
    let weight0 = select(vec4<f32>(0.0), exp(score0 - largest), seen0);
    tiles[weight_place(ty, (tx + 0u) / 4u)][tx & 3u] = weight0.x;
    tiles[weight_place(ty + 16u, (tx + 0u) / 4u)][tx & 3u] = weight0.y;
    tiles[weight_place(ty + 32u, (tx + 0u) / 4u)][tx & 3u] = weight0.z;
    tiles[weight_place(ty + 48u, (tx + 0u) / 4u)][tx & 3u] = weight0.w;
    let weight1 = select(vec4<f32>(0.0), exp(score1 - largest), seen1);
    tiles[weight_place(ty, (tx + 16u) / 4u)][tx & 3u] = weight1.x;
    tiles[weight_place(ty + 16u, (tx + 16u) / 4u)][tx & 3u] = weight1.y;
    tiles[weight_place(ty + 32u, (tx + 16u) / 4u)][tx & 3u] = weight1.z;
    tiles[weight_place(ty + 48u, (tx + 16u) / 4u)][tx & 3u] = weight1.w;
    let weight2 = select(vec4<f32>(0.0), exp(score2 - largest), seen2);
    tiles[weight_place(ty, (tx + 32u) / 4u)][tx & 3u] = weight2.x;
    tiles[weight_place(ty + 16u, (tx + 32u) / 4u)][tx & 3u] = weight2.y;
    tiles[weight_place(ty + 32u, (tx + 32u) / 4u)][tx & 3u] = weight2.z;
    tiles[weight_place(ty + 48u, (tx + 32u) / 4u)][tx & 3u] = weight2.w;
    let weight3 = select(vec4<f32>(0.0), exp(score3 - largest), seen3);
    tiles[weight_place(ty, (tx + 48u) / 4u)][tx & 3u] = weight3.x;
    tiles[weight_place(ty + 16u, (tx + 48u) / 4u)][tx & 3u] = weight3.y;
    tiles[weight_place(ty + 32u, (tx + 48u) / 4u)][tx & 3u] = weight3.z;
    tiles[weight_place(ty + 48u, (tx + 48u) / 4u)][tx & 3u] = weight3.w;
    total = total * shrink + ((weight0 + weight1) + (weight2 + weight3));
    o0_0 *= shrink.x;
    o0_1 *= shrink.x;
    o1_0 *= shrink.y;
    o1_1 *= shrink.y;
    o2_0 *= shrink.z;
    o2_1 *= shrink.z;
    o3_0 *= shrink.w;
    o3_1 *= shrink.w;
    workgroupBarrier();
    let quads = (min(64u, end - tile_column) + 3u) / 4u;
    for (var c = 0u; c < quads; c++) {
      let v_row = tile_column + 4u * c;
      let v_row0 = (min(v_row + 0u, end - 1u) * params.kv_heads + kv_head) * 20u;
      let v0_0 = cached(v_cache[v_row0 + column0]);
      let v0_1 = cached(v_cache[v_row0 + column1]);
      let v_row1 = (min(v_row + 1u, end - 1u) * params.kv_heads + kv_head) * 20u;
      let v1_0 = cached(v_cache[v_row1 + column0]);
      let v1_1 = cached(v_cache[v_row1 + column1]);
      let v_row2 = (min(v_row + 2u, end - 1u) * params.kv_heads + kv_head) * 20u;
      let v2_0 = cached(v_cache[v_row2 + column0]);
      let v2_1 = cached(v_cache[v_row2 + column1]);
      let v_row3 = (min(v_row + 3u, end - 1u) * params.kv_heads + kv_head) * 20u;
      let v3_0 = cached(v_cache[v_row3 + column0]);
      let v3_1 = cached(v_cache[v_row3 + column1]);
      let w0 = tiles[weight_place(ty + 0u, c)];
      o0_0 = fma(vec4<f32>(w0.w), v3_0,
        fma(vec4<f32>(w0.z), v2_0,
        fma(vec4<f32>(w0.y), v1_0, fma(vec4<f32>(w0.x), v0_0, o0_0))));
      o0_1 = fma(vec4<f32>(w0.w), v3_1,
        fma(vec4<f32>(w0.z), v2_1,
        fma(vec4<f32>(w0.y), v1_1, fma(vec4<f32>(w0.x), v0_1, o0_1))));
      let w1 = tiles[weight_place(ty + 16u, c)];
      o1_0 = fma(vec4<f32>(w1.w), v3_0,
        fma(vec4<f32>(w1.z), v2_0,
        fma(vec4<f32>(w1.y), v1_0, fma(vec4<f32>(w1.x), v0_0, o1_0))));
      o1_1 = fma(vec4<f32>(w1.w), v3_1,
        fma(vec4<f32>(w1.z), v2_1,
        fma(vec4<f32>(w1.y), v1_1, fma(vec4<f32>(w1.x), v0_1, o1_1))));
      let w2 = tiles[weight_place(ty + 32u, c)];
      o2_0 = fma(vec4<f32>(w2.w), v3_0,
        fma(vec4<f32>(w2.z), v2_0,
        fma(vec4<f32>(w2.y), v1_0, fma(vec4<f32>(w2.x), v0_0, o2_0))));
      o2_1 = fma(vec4<f32>(w2.w), v3_1,
        fma(vec4<f32>(w2.z), v2_1,
        fma(vec4<f32>(w2.y), v1_1, fma(vec4<f32>(w2.x), v0_1, o2_1))));
      let w3 = tiles[weight_place(ty + 48u, c)];
      o3_0 = fma(vec4<f32>(w3.w), v3_0,
        fma(vec4<f32>(w3.z), v2_0,
        fma(vec4<f32>(w3.y), v1_0, fma(vec4<f32>(w3.x), v0_0, o3_0))));
      o3_1 = fma(vec4<f32>(w3.w), v3_1,
        fma(vec4<f32>(w3.z), v2_1,
        fma(vec4<f32>(w3.y), v1_1, fma(vec4<f32>(w3.x), v0_1, o3_1))));
    }
    workgroupBarrier();
  }
  tiles[lane] = total;
  workgroupBarrier();
  var sum = vec4<f32>(0.0);
  for (var i = 0u; i < 16u; i++) {
    sum += tiles[(lane & 240u) + i];
  }
  if (tile_row + ty + 0u < rows) {
    let at = row_place(tile_row + ty + 0u, kv_head);
    if (tx + 0u < 20u) {
      y[at + column0] = o0_0 / sum.x;
    }
    if (tx + 16u < 20u) {
      y[at + column1] = o0_1 / sum.x;
    }
  }
  if (tile_row + ty + 16u < rows) {
    let at = row_place(tile_row + ty + 16u, kv_head);
    if (tx + 0u < 20u) {
      y[at + column0] = o1_0 / sum.y;
    }
    if (tx + 16u < 20u) {
      y[at + column1] = o1_1 / sum.y;
    }
  }
  if (tile_row + ty + 32u < rows) {
    let at = row_place(tile_row + ty + 32u, kv_head);
    if (tx + 0u < 20u) {
      y[at + column0] = o2_0 / sum.z;
    }
    if (tx + 16u < 20u) {
      y[at + column1] = o2_1 / sum.z;
    }
  }
  if (tile_row + ty + 48u < rows) {
    let at = row_place(tile_row + ty + 48u, kv_head);
    if (tx + 0u < 20u) {
      y[at + column0] = o3_0 / sum.w;
    }
    if (tx + 16u < 20u) {
      y[at + column1] = o3_1 / sum.w;
    }
  }
}
