// argmax_final with Lanes 64, Value: workgroup [64 1 1], 512 bytes of workgroup memory
// binding 0: parts
// binding 1: y (written)
// binding 2: value (written)
// param at 0: u32 rows
// param at 4: u32 row_parts

// The place of the largest element of each row, from the keys and places that argmax.wgsl found for its
// parts. A workgroup takes a row.
struct Params {
  rows: u32,
  row_parts: u32,
}

@group(0) @binding(0) var<storage, read> parts: array<vec2<u32>>; // key and place
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // place
@group(0) @binding(2) var<storage, read_write> value: array<u32>; // bits of the element
@group(0) @binding(3) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> bests: array<vec2<u32>, 64>;

// Of the pairs (key, place) of the workgroup's lanes the one with the largest key, and of those the smallest
// place. Every lane must call it.
fn reduce_first_largest(lane: u32, pair: vec2<u32>) -> vec2<u32> {
  bests[lane] = pair;
  workgroupBarrier();
  for (var s = 32u; s > 0u; s >>= 1u) {
    if (lane < s) {
      let mine = bests[lane];
      let other = bests[lane + s];
      if (other.x > mine.x || (other.x == mine.x && other.y < mine.y)) {
        bests[lane] = other;
      }
    }
    workgroupBarrier();
  }
  return bests[0];
}

// The bits that key_of made a key of; a NaN is one without a sign, and so is a 0.
fn bits_of(key: u32) -> u32 {
  if (key == 0xffffffffu) {
    return 0x7fc00000u;
  }
  return select((0x80000000u - key) | 0x80000000u, key - 0x80000000u, key >= 0x80000000u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  let valid = row < params.rows;
  let n = select(0u, params.row_parts, valid);
  var best = vec2<u32>(0u, 0xffffffffu);
  for (var i = lane; i < n; i += 64u) {
    let other = parts[row * params.row_parts + i];
    if (other.x > best.x) {
      best = other;
    }
  }
  best = reduce_first_largest(lane, best);
  if (lane == 0u && valid) {
    y[row] = best.y;
    value[row] = bits_of(best.x);
  }
}
