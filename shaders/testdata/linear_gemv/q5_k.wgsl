// linear_gemv with Batch 1, Chunks 64, Eights 4, Format q5_k, Groups 1, Lanes 64, N 2048, Rows 16: workgroup [64 1 1], 4096 bytes of workgroup memory
// binding 0: x
// binding 1: weights
// binding 2: fifths
// binding 3: scales
// binding 4: supers
// binding 5: y (written)

// y = x * w' + bias for a row of x. A workgroup takes
// 16 rows of w: each lane holds its columns of x while it goes through
// the rows, a chunk of columns at a time, and what it sums for each result meets what the other lanes have
// once, at the end.
//
// Four rows at a time: where one is taken, what is stored of the fourth after it is loaded, and on its way
// while the others are summed; behind the last row of a chunk comes the first of the next.

const n = 2048u; // rows of w

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
// [n, 64]
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> fifths: array<u32>; // [n, columns / 32]

@group(0) @binding(3) var<storage, read> scales: array<u32>; // [n / 4, twos / 2, 3]

// [n / 4, columns / 256, 2, 4]
@group(0) @binding(4) var<storage, read> supers: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
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

struct Row {
  own: vec4<u32>,
  fifth: u32,
}

fn load_row(row: u32, chunk: u32) -> Row {
  let at = row * 64u + chunk;
  return Row(weights[at], fifths[at]);
}

fn first_sixes(words: vec2<u32>) -> vec4<f32> {
  let a = unpack2x16float((words.x & 0x000f000fu) | ((words.y << 4u) & 0x00300030u) | 0x64006400u);
  let b = unpack2x16float(((words.x >> 8u) & 0x000f000fu) | (words.y & 0x00300030u) | 0x64006400u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - 1024.0;
}

fn second_sixes(words: vec2<u32>) -> vec4<f32> {
  let a = unpack2x16float((words.x & 0x00f000f0u) | ((words.y << 6u) & 0x03000300u) | 0x54005400u);
  let b = unpack2x16float(((words.x >> 8u) & 0x00f000f0u) | ((words.y << 2u) & 0x03000300u) | 0x54005400u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - 64.0;
}

struct Scales {
  sixes: vec2<u32>,
  supers: vec4<u32>,
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  let two = row / 4u * 64u + chunk;
  let at = two / 2u * 3u;
  return Scales(vec2<u32>(scales[at + (two & 1u)], scales[at + 2u]), supers[row / 4u * 8u + chunk / 8u]);
}

// What is stored of a row, or of the last one.
fn load_near(row: u32, chunk: u32) -> Row {
  return load_row(row, chunk);
}

var<workgroup> partial: array<f32, 1024>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * 16u +
    (sum ^ ((lane / 2u) & 15u));
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
  let group_row = flat_group(wid, groups) * 16u;
  var row0 = load_near(group_row + 0u, lane);
  var row1 = load_near(group_row + 1u, lane);
  var row2 = load_near(group_row + 2u, lane);
  var row3 = load_near(group_row + 3u, lane);
  var scale_bits = load_scales(group_row, lane);
  // The result that is this lane's in the end: what it takes beside the sums is on its way, too.
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
    let begin0_0 = Sum();
    let x0_0 = plain0_0 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p24f, 0x1p24f);
    let x0_1 = plain0_1 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p24f, 0x1p24f);
    let x0_2 = plain0_2 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p23f, 0x1p19f);
    let x0_3 = plain0_3 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p23f, 0x1p19f);
    let x0_4 = plain0_4 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p22f, 0x1p20f);
    let x0_5 = plain0_5 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p22f, 0x1p20f);
    let x0_6 = plain0_6 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p21f, 0x1p19f);
    let x0_7 = plain0_7 * vec4<f32>(0x1p24f, 0x1p19f, 0x1p21f, 0x1p19f);
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
      let next = select(done + 4u, done, last); // the last are loaded again
      let next_row = group_row + next;
      let super_scale = vec4<f32>(unpack2x16float(scale_bits.supers.x),
        unpack2x16float(scale_bits.supers.y));
      let super_zero = vec4<f32>(unpack2x16float(scale_bits.supers.z),
        unpack2x16float(scale_bits.supers.w));
      let sixes = vec2<u32>(scale_bits.sixes.x, scale_bits.sixes.y >> ((chunk & 1u) * 8u));
      let scale0 = first_sixes(sixes) * super_scale;
      let zero0 = second_sixes(sixes) * -super_zero;
      scale_bits = load_scales(next_row, chunk);
      let w0_0 = vec4<u32>(row0.own[0] & 0x001f001fu, row0.own[0] & 0x03e003e0u,
        (row0.own[0] >> 10u) & 0x001f001fu, row0.fifth & 0x001f001fu);
      let w0_1 = vec4<u32>(row0.own[1] & 0x001f001fu, row0.own[1] & 0x03e003e0u,
        (row0.own[1] >> 9u) & 0x003e003eu, row0.fifth & 0x03e003e0u);
      let w0_2 = vec4<u32>(row0.own[2] & 0x001f001fu, row0.own[2] & 0x03e003e0u,
        (row0.own[2] >> 8u) & 0x007c007cu, (row0.fifth >> 6u) & 0x01f001f0u);
      let w0_3 = vec4<u32>(row0.own[3] & 0x001f001fu, row0.own[3] & 0x03e003e0u,
        (row0.own[3] >> 7u) & 0x00f800f8u,
        ((row0.own[0] >> 10u) & 0x00200020u) | ((row0.own[1] >> 9u) & 0x00400040u) |
        ((row0.own[2] >> 8u) & 0x00800080u) | ((row0.own[3] >> 7u) & 0x01000100u) |
        ((row0.fifth >> 6u) & 0x02000200u));
      row0 = load_near(next_row + 0u, chunk);
      var t0_0_0 = begin0_0;
      t0_0_0 = add_eight(t0_0_0, w0_0, x0_0, x0_1);
      t0_0_0 = add_eight(t0_0_0, w0_1, x0_2, x0_3);
      t0_0_0 = add_eight(t0_0_0, w0_2, x0_4, x0_5);
      t0_0_0 = add_eight(t0_0_0, w0_3, x0_6, x0_7);
      var sum0_0 = total(t0_0_0) * scale0[0];
      sum0_0 += ones0_0 * zero0[0];
      partial[place(lane, done + 0u)] = sum0_0;
      let w1_0 = vec4<u32>(row1.own[0] & 0x001f001fu, row1.own[0] & 0x03e003e0u,
        (row1.own[0] >> 10u) & 0x001f001fu, row1.fifth & 0x001f001fu);
      let w1_1 = vec4<u32>(row1.own[1] & 0x001f001fu, row1.own[1] & 0x03e003e0u,
        (row1.own[1] >> 9u) & 0x003e003eu, row1.fifth & 0x03e003e0u);
      let w1_2 = vec4<u32>(row1.own[2] & 0x001f001fu, row1.own[2] & 0x03e003e0u,
        (row1.own[2] >> 8u) & 0x007c007cu, (row1.fifth >> 6u) & 0x01f001f0u);
      let w1_3 = vec4<u32>(row1.own[3] & 0x001f001fu, row1.own[3] & 0x03e003e0u,
        (row1.own[3] >> 7u) & 0x00f800f8u,
        ((row1.own[0] >> 10u) & 0x00200020u) | ((row1.own[1] >> 9u) & 0x00400040u) |
        ((row1.own[2] >> 8u) & 0x00800080u) | ((row1.own[3] >> 7u) & 0x01000100u) |
        ((row1.fifth >> 6u) & 0x02000200u));
      row1 = load_near(next_row + 1u, chunk);
      var t0_1_0 = begin0_0;
      t0_1_0 = add_eight(t0_1_0, w1_0, x0_0, x0_1);
      t0_1_0 = add_eight(t0_1_0, w1_1, x0_2, x0_3);
      t0_1_0 = add_eight(t0_1_0, w1_2, x0_4, x0_5);
      t0_1_0 = add_eight(t0_1_0, w1_3, x0_6, x0_7);
      var sum0_1 = total(t0_1_0) * scale0[1];
      sum0_1 += ones0_0 * zero0[1];
      partial[place(lane, done + 1u)] = sum0_1;
      let w2_0 = vec4<u32>(row2.own[0] & 0x001f001fu, row2.own[0] & 0x03e003e0u,
        (row2.own[0] >> 10u) & 0x001f001fu, row2.fifth & 0x001f001fu);
      let w2_1 = vec4<u32>(row2.own[1] & 0x001f001fu, row2.own[1] & 0x03e003e0u,
        (row2.own[1] >> 9u) & 0x003e003eu, row2.fifth & 0x03e003e0u);
      let w2_2 = vec4<u32>(row2.own[2] & 0x001f001fu, row2.own[2] & 0x03e003e0u,
        (row2.own[2] >> 8u) & 0x007c007cu, (row2.fifth >> 6u) & 0x01f001f0u);
      let w2_3 = vec4<u32>(row2.own[3] & 0x001f001fu, row2.own[3] & 0x03e003e0u,
        (row2.own[3] >> 7u) & 0x00f800f8u,
        ((row2.own[0] >> 10u) & 0x00200020u) | ((row2.own[1] >> 9u) & 0x00400040u) |
        ((row2.own[2] >> 8u) & 0x00800080u) | ((row2.own[3] >> 7u) & 0x01000100u) |
        ((row2.fifth >> 6u) & 0x02000200u));
      row2 = load_near(next_row + 2u, chunk);
      var t0_2_0 = begin0_0;
      t0_2_0 = add_eight(t0_2_0, w2_0, x0_0, x0_1);
      t0_2_0 = add_eight(t0_2_0, w2_1, x0_2, x0_3);
      t0_2_0 = add_eight(t0_2_0, w2_2, x0_4, x0_5);
      t0_2_0 = add_eight(t0_2_0, w2_3, x0_6, x0_7);
      var sum0_2 = total(t0_2_0) * scale0[2];
      sum0_2 += ones0_0 * zero0[2];
      partial[place(lane, done + 2u)] = sum0_2;
      let w3_0 = vec4<u32>(row3.own[0] & 0x001f001fu, row3.own[0] & 0x03e003e0u,
        (row3.own[0] >> 10u) & 0x001f001fu, row3.fifth & 0x001f001fu);
      let w3_1 = vec4<u32>(row3.own[1] & 0x001f001fu, row3.own[1] & 0x03e003e0u,
        (row3.own[1] >> 9u) & 0x003e003eu, row3.fifth & 0x03e003e0u);
      let w3_2 = vec4<u32>(row3.own[2] & 0x001f001fu, row3.own[2] & 0x03e003e0u,
        (row3.own[2] >> 8u) & 0x007c007cu, (row3.fifth >> 6u) & 0x01f001f0u);
      let w3_3 = vec4<u32>(row3.own[3] & 0x001f001fu, row3.own[3] & 0x03e003e0u,
        (row3.own[3] >> 7u) & 0x00f800f8u,
        ((row3.own[0] >> 10u) & 0x00200020u) | ((row3.own[1] >> 9u) & 0x00400040u) |
        ((row3.own[2] >> 8u) & 0x00800080u) | ((row3.own[3] >> 7u) & 0x01000100u) |
        ((row3.fifth >> 6u) & 0x02000200u));
      row3 = load_near(next_row + 3u, chunk);
      var t0_3_0 = begin0_0;
      t0_3_0 = add_eight(t0_3_0, w3_0, x0_0, x0_1);
      t0_3_0 = add_eight(t0_3_0, w3_1, x0_2, x0_3);
      t0_3_0 = add_eight(t0_3_0, w3_2, x0_4, x0_5);
      t0_3_0 = add_eight(t0_3_0, w3_3, x0_6, x0_7);
      var sum0_3 = total(t0_3_0) * scale0[3];
      sum0_3 += ones0_0 * zero0[3];
      partial[place(lane, done + 3u)] = sum0_3;
    }
  }
  workgroupBarrier();
  // 4 lanes to each of the 16 sums.
  let part = lane / 16u;
  var result = 0.0;
  for (var i = 0u; i < 16u; i++) {
    result += partial[place(i * 4u + part, sum)];
  }
  // In the place of a share that no other lane reads.
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
