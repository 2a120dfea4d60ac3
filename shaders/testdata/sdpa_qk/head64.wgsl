// sdpa_qk with HeadQuads 16, Quads 8, Tile 64: workgroup [256 1 1], 16384 bytes of workgroup memory
// binding 0: q
// binding 1: k_cache
// binding 2: scores (written)
// param at 0: u32 tokens
// param at 4: u32 context
// param at 8: u32 position
// param at 12: u32 start
// param at 16: u32 window
// param at 20: u32 stride
// param at 24: u32 q_heads
// param at 28: u32 kv_heads
// param at 32: f32 scale

// scores = scale * q * k' for the positions that a token may see, a tile of 64 tokens x 64
// positions of a head a workgroup.
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, these tokens' included
  position: u32, // of the first token
  start: u32, // the first position that it sees, which has the first score of each row
  window: u32, // positions that a token sees at most
  stride: u32, // of a row of scores
  q_heads: u32,
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [tokens, q_heads, 16]
// [positions, kv_heads, 16]
@group(0) @binding(1) var<storage, read> k_cache: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> scores: array<f32>; // [q_heads, tokens, stride]
@group(0) @binding(3) var<uniform> params: Params;

// Four elements of a cache.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
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

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile_row = wid.y * 64u;
  let tile_column = wid.x * 64u;
  let head = wid.z;
  let first_position = params.start + tile_column;
  let first_token = params.position + tile_row;
  // Nothing to do past the live shape, and where no token of the tile sees any position of it.
  if (tile_row >= params.tokens || first_position >= params.context || head >= params.q_heads ||
    first_position > first_token + 63u ||
    first_position + 64u + params.window <= first_token + 1u) {
    return;
  }
  let kv_head = head / (params.q_heads / params.kv_heads);
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % 8u;
  let row0 = (lane + 0u) / 8u;
  let q_row0 = (min(tile_row + row0, params.tokens - 1u) * params.q_heads +
    head) * 16u;
  let k_row0 = (min(first_position + row0, params.context - 1u) * params.kv_heads +
    kv_head) * 16u;
  let row1 = (lane + 256u) / 8u;
  let q_row1 = (min(tile_row + row1, params.tokens - 1u) * params.q_heads +
    head) * 16u;
  let k_row1 = (min(first_position + row1, params.context - 1u) * params.kv_heads +
    kv_head) * 16u;
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
  for (var first = 0u; first < 16u; first += 8u) {
    let at = min(first + quad, 15u);
    let there = first + quad < 16u;
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
  let token0 = tile_row + ty + 0u;
  if (token0 < params.tokens) {
    let at = (head * params.tokens + token0) * params.stride;
    let last = params.position + token0;
    let c0 = tile_column + tx + 0u;
    if (params.start + c0 <= last && params.start + c0 + params.window > last) {
      scores[at + c0] = params.scale * sum0_0;
    }
    let c1 = tile_column + tx + 16u;
    if (params.start + c1 <= last && params.start + c1 + params.window > last) {
      scores[at + c1] = params.scale * sum0_1;
    }
    let c2 = tile_column + tx + 32u;
    if (params.start + c2 <= last && params.start + c2 + params.window > last) {
      scores[at + c2] = params.scale * sum0_2;
    }
    let c3 = tile_column + tx + 48u;
    if (params.start + c3 <= last && params.start + c3 + params.window > last) {
      scores[at + c3] = params.scale * sum0_3;
    }
  }
  let token1 = tile_row + ty + 16u;
  if (token1 < params.tokens) {
    let at = (head * params.tokens + token1) * params.stride;
    let last = params.position + token1;
    let c0 = tile_column + tx + 0u;
    if (params.start + c0 <= last && params.start + c0 + params.window > last) {
      scores[at + c0] = params.scale * sum1_0;
    }
    let c1 = tile_column + tx + 16u;
    if (params.start + c1 <= last && params.start + c1 + params.window > last) {
      scores[at + c1] = params.scale * sum1_1;
    }
    let c2 = tile_column + tx + 32u;
    if (params.start + c2 <= last && params.start + c2 + params.window > last) {
      scores[at + c2] = params.scale * sum1_2;
    }
    let c3 = tile_column + tx + 48u;
    if (params.start + c3 <= last && params.start + c3 + params.window > last) {
      scores[at + c3] = params.scale * sum1_3;
    }
  }
  let token2 = tile_row + ty + 32u;
  if (token2 < params.tokens) {
    let at = (head * params.tokens + token2) * params.stride;
    let last = params.position + token2;
    let c0 = tile_column + tx + 0u;
    if (params.start + c0 <= last && params.start + c0 + params.window > last) {
      scores[at + c0] = params.scale * sum2_0;
    }
    let c1 = tile_column + tx + 16u;
    if (params.start + c1 <= last && params.start + c1 + params.window > last) {
      scores[at + c1] = params.scale * sum2_1;
    }
    let c2 = tile_column + tx + 32u;
    if (params.start + c2 <= last && params.start + c2 + params.window > last) {
      scores[at + c2] = params.scale * sum2_2;
    }
    let c3 = tile_column + tx + 48u;
    if (params.start + c3 <= last && params.start + c3 + params.window > last) {
      scores[at + c3] = params.scale * sum2_3;
    }
  }
  let token3 = tile_row + ty + 48u;
  if (token3 < params.tokens) {
    let at = (head * params.tokens + token3) * params.stride;
    let last = params.position + token3;
    let c0 = tile_column + tx + 0u;
    if (params.start + c0 <= last && params.start + c0 + params.window > last) {
      scores[at + c0] = params.scale * sum3_0;
    }
    let c1 = tile_column + tx + 16u;
    if (params.start + c1 <= last && params.start + c1 + params.window > last) {
      scores[at + c1] = params.scale * sum3_1;
    }
    let c2 = tile_column + tx + 32u;
    if (params.start + c2 <= last && params.start + c2 + params.window > last) {
      scores[at + c2] = params.scale * sum3_2;
    }
    let c3 = tile_column + tx + 48u;
    if (params.start + c3 <= last && params.start + c3 + params.window > last) {
      scores[at + c3] = params.scale * sum3_3;
    }
  }
}
