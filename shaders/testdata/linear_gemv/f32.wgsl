// linear_gemv with Batch 1, Bias, Chunks 80, Eights 1, Format f32, Groups 1, Lanes 64, Rows 4: workgroup [64 1 1], 1024 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: bias
// binding 3: y (written)
// param at 0: u32 n
// param at 4: u32 first

// y = x * w' + bias for a row of x. A workgroup takes
// 4 rows of w: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// Four rows at a time: where one is taken, what is stored of the fourth after it is loaded, and on its way
// while the others are summed; behind the last row of a chunk comes the first of the next. The loop has no
// constant bounds, so that it stays one: a step fetches the code of most kernels from memory.
struct Params {
  n: u32, // rows of w
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

// What eight weights make with their columns of x is added to a sum, which is several until the end.
alias Sum = vec4<f32>;

fn add_eight(sum: Sum, w: Eight, low: vec4<f32>, high: vec4<f32>) -> Sum {
  return fma(high, w.high, fma(low, w.low, sum));
}

fn total(sum: Sum) -> f32 {
  return (sum.x + sum.y) + (sum.z + sum.w);
}

alias Row = Bits;

fn load_row(row: u32, chunk: u32) -> Row {
  return load(row, chunk);
}

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(row, chunk);
}

var<workgroup> partial: array<f32, 256>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 4u +
    (sum ^ ((lane / 8u) & 3u));
}

// Four columns of the row of x that begins at row.
fn columns(row: u32, at: u32) -> vec4<f32> {
  return x[row + at];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // What to load first waits for no params.
  // A workgroup behind the last row sums what it finds, and writes nothing.
  let group_row = flat_group(wid, groups) * 4u;
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  // The result that is this lane's in the end: what it takes beside the sums is on its way, too.
  let sum = lane % 4u;
  let row = group_row + sum % 4u;
  let column = params.first + row;
  let column_bias = bias[column];
  let x_row0 = 0u;
  let rows = min(4u, params.n - group_row);
  for (var chunk = lane; chunk < 80u; chunk += 64u) {
    let x0_0 = columns(x_row0, chunk * 2u + 0u);
    let x0_1 = columns(x_row0, chunk * 2u + 1u);
    let begin0_0 = Sum();
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + 64u, last);
      let next_row = group_row + next;
      let w0_0 = floats(row0);
      if (next_chunk < 80u) { row0 = load_near(next_row + 0u, next_chunk); }
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      var sum0_0 = total(t0_0_0);
      partial[place(lane, done + 0u)] += sum0_0;
      let w1_0 = floats(row1);
      if (next_chunk < 80u) { row1 = load_near(next_row + 1u, next_chunk); }
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      var sum0_1 = total(t0_1_0);
      partial[place(lane, done + 1u)] += sum0_1;
      let w2_0 = floats(row2);
      if (next_chunk < 80u) { row2 = load_near(next_row + 2u, next_chunk); }
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      var sum0_2 = total(t0_2_0);
      partial[place(lane, done + 2u)] += sum0_2;
      let w3_0 = floats(row3);
      if (next_chunk < 80u) { row3 = load_near(next_row + 3u, next_chunk); }
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      var sum0_3 = total(t0_3_0);
      partial[place(lane, done + 3u)] += sum0_3;
    }
  }
  workgroupBarrier();
  // 16 lanes to each of the 4 sums.
  let part = lane / 4u;
  var result = 0.0;
  for (var i = 0u; i < 4u; i++) {
    result += partial[place(i * 16u + part, sum)];
  }
  // In the place of a share that no other lane reads.
  partial[place(part, sum)] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < 16u; i++) {
    result += partial[place(i, sum)];
  }
  if (row < params.n) {
    result += column_bias;
    y[column] = result;
  }
}
