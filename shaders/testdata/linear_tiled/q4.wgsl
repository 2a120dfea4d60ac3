// linear_tiled/q4: Bias, Even, Format q4, GroupEights 4, HalfScales, Quads 2, Residual, Teams 2, Tile 64
// workgroup [128 1 1], 10752 bytes of workgroup memory
// bindings: x, weights, scales, bias, residual, y (written)
// params: u32 m, u32 n, u32 stride, u32 first, u32 k, u32 x_rows, u32 residual_rows

// y = x * w' + bias + residual. A workgroup computes a tile of 64 x 64 results,
// and a lane computes 8 x 8 of them.
// There are 2 teams of lanes, because a GPU has unused lanes if there are few tiles. Each team
// computes sums over some of the columns of a step. In the end the teams add up their sums.
//
// Workgroup memory has a tile of x and a tile of the weights, 16 columns at a time. The next
// tiles are loaded while the current ones are multiplied. A lane reads the 8 numbers of a column as two
// vectors. In the inner loop, which takes most of the time, it reads from one row of workgroup memory at
// constant indices, so that no index has to be computed or checked.
struct Params {
  m: u32, // rows of y
  n: u32, // rows of w
  stride: u32, // number of elements from one row of y to the next
  first: u32, // column of y that row 0 of w computes
  k: u32, // columns of x and of w
  x_rows: u32, // as many rows as y, or a single row that is used for all rows of y
  residual_rows: u32, // as many rows as x, or a single row that is used for all rows
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<u32>; // [n, columns / 8]

// [n / 4, groups, 4]
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

// A row of these arrays has what a lane reads: 8 rows of x, or 8 columns of y. Each team has its own rows of
// the arrays. Two vectors are one column of x or w. There are 2 unused vectors after every 4 columns, and 1
// unused vector at the end. Because of these, lanes that store or read at the same time use different memory
// banks.
var<workgroup> x_tile: array<array<vec4<f32>, 21>, 16>;
var<workgroup> w_tile: array<array<vec4<f32>, 21>, 16>;

// Eight weights of a row, as floats.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = u32;

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * (params.k / 8u) + eight];
}

const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(w: Bits) -> vec4<u32> {
  let high = w >> 8u;
  return vec4<u32>(w & 0x000f000fu, w & 0x00f000f0u, high & 0x000f000fu, high & 0x00f000f0u);
}

// Converts the two f16 numbers in a word to floats. They are subnormal.
fn small(h: u32) -> vec2<f32> {
  return unpack2x16float(h);
}

fn floats(b: Bits) -> Eight {
  let h = halves(b);
  let first = small(h.x);
  let second = small(h.y);
  let third = small(h.z);
  let fourth = small(h.w);
  return Eight(vec4<f32>(first.x, second.x, third.x, fourth.x) * turn - 8.0,
    vec4<f32>(first.y, second.y, third.y, fourth.y) * turn - 8.0);
}

fn scale(row: u32, eight: u32) -> f32 {
  let groups = params.k / 32u;
  let group = eight / 4u;
  let pair = unpack2x16float(scales[((row >> 2u) * groups + group) * 2u + ((row & 3u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}

// Returns columns 4 quad to 4 quad + 3 of a row of x.
fn load_x(row: u32, quad: u32) -> vec4<f32> {
  return x[row * (params.k / 4u) + quad];
}

// Stores four columns of a row of y, starting at column.
fn put(row: u32, column: u32, sum: vec4<f32>) {
  if (row >= params.m) {
    return;
  }
  let at = row * params.stride + params.first + column;
  let residual_at = min(row, params.residual_rows - 1u) * params.stride + params.first + column;
  if (column + 0u < params.n) {
    y[at + 0u] = sum[0] + bias[params.first + column + 0u] + residual[residual_at + 0u];
  }
  if (column + 1u < params.n) {
    y[at + 1u] = sum[1] + bias[params.first + column + 1u] + residual[residual_at + 1u];
  }
  if (column + 2u < params.n) {
    y[at + 2u] = sum[2] + bias[params.first + column + 2u] + residual[residual_at + 2u];
  }
  if (column + 3u < params.n) {
    y[at + 3u] = sum[3] + bias[params.first + column + 3u] + residual[residual_at + 3u];
  }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row0 = wid.y * 64u;
  let column0 = wid.x * 64u;
  if (row0 >= params.m || column0 >= params.n) {
    return; // the grid can be larger than the current shape needs
  }
  // Lane (tx, ty) multiplies rows 8 ty to 8 ty + 7 of x by rows 4 tx to 4 tx + 3 of w, and by the 4 rows that are 32 further.
  // 8 x 4 lanes run together. Among them, neighbors read the same weights, and every second of four lanes
  // reads the same part of x. A GPU reads this once for both lanes.
  let team = lane / 64u;
  let mate = lane % 64u;
  let tx = (mate >> 1u) & 7u;
  let ty = ((mate >> 5u) << 2u) + ((mate >> 3u) & 2u) + (mate & 1u);
  let x_read = team * 8u + ty;
  let w_read = team * 8u + tx;
  // What this lane loads, and where in workgroup memory it stores this. Past the last row it loads the last
  // row again, and the results are not stored.
  let x_quad = mate % 2u;
  let quad = team * 2u + x_quad;
  let x_row0 = mate / 2u + 0u;
  let x_from0 = min(row0 + x_row0, params.x_rows - 1u);
  let x_to0 = team * 8u + x_row0 / 8u;
  let x_at0 = x_quad * 10u + ((x_row0 >> 2u) & 1u);
  let x_row1 = mate / 2u + 32u;
  let x_from1 = min(row0 + x_row1, params.x_rows - 1u);
  let x_to1 = team * 8u + x_row1 / 8u;
  let x_at1 = x_quad * 10u + ((x_row1 >> 2u) & 1u);
  let w_eight = mate % 1u;
  let eight = team * 1u + w_eight;
  let eights = params.k / 8u;
  let w_row0 = mate / 1u + 0u;
  let w_from0 = min(column0 + w_row0, params.n - 1u);
  let w_to0 = team * 8u + ((w_row0 >> 2u) & 7u);
  let w_at0 = w_eight * 20u + w_row0 / 32u;
  var sum0_0 = 0.0;
  var sum0_1 = 0.0;
  var sum0_2 = 0.0;
  var sum0_3 = 0.0;
  var sum0_4 = 0.0;
  var sum0_5 = 0.0;
  var sum0_6 = 0.0;
  var sum0_7 = 0.0;
  var sum1_0 = 0.0;
  var sum1_1 = 0.0;
  var sum1_2 = 0.0;
  var sum1_3 = 0.0;
  var sum1_4 = 0.0;
  var sum1_5 = 0.0;
  var sum1_6 = 0.0;
  var sum1_7 = 0.0;
  var sum2_0 = 0.0;
  var sum2_1 = 0.0;
  var sum2_2 = 0.0;
  var sum2_3 = 0.0;
  var sum2_4 = 0.0;
  var sum2_5 = 0.0;
  var sum2_6 = 0.0;
  var sum2_7 = 0.0;
  var sum3_0 = 0.0;
  var sum3_1 = 0.0;
  var sum3_2 = 0.0;
  var sum3_3 = 0.0;
  var sum3_4 = 0.0;
  var sum3_5 = 0.0;
  var sum3_6 = 0.0;
  var sum3_7 = 0.0;
  var sum4_0 = 0.0;
  var sum4_1 = 0.0;
  var sum4_2 = 0.0;
  var sum4_3 = 0.0;
  var sum4_4 = 0.0;
  var sum4_5 = 0.0;
  var sum4_6 = 0.0;
  var sum4_7 = 0.0;
  var sum5_0 = 0.0;
  var sum5_1 = 0.0;
  var sum5_2 = 0.0;
  var sum5_3 = 0.0;
  var sum5_4 = 0.0;
  var sum5_5 = 0.0;
  var sum5_6 = 0.0;
  var sum5_7 = 0.0;
  var sum6_0 = 0.0;
  var sum6_1 = 0.0;
  var sum6_2 = 0.0;
  var sum6_3 = 0.0;
  var sum6_4 = 0.0;
  var sum6_5 = 0.0;
  var sum6_6 = 0.0;
  var sum6_7 = 0.0;
  var sum7_0 = 0.0;
  var sum7_1 = 0.0;
  var sum7_2 = 0.0;
  var sum7_3 = 0.0;
  var sum7_4 = 0.0;
  var sum7_5 = 0.0;
  var sum7_6 = 0.0;
  var sum7_7 = 0.0;
  let steps = (params.k + 15u) / 16u;
  var x0 = load_x(x_from0, quad);
  var x1 = load_x(x_from1, quad);
  let eight0 = eight;
  var w0 = load(w_from0, eight0);
  var w0_scale = scale(w_from0, eight0);
  for (var step = 0u; step < steps; step++) {
    x_tile[x_to0][x_at0][x_row0 & 3u] = x0[0];
    x_tile[x_to0][x_at0 + 2u][x_row0 & 3u] = x0[1];
    x_tile[x_to0][x_at0 + 4u][x_row0 & 3u] = x0[2];
    x_tile[x_to0][x_at0 + 6u][x_row0 & 3u] = x0[3];
    x_tile[x_to1][x_at1][x_row1 & 3u] = x1[0];
    x_tile[x_to1][x_at1 + 2u][x_row1 & 3u] = x1[1];
    x_tile[x_to1][x_at1 + 4u][x_row1 & 3u] = x1[2];
    x_tile[x_to1][x_at1 + 6u][x_row1 & 3u] = x1[3];
    let f0 = floats(w0);
    let low0 = f0.low * w0_scale;
    let high0 = f0.high * w0_scale;
    w_tile[w_to0][w_at0][w_row0 & 3u] = low0[0];
    w_tile[w_to0][w_at0 + 2u][w_row0 & 3u] = low0[1];
    w_tile[w_to0][w_at0 + 4u][w_row0 & 3u] = low0[2];
    w_tile[w_to0][w_at0 + 6u][w_row0 & 3u] = low0[3];
    w_tile[w_to0][w_at0 + 10u][w_row0 & 3u] = high0[0];
    w_tile[w_to0][w_at0 + 12u][w_row0 & 3u] = high0[1];
    w_tile[w_to0][w_at0 + 14u][w_row0 & 3u] = high0[2];
    w_tile[w_to0][w_at0 + 16u][w_row0 & 3u] = high0[3];
    workgroupBarrier();
    let ahead = min(step + 1u, steps - 1u);
    let quad1 = ahead * 4u + quad;
    x0 = load_x(x_from0, quad1);
    x1 = load_x(x_from1, quad1);
    let eight1 = ahead * 2u + eight;
    w0 = load(w_from0, eight1);
    w0_scale = scale(w_from0, eight1);
    {
      let a0 = x_tile[x_read][0];
      let a1 = x_tile[x_read][1];
      let b0 = w_tile[w_read][0];
      let b1 = w_tile[w_read][1];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][2];
      let a1 = x_tile[x_read][3];
      let b0 = w_tile[w_read][2];
      let b1 = w_tile[w_read][3];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][4];
      let a1 = x_tile[x_read][5];
      let b0 = w_tile[w_read][4];
      let b1 = w_tile[w_read][5];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][6];
      let a1 = x_tile[x_read][7];
      let b0 = w_tile[w_read][6];
      let b1 = w_tile[w_read][7];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][10];
      let a1 = x_tile[x_read][11];
      let b0 = w_tile[w_read][10];
      let b1 = w_tile[w_read][11];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][12];
      let a1 = x_tile[x_read][13];
      let b0 = w_tile[w_read][12];
      let b1 = w_tile[w_read][13];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][14];
      let a1 = x_tile[x_read][15];
      let b0 = w_tile[w_read][14];
      let b1 = w_tile[w_read][15];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    {
      let a0 = x_tile[x_read][16];
      let a1 = x_tile[x_read][17];
      let b0 = w_tile[w_read][16];
      let b1 = w_tile[w_read][17];
      sum0_0 = fma(a0[0], b0[0], sum0_0);
      sum0_1 = fma(a0[0], b0[1], sum0_1);
      sum0_2 = fma(a0[0], b0[2], sum0_2);
      sum0_3 = fma(a0[0], b0[3], sum0_3);
      sum0_4 = fma(a0[0], b1[0], sum0_4);
      sum0_5 = fma(a0[0], b1[1], sum0_5);
      sum0_6 = fma(a0[0], b1[2], sum0_6);
      sum0_7 = fma(a0[0], b1[3], sum0_7);
      sum1_0 = fma(a0[1], b0[0], sum1_0);
      sum1_1 = fma(a0[1], b0[1], sum1_1);
      sum1_2 = fma(a0[1], b0[2], sum1_2);
      sum1_3 = fma(a0[1], b0[3], sum1_3);
      sum1_4 = fma(a0[1], b1[0], sum1_4);
      sum1_5 = fma(a0[1], b1[1], sum1_5);
      sum1_6 = fma(a0[1], b1[2], sum1_6);
      sum1_7 = fma(a0[1], b1[3], sum1_7);
      sum2_0 = fma(a0[2], b0[0], sum2_0);
      sum2_1 = fma(a0[2], b0[1], sum2_1);
      sum2_2 = fma(a0[2], b0[2], sum2_2);
      sum2_3 = fma(a0[2], b0[3], sum2_3);
      sum2_4 = fma(a0[2], b1[0], sum2_4);
      sum2_5 = fma(a0[2], b1[1], sum2_5);
      sum2_6 = fma(a0[2], b1[2], sum2_6);
      sum2_7 = fma(a0[2], b1[3], sum2_7);
      sum3_0 = fma(a0[3], b0[0], sum3_0);
      sum3_1 = fma(a0[3], b0[1], sum3_1);
      sum3_2 = fma(a0[3], b0[2], sum3_2);
      sum3_3 = fma(a0[3], b0[3], sum3_3);
      sum3_4 = fma(a0[3], b1[0], sum3_4);
      sum3_5 = fma(a0[3], b1[1], sum3_5);
      sum3_6 = fma(a0[3], b1[2], sum3_6);
      sum3_7 = fma(a0[3], b1[3], sum3_7);
      sum4_0 = fma(a1[0], b0[0], sum4_0);
      sum4_1 = fma(a1[0], b0[1], sum4_1);
      sum4_2 = fma(a1[0], b0[2], sum4_2);
      sum4_3 = fma(a1[0], b0[3], sum4_3);
      sum4_4 = fma(a1[0], b1[0], sum4_4);
      sum4_5 = fma(a1[0], b1[1], sum4_5);
      sum4_6 = fma(a1[0], b1[2], sum4_6);
      sum4_7 = fma(a1[0], b1[3], sum4_7);
      sum5_0 = fma(a1[1], b0[0], sum5_0);
      sum5_1 = fma(a1[1], b0[1], sum5_1);
      sum5_2 = fma(a1[1], b0[2], sum5_2);
      sum5_3 = fma(a1[1], b0[3], sum5_3);
      sum5_4 = fma(a1[1], b1[0], sum5_4);
      sum5_5 = fma(a1[1], b1[1], sum5_5);
      sum5_6 = fma(a1[1], b1[2], sum5_6);
      sum5_7 = fma(a1[1], b1[3], sum5_7);
      sum6_0 = fma(a1[2], b0[0], sum6_0);
      sum6_1 = fma(a1[2], b0[1], sum6_1);
      sum6_2 = fma(a1[2], b0[2], sum6_2);
      sum6_3 = fma(a1[2], b0[3], sum6_3);
      sum6_4 = fma(a1[2], b1[0], sum6_4);
      sum6_5 = fma(a1[2], b1[1], sum6_5);
      sum6_6 = fma(a1[2], b1[2], sum6_6);
      sum6_7 = fma(a1[2], b1[3], sum6_7);
      sum7_0 = fma(a1[3], b0[0], sum7_0);
      sum7_1 = fma(a1[3], b0[1], sum7_1);
      sum7_2 = fma(a1[3], b0[2], sum7_2);
      sum7_3 = fma(a1[3], b0[3], sum7_3);
      sum7_4 = fma(a1[3], b1[0], sum7_4);
      sum7_5 = fma(a1[3], b1[1], sum7_5);
      sum7_6 = fma(a1[3], b1[2], sum7_6);
      sum7_7 = fma(a1[3], b1[3], sum7_7);
    }
    workgroupBarrier();
  }
  // Teams add up their sums in pairs. The first team of a pair keeps the first half of its rows, and passes
  // the sums of the second half to the other team. The other team does the opposite.
  {
    let keeps = vec4<bool>((team & 1u) == 0u);
    let partner = lane ^ 64u;
    let low0_0 = vec4<f32>(sum0_0, sum0_1, sum0_2, sum0_3);
    let high0_0 = vec4<f32>(sum4_0, sum4_1, sum4_2, sum4_3);
    x_tile[lane >> 3u][0u + (lane & 7u)] = select(low0_0, high0_0, keeps);
    let low0_1 = vec4<f32>(sum0_4, sum0_5, sum0_6, sum0_7);
    let high0_1 = vec4<f32>(sum4_4, sum4_5, sum4_6, sum4_7);
    x_tile[lane >> 3u][8u + (lane & 7u)] = select(low0_1, high0_1, keeps);
    workgroupBarrier();
    let whole0_0 = select(high0_0, low0_0, keeps) +
      x_tile[partner >> 3u][0u + (lane & 7u)];
    sum0_0 = whole0_0[0];
    sum0_1 = whole0_0[1];
    sum0_2 = whole0_0[2];
    sum0_3 = whole0_0[3];
    let whole0_1 = select(high0_1, low0_1, keeps) +
      x_tile[partner >> 3u][8u + (lane & 7u)];
    sum0_4 = whole0_1[0];
    sum0_5 = whole0_1[1];
    sum0_6 = whole0_1[2];
    sum0_7 = whole0_1[3];
    workgroupBarrier();
    let low1_0 = vec4<f32>(sum1_0, sum1_1, sum1_2, sum1_3);
    let high1_0 = vec4<f32>(sum5_0, sum5_1, sum5_2, sum5_3);
    x_tile[lane >> 3u][0u + (lane & 7u)] = select(low1_0, high1_0, keeps);
    let low1_1 = vec4<f32>(sum1_4, sum1_5, sum1_6, sum1_7);
    let high1_1 = vec4<f32>(sum5_4, sum5_5, sum5_6, sum5_7);
    x_tile[lane >> 3u][8u + (lane & 7u)] = select(low1_1, high1_1, keeps);
    workgroupBarrier();
    let whole1_0 = select(high1_0, low1_0, keeps) +
      x_tile[partner >> 3u][0u + (lane & 7u)];
    sum1_0 = whole1_0[0];
    sum1_1 = whole1_0[1];
    sum1_2 = whole1_0[2];
    sum1_3 = whole1_0[3];
    let whole1_1 = select(high1_1, low1_1, keeps) +
      x_tile[partner >> 3u][8u + (lane & 7u)];
    sum1_4 = whole1_1[0];
    sum1_5 = whole1_1[1];
    sum1_6 = whole1_1[2];
    sum1_7 = whole1_1[3];
    workgroupBarrier();
    let low2_0 = vec4<f32>(sum2_0, sum2_1, sum2_2, sum2_3);
    let high2_0 = vec4<f32>(sum6_0, sum6_1, sum6_2, sum6_3);
    x_tile[lane >> 3u][0u + (lane & 7u)] = select(low2_0, high2_0, keeps);
    let low2_1 = vec4<f32>(sum2_4, sum2_5, sum2_6, sum2_7);
    let high2_1 = vec4<f32>(sum6_4, sum6_5, sum6_6, sum6_7);
    x_tile[lane >> 3u][8u + (lane & 7u)] = select(low2_1, high2_1, keeps);
    workgroupBarrier();
    let whole2_0 = select(high2_0, low2_0, keeps) +
      x_tile[partner >> 3u][0u + (lane & 7u)];
    sum2_0 = whole2_0[0];
    sum2_1 = whole2_0[1];
    sum2_2 = whole2_0[2];
    sum2_3 = whole2_0[3];
    let whole2_1 = select(high2_1, low2_1, keeps) +
      x_tile[partner >> 3u][8u + (lane & 7u)];
    sum2_4 = whole2_1[0];
    sum2_5 = whole2_1[1];
    sum2_6 = whole2_1[2];
    sum2_7 = whole2_1[3];
    workgroupBarrier();
    let low3_0 = vec4<f32>(sum3_0, sum3_1, sum3_2, sum3_3);
    let high3_0 = vec4<f32>(sum7_0, sum7_1, sum7_2, sum7_3);
    x_tile[lane >> 3u][0u + (lane & 7u)] = select(low3_0, high3_0, keeps);
    let low3_1 = vec4<f32>(sum3_4, sum3_5, sum3_6, sum3_7);
    let high3_1 = vec4<f32>(sum7_4, sum7_5, sum7_6, sum7_7);
    x_tile[lane >> 3u][8u + (lane & 7u)] = select(low3_1, high3_1, keeps);
    workgroupBarrier();
    let whole3_0 = select(high3_0, low3_0, keeps) +
      x_tile[partner >> 3u][0u + (lane & 7u)];
    sum3_0 = whole3_0[0];
    sum3_1 = whole3_0[1];
    sum3_2 = whole3_0[2];
    sum3_3 = whole3_0[3];
    let whole3_1 = select(high3_1, low3_1, keeps) +
      x_tile[partner >> 3u][8u + (lane & 7u)];
    sum3_4 = whole3_1[0];
    sum3_5 = whole3_1[1];
    sum3_6 = whole3_1[2];
    sum3_7 = whole3_1[3];
    workgroupBarrier();
  }
  let row = row0 + 8u * ty + 4u * team;
  let column = column0 + 4u * tx;
  put(row + 0u, column + 0u, vec4<f32>(sum0_0, sum0_1, sum0_2, sum0_3));
  put(row + 0u, column + 32u, vec4<f32>(sum0_4, sum0_5, sum0_6, sum0_7));
  put(row + 1u, column + 0u, vec4<f32>(sum1_0, sum1_1, sum1_2, sum1_3));
  put(row + 1u, column + 32u, vec4<f32>(sum1_4, sum1_5, sum1_6, sum1_7));
  put(row + 2u, column + 0u, vec4<f32>(sum2_0, sum2_1, sum2_2, sum2_3));
  put(row + 2u, column + 32u, vec4<f32>(sum2_4, sum2_5, sum2_6, sum2_7));
  put(row + 3u, column + 0u, vec4<f32>(sum3_0, sum3_1, sum3_2, sum3_3));
  put(row + 3u, column + 32u, vec4<f32>(sum3_4, sum3_5, sum3_6, sum3_7));
}
