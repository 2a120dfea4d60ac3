// argmax with Lanes 256, Value, Vec 1: workgroup [256 1 1], 2048 bytes of workgroup memory
// binding 0: x
// binding 1: y (written)
// binding 2: value (written)
// param at 0: u32 parts
// param at 4: u32 row_parts
// param at 8: u32 width
// param at 12: u32 part

// The place of the largest element of each part of each row: the first of equals, and a NaN before any
// number. A workgroup takes a part, which is a row.
struct Params {
  parts: u32, // of all rows
  row_parts: u32,
  width: u32, // elements of a row
  part: u32, // elements of a part; the last of a row may have fewer
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
// place
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> value: array<u32>; // bits of the element
@group(0) @binding(3) var<uniform> params: Params;

// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

var<workgroup> bests: array<vec2<u32>, 256>;

// Of the pairs (key, place) of the workgroup's lanes the one with the largest key, and of those the smallest
// place. Every lane must call it.
fn reduce_first_largest(lane: u32, pair: vec2<u32>) -> vec2<u32> {
  bests[lane] = pair;
  workgroupBarrier();
  for (var s = 128u; s > 0u; s >>= 1u) {
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

// Elements are compared as unsigned keys of the same order: exact, with one answer for NaN, and -0 equal to
// 0. No element has the key 0.
fn key_of(bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return 0xffffffffu;
  }
  return select(0x80000000u - magnitude, 0x80000000u + magnitude, bits == magnitude);
}

// The bits that key_of made a key of; a NaN is one without a sign, and so is a 0.
fn bits_of(key: u32) -> u32 {
  if (key == 0xffffffffu) {
    return 0x7fc00000u;
  }
  return select((0x80000000u - key) | 0x80000000u, key - 0x80000000u, key >= 0x80000000u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let part = flat_group(wid, groups);
  let valid = part < params.parts;
  let row = part / params.row_parts;
  // A part that is not there has no elements; its lanes still meet the others at the barriers.
  let first = part % params.row_parts * params.part;
  let end = select(first, min(first + params.part, params.width), valid);
  var key = 0u;
  var place = 0xffffffffu;
  for (var i = first + lane; i < end; i += 256u) {
    let k = key_of(x[row * params.width + i]);
    place = select(place, i, k > key);
    key = max(key, k);
  }
  let best = reduce_first_largest(lane, vec2<u32>(key, place));
  if (lane == 0u && valid) {
    y[part] = best.y;
    value[part] = bits_of(best.x);
  }
}
