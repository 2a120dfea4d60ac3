// linear_gemv with Ahead 4, Batch 4, Bias, Chunks 144, Eights 1, Format q4, GroupEights 8, Lanes 64, Ragged, Rows 16: workgroup [64 1 1], 16384 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: bias
// binding 4: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first

// y = x * w' + bias for 4 rows of x. A workgroup takes
// 16 rows of w: each lane holds its columns of x while it goes through
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
// [n, 144]
@group(0) @binding(1) var<storage, read> weights: array<u32>;

// [n / 4, 18, 4]
@group(0) @binding(2) var<storage, read> scales: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
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

var<workgroup> partial: array<f32, 4096>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 64u +
    (sum ^ (lane & 31u));
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
  let batches = (params.m + 3u) / 4u;
  let id = flat_group(wid, groups);
  var group_row = id * 16u;
  var batch0 = 0u;
  if (batches > 1u) { // dividing takes a while
    group_row = id / batches * 16u;
    batch0 = id % batches * 4u;
  }
  if (group_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 288u;
  let x_row1 = min(batch0 + 1u, params.m - 1u) * 288u;
  let x_row2 = min(batch0 + 2u, params.m - 1u) * 288u;
  let x_row3 = min(batch0 + 3u, params.m - 1u) * 288u;
  let rows = min(16u, params.n - group_row);
  for (var chunk = lane; chunk < 144u; chunk += 64u) {
    let u0_0 = columns(x_row0, chunk * 2u + 0u);
    let v0_0 = columns(x_row0, chunk * 2u + 1u);
    let even0_0 = vec4<f32>(u0_0.xz, v0_0.xz);
    let odd0_0 = vec4<f32>(u0_0.yw, v0_0.yw);
    let zero0 = total((even0_0) * 264.0 +
      (odd0_0) * 24.0);
    let u1_0 = columns(x_row1, chunk * 2u + 0u);
    let v1_0 = columns(x_row1, chunk * 2u + 1u);
    let even1_0 = vec4<f32>(u1_0.xz, v1_0.xz);
    let odd1_0 = vec4<f32>(u1_0.yw, v1_0.yw);
    let zero1 = total((even1_0) * 264.0 +
      (odd1_0) * 24.0);
    let u2_0 = columns(x_row2, chunk * 2u + 0u);
    let v2_0 = columns(x_row2, chunk * 2u + 1u);
    let even2_0 = vec4<f32>(u2_0.xz, v2_0.xz);
    let odd2_0 = vec4<f32>(u2_0.yw, v2_0.yw);
    let zero2 = total((even2_0) * 264.0 +
      (odd2_0) * 24.0);
    let u3_0 = columns(x_row3, chunk * 2u + 0u);
    let v3_0 = columns(x_row3, chunk * 2u + 1u);
    let even3_0 = vec4<f32>(u3_0.xz, v3_0.xz);
    let odd3_0 = vec4<f32>(u3_0.yw, v3_0.yw);
    let zero3 = total((even3_0) * 264.0 +
      (odd3_0) * 24.0);
    for (var done = 0u; done < rows; done += 4u) {
      let first_row = group_row + done;
      let row0 = min(first_row + 0u, params.n - 1u);
      let row1 = min(first_row + 1u, params.n - 1u);
      let row2 = min(first_row + 2u, params.n - 1u);
      let row3 = min(first_row + 3u, params.n - 1u);
  let w_row0 = row0 * 144u;
  let w_row1 = row1 * 144u;
  let w_row2 = row2 * 144u;
  let w_row3 = row3 * 144u;
  let scale_row0 = (first_row / 4u + 0u) *
    18u;
    let scale_group = chunk / 8u;
    let scales0 = scales[scale_row0 + scale_group];
      let w0 = weights[w_row0 + chunk];
      let w1 = weights[w_row1 + chunk];
      let w2 = weights[w_row2 + chunk];
      let w3 = weights[w_row3 + chunk];
      let e0 = evens(w0);
      let o0 = odds(w0);
      var sum0_0 = 0.0;
      let t0_0 = fma(o0, odd0_0, e0 * even0_0);
      sum0_0 = fma(scales0[0], total(t0_0) - zero0, sum0_0);
      partial[place(lane, done + 0u)] += sum0_0;
      var sum1_0 = 0.0;
      let t1_0 = fma(o0, odd1_0, e0 * even1_0);
      sum1_0 = fma(scales0[0], total(t1_0) - zero1, sum1_0);
      partial[place(lane, done + 16u)] += sum1_0;
      var sum2_0 = 0.0;
      let t2_0 = fma(o0, odd2_0, e0 * even2_0);
      sum2_0 = fma(scales0[0], total(t2_0) - zero2, sum2_0);
      partial[place(lane, done + 32u)] += sum2_0;
      var sum3_0 = 0.0;
      let t3_0 = fma(o0, odd3_0, e0 * even3_0);
      sum3_0 = fma(scales0[0], total(t3_0) - zero3, sum3_0);
      partial[place(lane, done + 48u)] += sum3_0;
      let e1 = evens(w1);
      let o1 = odds(w1);
      var sum0_1 = 0.0;
      let t0_1 = fma(o1, odd0_0, e1 * even0_0);
      sum0_1 = fma(scales0[1], total(t0_1) - zero0, sum0_1);
      partial[place(lane, done + 1u)] += sum0_1;
      var sum1_1 = 0.0;
      let t1_1 = fma(o1, odd1_0, e1 * even1_0);
      sum1_1 = fma(scales0[1], total(t1_1) - zero1, sum1_1);
      partial[place(lane, done + 17u)] += sum1_1;
      var sum2_1 = 0.0;
      let t2_1 = fma(o1, odd2_0, e1 * even2_0);
      sum2_1 = fma(scales0[1], total(t2_1) - zero2, sum2_1);
      partial[place(lane, done + 33u)] += sum2_1;
      var sum3_1 = 0.0;
      let t3_1 = fma(o1, odd3_0, e1 * even3_0);
      sum3_1 = fma(scales0[1], total(t3_1) - zero3, sum3_1);
      partial[place(lane, done + 49u)] += sum3_1;
      let e2 = evens(w2);
      let o2 = odds(w2);
      var sum0_2 = 0.0;
      let t0_2 = fma(o2, odd0_0, e2 * even0_0);
      sum0_2 = fma(scales0[2], total(t0_2) - zero0, sum0_2);
      partial[place(lane, done + 2u)] += sum0_2;
      var sum1_2 = 0.0;
      let t1_2 = fma(o2, odd1_0, e2 * even1_0);
      sum1_2 = fma(scales0[2], total(t1_2) - zero1, sum1_2);
      partial[place(lane, done + 18u)] += sum1_2;
      var sum2_2 = 0.0;
      let t2_2 = fma(o2, odd2_0, e2 * even2_0);
      sum2_2 = fma(scales0[2], total(t2_2) - zero2, sum2_2);
      partial[place(lane, done + 34u)] += sum2_2;
      var sum3_2 = 0.0;
      let t3_2 = fma(o2, odd3_0, e2 * even3_0);
      sum3_2 = fma(scales0[2], total(t3_2) - zero3, sum3_2);
      partial[place(lane, done + 50u)] += sum3_2;
      let e3 = evens(w3);
      let o3 = odds(w3);
      var sum0_3 = 0.0;
      let t0_3 = fma(o3, odd0_0, e3 * even0_0);
      sum0_3 = fma(scales0[3], total(t0_3) - zero0, sum0_3);
      partial[place(lane, done + 3u)] += sum0_3;
      var sum1_3 = 0.0;
      let t1_3 = fma(o3, odd1_0, e3 * even1_0);
      sum1_3 = fma(scales0[3], total(t1_3) - zero1, sum1_3);
      partial[place(lane, done + 19u)] += sum1_3;
      var sum2_3 = 0.0;
      let t2_3 = fma(o3, odd2_0, e3 * even2_0);
      sum2_3 = fma(scales0[3], total(t2_3) - zero2, sum2_3);
      partial[place(lane, done + 35u)] += sum2_3;
      var sum3_3 = 0.0;
      let t3_3 = fma(o3, odd3_0, e3 * even3_0);
      sum3_3 = fma(scales0[3], total(t3_3) - zero3, sum3_3);
      partial[place(lane, done + 51u)] += sum3_3;
    }
  }
  workgroupBarrier();
  // 1 lanes to each of the 64 sums.
  let sum = lane % 64u;
  let part = lane / 64u;
  var result = 0.0;
  for (var i = 0u; i < 64u; i++) {
    result += partial[place(i * 1u + part, sum)];
  }
  let batch = batch0 + sum / 16u;
  let row = group_row + sum % 16u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    result += bias[column];
    y[batch * params.stride + column] = result;
  }
}
