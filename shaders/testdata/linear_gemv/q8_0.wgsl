// linear_gemv with Ahead 4, Batch 1, Bias, Chunks 80, Eights 2, Format q8_0, GroupEights 4, HalfScales, Lanes 64, Norm, Ragged, Residual, Rows 8: workgroup [64 1 1], 2304 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: bias
// binding 4: residual
// binding 5: norm
// binding 6: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first
// param at 16: u32 x_rows
// param at 20: u32 residual_rows
// param at 24: f32 eps

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
  eps: f32, // of the norm
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 80]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;

// [n / 8, 40, 8]
@group(0) @binding(2) var<storage, read> scales: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read> norm: array<vec4<f32>>; // its weights
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = vec2<u32>;

// q + 128 is put under the exponent of 256, where the mantissa counts in ones from bit 15 on. No bit is lost.
fn bytes(w: u32) -> vec4<f32> {
  let u = w ^ 0x80808080u;
  return bitcast<vec4<f32>>((vec4<u32>(u << 15u, u << 7u, u >> 1u,
    u >> 9u) & vec4<u32>(0x007f8000u)) | vec4<u32>(0x43800000u)) - 384.0;
}

fn floats(b: Bits) -> Eight {
  return Eight(bytes(b.x), bytes(b.y));
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

// The scale of a norm waits until all is summed: the squares are summed beside the products.
var<private> squares: f32;
var<workgroup> squared: array<f32, 64>;

// Four columns of the row of x that begins at row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  let v = x[row + at];
  squares += dot(v, v);
  return v * norm[at];
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
  let x_row0 = min(batch0 + 0u, params.x_rows - 1u) * 320u;
  let rows = min(8u, params.n - group_row);
  for (var chunk = lane; chunk < 80u; chunk += 64u) {
    let x0_0 = columns(x_row0, chunk * 4u + 0u);
    let x0_1 = columns(x_row0, chunk * 4u + 1u);
    let x0_2 = columns(x_row0, chunk * 4u + 2u);
    let x0_3 = columns(x_row0, chunk * 4u + 3u);
    for (var done = 0u; done < rows; done += 4u) {
      let first_row = group_row + done;
      let row0 = min(first_row + 0u, params.n - 1u);
      let row1 = min(first_row + 1u, params.n - 1u);
      let row2 = min(first_row + 2u, params.n - 1u);
      let row3 = min(first_row + 3u, params.n - 1u);
  let scale_row0 = (first_row / 8u + 0u) *
    40u;
    let scale_group = chunk / 2u;
    let scale_word0 = scales[scale_row0 + scale_group];
    let scale_pair = select(scale_word0.xy, scale_word0.zw, (first_row & 4u) == 4u);
    let scales0 = vec4<f32>(unpack2x16float(scale_pair.x), unpack2x16float(scale_pair.y));
      let b0 = weights[row0 * 80u + chunk];
      let w0_0 = b0.xy;
      let w0_1 = b0.zw;
      let b1 = weights[row1 * 80u + chunk];
      let w1_0 = b1.xy;
      let w1_1 = b1.zw;
      let b2 = weights[row2 * 80u + chunk];
      let w2_0 = b2.xy;
      let w2_1 = b2.zw;
      let b3 = weights[row3 * 80u + chunk];
      let w3_0 = b3.xy;
      let w3_1 = b3.zw;
      let f0_0 = floats(w0_0);
      let f0_1 = floats(w0_1);
      var sum0_0 = 0.0;
      var t0_0 = x0_0 * f0_0.low;
      t0_0 = fma(x0_1, f0_0.high, t0_0);
      t0_0 = fma(x0_2, f0_1.low, t0_0);
      t0_0 = fma(x0_3, f0_1.high, t0_0);
      sum0_0 = fma(scales0[0], total(t0_0), sum0_0);
      partial[place(lane, done + 0u)] += sum0_0;
      let f1_0 = floats(w1_0);
      let f1_1 = floats(w1_1);
      var sum0_1 = 0.0;
      var t0_1 = x0_0 * f1_0.low;
      t0_1 = fma(x0_1, f1_0.high, t0_1);
      t0_1 = fma(x0_2, f1_1.low, t0_1);
      t0_1 = fma(x0_3, f1_1.high, t0_1);
      sum0_1 = fma(scales0[1], total(t0_1), sum0_1);
      partial[place(lane, done + 1u)] += sum0_1;
      let f2_0 = floats(w2_0);
      let f2_1 = floats(w2_1);
      var sum0_2 = 0.0;
      var t0_2 = x0_0 * f2_0.low;
      t0_2 = fma(x0_1, f2_0.high, t0_2);
      t0_2 = fma(x0_2, f2_1.low, t0_2);
      t0_2 = fma(x0_3, f2_1.high, t0_2);
      sum0_2 = fma(scales0[2], total(t0_2), sum0_2);
      partial[place(lane, done + 2u)] += sum0_2;
      let f3_0 = floats(w3_0);
      let f3_1 = floats(w3_1);
      var sum0_3 = 0.0;
      var t0_3 = x0_0 * f3_0.low;
      t0_3 = fma(x0_1, f3_0.high, t0_3);
      t0_3 = fma(x0_2, f3_1.low, t0_3);
      t0_3 = fma(x0_3, f3_1.high, t0_3);
      sum0_3 = fma(scales0[3], total(t0_3), sum0_3);
      partial[place(lane, done + 3u)] += sum0_3;
    }
  }
  squared[lane] = squares;
  workgroupBarrier();
  // 8 lanes to each of the 8 sums.
  let sum = lane % 8u;
  let part = lane / 8u;
  var result = 0.0;
  squares = 0.0;
  for (var i = 0u; i < 8u; i++) {
    result += partial[place(i * 8u + part, sum)];
    squares += squared[i * 8u + part];
  }
  workgroupBarrier();
  partial[lane] = result;
  squared[lane] = squares;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 8u; i++) {
    result += partial[i * 8u + sum];
    squares += squared[i * 8u + sum];
  }
  let batch = batch0 + sum / 8u;
  let row = group_row + sum % 8u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    let scale = inverseSqrt(squares / 1280.0 + params.eps);
    result *= scale;
    result += bias[column];
    if (params.residual_rows > 0u) {
      result += residual[min(batch, params.residual_rows - 1u) * params.stride + column];
    }
    y[batch * params.stride + column] = result;
  }
}
