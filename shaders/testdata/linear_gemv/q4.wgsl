// linear_gemv/q4: Batch 1, Chunks 64, Eights 4, Format q4, GroupEights 4, Groups 1, HalfScales, Lanes 64, N 2048, Rows 16
// workgroup [64 1 1], 4096 bytes of workgroup memory
// bindings: x, weights, scales, y (written)
// params: 

// y = x * w' + bias for a row of x. A workgroup processes
// 16 rows of w. A lane loads a chunk of the columns
// of x, and keeps it in registers while it processes all these rows. In the end, the partial results of all
// lanes are added up.
//
// A lane processes four rows at a time. When it uses the stored bits of a row, it starts to load the row that
// is four rows later, so that this load runs while the next rows are processed. After the last row of a
// chunk, it loads the first row of the next chunk.

const n = 2048u; // rows of w

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 64]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;

// [n / 4, groups, 4]
@group(0) @binding(2) var<storage, read> scales: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Returns the index of a workgroup in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

alias Bits = u32;

const turn = vec4<f32>(0x1p24f, 0x1p20f, 0x1p24f, 0x1p20f);

fn halves(w: Bits) -> vec4<u32> {
  let high = w >> 8u;
  return vec4<u32>(w & 0x000f000fu, w & 0x00f000f0u, high & 0x000f000fu, high & 0x00f000f0u);
}

// Converts the two f16 numbers in a word to floats. They are subnormal.
fn small(h: u32) -> vec2<f32> {
  return unpack2x16float(h);
}

// add_eight adds the products of 8 weights and 8 columns of x to a sum. A Sum consists of several partial
// sums, which total adds up.
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
  return weights[row * 64u + chunk];
}

struct Scales {
  scale: vec2<u32>,
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  return Scales(scales[row / 4u * 64u + chunk / 1u]);
}

// Loads the stored bits of a chunk of a row. Past the last row, it loads the last row.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(row, chunk);
}

var<workgroup> partial: array<f32, 1024>;

// Returns the index in partial of a lane's partial result for a sum. Lanes that write the same sum, or read
// neighboring sums, use different memory banks.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 16u +
    (sum ^ ((lane / 2u) & 15u));
}

// Returns four columns of the row of x that starts at index row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  return x[row + at];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // The first loads do not wait for params.
  // A workgroup past the last row computes meaningless sums, and writes nothing.
  let group_row = flat_group(wid, groups) * 16u;
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  var scale_bits = load_scales(group_row, lane);
  // The result that this lane computes in the end. Other numbers that it needs for this are loaded now, too.
  let sum = lane % 16u;
  let row = group_row + sum % 16u;
  let column = row;
  let x_row0 = 0u;
  let rows = 16u;
  {
    let chunk = lane;
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
      let next = select(done + 4u, done, last); // the last rows are loaded again
      let next_row = group_row + next;
      let scale0 = vec4<f32>(unpack2x16float(scale_bits.scale.x), unpack2x16float(scale_bits.scale.y));
      scale_bits = load_scales(next_row, chunk);
      let w0_0 = halves(row0[0]);
      let w0_1 = halves(row0[1]);
      let w0_2 = halves(row0[2]);
      let w0_3 = halves(row0[3]);
      row0 = load_near(next_row + 0u, chunk);
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      t0_0_0 = add_eight(t0_0_0, w0_1, x0_2, x0_3);
      t0_0_0 = add_eight(t0_0_0, w0_2, x0_4, x0_5);
      t0_0_0 = add_eight(t0_0_0, w0_3, x0_6, x0_7);
      var sum0_0 = total(t0_0_0) * scale0[0];
      partial[place(lane, done + 0u)] = sum0_0;
      let w1_0 = halves(row1[0]);
      let w1_1 = halves(row1[1]);
      let w1_2 = halves(row1[2]);
      let w1_3 = halves(row1[3]);
      row1 = load_near(next_row + 1u, chunk);
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      t0_1_0 = add_eight(t0_1_0, w1_1, x0_2, x0_3);
      t0_1_0 = add_eight(t0_1_0, w1_2, x0_4, x0_5);
      t0_1_0 = add_eight(t0_1_0, w1_3, x0_6, x0_7);
      var sum0_1 = total(t0_1_0) * scale0[1];
      partial[place(lane, done + 1u)] = sum0_1;
      let w2_0 = halves(row2[0]);
      let w2_1 = halves(row2[1]);
      let w2_2 = halves(row2[2]);
      let w2_3 = halves(row2[3]);
      row2 = load_near(next_row + 2u, chunk);
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      t0_2_0 = add_eight(t0_2_0, w2_1, x0_2, x0_3);
      t0_2_0 = add_eight(t0_2_0, w2_2, x0_4, x0_5);
      t0_2_0 = add_eight(t0_2_0, w2_3, x0_6, x0_7);
      var sum0_2 = total(t0_2_0) * scale0[2];
      partial[place(lane, done + 2u)] = sum0_2;
      let w3_0 = halves(row3[0]);
      let w3_1 = halves(row3[1]);
      let w3_2 = halves(row3[2]);
      let w3_3 = halves(row3[3]);
      row3 = load_near(next_row + 3u, chunk);
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      t0_3_0 = add_eight(t0_3_0, w3_1, x0_2, x0_3);
      t0_3_0 = add_eight(t0_3_0, w3_2, x0_4, x0_5);
      t0_3_0 = add_eight(t0_3_0, w3_3, x0_6, x0_7);
      var sum0_3 = total(t0_3_0) * scale0[3];
      partial[place(lane, done + 3u)] = sum0_3;
    }
  }
  workgroupBarrier();
  // 4 lanes add up each of the 16 sums.
  let part = lane / 16u;
  var result = 0.0;
  for (var i = 0u; i < 16u; i++) {
    result += partial[place(i * 4u + part, sum)];
  }
  // Store the result at an index that no other lane has read.
  partial[place(part, sum)] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 4u; i++) {
    result += partial[place(i, sum)];
  }
  if (row < n) {
    y[column] = result;
  }
}
