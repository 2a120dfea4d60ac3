// linear_gemv with Batch 4, Bias, Chunks 144, Eights 1, Format q4, GroupEights 8, Groups 1, Lanes 64, Ragged, Rows 16: workgroup [64 1 1], 16384 bytes of workgroup memory
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
// Four rows at a time: where one is taken, what is stored of the fourth after it is loaded, and on its way
// while the others are summed; behind the last row of a chunk comes the first of the next. The loop has no
// constant bounds, so that it stays one: a step fetches the code of most kernels from memory.
struct Params {
  m: u32, // rows of y and of x
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 144]
@group(0) @binding(1) var<storage, read> weights: array<u32>;

// [n / 4, groups, 4]
@group(0) @binding(2) var<storage, read> scales: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

alias Bits = u32;

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * (1152u / 8u) + eight];
}

const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(w: Bits) -> vec4<u32> {
  let high = w >> 8u;
  return vec4<u32>(w & 0x000f000fu, w & 0x00f000f0u, high & 0x000f000fu, high & 0x00f000f0u);
}

// Halves below the normal ones as floats.
fn small(h: u32) -> vec2<f32> {
  return unpack2x16float(h);
}

// What eight weights make with their columns of x is added to a sum, which is several until the end.
alias Sum = vec2<f32>;

fn add_eight(sum: Sum, w: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> Sum {
  var t = fma(small(w.x), vec2<f32>(low.x, high.x), sum);
  t = fma(small(w.y), vec2<f32>(low.y, high.y), t);
  t = fma(small(w.z), vec2<f32>(low.z, high.z), t);
  return fma(small(w.w), vec2<f32>(low.w, high.w), t);
}

fn total(sum: Sum) -> f32 {
  return sum.x + sum.y;
}

alias Row = Bits;

fn load_row(row: u32, chunk: u32) -> Row {
  return load(row, chunk);
}

struct Scales {
  scale: vec4<f32>,
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * 18u + chunk / 8u]);
}

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(min(row, params.n - 1u), chunk);
}

var<workgroup> partial: array<f32, 4096>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 64u +
    (sum ^ (lane & 31u));
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
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  var scale_bits = load_scales(group_row, lane);
  // The result that is this lane's in the end: what it takes beside the sums is on its way, too.
  let sum = lane % 64u;
  let row = group_row + sum % 16u;
  let column = params.first + row;
  let batch = batch0 + sum / 16u;
  let column_bias = bias[column];
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 288u;
  let x_row1 = min(batch0 + 1u, params.m - 1u) * 288u;
  let x_row2 = min(batch0 + 2u, params.m - 1u) * 288u;
  let x_row3 = min(batch0 + 3u, params.m - 1u) * 288u;
  let rows = min(16u, params.n - group_row);
  for (var chunk = lane; chunk < 144u; chunk += 64u) {
    let plain0_0 = columns(x_row0, chunk * 2u + 0u);
    let plain0_1 = columns(x_row0, chunk * 2u + 1u);
    let all0_0 = plain0_0 + plain0_1;
    let ones0_0 = dot(all0_0, vec4<f32>(1.0));
    let begin0_0 = Sum(-8.0 * ones0_0, 0.0);
    let x0_0 = plain0_0 * turn;
    let x0_1 = plain0_1 * turn;
    let plain1_0 = columns(x_row1, chunk * 2u + 0u);
    let plain1_1 = columns(x_row1, chunk * 2u + 1u);
    let all1_0 = plain1_0 + plain1_1;
    let ones1_0 = dot(all1_0, vec4<f32>(1.0));
    let begin1_0 = Sum(-8.0 * ones1_0, 0.0);
    let x1_0 = plain1_0 * turn;
    let x1_1 = plain1_1 * turn;
    let plain2_0 = columns(x_row2, chunk * 2u + 0u);
    let plain2_1 = columns(x_row2, chunk * 2u + 1u);
    let all2_0 = plain2_0 + plain2_1;
    let ones2_0 = dot(all2_0, vec4<f32>(1.0));
    let begin2_0 = Sum(-8.0 * ones2_0, 0.0);
    let x2_0 = plain2_0 * turn;
    let x2_1 = plain2_1 * turn;
    let plain3_0 = columns(x_row3, chunk * 2u + 0u);
    let plain3_1 = columns(x_row3, chunk * 2u + 1u);
    let all3_0 = plain3_0 + plain3_1;
    let ones3_0 = dot(all3_0, vec4<f32>(1.0));
    let begin3_0 = Sum(-8.0 * ones3_0, 0.0);
    let x3_0 = plain3_0 * turn;
    let x3_1 = plain3_1 * turn;
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + 64u, last);
      let next_row = group_row + next;
      let scale0 = scale_bits.scale;
      if (next_chunk < 144u) { scale_bits = load_scales(next_row, next_chunk); }
      let w0_0 = halves(row0);
      if (next_chunk < 144u) { row0 = load_near(next_row + 0u, next_chunk); }
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      var sum0_0 = total(t0_0_0) * scale0[0];
      partial[place(lane, done + 0u)] += sum0_0;
      var t1_0_0 = begin1_0;
      t1_0_0 = add_eight(t1_0_0, w0_0, x1_0, x1_1);
      var sum1_0 = total(t1_0_0) * scale0[0];
      partial[place(lane, done + 16u)] += sum1_0;
      var t2_0_0 = begin2_0;
      t2_0_0 = add_eight(t2_0_0, w0_0, x2_0, x2_1);
      var sum2_0 = total(t2_0_0) * scale0[0];
      partial[place(lane, done + 32u)] += sum2_0;
      var t3_0_0 = begin3_0;
      t3_0_0 = add_eight(t3_0_0, w0_0, x3_0, x3_1);
      var sum3_0 = total(t3_0_0) * scale0[0];
      partial[place(lane, done + 48u)] += sum3_0;
      let w1_0 = halves(row1);
      if (next_chunk < 144u) { row1 = load_near(next_row + 1u, next_chunk); }
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      var sum0_1 = total(t0_1_0) * scale0[1];
      partial[place(lane, done + 1u)] += sum0_1;
      var t1_1_0 = begin1_0;
      t1_1_0 = add_eight(t1_1_0, w1_0, x1_0, x1_1);
      var sum1_1 = total(t1_1_0) * scale0[1];
      partial[place(lane, done + 17u)] += sum1_1;
      var t2_1_0 = begin2_0;
      t2_1_0 = add_eight(t2_1_0, w1_0, x2_0, x2_1);
      var sum2_1 = total(t2_1_0) * scale0[1];
      partial[place(lane, done + 33u)] += sum2_1;
      var t3_1_0 = begin3_0;
      t3_1_0 = add_eight(t3_1_0, w1_0, x3_0, x3_1);
      var sum3_1 = total(t3_1_0) * scale0[1];
      partial[place(lane, done + 49u)] += sum3_1;
      let w2_0 = halves(row2);
      if (next_chunk < 144u) { row2 = load_near(next_row + 2u, next_chunk); }
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      var sum0_2 = total(t0_2_0) * scale0[2];
      partial[place(lane, done + 2u)] += sum0_2;
      var t1_2_0 = begin1_0;
      t1_2_0 = add_eight(t1_2_0, w2_0, x1_0, x1_1);
      var sum1_2 = total(t1_2_0) * scale0[2];
      partial[place(lane, done + 18u)] += sum1_2;
      var t2_2_0 = begin2_0;
      t2_2_0 = add_eight(t2_2_0, w2_0, x2_0, x2_1);
      var sum2_2 = total(t2_2_0) * scale0[2];
      partial[place(lane, done + 34u)] += sum2_2;
      var t3_2_0 = begin3_0;
      t3_2_0 = add_eight(t3_2_0, w2_0, x3_0, x3_1);
      var sum3_2 = total(t3_2_0) * scale0[2];
      partial[place(lane, done + 50u)] += sum3_2;
      let w3_0 = halves(row3);
      if (next_chunk < 144u) { row3 = load_near(next_row + 3u, next_chunk); }
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      var sum0_3 = total(t0_3_0) * scale0[3];
      partial[place(lane, done + 3u)] += sum0_3;
      var t1_3_0 = begin1_0;
      t1_3_0 = add_eight(t1_3_0, w3_0, x1_0, x1_1);
      var sum1_3 = total(t1_3_0) * scale0[3];
      partial[place(lane, done + 19u)] += sum1_3;
      var t2_3_0 = begin2_0;
      t2_3_0 = add_eight(t2_3_0, w3_0, x2_0, x2_1);
      var sum2_3 = total(t2_3_0) * scale0[3];
      partial[place(lane, done + 35u)] += sum2_3;
      var t3_3_0 = begin3_0;
      t3_3_0 = add_eight(t3_3_0, w3_0, x3_0, x3_1);
      var sum3_3 = total(t3_3_0) * scale0[3];
      partial[place(lane, done + 51u)] += sum3_3;
    }
  }
  workgroupBarrier();
  // 1 lanes to each of the 64 sums.
  let part = lane / 64u;
  var result = 0.0;
  for (var i = 0u; i < 64u; i++) {
    result += partial[place(i * 1u + part, sum)];
  }
  if (row < params.n && batch < params.m) {
    result += column_bias;
    y[batch * params.stride + column] = result;
  }
}
