// linear_gemv with Ahead 4, Batch 1, Chunks 64, Eights 4, Format iq4_nl, GroupEights 4, HalfScales, Lanes 64, Residual, Rows 8: workgroup [64 1 1], 3072 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: residual
// binding 4: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first
// param at 16: u32 x_rows
// param at 20: u32 residual_rows

// y = x * w' + bias + residual, if there is one, for a row of x. A workgroup takes
// 8 rows of w: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// 4 rows are loaded before the first is used. The loop over them has no constant bounds, so that it
// stays one: a step fetches the code of most kernels from memory.
struct Params {
  m: u32, // rows of y
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
  x_rows: u32, // as many as y has, or one that serves all
  residual_rows: u32, // likewise; 0 where there is no residual
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 64]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;

// [n / 8, 64, 8]
@group(0) @binding(2) var<storage, read> scales: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = u32;

// The levels of the low four bits of q. There is one with 128 added in each byte of the words; it is put
// under the exponent of 2^23, where the mantissa counts in ones.
fn levels(q: vec4<u32>) -> vec4<f32> {
  let second = (q & vec4<u32>(4u)) != vec4<u32>(0u);
  let words = select(
    select(vec4<u32>(0x3f2d1801u), vec4<u32>(0x766a5d4fu), second),
    select(vec4<u32>(0xa6998d81u), vec4<u32>(0xf1d9c5b5u), second),
    (q & vec4<u32>(8u)) != vec4<u32>(0u));
  let bytes = (words >> ((q & vec4<u32>(3u)) << vec4<u32>(3u))) & vec4<u32>(255u);
  return bitcast<vec4<f32>>(bytes | vec4<u32>(0x4b000000u)) - 8388736.0;
}

// The levels of the two weights of each byte, as halves, which have them exactly. To work a level out takes
// longer than to multiply it.
var<workgroup> pairs: array<u32, 256>;

fn floats(w: Bits) -> Eight {
  return Eight(
    vec4<f32>(unpack2x16float(pairs[w & 255u]), unpack2x16float(pairs[(w >> 8u) & 255u])),
    vec4<f32>(unpack2x16float(pairs[(w >> 16u) & 255u]), unpack2x16float(pairs[w >> 24u])));
}

var<workgroup> partial: array<f32, 512>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 8u +
    (sum ^ ((lane / 4u) & 7u));
}

fn total(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

// Four columns of the row of x that begins at row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  return x[row + at];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + 0u) / 1u;
  let id = flat_group(wid, groups);
  var group_row = id * 8u;
  var batch0 = 0u;
  if (batches > 1u) { // dividing takes a while
    group_row = id / batches * 8u;
    batch0 = id % batches * 1u;
  }
  if (group_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  for (var bits = lane; bits < 256u; bits += 64u) {
    pairs[bits] = pack2x16float(levels(vec4<u32>(bits, bits >> 4u, 0u, 0u)).xy);
  }
  workgroupBarrier();
  let x_row0 = min(batch0 + 0u, params.x_rows - 1u) * 512u;
  let rows = min(8u, params.n - group_row);
  {
    let chunk = lane;
    let x0_0 = columns(x_row0, chunk * 8u + 0u);
    let x0_1 = columns(x_row0, chunk * 8u + 1u);
    let x0_2 = columns(x_row0, chunk * 8u + 2u);
    let x0_3 = columns(x_row0, chunk * 8u + 3u);
    let x0_4 = columns(x_row0, chunk * 8u + 4u);
    let x0_5 = columns(x_row0, chunk * 8u + 5u);
    let x0_6 = columns(x_row0, chunk * 8u + 6u);
    let x0_7 = columns(x_row0, chunk * 8u + 7u);
    for (var done = 0u; done < rows; done += 4u) {
      let first_row = group_row + done;
      let row0 = first_row + 0u;
      let row1 = first_row + 1u;
      let row2 = first_row + 2u;
      let row3 = first_row + 3u;
  let scale_row0 = (first_row / 8u + 0u) *
    64u;
    let scale_group = chunk / 1u;
    let scale_word0 = scales[scale_row0 + scale_group];
    let scale_pair = select(scale_word0.xy, scale_word0.zw, (first_row & 4u) == 4u);
    let scales0 = vec4<f32>(unpack2x16float(scale_pair.x), unpack2x16float(scale_pair.y));
      let b0 = weights[row0 * 64u + chunk];
      let w0_0 = b0[0];
      let w0_1 = b0[1];
      let w0_2 = b0[2];
      let w0_3 = b0[3];
      let b1 = weights[row1 * 64u + chunk];
      let w1_0 = b1[0];
      let w1_1 = b1[1];
      let w1_2 = b1[2];
      let w1_3 = b1[3];
      let b2 = weights[row2 * 64u + chunk];
      let w2_0 = b2[0];
      let w2_1 = b2[1];
      let w2_2 = b2[2];
      let w2_3 = b2[3];
      let b3 = weights[row3 * 64u + chunk];
      let w3_0 = b3[0];
      let w3_1 = b3[1];
      let w3_2 = b3[2];
      let w3_3 = b3[3];
      let f0_0 = floats(w0_0);
      let f0_1 = floats(w0_1);
      let f0_2 = floats(w0_2);
      let f0_3 = floats(w0_3);
      var sum0_0 = 0.0;
      var t0_0 = x0_0 * f0_0.low;
      t0_0 = fma(x0_1, f0_0.high, t0_0);
      t0_0 = fma(x0_2, f0_1.low, t0_0);
      t0_0 = fma(x0_3, f0_1.high, t0_0);
      t0_0 = fma(x0_4, f0_2.low, t0_0);
      t0_0 = fma(x0_5, f0_2.high, t0_0);
      t0_0 = fma(x0_6, f0_3.low, t0_0);
      t0_0 = fma(x0_7, f0_3.high, t0_0);
      sum0_0 = fma(scales0[0], total(t0_0), sum0_0);
      partial[place(lane, done + 0u)] = sum0_0;
      let f1_0 = floats(w1_0);
      let f1_1 = floats(w1_1);
      let f1_2 = floats(w1_2);
      let f1_3 = floats(w1_3);
      var sum0_1 = 0.0;
      var t0_1 = x0_0 * f1_0.low;
      t0_1 = fma(x0_1, f1_0.high, t0_1);
      t0_1 = fma(x0_2, f1_1.low, t0_1);
      t0_1 = fma(x0_3, f1_1.high, t0_1);
      t0_1 = fma(x0_4, f1_2.low, t0_1);
      t0_1 = fma(x0_5, f1_2.high, t0_1);
      t0_1 = fma(x0_6, f1_3.low, t0_1);
      t0_1 = fma(x0_7, f1_3.high, t0_1);
      sum0_1 = fma(scales0[1], total(t0_1), sum0_1);
      partial[place(lane, done + 1u)] = sum0_1;
      let f2_0 = floats(w2_0);
      let f2_1 = floats(w2_1);
      let f2_2 = floats(w2_2);
      let f2_3 = floats(w2_3);
      var sum0_2 = 0.0;
      var t0_2 = x0_0 * f2_0.low;
      t0_2 = fma(x0_1, f2_0.high, t0_2);
      t0_2 = fma(x0_2, f2_1.low, t0_2);
      t0_2 = fma(x0_3, f2_1.high, t0_2);
      t0_2 = fma(x0_4, f2_2.low, t0_2);
      t0_2 = fma(x0_5, f2_2.high, t0_2);
      t0_2 = fma(x0_6, f2_3.low, t0_2);
      t0_2 = fma(x0_7, f2_3.high, t0_2);
      sum0_2 = fma(scales0[2], total(t0_2), sum0_2);
      partial[place(lane, done + 2u)] = sum0_2;
      let f3_0 = floats(w3_0);
      let f3_1 = floats(w3_1);
      let f3_2 = floats(w3_2);
      let f3_3 = floats(w3_3);
      var sum0_3 = 0.0;
      var t0_3 = x0_0 * f3_0.low;
      t0_3 = fma(x0_1, f3_0.high, t0_3);
      t0_3 = fma(x0_2, f3_1.low, t0_3);
      t0_3 = fma(x0_3, f3_1.high, t0_3);
      t0_3 = fma(x0_4, f3_2.low, t0_3);
      t0_3 = fma(x0_5, f3_2.high, t0_3);
      t0_3 = fma(x0_6, f3_3.low, t0_3);
      t0_3 = fma(x0_7, f3_3.high, t0_3);
      sum0_3 = fma(scales0[3], total(t0_3), sum0_3);
      partial[place(lane, done + 3u)] = sum0_3;
    }
  }
  workgroupBarrier();
  // 8 lanes to each of the 8 sums.
  let sum = lane % 8u;
  let part = lane / 8u;
  var result = 0.0;
  for (var i = 0u; i < 8u; i++) {
    result += partial[place(i * 8u + part, sum)];
  }
  workgroupBarrier();
  partial[lane] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 8u; i++) {
    result += partial[i * 8u + sum];
  }
  let batch = batch0 + sum / 8u;
  let row = group_row + sum % 8u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    if (params.residual_rows > 0u) {
      result += residual[min(batch, params.residual_rows - 1u) * params.stride + column];
    }
    y[batch * params.stride + column] = result;
  }
}
