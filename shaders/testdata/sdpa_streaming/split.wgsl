// sdpa_streaming with Across 16, Down 8, Group 4, HeadQuads 16, Quads 4, Split: workgroup [128 1 1], 27904 bytes of workgroup memory
// binding 0: q
// binding 1: k_cache
// binding 2: v_cache
// binding 3: parts (written)
// param at 0: u32 tokens
// param at 4: u32 context
// param at 8: u32 position
// param at 12: u32 window
// param at 16: u32 kv_heads
// param at 20: f32 scale
// param at 24: u32 splits
// param at 28: u32 split_len

// Attention of a tile of 64 rows over the positions they may see, 64 at a time, with no
// scores in memory. A row is a token of a query head; the 4 query heads of a KV head make 4
// rows of each token, so that they share what is loaded of k and v. The largest score and the sum of the
// weights of a row are carried along, and what was summed so far is scaled when a larger score comes. Source:
// Dao and others, FlashAttention-2 (2023).
//
// A lane has the scores of 4 positions, and 4 columns of y, of 8 rows. Both products are
// made as in linear_tiled, the next tiles loaded while these are multiplied: scores of q and k, 16
// columns of a head at a time, and y of weights and v, 16 positions at a time. Rows are gone through
// down, and for the next number of k or v up again, for the reason given there.
//
// A workgroup takes one of the splits of the positions, and leaves what it has summed to sdpa_fd_reduce.
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, these tokens' included
  position: u32, // of the first token
  window: u32, // positions that a token sees at most
  kv_heads: u32,
  scale: f32,
  splits: u32,
  split_len: u32, // positions, whole tiles
}

// [tokens, kv_heads, 4, 16]
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k_cache: array<vec4<f32>>; // [positions, kv_heads, 16]
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<f32>>;
// [splits, tokens, q_heads, 16 sums, then the largest score and the sum of the weights]
@group(0) @binding(3) var<storage, read_write> parts: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Four elements of a cache.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// What lanes read of 8 rows each: two vectors a column of q, or a position of the weights, whose stages are
// 16 positions each. With 2 unused ones behind each 4 columns, and 1 behind all, what lanes store, or
// read, at a time meets in no memory bank.
var<workgroup> row_tile: array<array<array<vec4<f32>, 41>, 8>, 4>;
// What lanes read of k, a vector of positions for each column, or of v, 1 of columns a position.
var<workgroup> column_tile: array<array<vec4<f32>, 25>, 16>;
// Of each row, the largest score so far, and what sums from before it count.
var<workgroup> tops: array<vec4<f32>, 16>;
var<workgroup> shrinks: array<vec4<f32>, 16>;

// The place of a row of q or y, less that of its KV head.
fn row_place(row: u32, kv_head: u32) -> u32 {
  return ((row / 4u * params.kv_heads + kv_head) * 4u +
    row % 4u) * 16u;
}

// The place of a row of parts.
fn part_place(row: u32, kv_head: u32, split: u32) -> u32 {
  let first = split * params.tokens * params.kv_heads * 4u;
  return (first + row_place(row, kv_head) / 16u) * 17u;
}

// The place of a position in a cache.
fn cache_place(position: u32, kv_head: u32) -> u32 {
  return (position * params.kv_heads + kv_head) * 16u;
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // The tiles of the last tokens have the most positions to go through, and start first.
  let rows = params.tokens * 4u;
  let row_tiles = (rows + 63u) / 64u;
  let group = flat_group(wid, groups);
  let id = group / params.splits;
  let split = group % params.splits;
  if (id >= row_tiles * params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let kv_head = id % params.kv_heads;
  let tile_row = (row_tiles - 1u - id / params.kv_heads) * 64u;
  let last_token = min(tile_row + 63u, rows - 1u) / 4u;
  let last_end = params.position + last_token + 1u;
  let first_end = params.position + tile_row / 4u + 1u;
  let split_begin = max(params.position + 1u, params.window) - params.window + split * params.split_len;
  let end = min(last_end, split_begin + params.split_len);
  let begin0 = max(max(first_end, params.window) - params.window, split_begin);
  let begin = begin0 - (begin0 - split_begin) % 64u;
  // Lane (tx, ty) has rows 8 ty to 8 ty + 7 of the tile. Of the 8 x 4 lanes that run together neighbours read
  // the same of k and v, and every other lane of four the same of q and the weights.
  let tx = ((lane >> 1u) & 7u) + ((lane >> 2u) & 8u);
  let ty = ((lane >> 6u) << 2u) + ((lane >> 3u) & 2u) + (lane & 1u);
  // What this lane loads, and where it goes.
  let quad = lane % 4u;
  let q_row0 = lane / 4u + 0u;
  let q_from0 = row_place(min(tile_row + q_row0, rows - 1u), kv_head);
  let q_to0 = q_row0 / 8u;
  let q_at0 = quad * 10u + ((q_row0 >> 2u) & 1u);
  let q_row1 = lane / 4u + 32u;
  let q_from1 = row_place(min(tile_row + q_row1, rows - 1u), kv_head);
  let q_to1 = q_row1 / 8u;
  let q_at1 = quad * 10u + ((q_row1 >> 2u) & 1u);
  let k_row0 = lane / 4u + 0u;
  let k_to0 = k_row0 / 4u;
  let k_row1 = lane / 4u + 32u;
  let k_to1 = k_row1 / 4u;
  let v_item0 = min(lane + 0u, 255u);
  let v_row0 = v_item0 / 16u;
  let v_quad0 = v_item0 % 16u;
  let v_to0 = v_quad0 % 16u;
  let v_at0 = v_row0 * 1u + v_quad0 / 16u;
  let v_item1 = min(lane + 128u, 255u);
  let v_row1 = v_item1 / 16u;
  let v_quad1 = v_item1 % 16u;
  let v_to1 = v_quad1 % 16u;
  let v_at1 = v_row1 * 1u + v_quad1 / 16u;
  // The last position that each of a lane's rows sees.
  let last0 = vec4<u32>(params.position) +
    (vec4<u32>(tile_row + 8u * ty + 0u) + vec4<u32>(0u, 1u, 2u, 3u)) / 4u;
  let last1 = vec4<u32>(params.position) +
    (vec4<u32>(tile_row + 8u * ty + 4u) + vec4<u32>(0u, 1u, 2u, 3u)) / 4u;
  let scale = params.scale * 1.4426950408889634; // weights are powers of 2
  var largest = -1e20; // of row lane. Scores that are not seen are less: their weight is 0 in any case.
  var total0 = vec4<f32>(0.0); // of a lane's own positions
  var total1 = vec4<f32>(0.0);
  var o0_0 = vec4<f32>(0.0);
  var o1_0 = vec4<f32>(0.0);
  var o2_0 = vec4<f32>(0.0);
  var o3_0 = vec4<f32>(0.0);
  var o4_0 = vec4<f32>(0.0);
  var o5_0 = vec4<f32>(0.0);
  var o6_0 = vec4<f32>(0.0);
  var o7_0 = vec4<f32>(0.0);
  let at0 = quad;
  var q0 = q[q_from0 + at0];
  var q1 = q[q_from1 + at0];
  var k0 = k_cache[cache_place(min(begin + k_row0, end - 1u), kv_head) + at0];
  var k1 = k_cache[cache_place(min(begin + k_row1, end - 1u), kv_head) + at0];
  for (var tile_column = begin; tile_column < end; tile_column += 64u) {
    var sum0_0 = vec4<f32>(0.0);
    var sum1_0 = vec4<f32>(0.0);
    var sum0_1 = vec4<f32>(0.0);
    var sum1_1 = vec4<f32>(0.0);
    var sum0_2 = vec4<f32>(0.0);
    var sum1_2 = vec4<f32>(0.0);
    var sum0_3 = vec4<f32>(0.0);
    var sum1_3 = vec4<f32>(0.0);
    for (var step = 0u; step < 4u; step++) {
      let of_q0 = q0;
      row_tile[0][q_to0][q_at0 + 0u][q_row0 & 3u] = of_q0[0];
      row_tile[0][q_to0][q_at0 + 2u][q_row0 & 3u] = of_q0[1];
      row_tile[0][q_to0][q_at0 + 4u][q_row0 & 3u] = of_q0[2];
      row_tile[0][q_to0][q_at0 + 6u][q_row0 & 3u] = of_q0[3];
      let of_q1 = q1;
      row_tile[0][q_to1][q_at1 + 0u][q_row1 & 3u] = of_q1[0];
      row_tile[0][q_to1][q_at1 + 2u][q_row1 & 3u] = of_q1[1];
      row_tile[0][q_to1][q_at1 + 4u][q_row1 & 3u] = of_q1[2];
      row_tile[0][q_to1][q_at1 + 6u][q_row1 & 3u] = of_q1[3];
      let of_k0 = cached(k0);
      column_tile[k_to0][quad * 6u + 0u][k_row0 & 3u] = of_k0[0];
      column_tile[k_to0][quad * 6u + 1u][k_row0 & 3u] = of_k0[1];
      column_tile[k_to0][quad * 6u + 2u][k_row0 & 3u] = of_k0[2];
      column_tile[k_to0][quad * 6u + 3u][k_row0 & 3u] = of_k0[3];
      let of_k1 = cached(k1);
      column_tile[k_to1][quad * 6u + 0u][k_row1 & 3u] = of_k1[0];
      column_tile[k_to1][quad * 6u + 1u][k_row1 & 3u] = of_k1[1];
      column_tile[k_to1][quad * 6u + 2u][k_row1 & 3u] = of_k1[2];
      column_tile[k_to1][quad * 6u + 3u][k_row1 & 3u] = of_k1[3];
      workgroupBarrier();
      // The next step, or the first one of the next tile.
      let wraps = step + 1u == 4u;
      let at = select((step + 1u) * 4u, 0u, wraps) + quad;
      let k_from = select(tile_column, tile_column + 64u, wraps);
      q0 = q[q_from0 + at];
      q1 = q[q_from1 + at];
      k0 = k_cache[cache_place(min(k_from + k_row0, end - 1u), kv_head) + at];
      k1 = k_cache[cache_place(min(k_from + k_row1, end - 1u), kv_head) + at];
      {
        let a0 = row_tile[0][ty][0];
        let a1 = row_tile[0][ty][1];
        let b = column_tile[tx][0];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][2];
        let a1 = row_tile[0][ty][3];
        let b = column_tile[tx][1];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][4];
        let a1 = row_tile[0][ty][5];
        let b = column_tile[tx][2];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][6];
        let a1 = row_tile[0][ty][7];
        let b = column_tile[tx][3];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][10];
        let a1 = row_tile[0][ty][11];
        let b = column_tile[tx][6];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][12];
        let a1 = row_tile[0][ty][13];
        let b = column_tile[tx][7];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][14];
        let a1 = row_tile[0][ty][15];
        let b = column_tile[tx][8];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][16];
        let a1 = row_tile[0][ty][17];
        let b = column_tile[tx][9];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][20];
        let a1 = row_tile[0][ty][21];
        let b = column_tile[tx][12];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][22];
        let a1 = row_tile[0][ty][23];
        let b = column_tile[tx][13];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][24];
        let a1 = row_tile[0][ty][25];
        let b = column_tile[tx][14];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][26];
        let a1 = row_tile[0][ty][27];
        let b = column_tile[tx][15];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][30];
        let a1 = row_tile[0][ty][31];
        let b = column_tile[tx][18];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][32];
        let a1 = row_tile[0][ty][33];
        let b = column_tile[tx][19];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][34];
        let a1 = row_tile[0][ty][35];
        let b = column_tile[tx][20];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      {
        let a0 = row_tile[0][ty][36];
        let a1 = row_tile[0][ty][37];
        let b = column_tile[tx][21];
        sum0_0[0] = fma(a0[0], b[0], sum0_0[0]);
        sum0_0[1] = fma(a0[1], b[0], sum0_0[1]);
        sum0_0[2] = fma(a0[2], b[0], sum0_0[2]);
        sum0_0[3] = fma(a0[3], b[0], sum0_0[3]);
        sum1_0[0] = fma(a1[0], b[0], sum1_0[0]);
        sum1_0[1] = fma(a1[1], b[0], sum1_0[1]);
        sum1_0[2] = fma(a1[2], b[0], sum1_0[2]);
        sum1_0[3] = fma(a1[3], b[0], sum1_0[3]);
        sum1_1[3] = fma(a1[3], b[1], sum1_1[3]);
        sum1_1[2] = fma(a1[2], b[1], sum1_1[2]);
        sum1_1[1] = fma(a1[1], b[1], sum1_1[1]);
        sum1_1[0] = fma(a1[0], b[1], sum1_1[0]);
        sum0_1[3] = fma(a0[3], b[1], sum0_1[3]);
        sum0_1[2] = fma(a0[2], b[1], sum0_1[2]);
        sum0_1[1] = fma(a0[1], b[1], sum0_1[1]);
        sum0_1[0] = fma(a0[0], b[1], sum0_1[0]);
        sum0_2[0] = fma(a0[0], b[2], sum0_2[0]);
        sum0_2[1] = fma(a0[1], b[2], sum0_2[1]);
        sum0_2[2] = fma(a0[2], b[2], sum0_2[2]);
        sum0_2[3] = fma(a0[3], b[2], sum0_2[3]);
        sum1_2[0] = fma(a1[0], b[2], sum1_2[0]);
        sum1_2[1] = fma(a1[1], b[2], sum1_2[1]);
        sum1_2[2] = fma(a1[2], b[2], sum1_2[2]);
        sum1_2[3] = fma(a1[3], b[2], sum1_2[3]);
        sum1_3[3] = fma(a1[3], b[3], sum1_3[3]);
        sum1_3[2] = fma(a1[2], b[3], sum1_3[2]);
        sum1_3[1] = fma(a1[1], b[3], sum1_3[1]);
        sum1_3[0] = fma(a1[0], b[3], sum1_3[0]);
        sum0_3[3] = fma(a0[3], b[3], sum0_3[3]);
        sum0_3[2] = fma(a0[2], b[3], sum0_3[2]);
        sum0_3[1] = fma(a0[1], b[3], sum0_3[1]);
        sum0_3[0] = fma(a0[0], b[3], sum0_3[0]);
      }
      workgroupBarrier();
    }
    var v0 = v_cache[cache_place(min(tile_column + v_row0, end - 1u), kv_head) + v_quad0];
    var v1 = v_cache[cache_place(min(tile_column + v_row1, end - 1u), kv_head) + v_quad1];
    sum0_0 *= scale;
    sum1_0 *= scale;
    sum0_1 *= scale;
    sum1_1 *= scale;
    sum0_2 *= scale;
    sum1_2 *= scale;
    sum0_3 *= scale;
    sum1_3 *= scale;
    if (tile_column + 64u > first_end || tile_column + params.window < last_end) {
      // Some row does not see all of these positions.
      let c0 = vec4<u32>(tile_column + 4u * tx + 0u);
      sum0_0 = select(vec4<f32>(-1e30), sum0_0,
        (c0 <= last0) & (c0 + vec4<u32>(params.window) > last0));
      sum1_0 = select(vec4<f32>(-1e30), sum1_0,
        (c0 <= last1) & (c0 + vec4<u32>(params.window) > last1));
      let c1 = vec4<u32>(tile_column + 4u * tx + 1u);
      sum0_1 = select(vec4<f32>(-1e30), sum0_1,
        (c1 <= last0) & (c1 + vec4<u32>(params.window) > last0));
      sum1_1 = select(vec4<f32>(-1e30), sum1_1,
        (c1 <= last1) & (c1 + vec4<u32>(params.window) > last1));
      let c2 = vec4<u32>(tile_column + 4u * tx + 2u);
      sum0_2 = select(vec4<f32>(-1e30), sum0_2,
        (c2 <= last0) & (c2 + vec4<u32>(params.window) > last0));
      sum1_2 = select(vec4<f32>(-1e30), sum1_2,
        (c2 <= last1) & (c2 + vec4<u32>(params.window) > last1));
      let c3 = vec4<u32>(tile_column + 4u * tx + 3u);
      sum0_3 = select(vec4<f32>(-1e30), sum0_3,
        (c3 <= last0) & (c3 + vec4<u32>(params.window) > last0));
      sum1_3 = select(vec4<f32>(-1e30), sum1_3,
        (c3 <= last1) & (c3 + vec4<u32>(params.window) > last1));
    }
    // The largest score of each row: of a lane's own, then of the 16 lanes that share the row.
    column_tile[tx][2u * ty + 0u] = max(max(sum0_0, sum0_1), max(sum0_2, sum0_3));
    column_tile[tx][2u * ty + 1u] = max(max(sum1_0, sum1_1), max(sum1_2, sum1_3));
    workgroupBarrier();
    if (lane < 64u) {
      let before = largest;
      largest = max(largest, column_tile[0][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[1][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[2][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[3][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[4][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[5][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[6][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[7][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[8][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[9][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[10][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[11][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[12][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[13][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[14][lane >> 2u][lane & 3u]);
      largest = max(largest, column_tile[15][lane >> 2u][lane & 3u]);
      tops[lane >> 2u][lane & 3u] = largest;
      shrinks[lane >> 2u][lane & 3u] = exp2(before - largest);
    }
    workgroupBarrier();
    let shrink0 = shrinks[2u * ty + 0u];
    total0 *= shrink0;
    let weight0_0 = exp2(sum0_0 - tops[2u * ty + 0u]);
    total0 += weight0_0;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 0u] = weight0_0;
    let weight0_1 = exp2(sum0_1 - tops[2u * ty + 0u]);
    total0 += weight0_1;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 2u] = weight0_1;
    let weight0_2 = exp2(sum0_2 - tops[2u * ty + 0u]);
    total0 += weight0_2;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 4u] = weight0_2;
    let weight0_3 = exp2(sum0_3 - tops[2u * ty + 0u]);
    total0 += weight0_3;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 6u] = weight0_3;
    let shrink1 = shrinks[2u * ty + 1u];
    total1 *= shrink1;
    let weight1_0 = exp2(sum1_0 - tops[2u * ty + 1u]);
    total1 += weight1_0;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 1u] = weight1_0;
    let weight1_1 = exp2(sum1_1 - tops[2u * ty + 1u]);
    total1 += weight1_1;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 3u] = weight1_1;
    let weight1_2 = exp2(sum1_2 - tops[2u * ty + 1u]);
    total1 += weight1_2;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 5u] = weight1_2;
    let weight1_3 = exp2(sum1_3 - tops[2u * ty + 1u]);
    total1 += weight1_3;
    row_tile[tx / 4u][ty][tx % 4u * 10u + 7u] = weight1_3;
    o0_0 *= shrink0[0];
    o1_0 *= shrink0[1];
    o2_0 *= shrink0[2];
    o3_0 *= shrink0[3];
    o4_0 *= shrink1[0];
    o5_0 *= shrink1[1];
    o6_0 *= shrink1[2];
    o7_0 *= shrink1[3];
    let stages = (min(64u, end - tile_column) + 15u) / 16u;
    for (var stage = 0u; stage < stages; stage++) {
      column_tile[v_to0][v_at0] = cached(v0);
      column_tile[v_to1][v_at1] = cached(v1);
      workgroupBarrier();
      let v_from = tile_column + (stage + 1u) * 16u;
      v0 = v_cache[cache_place(min(v_from + v_row0, end - 1u), kv_head) + v_quad0];
      v1 = v_cache[cache_place(min(v_from + v_row1, end - 1u), kv_head) + v_quad1];
      {
        let a0 = row_tile[stage][ty][0];
        let a1 = row_tile[stage][ty][1];
        let b0 = column_tile[tx][0];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][2];
        let a1 = row_tile[stage][ty][3];
        let b0 = column_tile[tx][1];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][4];
        let a1 = row_tile[stage][ty][5];
        let b0 = column_tile[tx][2];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][6];
        let a1 = row_tile[stage][ty][7];
        let b0 = column_tile[tx][3];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][10];
        let a1 = row_tile[stage][ty][11];
        let b0 = column_tile[tx][4];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][12];
        let a1 = row_tile[stage][ty][13];
        let b0 = column_tile[tx][5];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][14];
        let a1 = row_tile[stage][ty][15];
        let b0 = column_tile[tx][6];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][16];
        let a1 = row_tile[stage][ty][17];
        let b0 = column_tile[tx][7];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][20];
        let a1 = row_tile[stage][ty][21];
        let b0 = column_tile[tx][8];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][22];
        let a1 = row_tile[stage][ty][23];
        let b0 = column_tile[tx][9];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][24];
        let a1 = row_tile[stage][ty][25];
        let b0 = column_tile[tx][10];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][26];
        let a1 = row_tile[stage][ty][27];
        let b0 = column_tile[tx][11];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][30];
        let a1 = row_tile[stage][ty][31];
        let b0 = column_tile[tx][12];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][32];
        let a1 = row_tile[stage][ty][33];
        let b0 = column_tile[tx][13];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][34];
        let a1 = row_tile[stage][ty][35];
        let b0 = column_tile[tx][14];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      {
        let a0 = row_tile[stage][ty][36];
        let a1 = row_tile[stage][ty][37];
        let b0 = column_tile[tx][15];
        o0_0[0] = fma(a0[0], b0[0], o0_0[0]);
        o1_0[0] = fma(a0[1], b0[0], o1_0[0]);
        o2_0[0] = fma(a0[2], b0[0], o2_0[0]);
        o3_0[0] = fma(a0[3], b0[0], o3_0[0]);
        o4_0[0] = fma(a1[0], b0[0], o4_0[0]);
        o5_0[0] = fma(a1[1], b0[0], o5_0[0]);
        o6_0[0] = fma(a1[2], b0[0], o6_0[0]);
        o7_0[0] = fma(a1[3], b0[0], o7_0[0]);
        o7_0[1] = fma(a1[3], b0[1], o7_0[1]);
        o6_0[1] = fma(a1[2], b0[1], o6_0[1]);
        o5_0[1] = fma(a1[1], b0[1], o5_0[1]);
        o4_0[1] = fma(a1[0], b0[1], o4_0[1]);
        o3_0[1] = fma(a0[3], b0[1], o3_0[1]);
        o2_0[1] = fma(a0[2], b0[1], o2_0[1]);
        o1_0[1] = fma(a0[1], b0[1], o1_0[1]);
        o0_0[1] = fma(a0[0], b0[1], o0_0[1]);
        o0_0[2] = fma(a0[0], b0[2], o0_0[2]);
        o1_0[2] = fma(a0[1], b0[2], o1_0[2]);
        o2_0[2] = fma(a0[2], b0[2], o2_0[2]);
        o3_0[2] = fma(a0[3], b0[2], o3_0[2]);
        o4_0[2] = fma(a1[0], b0[2], o4_0[2]);
        o5_0[2] = fma(a1[1], b0[2], o5_0[2]);
        o6_0[2] = fma(a1[2], b0[2], o6_0[2]);
        o7_0[2] = fma(a1[3], b0[2], o7_0[2]);
        o7_0[3] = fma(a1[3], b0[3], o7_0[3]);
        o6_0[3] = fma(a1[2], b0[3], o6_0[3]);
        o5_0[3] = fma(a1[1], b0[3], o5_0[3]);
        o4_0[3] = fma(a1[0], b0[3], o4_0[3]);
        o3_0[3] = fma(a0[3], b0[3], o3_0[3]);
        o2_0[3] = fma(a0[2], b0[3], o2_0[3]);
        o1_0[3] = fma(a0[1], b0[3], o1_0[3]);
        o0_0[3] = fma(a0[0], b0[3], o0_0[3]);
      }
      workgroupBarrier();
    }
  }
  column_tile[tx][2u * ty] = total0;
  column_tile[tx][2u * ty + 1u] = total1;
  workgroupBarrier();
  if (lane < 64u) {
    var total = 0.0;
    total += column_tile[0][lane >> 2u][lane & 3u];
    total += column_tile[1][lane >> 2u][lane & 3u];
    total += column_tile[2][lane >> 2u][lane & 3u];
    total += column_tile[3][lane >> 2u][lane & 3u];
    total += column_tile[4][lane >> 2u][lane & 3u];
    total += column_tile[5][lane >> 2u][lane & 3u];
    total += column_tile[6][lane >> 2u][lane & 3u];
    total += column_tile[7][lane >> 2u][lane & 3u];
    total += column_tile[8][lane >> 2u][lane & 3u];
    total += column_tile[9][lane >> 2u][lane & 3u];
    total += column_tile[10][lane >> 2u][lane & 3u];
    total += column_tile[11][lane >> 2u][lane & 3u];
    total += column_tile[12][lane >> 2u][lane & 3u];
    total += column_tile[13][lane >> 2u][lane & 3u];
    total += column_tile[14][lane >> 2u][lane & 3u];
    total += column_tile[15][lane >> 2u][lane & 3u];
    if (tile_row + lane < rows) {
      parts[part_place(tile_row + lane, kv_head, split) + 16u] =
        vec4<f32>(largest * 0.6931471805599453, total, 0.0, 0.0);
    }
  }
  if (tile_row + 8u * ty + 0u < rows) {
    let at = part_place(tile_row + 8u * ty + 0u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o0_0;
    }
  }
  if (tile_row + 8u * ty + 1u < rows) {
    let at = part_place(tile_row + 8u * ty + 1u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o1_0;
    }
  }
  if (tile_row + 8u * ty + 2u < rows) {
    let at = part_place(tile_row + 8u * ty + 2u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o2_0;
    }
  }
  if (tile_row + 8u * ty + 3u < rows) {
    let at = part_place(tile_row + 8u * ty + 3u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o3_0;
    }
  }
  if (tile_row + 8u * ty + 4u < rows) {
    let at = part_place(tile_row + 8u * ty + 4u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o4_0;
    }
  }
  if (tile_row + 8u * ty + 5u < rows) {
    let at = part_place(tile_row + 8u * ty + 5u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o5_0;
    }
  }
  if (tile_row + 8u * ty + 6u < rows) {
    let at = part_place(tile_row + 8u * ty + 6u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o6_0;
    }
  }
  if (tile_row + 8u * ty + 7u < rows) {
    let at = part_place(tile_row + 8u * ty + 7u, kv_head, split) + tx;
    if (tx + 0u < 16u) {
      parts[at + 0u] = o7_0;
    }
  }
}
