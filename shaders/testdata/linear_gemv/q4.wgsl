// linear_gemv with Batch 1, Chunks 64, Eights 4, Format q4, GroupEights 4, HalfScales, Lanes 64, Rows 16, Unpack mantissa: workgroup [64 1 1], 4096 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: y (written)
// param at 0: u32 m
// param at 4: u32 n
// param at 8: u32 stride
// param at 12: u32 first

// y = x * w' + bias for a row of x. A workgroup takes
// 16 rows of w: each lane holds its columns of x while it goes through the rows, a chunk of columns at
// a time, and what it sums for each result meets what the other lanes have once, at the end.
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

// A word holds eight weights q of 4 bits, column k of them at bits 4k. q4_even and q4_odd turn the even and
// the odd columns into floats zero + step * (q - 8), with the zeros and the step below: the cheapest form, of
// which users take the zero off once for many weights.

// One shift brings two columns to the top of a float's mantissa: the even one under the exponent of 256,
// where it counts in ones from bit 15 on, the odd one under that of 16, from bit 19 on. The floats are exact;
// what is rounded is the sum, in which a weight counts as 256 + q or 16 + q.
const even_zero = 264.0;
const odd_zero = 24.0;
const odd_step = 1.0;

fn q4_even(w: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>((vec4<u32>(w << 15u, w << 7u, w >> 1u,
    w >> 9u) & vec4<u32>(0x00078000u)) | vec4<u32>(0x43800000u));
}

fn q4_odd(w: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>((vec4<u32>(w << 15u, w << 7u, w >> 1u,
    w >> 9u) & vec4<u32>(0x00780000u)) | vec4<u32>(0x41800000u));
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + 0u) / 1u;
  let id = flat_group(wid, groups);
  let first_row = id / batches * 16u;
  let batch0 = id % batches * 1u;
  if (first_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 512u;
  var sum0_0 = 0.0;
  var sum0_1 = 0.0;
  var sum0_2 = 0.0;
  var sum0_3 = 0.0;
  var sum0_4 = 0.0;
  var sum0_5 = 0.0;
  var sum0_6 = 0.0;
  var sum0_7 = 0.0;
  var sum0_8 = 0.0;
  var sum0_9 = 0.0;
  var sum0_10 = 0.0;
  var sum0_11 = 0.0;
  var sum0_12 = 0.0;
  var sum0_13 = 0.0;
  var sum0_14 = 0.0;
  var sum0_15 = 0.0;
  let row0 = first_row + 0u;
  let row1 = first_row + 1u;
  let row2 = first_row + 2u;
  let row3 = first_row + 3u;
  let row4 = first_row + 4u;
  let row5 = first_row + 5u;
  let row6 = first_row + 6u;
  let row7 = first_row + 7u;
  let row8 = first_row + 8u;
  let row9 = first_row + 9u;
  let row10 = first_row + 10u;
  let row11 = first_row + 11u;
  let row12 = first_row + 12u;
  let row13 = first_row + 13u;
  let row14 = first_row + 14u;
  let row15 = first_row + 15u;
  let w_row0 = row0 * 64u;
  let w_row1 = row1 * 64u;
  let w_row2 = row2 * 64u;
  let w_row3 = row3 * 64u;
  let w_row4 = row4 * 64u;
  let w_row5 = row5 * 64u;
  let w_row6 = row6 * 64u;
  let w_row7 = row7 * 64u;
  let w_row8 = row8 * 64u;
  let w_row9 = row9 * 64u;
  let w_row10 = row10 * 64u;
  let w_row11 = row11 * 64u;
  let w_row12 = row12 * 64u;
  let w_row13 = row13 * 64u;
  let w_row14 = row14 * 64u;
  let w_row15 = row15 * 64u;
  let scale_row0 = (first_row / 8u + 0u) *
    64u;
  let scale_row1 = (first_row / 8u + 1u) *
    64u;
  {
    let chunk = lane;
    let u0_0 = x[x_row0 + chunk * 8u + 0u];
    let v0_0 = x[x_row0 + chunk * 8u + 1u];
    let even0_0 = vec4<f32>(u0_0.xz, v0_0.xz);
    let odd0_0 = vec4<f32>(u0_0.yw, v0_0.yw) / odd_step;
    let u0_1 = x[x_row0 + chunk * 8u + 2u];
    let v0_1 = x[x_row0 + chunk * 8u + 3u];
    let even0_1 = vec4<f32>(u0_1.xz, v0_1.xz);
    let odd0_1 = vec4<f32>(u0_1.yw, v0_1.yw) / odd_step;
    let u0_2 = x[x_row0 + chunk * 8u + 4u];
    let v0_2 = x[x_row0 + chunk * 8u + 5u];
    let even0_2 = vec4<f32>(u0_2.xz, v0_2.xz);
    let odd0_2 = vec4<f32>(u0_2.yw, v0_2.yw) / odd_step;
    let u0_3 = x[x_row0 + chunk * 8u + 6u];
    let v0_3 = x[x_row0 + chunk * 8u + 7u];
    let even0_3 = vec4<f32>(u0_3.xz, v0_3.xz);
    let odd0_3 = vec4<f32>(u0_3.yw, v0_3.yw) / odd_step;
    let zero0 = total((even0_0 +
      even0_1 +
      even0_2 +
      even0_3) * even_zero +
      (odd0_0 + odd0_1 + odd0_2 + odd0_3) * odd_zero);
    let scale_group = chunk / 1u;
    let scale_word0 = scales[scale_row0 + scale_group];
    let scale_word1 = scales[scale_row1 + scale_group];
    let scales0 = vec4<f32>(unpack2x16float(scale_word0.x),
      unpack2x16float(scale_word0.y));
    let scales1 = vec4<f32>(unpack2x16float(scale_word0.z),
      unpack2x16float(scale_word0.w));
    let scales2 = vec4<f32>(unpack2x16float(scale_word1.x),
      unpack2x16float(scale_word1.y));
    let scales3 = vec4<f32>(unpack2x16float(scale_word1.z),
      unpack2x16float(scale_word1.w));
    {
      let w0 = weights[w_row0 + chunk];
      let w1 = weights[w_row1 + chunk];
      let w2 = weights[w_row2 + chunk];
      let w3 = weights[w_row3 + chunk];
      let w4 = weights[w_row4 + chunk];
      let w5 = weights[w_row5 + chunk];
      let w6 = weights[w_row6 + chunk];
      let w7 = weights[w_row7 + chunk];
      var t0_0 = q4_even(w0.x) * even0_0;
      t0_0 = fma(q4_odd(w0.x), odd0_0, t0_0);
      t0_0 = fma(q4_even(w0.y), even0_1, t0_0);
      t0_0 = fma(q4_odd(w0.y), odd0_1, t0_0);
      t0_0 = fma(q4_even(w0.z), even0_2, t0_0);
      t0_0 = fma(q4_odd(w0.z), odd0_2, t0_0);
      t0_0 = fma(q4_even(w0.w), even0_3, t0_0);
      t0_0 = fma(q4_odd(w0.w), odd0_3, t0_0);
      sum0_0 = fma(scales0[0], total(t0_0) - zero0, sum0_0);
      var t0_1 = q4_even(w1.x) * even0_0;
      t0_1 = fma(q4_odd(w1.x), odd0_0, t0_1);
      t0_1 = fma(q4_even(w1.y), even0_1, t0_1);
      t0_1 = fma(q4_odd(w1.y), odd0_1, t0_1);
      t0_1 = fma(q4_even(w1.z), even0_2, t0_1);
      t0_1 = fma(q4_odd(w1.z), odd0_2, t0_1);
      t0_1 = fma(q4_even(w1.w), even0_3, t0_1);
      t0_1 = fma(q4_odd(w1.w), odd0_3, t0_1);
      sum0_1 = fma(scales0[1], total(t0_1) - zero0, sum0_1);
      var t0_2 = q4_even(w2.x) * even0_0;
      t0_2 = fma(q4_odd(w2.x), odd0_0, t0_2);
      t0_2 = fma(q4_even(w2.y), even0_1, t0_2);
      t0_2 = fma(q4_odd(w2.y), odd0_1, t0_2);
      t0_2 = fma(q4_even(w2.z), even0_2, t0_2);
      t0_2 = fma(q4_odd(w2.z), odd0_2, t0_2);
      t0_2 = fma(q4_even(w2.w), even0_3, t0_2);
      t0_2 = fma(q4_odd(w2.w), odd0_3, t0_2);
      sum0_2 = fma(scales0[2], total(t0_2) - zero0, sum0_2);
      var t0_3 = q4_even(w3.x) * even0_0;
      t0_3 = fma(q4_odd(w3.x), odd0_0, t0_3);
      t0_3 = fma(q4_even(w3.y), even0_1, t0_3);
      t0_3 = fma(q4_odd(w3.y), odd0_1, t0_3);
      t0_3 = fma(q4_even(w3.z), even0_2, t0_3);
      t0_3 = fma(q4_odd(w3.z), odd0_2, t0_3);
      t0_3 = fma(q4_even(w3.w), even0_3, t0_3);
      t0_3 = fma(q4_odd(w3.w), odd0_3, t0_3);
      sum0_3 = fma(scales0[3], total(t0_3) - zero0, sum0_3);
      var t0_4 = q4_even(w4.x) * even0_0;
      t0_4 = fma(q4_odd(w4.x), odd0_0, t0_4);
      t0_4 = fma(q4_even(w4.y), even0_1, t0_4);
      t0_4 = fma(q4_odd(w4.y), odd0_1, t0_4);
      t0_4 = fma(q4_even(w4.z), even0_2, t0_4);
      t0_4 = fma(q4_odd(w4.z), odd0_2, t0_4);
      t0_4 = fma(q4_even(w4.w), even0_3, t0_4);
      t0_4 = fma(q4_odd(w4.w), odd0_3, t0_4);
      sum0_4 = fma(scales1[0], total(t0_4) - zero0, sum0_4);
      var t0_5 = q4_even(w5.x) * even0_0;
      t0_5 = fma(q4_odd(w5.x), odd0_0, t0_5);
      t0_5 = fma(q4_even(w5.y), even0_1, t0_5);
      t0_5 = fma(q4_odd(w5.y), odd0_1, t0_5);
      t0_5 = fma(q4_even(w5.z), even0_2, t0_5);
      t0_5 = fma(q4_odd(w5.z), odd0_2, t0_5);
      t0_5 = fma(q4_even(w5.w), even0_3, t0_5);
      t0_5 = fma(q4_odd(w5.w), odd0_3, t0_5);
      sum0_5 = fma(scales1[1], total(t0_5) - zero0, sum0_5);
      var t0_6 = q4_even(w6.x) * even0_0;
      t0_6 = fma(q4_odd(w6.x), odd0_0, t0_6);
      t0_6 = fma(q4_even(w6.y), even0_1, t0_6);
      t0_6 = fma(q4_odd(w6.y), odd0_1, t0_6);
      t0_6 = fma(q4_even(w6.z), even0_2, t0_6);
      t0_6 = fma(q4_odd(w6.z), odd0_2, t0_6);
      t0_6 = fma(q4_even(w6.w), even0_3, t0_6);
      t0_6 = fma(q4_odd(w6.w), odd0_3, t0_6);
      sum0_6 = fma(scales1[2], total(t0_6) - zero0, sum0_6);
      var t0_7 = q4_even(w7.x) * even0_0;
      t0_7 = fma(q4_odd(w7.x), odd0_0, t0_7);
      t0_7 = fma(q4_even(w7.y), even0_1, t0_7);
      t0_7 = fma(q4_odd(w7.y), odd0_1, t0_7);
      t0_7 = fma(q4_even(w7.z), even0_2, t0_7);
      t0_7 = fma(q4_odd(w7.z), odd0_2, t0_7);
      t0_7 = fma(q4_even(w7.w), even0_3, t0_7);
      t0_7 = fma(q4_odd(w7.w), odd0_3, t0_7);
      sum0_7 = fma(scales1[3], total(t0_7) - zero0, sum0_7);
    }
    {
      let w8 = weights[w_row8 + chunk];
      let w9 = weights[w_row9 + chunk];
      let w10 = weights[w_row10 + chunk];
      let w11 = weights[w_row11 + chunk];
      let w12 = weights[w_row12 + chunk];
      let w13 = weights[w_row13 + chunk];
      let w14 = weights[w_row14 + chunk];
      let w15 = weights[w_row15 + chunk];
      var t0_8 = q4_even(w8.x) * even0_0;
      t0_8 = fma(q4_odd(w8.x), odd0_0, t0_8);
      t0_8 = fma(q4_even(w8.y), even0_1, t0_8);
      t0_8 = fma(q4_odd(w8.y), odd0_1, t0_8);
      t0_8 = fma(q4_even(w8.z), even0_2, t0_8);
      t0_8 = fma(q4_odd(w8.z), odd0_2, t0_8);
      t0_8 = fma(q4_even(w8.w), even0_3, t0_8);
      t0_8 = fma(q4_odd(w8.w), odd0_3, t0_8);
      sum0_8 = fma(scales2[0], total(t0_8) - zero0, sum0_8);
      var t0_9 = q4_even(w9.x) * even0_0;
      t0_9 = fma(q4_odd(w9.x), odd0_0, t0_9);
      t0_9 = fma(q4_even(w9.y), even0_1, t0_9);
      t0_9 = fma(q4_odd(w9.y), odd0_1, t0_9);
      t0_9 = fma(q4_even(w9.z), even0_2, t0_9);
      t0_9 = fma(q4_odd(w9.z), odd0_2, t0_9);
      t0_9 = fma(q4_even(w9.w), even0_3, t0_9);
      t0_9 = fma(q4_odd(w9.w), odd0_3, t0_9);
      sum0_9 = fma(scales2[1], total(t0_9) - zero0, sum0_9);
      var t0_10 = q4_even(w10.x) * even0_0;
      t0_10 = fma(q4_odd(w10.x), odd0_0, t0_10);
      t0_10 = fma(q4_even(w10.y), even0_1, t0_10);
      t0_10 = fma(q4_odd(w10.y), odd0_1, t0_10);
      t0_10 = fma(q4_even(w10.z), even0_2, t0_10);
      t0_10 = fma(q4_odd(w10.z), odd0_2, t0_10);
      t0_10 = fma(q4_even(w10.w), even0_3, t0_10);
      t0_10 = fma(q4_odd(w10.w), odd0_3, t0_10);
      sum0_10 = fma(scales2[2], total(t0_10) - zero0, sum0_10);
      var t0_11 = q4_even(w11.x) * even0_0;
      t0_11 = fma(q4_odd(w11.x), odd0_0, t0_11);
      t0_11 = fma(q4_even(w11.y), even0_1, t0_11);
      t0_11 = fma(q4_odd(w11.y), odd0_1, t0_11);
      t0_11 = fma(q4_even(w11.z), even0_2, t0_11);
      t0_11 = fma(q4_odd(w11.z), odd0_2, t0_11);
      t0_11 = fma(q4_even(w11.w), even0_3, t0_11);
      t0_11 = fma(q4_odd(w11.w), odd0_3, t0_11);
      sum0_11 = fma(scales2[3], total(t0_11) - zero0, sum0_11);
      var t0_12 = q4_even(w12.x) * even0_0;
      t0_12 = fma(q4_odd(w12.x), odd0_0, t0_12);
      t0_12 = fma(q4_even(w12.y), even0_1, t0_12);
      t0_12 = fma(q4_odd(w12.y), odd0_1, t0_12);
      t0_12 = fma(q4_even(w12.z), even0_2, t0_12);
      t0_12 = fma(q4_odd(w12.z), odd0_2, t0_12);
      t0_12 = fma(q4_even(w12.w), even0_3, t0_12);
      t0_12 = fma(q4_odd(w12.w), odd0_3, t0_12);
      sum0_12 = fma(scales3[0], total(t0_12) - zero0, sum0_12);
      var t0_13 = q4_even(w13.x) * even0_0;
      t0_13 = fma(q4_odd(w13.x), odd0_0, t0_13);
      t0_13 = fma(q4_even(w13.y), even0_1, t0_13);
      t0_13 = fma(q4_odd(w13.y), odd0_1, t0_13);
      t0_13 = fma(q4_even(w13.z), even0_2, t0_13);
      t0_13 = fma(q4_odd(w13.z), odd0_2, t0_13);
      t0_13 = fma(q4_even(w13.w), even0_3, t0_13);
      t0_13 = fma(q4_odd(w13.w), odd0_3, t0_13);
      sum0_13 = fma(scales3[1], total(t0_13) - zero0, sum0_13);
      var t0_14 = q4_even(w14.x) * even0_0;
      t0_14 = fma(q4_odd(w14.x), odd0_0, t0_14);
      t0_14 = fma(q4_even(w14.y), even0_1, t0_14);
      t0_14 = fma(q4_odd(w14.y), odd0_1, t0_14);
      t0_14 = fma(q4_even(w14.z), even0_2, t0_14);
      t0_14 = fma(q4_odd(w14.z), odd0_2, t0_14);
      t0_14 = fma(q4_even(w14.w), even0_3, t0_14);
      t0_14 = fma(q4_odd(w14.w), odd0_3, t0_14);
      sum0_14 = fma(scales3[2], total(t0_14) - zero0, sum0_14);
      var t0_15 = q4_even(w15.x) * even0_0;
      t0_15 = fma(q4_odd(w15.x), odd0_0, t0_15);
      t0_15 = fma(q4_even(w15.y), even0_1, t0_15);
      t0_15 = fma(q4_odd(w15.y), odd0_1, t0_15);
      t0_15 = fma(q4_even(w15.z), even0_2, t0_15);
      t0_15 = fma(q4_odd(w15.z), odd0_2, t0_15);
      t0_15 = fma(q4_even(w15.w), even0_3, t0_15);
      t0_15 = fma(q4_odd(w15.w), odd0_3, t0_15);
      sum0_15 = fma(scales3[3], total(t0_15) - zero0, sum0_15);
    }
  }
  partial[place(lane, 0u)] = sum0_0;
  partial[place(lane, 1u)] = sum0_1;
  partial[place(lane, 2u)] = sum0_2;
  partial[place(lane, 3u)] = sum0_3;
  partial[place(lane, 4u)] = sum0_4;
  partial[place(lane, 5u)] = sum0_5;
  partial[place(lane, 6u)] = sum0_6;
  partial[place(lane, 7u)] = sum0_7;
  partial[place(lane, 8u)] = sum0_8;
  partial[place(lane, 9u)] = sum0_9;
  partial[place(lane, 10u)] = sum0_10;
  partial[place(lane, 11u)] = sum0_11;
  partial[place(lane, 12u)] = sum0_12;
  partial[place(lane, 13u)] = sum0_13;
  partial[place(lane, 14u)] = sum0_14;
  partial[place(lane, 15u)] = sum0_15;
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
  let row = first_row + sum % 16u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    y[batch * params.stride + column] = result;
  }
}
