// sdpa_av with HalfCache, HeadQuads 16, Quads 8, Tile 64: workgroup [256 1 1], 16384 bytes of workgroup memory
// binding 0: weights
// binding 1: v_cache
// binding 2: y (written)
// param at 0: u32 tokens
// param at 4: u32 context
// param at 8: u32 position
// param at 12: u32 start
// param at 16: u32 window
// param at 20: u32 quads
// param at 24: u32 q_heads
// param at 28: u32 kv_heads

// y = weights * v over the positions that a token may see, a tile of 64 tokens x 64 columns of a head
// a workgroup. 32 positions at a time pass through workgroup memory.
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, these tokens' included
  position: u32, // of the first token
  start: u32, // the first position that it sees, which has the first weight of each row
  window: u32, // positions that a token sees at most
  quads: u32, // vectors of 4 in a row of weights
  q_heads: u32,
  kv_heads: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<vec4<f32>>; // [q_heads, tokens, quads]
// [positions, kv_heads, 16]
@group(0) @binding(1) var<storage, read> v_cache: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [tokens, q_heads, 16]
@group(0) @binding(3) var<uniform> params: Params;

// Four elements of a cache of halves, two to a word.
fn cached(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

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

var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_v: array<vec4<f32>, 512>; // [positions, 16]

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile_row = wid.y * 64u;
  let tile_column = wid.x * 16u;
  let head = wid.z;
  if (tile_row >= params.tokens || tile_column >= 16u || head >= params.q_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let kv_head = head / (params.q_heads / params.kv_heads);
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % 8u;
  let row0 = (lane + 0u) / 8u;
  let token_a0 = min(tile_row + row0, params.tokens - 1u);
  let a_row0 = (head * params.tokens + token_a0) * params.quads;
  let row1 = (lane + 256u) / 8u;
  let token_a1 = min(tile_row + row1, params.tokens - 1u);
  let a_row1 = (head * params.tokens + token_a1) * params.quads;
  var sum0 = vec4<f32>(0.0);
  var sum1 = vec4<f32>(0.0);
  var sum2 = vec4<f32>(0.0);
  var sum3 = vec4<f32>(0.0);
  let row_a = ty * 8u;
  let mask_a = tile_mask(ty);
  let v_column = min(tile_column + tx, 15u);
  // The weights from that of the first position that some token of the tile sees to that of the last.
  let end = min(params.context, params.position + tile_row + 64u) - params.start;
  let next = params.position + tile_row + 1u - params.start;
  let begin = (max(next, params.window) - params.window) / 4u * 4u;
  for (var first = begin; first < end; first += 32u) {
    {
      // What a token does not see was never written.
      let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(params.start + first + 4u * quad);
      let last = vec4<u32>(params.position + token_a0);
      let a = weights[a_row0 + min(first / 4u + quad, params.quads - 1u)];
      tile_a[tile_place(row0, quad)] = select(vec4<f32>(0.0), a,
        (c <= last) & (c + vec4<u32>(params.window) > last));
    }
    {
      // What a token does not see was never written.
      let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(params.start + first + 4u * quad);
      let last = vec4<u32>(params.position + token_a1);
      let a = weights[a_row1 + min(first / 4u + quad, params.quads - 1u)];
      tile_a[tile_place(row1, quad)] = select(vec4<f32>(0.0), a,
        (c <= last) & (c + vec4<u32>(params.window) > last));
    }
    {
      let c = ty + 0u;
      tile_v[c * 16u +
        tx] = cached(v_cache[(min(params.start + first + c, params.context - 1u) * params.kv_heads +
        kv_head) * 16u + v_column]);
    }
    {
      let c = ty + 16u;
      tile_v[c * 16u +
        tx] = cached(v_cache[(min(params.start + first + c, params.context - 1u) * params.kv_heads +
        kv_head) * 16u + v_column]);
    }
    workgroupBarrier();
    {
      let v0 = tile_v[0u + tx];
      let v1 = tile_v[16u + tx];
      let v2 = tile_v[32u + tx];
      let v3 = tile_v[48u + tx];
      let a0 = tile_a[row_a + 0u + (0u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (0u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (0u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (0u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[64u + tx];
      let v1 = tile_v[80u + tx];
      let v2 = tile_v[96u + tx];
      let v3 = tile_v[112u + tx];
      let a0 = tile_a[row_a + 0u + (1u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (1u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (1u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (1u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[128u + tx];
      let v1 = tile_v[144u + tx];
      let v2 = tile_v[160u + tx];
      let v3 = tile_v[176u + tx];
      let a0 = tile_a[row_a + 0u + (2u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (2u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (2u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (2u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[192u + tx];
      let v1 = tile_v[208u + tx];
      let v2 = tile_v[224u + tx];
      let v3 = tile_v[240u + tx];
      let a0 = tile_a[row_a + 0u + (3u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (3u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (3u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (3u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[256u + tx];
      let v1 = tile_v[272u + tx];
      let v2 = tile_v[288u + tx];
      let v3 = tile_v[304u + tx];
      let a0 = tile_a[row_a + 0u + (4u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (4u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (4u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (4u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[320u + tx];
      let v1 = tile_v[336u + tx];
      let v2 = tile_v[352u + tx];
      let v3 = tile_v[368u + tx];
      let a0 = tile_a[row_a + 0u + (5u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (5u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (5u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (5u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[384u + tx];
      let v1 = tile_v[400u + tx];
      let v2 = tile_v[416u + tx];
      let v3 = tile_v[432u + tx];
      let a0 = tile_a[row_a + 0u + (6u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (6u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (6u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (6u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    {
      let v0 = tile_v[448u + tx];
      let v1 = tile_v[464u + tx];
      let v2 = tile_v[480u + tx];
      let v3 = tile_v[496u + tx];
      let a0 = tile_a[row_a + 0u + (7u ^ mask_a)];
      sum0 = fma(vec4<f32>(a0.w), v3,
        fma(vec4<f32>(a0.z), v2,
        fma(vec4<f32>(a0.y), v1, fma(vec4<f32>(a0.x), v0, sum0))));
      let a1 = tile_a[row_a + 128u + (7u ^ mask_a)];
      sum1 = fma(vec4<f32>(a1.w), v3,
        fma(vec4<f32>(a1.z), v2,
        fma(vec4<f32>(a1.y), v1, fma(vec4<f32>(a1.x), v0, sum1))));
      let a2 = tile_a[row_a + 256u + (7u ^ mask_a)];
      sum2 = fma(vec4<f32>(a2.w), v3,
        fma(vec4<f32>(a2.z), v2,
        fma(vec4<f32>(a2.y), v1, fma(vec4<f32>(a2.x), v0, sum2))));
      let a3 = tile_a[row_a + 384u + (7u ^ mask_a)];
      sum3 = fma(vec4<f32>(a3.w), v3,
        fma(vec4<f32>(a3.z), v2,
        fma(vec4<f32>(a3.y), v1, fma(vec4<f32>(a3.x), v0, sum3))));
    }
    workgroupBarrier();
  }
  if (tile_column + tx < 16u) {
    let token0 = tile_row + ty + 0u;
    if (token0 < params.tokens) {
      y[(token0 * params.q_heads + head) * 16u + tile_column + tx] = sum0;
    }
    let token1 = tile_row + ty + 16u;
    if (token1 < params.tokens) {
      y[(token1 * params.q_heads + head) * 16u + tile_column + tx] = sum1;
    }
    let token2 = tile_row + ty + 32u;
    if (token2 < params.tokens) {
      y[(token2 * params.q_heads + head) * 16u + tile_column + tx] = sum2;
    }
    let token3 = tile_row + ty + 48u;
    if (token3 < params.tokens) {
      y[(token3 * params.q_heads + head) * 16u + tile_column + tx] = sum3;
    }
  }
}
