// linear_gemv with Batch 1, Bias, Chunks 80, Lanes 64, Rows 4, Weights f32: workgroup [64 1 1], 1024 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: bias
// binding 3: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first

// y = x * w' + bias for a row of x. A workgroup takes
// 4 rows of w: each lane holds its columns of x while it goes through the rows, a chunk of columns at
// a time, and what it sums for each result meets what the other lanes have once, at the end.
struct Params {
  m: u32, // rows of x
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>; // [n, 160]
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + 0u) / 1u;
  let id = flat_group(wid, groups);
  let row0 = id / batches * 4u;
  let batch0 = id % batches * 1u;
  if (row0 >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 160u;
  var sum0_0 = 0.0;
  var sum0_1 = 0.0;
  var sum0_2 = 0.0;
  var sum0_3 = 0.0;
  let w_row0 = (row0 + 0u) * 160u;
  let w_row1 = (row0 + 1u) * 160u;
  let w_row2 = (row0 + 2u) * 160u;
  let w_row3 = (row0 + 3u) * 160u;
  for (var chunk = lane; chunk < 80u; chunk += 64u) {
    let u0 = x[x_row0 + 2u * chunk];
    let v0 = x[x_row0 + 2u * chunk + 1u];
    let w0 = weights[w_row0 + 2u * chunk];
    let z0 = weights[w_row0 + 2u * chunk + 1u];
    let w1 = weights[w_row1 + 2u * chunk];
    let z1 = weights[w_row1 + 2u * chunk + 1u];
    let w2 = weights[w_row2 + 2u * chunk];
    let z2 = weights[w_row2 + 2u * chunk + 1u];
    let w3 = weights[w_row3 + 2u * chunk];
    let z3 = weights[w_row3 + 2u * chunk + 1u];
    sum0_0 += total(fma(v0, z0, u0 * w0));
    sum0_1 += total(fma(v0, z1, u0 * w1));
    sum0_2 += total(fma(v0, z2, u0 * w2));
    sum0_3 += total(fma(v0, z3, u0 * w3));
  }
  partial[place(lane, 0u)] = sum0_0;
  partial[place(lane, 1u)] = sum0_1;
  partial[place(lane, 2u)] = sum0_2;
  partial[place(lane, 3u)] = sum0_3;
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
  let row = row0 + sum % 4u;
  if (batch < params.m && row < params.n) {
    y[batch * params.stride + params.first + row] = result + bias[params.first + row];
  }
}
