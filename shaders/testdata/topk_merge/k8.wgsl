// topk_merge with K 8, Lanes 256, Tile 1024: workgroup [256 1 1], 9216 bytes of workgroup memory
// binding 0: best
// binding 1: sums
// binding 2: values (written)
// binding 3: ids (written)
// binding 4: stats (written)
// param at 0: u32 rows
// param at 4: u32 row_parts
// param at 8: u32 rounds

// The 8 largest elements of each row, best first, from what topk.wgsl found for its parts. A workgroup
// takes a row: it keeps the best so far and sorts them with as many others as there is room for, round by
// round.
struct Params {
  rows: u32,
  row_parts: u32,
  rounds: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>; // [rows, row_parts, 8]: key and place
@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, row_parts]
@group(0) @binding(2) var<storage, read_write> values: array<u32>; // [rows, 8]: bits of floats
@group(0) @binding(3) var<storage, read_write> ids: array<u32>; // [rows, 8]
@group(0) @binding(4) var<storage, read_write> stats: array<vec4<f32>>; // [rows], as sums has them
@group(0) @binding(5) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// The bits that key_of made a key of; a NaN is one without a sign, and so is a 0.
fn bits_of(key: u32) -> u32 {
  if (key == 0xffffffffu) {
    return 0x7fc00000u;
  }
  return select((0x80000000u - key) | 0x80000000u, key - 0x80000000u, key >= 0x80000000u);
}

// Pairs of a key and a place, as many as a workgroup sorts at a time.
var<workgroup> keys: array<u32, 1024>;
var<workgroup> places: array<u32, 1024>;

// Sorts the pairs: the largest key first, and of equal keys the smallest place. Every lane must call it.
// Source: Batcher, Sorting networks and their applications (1968), the bitonic one.
fn sort_pairs(lane: u32) {
  workgroupBarrier();
  for (var size = 2u; size <= 1024u; size <<= 1u) {
    for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
      for (var t = lane; t < 512u; t += 256u) {
        let i = 2u * t - (t & (stride - 1u));
        let j = i + stride;
        let a = vec2<u32>(keys[i], places[i]);
        let b = vec2<u32>(keys[j], places[j]);
        let wrong = b.x > a.x || (b.x == a.x && b.y < a.y);
        if (wrong == ((i & size) == 0u)) {
          keys[i] = b.x;
          places[i] = b.y;
          keys[j] = a.x;
          places[j] = a.y;
        }
      }
      workgroupBarrier();
    }
  }
}

var<workgroup> partial: array<f32, 256>;

// The sum of v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_sum(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 128u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] += partial[lane + s];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
}

// The largest v over the workgroup's lanes, for each lane. Every lane must call it.
fn reduce_max(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = 128u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = max(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  let valid = row < params.rows;
  // A row that is not there has no parts; its lanes still meet the others at the barriers.
  let parts = select(0u, params.row_parts, valid);
  let first = row * params.row_parts;
  var largest = -3.4028234e38;
  for (var i = lane; i < parts; i += 256u) {
    largest = max(largest, sums[first + i].x);
  }
  largest = reduce_max(lane, largest);
  var total = vec3<f32>(0.0);
  for (var i = lane; i < parts; i += 256u) {
    let s = sums[first + i];
    total += vec3<f32>(s.y * exp(s.x - largest), s.z, s.w);
  }
  let sum = reduce_sum(lane, total.x);
  let nans = reduce_sum(lane, total.y);
  let infinities = reduce_sum(lane, total.z);

  let n = parts * 8u;
  for (var round = 0u; round < params.rounds; round++) {
    for (var i = lane; i < 1024u; i += 256u) {
      if (round == 0u || i >= 8u) {
        let at = i + round * 1016u;
        var pair = vec2<u32>(0u, 0xffffffffu);
        if (at < n) {
          pair = best[first * 8u + at];
        }
        keys[i] = pair.x;
        places[i] = pair.y;
      }
    }
    sort_pairs(lane);
  }
  if (valid && lane < 8u) {
    values[row * 8u + lane] = bits_of(keys[lane]);
    ids[row * 8u + lane] = places[lane];
  }
  if (valid && lane == 0u) {
    // Without a finite element there is nothing to sum.
    stats[row] = vec4<f32>(select(0.0, largest, sum > 0.0), sum, nans, infinities);
  }
}
