// Finds the {{.K}} largest elements in each part of each row, as keys and indices, largest first. For the
// finite elements of the part, it also computes the largest one and the sum of exp(x - largest). A workgroup
// processes a part, which has {{.Tile}} elements.
struct Params {
  parts: u32, // total number of parts, in all rows
  row_parts: u32,
  width: u32, // elements of a row
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> best: array<vec2<u32>>; // [parts, {{.K}}]: key and index
// [parts]: the largest finite element, the sum, the number of NaNs, the number of infinities
@group(0) @binding(2) var<storage, read_write> sums: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "key_of" .}}
{{template "sort_pairs" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let part = flat_group(wid, groups);
  let valid = part < params.parts;
  let base = part / params.row_parts * params.width;
  // A part past the end has no elements, but its lanes must take part in the barriers.
  let first = part % params.row_parts * {{.Tile}}u;
  let n = select(0u, min({{.Tile}}u, params.width - first), valid);
  var largest = -3.4028234e38;
  var nans = 0.0;
  var infinities = 0.0;
  for (var i = lane; i < {{.Tile}}u; i += {{.Lanes}}u) {
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
  for (var i = lane; i < n; i += {{.Lanes}}u) {
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
  if (valid && lane < {{.K}}u) {
    best[part * {{.K}}u + lane] = vec2<u32>(keys[lane], places[lane]);
  }
}
