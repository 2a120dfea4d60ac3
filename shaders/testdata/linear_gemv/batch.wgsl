// linear_gemv with Batch 4, Bias, Chunks 144, Eights 1, Format q4, GroupEights 8, Lanes 64, Ragged, Rows 16, Unpack integer: workgroup [64 1 1], 16384 bytes of workgroup memory
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
// 16 rows of w: each lane holds its columns of x while it goes through the rows, a chunk of columns at
// a time, and what it sums for each result meets what the other lanes have once, at the end.
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

// A word holds eight weights q of 4 bits, column k of them at bits 4k. q4_even and q4_odd turn the even and
// the odd columns into floats zero + step * (q - 8), with the zeros and the step below: the cheapest form, of
// which users take the zero off once for many weights.

// By conversion from integers, without any error.
const even_zero = 8.0;
const odd_zero = 8.0;
const odd_step = 1.0;

fn q4_even(w: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) & vec4<u32>(15u));
}

fn q4_odd(w: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(w >> 4u, w >> 12u, w >> 20u, w >> 28u) & vec4<u32>(15u));
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + 3u) / 4u;
  let id = flat_group(wid, groups);
  let first_row = id / batches * 16u;
  let batch0 = id % batches * 4u;
  if (first_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let x_row0 = min(batch0 + 0u, params.m - 1u) * 288u;
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
  let x_row1 = min(batch0 + 1u, params.m - 1u) * 288u;
  var sum1_0 = 0.0;
  var sum1_1 = 0.0;
  var sum1_2 = 0.0;
  var sum1_3 = 0.0;
  var sum1_4 = 0.0;
  var sum1_5 = 0.0;
  var sum1_6 = 0.0;
  var sum1_7 = 0.0;
  var sum1_8 = 0.0;
  var sum1_9 = 0.0;
  var sum1_10 = 0.0;
  var sum1_11 = 0.0;
  var sum1_12 = 0.0;
  var sum1_13 = 0.0;
  var sum1_14 = 0.0;
  var sum1_15 = 0.0;
  let x_row2 = min(batch0 + 2u, params.m - 1u) * 288u;
  var sum2_0 = 0.0;
  var sum2_1 = 0.0;
  var sum2_2 = 0.0;
  var sum2_3 = 0.0;
  var sum2_4 = 0.0;
  var sum2_5 = 0.0;
  var sum2_6 = 0.0;
  var sum2_7 = 0.0;
  var sum2_8 = 0.0;
  var sum2_9 = 0.0;
  var sum2_10 = 0.0;
  var sum2_11 = 0.0;
  var sum2_12 = 0.0;
  var sum2_13 = 0.0;
  var sum2_14 = 0.0;
  var sum2_15 = 0.0;
  let x_row3 = min(batch0 + 3u, params.m - 1u) * 288u;
  var sum3_0 = 0.0;
  var sum3_1 = 0.0;
  var sum3_2 = 0.0;
  var sum3_3 = 0.0;
  var sum3_4 = 0.0;
  var sum3_5 = 0.0;
  var sum3_6 = 0.0;
  var sum3_7 = 0.0;
  var sum3_8 = 0.0;
  var sum3_9 = 0.0;
  var sum3_10 = 0.0;
  var sum3_11 = 0.0;
  var sum3_12 = 0.0;
  var sum3_13 = 0.0;
  var sum3_14 = 0.0;
  var sum3_15 = 0.0;
  let row0 = min(first_row + 0u, params.n - 1u);
  let row1 = min(first_row + 1u, params.n - 1u);
  let row2 = min(first_row + 2u, params.n - 1u);
  let row3 = min(first_row + 3u, params.n - 1u);
  let row4 = min(first_row + 4u, params.n - 1u);
  let row5 = min(first_row + 5u, params.n - 1u);
  let row6 = min(first_row + 6u, params.n - 1u);
  let row7 = min(first_row + 7u, params.n - 1u);
  let row8 = min(first_row + 8u, params.n - 1u);
  let row9 = min(first_row + 9u, params.n - 1u);
  let row10 = min(first_row + 10u, params.n - 1u);
  let row11 = min(first_row + 11u, params.n - 1u);
  let row12 = min(first_row + 12u, params.n - 1u);
  let row13 = min(first_row + 13u, params.n - 1u);
  let row14 = min(first_row + 14u, params.n - 1u);
  let row15 = min(first_row + 15u, params.n - 1u);
  let w_row0 = row0 * 144u;
  let w_row1 = row1 * 144u;
  let w_row2 = row2 * 144u;
  let w_row3 = row3 * 144u;
  let w_row4 = row4 * 144u;
  let w_row5 = row5 * 144u;
  let w_row6 = row6 * 144u;
  let w_row7 = row7 * 144u;
  let w_row8 = row8 * 144u;
  let w_row9 = row9 * 144u;
  let w_row10 = row10 * 144u;
  let w_row11 = row11 * 144u;
  let w_row12 = row12 * 144u;
  let w_row13 = row13 * 144u;
  let w_row14 = row14 * 144u;
  let w_row15 = row15 * 144u;
  let scale_row0 = (first_row / 4u + 0u) *
    18u;
  let scale_row1 = (first_row / 4u + 1u) *
    18u;
  let scale_row2 = (first_row / 4u + 2u) *
    18u;
  let scale_row3 = (first_row / 4u + 3u) *
    18u;
  for (var chunk = lane; chunk < 144u; chunk += 64u) {
    let u0_0 = x[x_row0 + chunk * 2u + 0u];
    let v0_0 = x[x_row0 + chunk * 2u + 1u];
    let even0_0 = vec4<f32>(u0_0.xz, v0_0.xz);
    let odd0_0 = vec4<f32>(u0_0.yw, v0_0.yw) / odd_step;
    let zero0 = total((even0_0) * even_zero +
      (odd0_0) * odd_zero);
    let u1_0 = x[x_row1 + chunk * 2u + 0u];
    let v1_0 = x[x_row1 + chunk * 2u + 1u];
    let even1_0 = vec4<f32>(u1_0.xz, v1_0.xz);
    let odd1_0 = vec4<f32>(u1_0.yw, v1_0.yw) / odd_step;
    let zero1 = total((even1_0) * even_zero +
      (odd1_0) * odd_zero);
    let u2_0 = x[x_row2 + chunk * 2u + 0u];
    let v2_0 = x[x_row2 + chunk * 2u + 1u];
    let even2_0 = vec4<f32>(u2_0.xz, v2_0.xz);
    let odd2_0 = vec4<f32>(u2_0.yw, v2_0.yw) / odd_step;
    let zero2 = total((even2_0) * even_zero +
      (odd2_0) * odd_zero);
    let u3_0 = x[x_row3 + chunk * 2u + 0u];
    let v3_0 = x[x_row3 + chunk * 2u + 1u];
    let even3_0 = vec4<f32>(u3_0.xz, v3_0.xz);
    let odd3_0 = vec4<f32>(u3_0.yw, v3_0.yw) / odd_step;
    let zero3 = total((even3_0) * even_zero +
      (odd3_0) * odd_zero);
    let scale_group = chunk / 8u;
    let scales0 = scales[scale_row0 + scale_group];
    let scales1 = scales[scale_row1 + scale_group];
    let scales2 = scales[scale_row2 + scale_group];
    let scales3 = scales[scale_row3 + scale_group];
    {
      let w0 = weights[w_row0 + chunk];
      let w1 = weights[w_row1 + chunk];
      let w2 = weights[w_row2 + chunk];
      let w3 = weights[w_row3 + chunk];
      let w4 = weights[w_row4 + chunk];
      let w5 = weights[w_row5 + chunk];
      let w6 = weights[w_row6 + chunk];
      let w7 = weights[w_row7 + chunk];
      let e0 = q4_even(w0);
      let o0 = q4_odd(w0);
      let t0_0 = fma(o0, odd0_0, e0 * even0_0);
      sum0_0 = fma(scales0[0], total(t0_0) - zero0, sum0_0);
      let t1_0 = fma(o0, odd1_0, e0 * even1_0);
      sum1_0 = fma(scales0[0], total(t1_0) - zero1, sum1_0);
      let t2_0 = fma(o0, odd2_0, e0 * even2_0);
      sum2_0 = fma(scales0[0], total(t2_0) - zero2, sum2_0);
      let t3_0 = fma(o0, odd3_0, e0 * even3_0);
      sum3_0 = fma(scales0[0], total(t3_0) - zero3, sum3_0);
      let e1 = q4_even(w1);
      let o1 = q4_odd(w1);
      let t0_1 = fma(o1, odd0_0, e1 * even0_0);
      sum0_1 = fma(scales0[1], total(t0_1) - zero0, sum0_1);
      let t1_1 = fma(o1, odd1_0, e1 * even1_0);
      sum1_1 = fma(scales0[1], total(t1_1) - zero1, sum1_1);
      let t2_1 = fma(o1, odd2_0, e1 * even2_0);
      sum2_1 = fma(scales0[1], total(t2_1) - zero2, sum2_1);
      let t3_1 = fma(o1, odd3_0, e1 * even3_0);
      sum3_1 = fma(scales0[1], total(t3_1) - zero3, sum3_1);
      let e2 = q4_even(w2);
      let o2 = q4_odd(w2);
      let t0_2 = fma(o2, odd0_0, e2 * even0_0);
      sum0_2 = fma(scales0[2], total(t0_2) - zero0, sum0_2);
      let t1_2 = fma(o2, odd1_0, e2 * even1_0);
      sum1_2 = fma(scales0[2], total(t1_2) - zero1, sum1_2);
      let t2_2 = fma(o2, odd2_0, e2 * even2_0);
      sum2_2 = fma(scales0[2], total(t2_2) - zero2, sum2_2);
      let t3_2 = fma(o2, odd3_0, e2 * even3_0);
      sum3_2 = fma(scales0[2], total(t3_2) - zero3, sum3_2);
      let e3 = q4_even(w3);
      let o3 = q4_odd(w3);
      let t0_3 = fma(o3, odd0_0, e3 * even0_0);
      sum0_3 = fma(scales0[3], total(t0_3) - zero0, sum0_3);
      let t1_3 = fma(o3, odd1_0, e3 * even1_0);
      sum1_3 = fma(scales0[3], total(t1_3) - zero1, sum1_3);
      let t2_3 = fma(o3, odd2_0, e3 * even2_0);
      sum2_3 = fma(scales0[3], total(t2_3) - zero2, sum2_3);
      let t3_3 = fma(o3, odd3_0, e3 * even3_0);
      sum3_3 = fma(scales0[3], total(t3_3) - zero3, sum3_3);
      let e4 = q4_even(w4);
      let o4 = q4_odd(w4);
      let t0_4 = fma(o4, odd0_0, e4 * even0_0);
      sum0_4 = fma(scales1[0], total(t0_4) - zero0, sum0_4);
      let t1_4 = fma(o4, odd1_0, e4 * even1_0);
      sum1_4 = fma(scales1[0], total(t1_4) - zero1, sum1_4);
      let t2_4 = fma(o4, odd2_0, e4 * even2_0);
      sum2_4 = fma(scales1[0], total(t2_4) - zero2, sum2_4);
      let t3_4 = fma(o4, odd3_0, e4 * even3_0);
      sum3_4 = fma(scales1[0], total(t3_4) - zero3, sum3_4);
      let e5 = q4_even(w5);
      let o5 = q4_odd(w5);
      let t0_5 = fma(o5, odd0_0, e5 * even0_0);
      sum0_5 = fma(scales1[1], total(t0_5) - zero0, sum0_5);
      let t1_5 = fma(o5, odd1_0, e5 * even1_0);
      sum1_5 = fma(scales1[1], total(t1_5) - zero1, sum1_5);
      let t2_5 = fma(o5, odd2_0, e5 * even2_0);
      sum2_5 = fma(scales1[1], total(t2_5) - zero2, sum2_5);
      let t3_5 = fma(o5, odd3_0, e5 * even3_0);
      sum3_5 = fma(scales1[1], total(t3_5) - zero3, sum3_5);
      let e6 = q4_even(w6);
      let o6 = q4_odd(w6);
      let t0_6 = fma(o6, odd0_0, e6 * even0_0);
      sum0_6 = fma(scales1[2], total(t0_6) - zero0, sum0_6);
      let t1_6 = fma(o6, odd1_0, e6 * even1_0);
      sum1_6 = fma(scales1[2], total(t1_6) - zero1, sum1_6);
      let t2_6 = fma(o6, odd2_0, e6 * even2_0);
      sum2_6 = fma(scales1[2], total(t2_6) - zero2, sum2_6);
      let t3_6 = fma(o6, odd3_0, e6 * even3_0);
      sum3_6 = fma(scales1[2], total(t3_6) - zero3, sum3_6);
      let e7 = q4_even(w7);
      let o7 = q4_odd(w7);
      let t0_7 = fma(o7, odd0_0, e7 * even0_0);
      sum0_7 = fma(scales1[3], total(t0_7) - zero0, sum0_7);
      let t1_7 = fma(o7, odd1_0, e7 * even1_0);
      sum1_7 = fma(scales1[3], total(t1_7) - zero1, sum1_7);
      let t2_7 = fma(o7, odd2_0, e7 * even2_0);
      sum2_7 = fma(scales1[3], total(t2_7) - zero2, sum2_7);
      let t3_7 = fma(o7, odd3_0, e7 * even3_0);
      sum3_7 = fma(scales1[3], total(t3_7) - zero3, sum3_7);
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
      let e8 = q4_even(w8);
      let o8 = q4_odd(w8);
      let t0_8 = fma(o8, odd0_0, e8 * even0_0);
      sum0_8 = fma(scales2[0], total(t0_8) - zero0, sum0_8);
      let t1_8 = fma(o8, odd1_0, e8 * even1_0);
      sum1_8 = fma(scales2[0], total(t1_8) - zero1, sum1_8);
      let t2_8 = fma(o8, odd2_0, e8 * even2_0);
      sum2_8 = fma(scales2[0], total(t2_8) - zero2, sum2_8);
      let t3_8 = fma(o8, odd3_0, e8 * even3_0);
      sum3_8 = fma(scales2[0], total(t3_8) - zero3, sum3_8);
      let e9 = q4_even(w9);
      let o9 = q4_odd(w9);
      let t0_9 = fma(o9, odd0_0, e9 * even0_0);
      sum0_9 = fma(scales2[1], total(t0_9) - zero0, sum0_9);
      let t1_9 = fma(o9, odd1_0, e9 * even1_0);
      sum1_9 = fma(scales2[1], total(t1_9) - zero1, sum1_9);
      let t2_9 = fma(o9, odd2_0, e9 * even2_0);
      sum2_9 = fma(scales2[1], total(t2_9) - zero2, sum2_9);
      let t3_9 = fma(o9, odd3_0, e9 * even3_0);
      sum3_9 = fma(scales2[1], total(t3_9) - zero3, sum3_9);
      let e10 = q4_even(w10);
      let o10 = q4_odd(w10);
      let t0_10 = fma(o10, odd0_0, e10 * even0_0);
      sum0_10 = fma(scales2[2], total(t0_10) - zero0, sum0_10);
      let t1_10 = fma(o10, odd1_0, e10 * even1_0);
      sum1_10 = fma(scales2[2], total(t1_10) - zero1, sum1_10);
      let t2_10 = fma(o10, odd2_0, e10 * even2_0);
      sum2_10 = fma(scales2[2], total(t2_10) - zero2, sum2_10);
      let t3_10 = fma(o10, odd3_0, e10 * even3_0);
      sum3_10 = fma(scales2[2], total(t3_10) - zero3, sum3_10);
      let e11 = q4_even(w11);
      let o11 = q4_odd(w11);
      let t0_11 = fma(o11, odd0_0, e11 * even0_0);
      sum0_11 = fma(scales2[3], total(t0_11) - zero0, sum0_11);
      let t1_11 = fma(o11, odd1_0, e11 * even1_0);
      sum1_11 = fma(scales2[3], total(t1_11) - zero1, sum1_11);
      let t2_11 = fma(o11, odd2_0, e11 * even2_0);
      sum2_11 = fma(scales2[3], total(t2_11) - zero2, sum2_11);
      let t3_11 = fma(o11, odd3_0, e11 * even3_0);
      sum3_11 = fma(scales2[3], total(t3_11) - zero3, sum3_11);
      let e12 = q4_even(w12);
      let o12 = q4_odd(w12);
      let t0_12 = fma(o12, odd0_0, e12 * even0_0);
      sum0_12 = fma(scales3[0], total(t0_12) - zero0, sum0_12);
      let t1_12 = fma(o12, odd1_0, e12 * even1_0);
      sum1_12 = fma(scales3[0], total(t1_12) - zero1, sum1_12);
      let t2_12 = fma(o12, odd2_0, e12 * even2_0);
      sum2_12 = fma(scales3[0], total(t2_12) - zero2, sum2_12);
      let t3_12 = fma(o12, odd3_0, e12 * even3_0);
      sum3_12 = fma(scales3[0], total(t3_12) - zero3, sum3_12);
      let e13 = q4_even(w13);
      let o13 = q4_odd(w13);
      let t0_13 = fma(o13, odd0_0, e13 * even0_0);
      sum0_13 = fma(scales3[1], total(t0_13) - zero0, sum0_13);
      let t1_13 = fma(o13, odd1_0, e13 * even1_0);
      sum1_13 = fma(scales3[1], total(t1_13) - zero1, sum1_13);
      let t2_13 = fma(o13, odd2_0, e13 * even2_0);
      sum2_13 = fma(scales3[1], total(t2_13) - zero2, sum2_13);
      let t3_13 = fma(o13, odd3_0, e13 * even3_0);
      sum3_13 = fma(scales3[1], total(t3_13) - zero3, sum3_13);
      let e14 = q4_even(w14);
      let o14 = q4_odd(w14);
      let t0_14 = fma(o14, odd0_0, e14 * even0_0);
      sum0_14 = fma(scales3[2], total(t0_14) - zero0, sum0_14);
      let t1_14 = fma(o14, odd1_0, e14 * even1_0);
      sum1_14 = fma(scales3[2], total(t1_14) - zero1, sum1_14);
      let t2_14 = fma(o14, odd2_0, e14 * even2_0);
      sum2_14 = fma(scales3[2], total(t2_14) - zero2, sum2_14);
      let t3_14 = fma(o14, odd3_0, e14 * even3_0);
      sum3_14 = fma(scales3[2], total(t3_14) - zero3, sum3_14);
      let e15 = q4_even(w15);
      let o15 = q4_odd(w15);
      let t0_15 = fma(o15, odd0_0, e15 * even0_0);
      sum0_15 = fma(scales3[3], total(t0_15) - zero0, sum0_15);
      let t1_15 = fma(o15, odd1_0, e15 * even1_0);
      sum1_15 = fma(scales3[3], total(t1_15) - zero1, sum1_15);
      let t2_15 = fma(o15, odd2_0, e15 * even2_0);
      sum2_15 = fma(scales3[3], total(t2_15) - zero2, sum2_15);
      let t3_15 = fma(o15, odd3_0, e15 * even3_0);
      sum3_15 = fma(scales3[3], total(t3_15) - zero3, sum3_15);
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
  partial[place(lane, 16u)] = sum1_0;
  partial[place(lane, 17u)] = sum1_1;
  partial[place(lane, 18u)] = sum1_2;
  partial[place(lane, 19u)] = sum1_3;
  partial[place(lane, 20u)] = sum1_4;
  partial[place(lane, 21u)] = sum1_5;
  partial[place(lane, 22u)] = sum1_6;
  partial[place(lane, 23u)] = sum1_7;
  partial[place(lane, 24u)] = sum1_8;
  partial[place(lane, 25u)] = sum1_9;
  partial[place(lane, 26u)] = sum1_10;
  partial[place(lane, 27u)] = sum1_11;
  partial[place(lane, 28u)] = sum1_12;
  partial[place(lane, 29u)] = sum1_13;
  partial[place(lane, 30u)] = sum1_14;
  partial[place(lane, 31u)] = sum1_15;
  partial[place(lane, 32u)] = sum2_0;
  partial[place(lane, 33u)] = sum2_1;
  partial[place(lane, 34u)] = sum2_2;
  partial[place(lane, 35u)] = sum2_3;
  partial[place(lane, 36u)] = sum2_4;
  partial[place(lane, 37u)] = sum2_5;
  partial[place(lane, 38u)] = sum2_6;
  partial[place(lane, 39u)] = sum2_7;
  partial[place(lane, 40u)] = sum2_8;
  partial[place(lane, 41u)] = sum2_9;
  partial[place(lane, 42u)] = sum2_10;
  partial[place(lane, 43u)] = sum2_11;
  partial[place(lane, 44u)] = sum2_12;
  partial[place(lane, 45u)] = sum2_13;
  partial[place(lane, 46u)] = sum2_14;
  partial[place(lane, 47u)] = sum2_15;
  partial[place(lane, 48u)] = sum3_0;
  partial[place(lane, 49u)] = sum3_1;
  partial[place(lane, 50u)] = sum3_2;
  partial[place(lane, 51u)] = sum3_3;
  partial[place(lane, 52u)] = sum3_4;
  partial[place(lane, 53u)] = sum3_5;
  partial[place(lane, 54u)] = sum3_6;
  partial[place(lane, 55u)] = sum3_7;
  partial[place(lane, 56u)] = sum3_8;
  partial[place(lane, 57u)] = sum3_9;
  partial[place(lane, 58u)] = sum3_10;
  partial[place(lane, 59u)] = sum3_11;
  partial[place(lane, 60u)] = sum3_12;
  partial[place(lane, 61u)] = sum3_13;
  partial[place(lane, 62u)] = sum3_14;
  partial[place(lane, 63u)] = sum3_15;
  workgroupBarrier();
  // 1 lanes to each of the 64 sums.
  let sum = lane % 64u;
  let part = lane / 64u;
  var result = 0.0;
  for (var i = 0u; i < 64u; i++) {
    result += partial[place(i * 1u + part, sum)];
  }
  let batch = batch0 + sum / 16u;
  let row = first_row + sum % 16u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
    result += bias[column];
    y[batch * params.stride + column] = result;
  }
}
