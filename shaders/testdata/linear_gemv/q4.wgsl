// linear_gemv with Ahead 4, Batch 1, Chunks 64, Eights 4, Format q4, GroupEights 4, HalfScales, Lanes 64, Rows 16: workgroup [64 1 1], 4096 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first

// y = x * w' + bias for a row of x. A workgroup takes
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
// [n, 64]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;

// [n / 8, 64, 8]
@group(0) @binding(2) var<storage, read> scales: array<vec4<u32>>;
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

var<workgroup> partial: array<f32, 1024>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 16u +
    (sum ^ ((lane / 2u) & 15u));
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
  var group_row = id * 16u;
  var batch0 = 0u;
  if (batches > 1u) { // dividing takes a while
    group_row = id / batches * 16u;
    batch0 = id % batches * 1u;
  }
  if (group_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 512u;
  let rows = min(16u, params.n - group_row);
  {
    let chunk = lane;
    let u0_0 = columns(x_row0, chunk * 8u + 0u);
    let v0_0 = columns(x_row0, chunk * 8u + 1u);
    let even0_0 = vec4<f32>(u0_0.xz, v0_0.xz);
    let odd0_0 = vec4<f32>(u0_0.yw, v0_0.yw);
    let u0_1 = columns(x_row0, chunk * 8u + 2u);
    let v0_1 = columns(x_row0, chunk * 8u + 3u);
    let even0_1 = vec4<f32>(u0_1.xz, v0_1.xz);
    let odd0_1 = vec4<f32>(u0_1.yw, v0_1.yw);
    let u0_2 = columns(x_row0, chunk * 8u + 4u);
    let v0_2 = columns(x_row0, chunk * 8u + 5u);
    let even0_2 = vec4<f32>(u0_2.xz, v0_2.xz);
    let odd0_2 = vec4<f32>(u0_2.yw, v0_2.yw);
    let u0_3 = columns(x_row0, chunk * 8u + 6u);
    let v0_3 = columns(x_row0, chunk * 8u + 7u);
    let even0_3 = vec4<f32>(u0_3.xz, v0_3.xz);
    let odd0_3 = vec4<f32>(u0_3.yw, v0_3.yw);
    let zero0 = total((even0_0 +
      even0_1 +
      even0_2 +
      even0_3) * 264.0 +
      (odd0_0 + odd0_1 + odd0_2 + odd0_3) * 24.0);
    for (var done = 0u; done < rows; done += 4u) {
      let first_row = group_row + done;
      let row0 = first_row + 0u;
      let row1 = first_row + 1u;
      let row2 = first_row + 2u;
      let row3 = first_row + 3u;
  let w_row0 = row0 * 64u;
  let w_row1 = row1 * 64u;
  let w_row2 = row2 * 64u;
  let w_row3 = row3 * 64u;
  let scale_row0 = (first_row / 8u + 0u) *
    64u;
    let scale_group = chunk / 1u;
    let scale_word0 = scales[scale_row0 + scale_group];
    let scale_pair = select(scale_word0.xy, scale_word0.zw, (first_row & 4u) == 4u);
    let scales0 = vec4<f32>(unpack2x16float(scale_pair.x), unpack2x16float(scale_pair.y));
      let w0 = weights[w_row0 + chunk];
      let w1 = weights[w_row1 + chunk];
      let w2 = weights[w_row2 + chunk];
      let w3 = weights[w_row3 + chunk];
      var sum0_0 = 0.0;
      var t0_0 = evens(w0.x) * even0_0;
      t0_0 = fma(odds(w0.x), odd0_0, t0_0);
      t0_0 = fma(evens(w0.y), even0_1, t0_0);
      t0_0 = fma(odds(w0.y), odd0_1, t0_0);
      t0_0 = fma(evens(w0.z), even0_2, t0_0);
      t0_0 = fma(odds(w0.z), odd0_2, t0_0);
      t0_0 = fma(evens(w0.w), even0_3, t0_0);
      t0_0 = fma(odds(w0.w), odd0_3, t0_0);
      sum0_0 = fma(scales0[0], total(t0_0) - zero0, sum0_0);
      partial[place(lane, done + 0u)] = sum0_0;
      var sum0_1 = 0.0;
      var t0_1 = evens(w1.x) * even0_0;
      t0_1 = fma(odds(w1.x), odd0_0, t0_1);
      t0_1 = fma(evens(w1.y), even0_1, t0_1);
      t0_1 = fma(odds(w1.y), odd0_1, t0_1);
      t0_1 = fma(evens(w1.z), even0_2, t0_1);
      t0_1 = fma(odds(w1.z), odd0_2, t0_1);
      t0_1 = fma(evens(w1.w), even0_3, t0_1);
      t0_1 = fma(odds(w1.w), odd0_3, t0_1);
      sum0_1 = fma(scales0[1], total(t0_1) - zero0, sum0_1);
      partial[place(lane, done + 1u)] = sum0_1;
      var sum0_2 = 0.0;
      var t0_2 = evens(w2.x) * even0_0;
      t0_2 = fma(odds(w2.x), odd0_0, t0_2);
      t0_2 = fma(evens(w2.y), even0_1, t0_2);
      t0_2 = fma(odds(w2.y), odd0_1, t0_2);
      t0_2 = fma(evens(w2.z), even0_2, t0_2);
      t0_2 = fma(odds(w2.z), odd0_2, t0_2);
      t0_2 = fma(evens(w2.w), even0_3, t0_2);
      t0_2 = fma(odds(w2.w), odd0_3, t0_2);
      sum0_2 = fma(scales0[2], total(t0_2) - zero0, sum0_2);
      partial[place(lane, done + 2u)] = sum0_2;
      var sum0_3 = 0.0;
      var t0_3 = evens(w3.x) * even0_0;
      t0_3 = fma(odds(w3.x), odd0_0, t0_3);
      t0_3 = fma(evens(w3.y), even0_1, t0_3);
      t0_3 = fma(odds(w3.y), odd0_1, t0_3);
      t0_3 = fma(evens(w3.z), even0_2, t0_3);
      t0_3 = fma(odds(w3.z), odd0_2, t0_3);
      t0_3 = fma(evens(w3.w), even0_3, t0_3);
      t0_3 = fma(odds(w3.w), odd0_3, t0_3);
      sum0_3 = fma(scales0[3], total(t0_3) - zero0, sum0_3);
      partial[place(lane, done + 3u)] = sum0_3;
    }
  }
  workgroupBarrier();
  // 4 lanes to each of the 16 sums.
  let sum = lane % 16u;
  let part = lane / 16u;
  var result = 0.0;
  for (var i = 0u; i < 16u; i++) {
    result += partial[place(i * 4u + part, sum)];
  }
  workgroupBarrier();
  partial[lane] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 4u; i++) {
    result += partial[i * 16u + sum];
  }
  let batch = batch0 + sum / 16u;
  let row = group_row + sum % 16u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    y[batch * params.stride + column] = result;
  }
}
