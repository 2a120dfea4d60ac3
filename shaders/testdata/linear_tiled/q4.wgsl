// linear_tiled with Bias, Format q4, GroupEights 4, HalfScales, Quads 8, Residual, Tile 64, Vec: workgroup [256 1 1], 16384 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: bias
// binding 4: residual
// binding 5: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first
// param at 16: u32 k
// param at 20: u32 x_rows
// param at 24: u32 residual_rows

// y = x * w' + bias + residual, a tile of 64 x 64 results a workgroup.
// Tiles of x and of the weights pass through workgroup memory, 32 columns at a time; the next
// ones are loaded while these are multiplied.
struct Params {
  m: u32, // rows of y
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
  k: u32, // columns of x and of w
  x_rows: u32, // as many as y has, or one that serves all
  residual_rows: u32, // likewise
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<u32>; // [n, columns / 8]

// [n / 8, groups, 8]
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

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

// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

// The even and the odd columns of a word as floats 256 + q and 16 + q, without any error: two at a time, as
// halves of which the mantissas count in ones from bits 2 and 6 on. Who sums many weights takes off once what
// they have too much.
fn evens(w: u32) -> vec4<f32> {
  let a = unpack2x16float(((w << 2u) & 0x003c003cu) | 0x5c005c00u);
  let b = unpack2x16float(((w >> 6u) & 0x003c003cu) | 0x5c005c00u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}

fn odds(w: u32) -> vec4<f32> {
  let a = unpack2x16float(((w << 2u) & 0x03c003c0u) | 0x4c004c00u);
  let b = unpack2x16float(((w >> 6u) & 0x03c003c0u) | 0x4c004c00u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}

alias Bits = u32;

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * (params.k / 8u) + eight];
}

fn floats(w: Bits) -> Eight {
  let even = evens(w) - 264.0;
  let odd = odds(w) - 24.0;
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}

fn scale(row: u32, eight: u32) -> f32 {
  let groups = params.k / 32u;
  let group = eight / 4u;
  let pair = unpack2x16float(scales[((row >> 3u) * groups + group) * 4u + ((row & 7u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}

// Columns 4 quad to 4 quad + 3 of a row of x, and zeros after the last.
fn load_x(row: u32, quad: u32) -> vec4<f32> {
  let quads = params.k / 4u;
  return select(vec4<f32>(0.0), x[row * quads + min(quad, quads - 1u)], quad < quads);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row0 = wid.y * 64u;
  let column0 = wid.x * 64u;
  if (row0 >= params.m || column0 >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let tx = lane & 15u;
  let ty = lane >> 4u;
  // What this lane loads. Rows past the end are the last row again: their results go nowhere. Columns past
  // the end are zeros of x, whatever w.
  let quad = lane % 8u;
  let a_row0 = (lane + 0u) / 8u;
  let x_row0 = min(row0 + a_row0, params.x_rows - 1u);
  let a_row1 = (lane + 256u) / 8u;
  let x_row1 = min(row0 + a_row1, params.x_rows - 1u);
  let eights = params.k / 8u;
  let b_row = lane % 64u;
  let b_eight = lane / 64u;
  let w_row = min(column0 + b_row, params.n - 1u);
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
  var next_a0 = load_x(x_row0, quad);
  var next_a1 = load_x(x_row1, quad);
  let eight0 = min(b_eight, eights - 1u);
  var next_b = load(w_row, eight0);
  var next_scale = scale(w_row, eight0);
  let steps = (params.k + 31u) / 32u;
  for (var step = 0u; step < steps; step++) {
    tiles[tile_place(a_row0, quad)] = next_a0;
    tiles[tile_place(a_row1, quad)] = next_a1;
    let b = floats(next_b);
    tiles[second + tile_place(b_row, 2u * b_eight)] =
      b.low * next_scale;
    tiles[second + tile_place(b_row, 2u * b_eight + 1u)] =
      b.high * next_scale;
    workgroupBarrier();
    let ahead = (step + 1u) * 8u + quad;
    next_a0 = load_x(x_row0, ahead);
    next_a1 = load_x(x_row1, ahead);
    let eight = min((step + 1u) * 4u + b_eight, eights - 1u);
    next_b = load(w_row, eight);
    next_scale = scale(w_row, eight);
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
  let n0 = column0 + tx + 0u;
  let bias0 = bias[params.first + min(n0, params.n - 1u)];
  let n1 = column0 + tx + 16u;
  let bias1 = bias[params.first + min(n1, params.n - 1u)];
  let n2 = column0 + tx + 32u;
  let bias2 = bias[params.first + min(n2, params.n - 1u)];
  let n3 = column0 + tx + 48u;
  let bias3 = bias[params.first + min(n3, params.n - 1u)];
  let m0 = row0 + ty + 0u;
  if (m0 < params.m) {
    let at = m0 * params.stride + params.first;
    let residual_at = min(m0, params.residual_rows - 1u) * params.stride + params.first;
    if (n0 < params.n) {
      y[at + n0] = sum0_0 + bias0 +
        residual[residual_at + n0];
    }
    if (n1 < params.n) {
      y[at + n1] = sum0_1 + bias1 +
        residual[residual_at + n1];
    }
    if (n2 < params.n) {
      y[at + n2] = sum0_2 + bias2 +
        residual[residual_at + n2];
    }
    if (n3 < params.n) {
      y[at + n3] = sum0_3 + bias3 +
        residual[residual_at + n3];
    }
  }
  let m1 = row0 + ty + 16u;
  if (m1 < params.m) {
    let at = m1 * params.stride + params.first;
    let residual_at = min(m1, params.residual_rows - 1u) * params.stride + params.first;
    if (n0 < params.n) {
      y[at + n0] = sum1_0 + bias0 +
        residual[residual_at + n0];
    }
    if (n1 < params.n) {
      y[at + n1] = sum1_1 + bias1 +
        residual[residual_at + n1];
    }
    if (n2 < params.n) {
      y[at + n2] = sum1_2 + bias2 +
        residual[residual_at + n2];
    }
    if (n3 < params.n) {
      y[at + n3] = sum1_3 + bias3 +
        residual[residual_at + n3];
    }
  }
  let m2 = row0 + ty + 32u;
  if (m2 < params.m) {
    let at = m2 * params.stride + params.first;
    let residual_at = min(m2, params.residual_rows - 1u) * params.stride + params.first;
    if (n0 < params.n) {
      y[at + n0] = sum2_0 + bias0 +
        residual[residual_at + n0];
    }
    if (n1 < params.n) {
      y[at + n1] = sum2_1 + bias1 +
        residual[residual_at + n1];
    }
    if (n2 < params.n) {
      y[at + n2] = sum2_2 + bias2 +
        residual[residual_at + n2];
    }
    if (n3 < params.n) {
      y[at + n3] = sum2_3 + bias3 +
        residual[residual_at + n3];
    }
  }
  let m3 = row0 + ty + 48u;
  if (m3 < params.m) {
    let at = m3 * params.stride + params.first;
    let residual_at = min(m3, params.residual_rows - 1u) * params.stride + params.first;
    if (n0 < params.n) {
      y[at + n0] = sum3_0 + bias0 +
        residual[residual_at + n0];
    }
    if (n1 < params.n) {
      y[at + n1] = sum3_1 + bias1 +
        residual[residual_at + n1];
    }
    if (n2 < params.n) {
      y[at + n2] = sum3_2 + bias2 +
        residual[residual_at + n2];
    }
    if (n3 < params.n) {
      y[at + n3] = sum3_3 + bias3 +
        residual[residual_at + n3];
    }
  }
}
