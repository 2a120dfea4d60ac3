// topk/k8: K 8, Lanes 256, Tile 1024
// workgroup [256 1 1], 9216 bytes of workgroup memory
// bindings: x, best (written), sums (written)
// params: u32 parts, u32 row_parts, u32 width

// Finds the 8 largest elements in each part of each row, as keys and indices, largest first. For the
// finite elements of the part, it also computes the largest one and the sum of exp(x - largest). A workgroup
// processes a part, which has 1024 elements.
struct Params {
  parts: u32, // total number of parts, in all rows
  row_parts: u32,
  width: u32, // elements of a row
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> best: array<vec2<u32>>; // [parts, 8]: key and index
// [parts]: the largest finite element, the sum, the number of NaNs, the number of infinities
@group(0) @binding(2) var<storage, read_write> sums: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Returns the index of a workgroup in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}

// Converts the bits of an f32 to an unsigned key. Elements are compared by their keys, which is exact: -0
// equals 0, and NaN is larger than any number. No element has the key 0.
fn key_of(bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return 0xffffffffu;
  }
  return select(0x80000000u - magnitude, 0x80000000u + magnitude, bits == magnitude);
}

// The pairs of a key and an index (place) that a workgroup sorts at a time.
var<workgroup> keys: array<u32, 1024>;
var<workgroup> places: array<u32, 1024>;

// Sorts the pairs: the largest key first, and the smallest place first among equal keys. Every lane must call
// this function. Source: the bitonic sorter of Batcher, Sorting networks and their applications (1968).
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

// Returns, to every lane, the sum of v over all lanes of the workgroup. Every lane must call this function.
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

// Returns, to every lane, the largest v of all lanes of the workgroup. Every lane must call this function.
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
  let part = flat_group(wid, groups);
  let valid = part < params.parts;
  let base = part / params.row_parts * params.width;
  // A part past the end has no elements, but its lanes must take part in the barriers.
  let first = part % params.row_parts * 1024u;
  let n = select(0u, min(1024u, params.width - first), valid);
  var largest = -3.4028234e38;
  var nans = 0.0;
  var infinities = 0.0;
  for (var i = lane; i < 1024u; i += 256u) {
    keys[i] = 0u; // no element has this key
    places[i] = 0xffffffffu;
    if (i < n) {
      let bits = x[base + first + i];
      let magnitude = bits & 0x7fffffffu;
      keys[i] = key_of(bits);
      places[i] = first + i;
      if (magnitude < 0x7f800000u) {
        largest = max(largest, bitcast<f32>(bits));
      } else if (magnitude == 0x7f800000u) {
        infinities += 1.0;
      } else {
        nans += 1.0;
      }
    }
  }
  largest = reduce_max(lane, largest);
  var sum = 0.0;
  for (var i = lane; i < n; i += 256u) {
    let bits = x[base + first + i];
    if ((bits & 0x7fffffffu) < 0x7f800000u) {
      sum += exp(bitcast<f32>(bits) - largest);
    }
  }
  sum = reduce_sum(lane, sum);
  nans = reduce_sum(lane, nans);
  infinities = reduce_sum(lane, infinities);
  sort_pairs(lane);
  if (valid && lane == 0u) {
    sums[part] = vec4<f32>(largest, sum, nans, infinities);
  }
  if (valid && lane < 8u) {
    best[part * 8u + lane] = vec2<u32>(keys[lane], places[lane]);
  }
}
