// linear_gemv with Ahead 4, Batch 1, Bias, Chunks 80, Eights 1, Format f32, Lanes 64, Rows 4: workgroup [64 1 1], 1024 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: bias
// binding 3: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first

// y = x * w' + bias for a row of x. A workgroup takes
// 4 rows of w: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// 4 rows are loaded before the first is used. The loop over them has no constant bounds, so that it
// stays one: a step fetches the code of most kernels from memory.
struct Params {
  m: u32, // rows of y and of x
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>; // [n, columns]
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Eight weights of a row.
struct Eight {
  low: vec4<f32>, // columns 0 to 3
  high: vec4<f32>,
}

alias Bits = Eight;

fn load(row: u32, eight: u32) -> Bits {
  let at = row * (640u / 4u) + 2u * eight;
  return Eight(weights[at], weights[at + 1u]);
}

fn floats(b: Bits) -> Eight {
  return b;
}
var<workgroup> partial: array<f32, 256>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 4u +
    (sum ^ ((lane / 8u) & 3u));
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
  var group_row = id * 4u;
  var batch0 = 0u;
  if (batches > 1u) { // dividing takes a while
    group_row = id / batches * 4u;
    batch0 = id % batches * 1u;
  }
  if (group_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 160u;
  let rows = min(4u, params.n - group_row);
  for (var chunk = lane; chunk < 80u; chunk += 64u) {
    let x0_0 = columns(x_row0, chunk * 2u + 0u);
    let x0_1 = columns(x_row0, chunk * 2u + 1u);
    for (var done = 0u; done < rows; done += 4u) {
      let first_row = group_row + done;
      let row0 = first_row + 0u;
      let row1 = first_row + 1u;
      let row2 = first_row + 2u;
      let row3 = first_row + 3u;
      let w0_0 = load(row0, chunk * 1u + 0u);
      let w1_0 = load(row1, chunk * 1u + 0u);
      let w2_0 = load(row2, chunk * 1u + 0u);
      let w3_0 = load(row3, chunk * 1u + 0u);
      let f0_0 = floats(w0_0);
      var sum0_0 = 0.0;
      var t0_0 = x0_0 * f0_0.low;
      t0_0 = fma(x0_1, f0_0.high, t0_0);
      sum0_0 += total(t0_0);
      partial[place(lane, done + 0u)] += sum0_0;
      let f1_0 = floats(w1_0);
      var sum0_1 = 0.0;
      var t0_1 = x0_0 * f1_0.low;
      t0_1 = fma(x0_1, f1_0.high, t0_1);
      sum0_1 += total(t0_1);
      partial[place(lane, done + 1u)] += sum0_1;
      let f2_0 = floats(w2_0);
      var sum0_2 = 0.0;
      var t0_2 = x0_0 * f2_0.low;
      t0_2 = fma(x0_1, f2_0.high, t0_2);
      sum0_2 += total(t0_2);
      partial[place(lane, done + 2u)] += sum0_2;
      let f3_0 = floats(w3_0);
      var sum0_3 = 0.0;
      var t0_3 = x0_0 * f3_0.low;
      t0_3 = fma(x0_1, f3_0.high, t0_3);
      sum0_3 += total(t0_3);
      partial[place(lane, done + 3u)] += sum0_3;
    }
  }
  workgroupBarrier();
  // 16 lanes to each of the 4 sums.
  let sum = lane % 4u;
  let part = lane / 4u;
  var result = 0.0;
  for (var i = 0u; i < 4u; i++) {
    result += partial[place(i * 16u + part, sum)];
  }
  workgroupBarrier();
  partial[lane] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 16u; i++) {
    result += partial[i * 4u + sum];
  }
  let batch = batch0 + sum / 4u;
  let row = group_row + sum % 4u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    result += bias[column];
    y[batch * params.stride + column] = result;
  }
}
