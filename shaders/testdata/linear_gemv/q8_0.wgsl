// linear_gemv with Batch 1, Bias, Chunks 80, Eights 2, Eps 1e-06, Format q8_0, GroupEights 4, Groups 1, HalfScales, Lanes 64, N 2050, Norm, Ragged, Residual, Rows 8: workgroup [64 1 1], 2336 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: scales
// binding 3: bias
// binding 4: residual
// binding 5: norm
// binding 6: y (written)

// y = x * w' + bias + residual for a row of x. A workgroup takes
// 8 rows of w: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// Four rows at a time: where one is taken, what is stored of the fourth after it is loaded, and on its way
// while the others are summed; behind the last row of a chunk comes the first of the next. The loop has no
// constant bounds, so that it stays one: a step fetches the code of most kernels from memory.

const n = 2050u; // rows of w
const eps = 1e-06f; // of the norm before

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>; // [n, 80]

// [n / 4, groups, 4]
@group(0) @binding(2) var<storage, read> scales: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read> norm: array<vec4<f32>>; // its weights
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

alias Bits = vec2<u32>;

const turn = vec4<f32>(0x1p24f);

fn halves(b: Bits) -> vec4<u32> {
  let high = b >> vec2<u32>(8u);
  return (vec4<u32>(b.x, high.x, b.y, high.y) & vec4<u32>(0x00ff00ffu)) ^ vec4<u32>(0x00800080u);
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
  return weights[row * 80u + chunk];
}

struct Scales {
  scale: vec2<u32>,
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * 40u + chunk / 2u]);
}

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(min(row, n - 1u), chunk);
}

var<workgroup> partial: array<f32, 512>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 8u +
    (sum ^ ((lane / 4u) & 7u));
}

// The scale of a norm waits until all is summed: the squares are summed beside the products.
var<private> squared_sum: f32;
var<workgroup> squared: array<f32, 64>;
var<workgroup> part_squared: array<f32, 8>;

// Four columns of the row of x that begins at row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  let v = x[row + at];
  squared_sum += dot(v, v);
  return v * norm[at];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // What to load first waits for no params.
  // A workgroup behind the last row sums what it finds, and writes nothing.
  let group_row = flat_group(wid, groups) * 8u;
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  var scale_bits = load_scales(group_row, lane);
  // The result that is this lane's in the end: what it takes beside the sums is on its way, too.
  let sum = lane % 8u;
  let row = group_row + sum % 8u;
  let column = row;
  let column_bias = bias[column];
  let beside = residual[column];
  let x_row0 = 0u;
  let rows = min(8u, n - group_row);
  for (var chunk = lane; chunk < 80u; chunk += 64u) {
    let plain0_0 = columns(x_row0, chunk * 4u + 0u);
    let plain0_1 = columns(x_row0, chunk * 4u + 1u);
    let plain0_2 = columns(x_row0, chunk * 4u + 2u);
    let plain0_3 = columns(x_row0, chunk * 4u + 3u);
    let all0_0 = plain0_0 + plain0_1 + plain0_2 + plain0_3;
    let ones0_0 = dot(all0_0, vec4<f32>(1.0));
    let begin0_0 = Sum(-128.0 * ones0_0, 0.0);
    let x0_0 = plain0_0 * turn;
    let x0_1 = plain0_1 * turn;
    let x0_2 = plain0_2 * turn;
    let x0_3 = plain0_3 * turn;
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + 64u, last);
      let next_row = group_row + next;
      let scale0 = vec4<f32>(unpack2x16float(scale_bits.scale.x), unpack2x16float(scale_bits.scale.y));
      if (next_chunk < 80u) { scale_bits = load_scales(next_row, next_chunk); }
      let w0_0 = halves(row0.xy);
      let w0_1 = halves(row0.zw);
      if (next_chunk < 80u) { row0 = load_near(next_row + 0u, next_chunk); }
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      t0_0_0 = add_eight(t0_0_0, w0_1, x0_2, x0_3);
      var sum0_0 = total(t0_0_0) * scale0[0];
      partial[place(lane, done + 0u)] += sum0_0;
      let w1_0 = halves(row1.xy);
      let w1_1 = halves(row1.zw);
      if (next_chunk < 80u) { row1 = load_near(next_row + 1u, next_chunk); }
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      t0_1_0 = add_eight(t0_1_0, w1_1, x0_2, x0_3);
      var sum0_1 = total(t0_1_0) * scale0[1];
      partial[place(lane, done + 1u)] += sum0_1;
      let w2_0 = halves(row2.xy);
      let w2_1 = halves(row2.zw);
      if (next_chunk < 80u) { row2 = load_near(next_row + 2u, next_chunk); }
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      t0_2_0 = add_eight(t0_2_0, w2_1, x0_2, x0_3);
      var sum0_2 = total(t0_2_0) * scale0[2];
      partial[place(lane, done + 2u)] += sum0_2;
      let w3_0 = halves(row3.xy);
      let w3_1 = halves(row3.zw);
      if (next_chunk < 80u) { row3 = load_near(next_row + 3u, next_chunk); }
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      t0_3_0 = add_eight(t0_3_0, w3_1, x0_2, x0_3);
      var sum0_3 = total(t0_3_0) * scale0[3];
      partial[place(lane, done + 3u)] += sum0_3;
    }
  }
  squared[lane] = squared_sum;
  workgroupBarrier();
  // 8 lanes to each of the 8 sums.
  let part = lane / 8u;
  var result = 0.0;
  squared_sum = 0.0;
  for (var i = 0u; i < 8u; i++) {
    result += partial[place(i * 8u + part, sum)];
    squared_sum += squared[i * 8u + part];
  }
  // In the place of a share that no other lane reads.
  partial[place(part, sum)] = result;
  if (sum == 0u) {
    part_squared[part] = squared_sum;
  }
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 8u; i++) {
    result += partial[place(i, sum)];
    squared_sum += part_squared[i];
  }
  if (row < n) {
    let scale = inverseSqrt(squared_sum / 1280.0 + eps);
    result *= scale;
    result += column_bias;
    result += beside;
    y[column] = result;
  }
}
