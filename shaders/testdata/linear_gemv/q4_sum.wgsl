// linear_gemv with Batch 1, Chunks 36, Eights 4, Eps 1e-06, Format q4, Gated gelu, Given 288, GroupEights 4, Groups 1, HalfScales, Lanes 40, Made 36, N 4608, Norm, Rows 4, Spread, SpreadMade, SpreadStream, Sum 32: workgroup [40 1 1], 1588 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: squares
// binding 4: stream
// binding 5: norm
// binding 6: y (written)
// binding 7: made (written)

// y = gelu(x * gate') * (x * up') for a row of x. w has the rows of gate, then those of up. A workgroup takes
// 4 rows of each: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// Four rows at a time: where one is taken, what is stored of the fourth after it is loaded, and on its way
// while the others are summed; behind the last row of a chunk comes the first of the next.

const n = 4608u; // rows of gate and of up
const eps = 1e-06f; // of the norms before

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 36]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;

// [n / 4, groups, 4]
@group(0) @binding(2) var<storage, read> scales: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> squares: array<f32>; // of the norm's row, sums of them
@group(0) @binding(4) var<storage, read> stream: array<vec4<f32>>; // what x by its scale is added to
@group(0) @binding(5) var<storage, read> norm: array<vec4<f32>>; // its weights, of the sum's, spread
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> made: array<vec4<f32>>; // the sum

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}

alias Bits = u32;

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

alias Row = vec4<u32>;

fn load_row(row: u32, chunk: u32) -> Row {
  return weights[row * 36u + chunk];
}

struct Scales {
  scale: vec2<u32>,
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * 36u + chunk / 1u]);
}

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(row, chunk);
}

var<workgroup> partial: array<f32, 320>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 8u +
    (sum ^ ((lane / 4u) & 7u));
}

// The scale of a norm waits until all is summed: the squares are summed beside the products.
var<private> squared_sum: f32;
var<workgroup> squared: array<f32, 40>;
var<workgroup> part_squared: array<f32, 5>;

// The scale of the norm that is part of the sum is needed first.
var<private> sum_scale: f32;
var<workgroup> added: array<f32, 32>;
var<private> maker: u32; // the workgroup: each stores some 32 columns of the sum

// Four columns of the row of x that begins at row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  let place = spread(at, 36u);
  let base = stream[place];
  let v = fma(x[place], vec4<f32>(sum_scale), base);
  if (at / 8u == maker) {
    made[place] = v;
  }
  squared_sum += dot(v, v);
  return v * norm[place];
}

@compute @workgroup_size(40)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // What to load first waits for no params.
  // A workgroup behind the last row sums what it finds, and writes nothing.
  let group_row = flat_group(wid, groups) * 4u;
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  var scale_bits = load_scales(group_row, lane);
  let square0 = squares[lane % 32u + 0u];
  let square1 = squares[lane % 32u + 32u];
  let square2 = squares[lane % 32u + 64u];
  let square3 = squares[lane % 32u + 96u];
  let square4 = squares[lane % 32u + 128u];
  let square5 = squares[lane % 32u + 160u];
  let square6 = squares[lane % 32u + 192u];
  let square7 = squares[lane % 32u + 224u];
  let square8 = squares[lane % 32u + 256u];
  // The result that is this lane's in the end: what it takes beside the sums is on its way, too.
  let sum = lane % 8u;
  let row = group_row + sum % 4u;
  let column = row;
  let x_row0 = 0u;
  let rows = 8u;
  var addend = 0.0;
  addend += square0;
  addend += square1;
  addend += square2;
  addend += square3;
  addend += square4;
  addend += square5;
  addend += square6;
  addend += square7;
  addend += square8;
  if (lane < 32u) {
    added[lane] = addend;
  }
  workgroupBarrier();
  addend = 0.0;
  for (var i = 0u; i < 32u; i++) {
    addend += added[i];
  }
  sum_scale = inverseSqrt(addend / 1152.0 + eps);
  maker = group_row / 4u;
  for (var chunk = lane; chunk < 36u; chunk += 40u) {
    let plain0_0 = columns(x_row0, chunk * 8u + 0u);
    let plain0_1 = columns(x_row0, chunk * 8u + 1u);
    let plain0_2 = columns(x_row0, chunk * 8u + 2u);
    let plain0_3 = columns(x_row0, chunk * 8u + 3u);
    let plain0_4 = columns(x_row0, chunk * 8u + 4u);
    let plain0_5 = columns(x_row0, chunk * 8u + 5u);
    let plain0_6 = columns(x_row0, chunk * 8u + 6u);
    let plain0_7 = columns(x_row0, chunk * 8u + 7u);
    let all0_0 = plain0_0 + plain0_1 + plain0_2 + plain0_3 + plain0_4 + plain0_5 + plain0_6 + plain0_7;
    let ones0_0 = dot(all0_0, vec4<f32>(1.0));
    let begin0_0 = Sum(-8.0 * ones0_0, 0.0);
    let x0_0 = plain0_0 * turn;
    let x0_1 = plain0_1 * turn;
    let x0_2 = plain0_2 * turn;
    let x0_3 = plain0_3 * turn;
    let x0_4 = plain0_4 * turn;
    let x0_5 = plain0_5 * turn;
    let x0_6 = plain0_6 * turn;
    let x0_7 = plain0_7 * turn;
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + 40u, last);
      let next_row = group_row + next + select(0u, n - 4u, next >= 4u);
      let scale0 = vec4<f32>(unpack2x16float(scale_bits.scale.x), unpack2x16float(scale_bits.scale.y));
      if (next_chunk < 36u) { scale_bits = load_scales(next_row, next_chunk); }
      let w0_0 = halves(row0[0]);
      let w0_1 = halves(row0[1]);
      let w0_2 = halves(row0[2]);
      let w0_3 = halves(row0[3]);
      if (next_chunk < 36u) { row0 = load_near(next_row + 0u, next_chunk); }
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      t0_0_0 = add_eight(t0_0_0, w0_1, x0_2, x0_3);
      t0_0_0 = add_eight(t0_0_0, w0_2, x0_4, x0_5);
      t0_0_0 = add_eight(t0_0_0, w0_3, x0_6, x0_7);
      var sum0_0 = total(t0_0_0) * scale0[0];
      partial[place(lane, done + 0u)] += sum0_0;
      let w1_0 = halves(row1[0]);
      let w1_1 = halves(row1[1]);
      let w1_2 = halves(row1[2]);
      let w1_3 = halves(row1[3]);
      if (next_chunk < 36u) { row1 = load_near(next_row + 1u, next_chunk); }
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      t0_1_0 = add_eight(t0_1_0, w1_1, x0_2, x0_3);
      t0_1_0 = add_eight(t0_1_0, w1_2, x0_4, x0_5);
      t0_1_0 = add_eight(t0_1_0, w1_3, x0_6, x0_7);
      var sum0_1 = total(t0_1_0) * scale0[1];
      partial[place(lane, done + 1u)] += sum0_1;
      let w2_0 = halves(row2[0]);
      let w2_1 = halves(row2[1]);
      let w2_2 = halves(row2[2]);
      let w2_3 = halves(row2[3]);
      if (next_chunk < 36u) { row2 = load_near(next_row + 2u, next_chunk); }
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      t0_2_0 = add_eight(t0_2_0, w2_1, x0_2, x0_3);
      t0_2_0 = add_eight(t0_2_0, w2_2, x0_4, x0_5);
      t0_2_0 = add_eight(t0_2_0, w2_3, x0_6, x0_7);
      var sum0_2 = total(t0_2_0) * scale0[2];
      partial[place(lane, done + 2u)] += sum0_2;
      let w3_0 = halves(row3[0]);
      let w3_1 = halves(row3[1]);
      let w3_2 = halves(row3[2]);
      let w3_3 = halves(row3[3]);
      if (next_chunk < 36u) { row3 = load_near(next_row + 3u, next_chunk); }
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      t0_3_0 = add_eight(t0_3_0, w3_1, x0_2, x0_3);
      t0_3_0 = add_eight(t0_3_0, w3_2, x0_4, x0_5);
      t0_3_0 = add_eight(t0_3_0, w3_3, x0_6, x0_7);
      var sum0_3 = total(t0_3_0) * scale0[3];
      partial[place(lane, done + 3u)] += sum0_3;
    }
  }
  squared[lane] = squared_sum;
  workgroupBarrier();
  // 5 lanes to each of the 8 sums.
  let part = lane / 8u;
  var result = 0.0;
  squared_sum = 0.0;
  for (var i = 0u; i < 8u; i++) {
    result += partial[place(i * 5u + part, sum)];
    squared_sum += squared[i * 5u + part];
  }
  // In the place of a share that no other lane reads.
  partial[place(part, sum)] = result;
  if (sum == 0u) {
    part_squared[part] = squared_sum;
  }
  workgroupBarrier();
  if (part > 0u || sum >= 4u) {
    return;
  }
  for (var i = 1u; i < 5u; i++) {
    result += partial[place(i, sum)];
    squared_sum += part_squared[i];
  }
  var up = 0.0;
  for (var i = 0u; i < 5u; i++) {
    up += partial[place(i, sum + 4u)];
  }
  if (row < n) {
    let scale = inverseSqrt(squared_sum / 1152.0 + eps);
    result *= scale;
    up *= scale;
    let v = result;
    result = (0.5 * v * (1.0 + tanh(clamp(0.7978845608 * fma(0.044715 * v * v, v, v), -15.0, 15.0)))) * up;
    y[column] = result;
  }
}
