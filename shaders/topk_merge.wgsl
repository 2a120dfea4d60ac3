// Finds the {{.K}} largest elements of each row, largest first, from those that topk.wgsl found in the parts
// of the row. A workgroup processes a row in rounds. In each round it sorts the largest elements so far,
// together with as many other elements as fit in workgroup memory.
struct Params {
  rows: u32,
  row_parts: u32,
  rounds: u32,
}

@group(0) @binding(0) var<storage, read> best: array<vec2<u32>>; // [rows, row_parts, {{.K}}]: key and index
@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>; // [rows, row_parts]
@group(0) @binding(2) var<storage, read_write> values: array<u32>; // [rows, {{.K}}]: bits of floats
@group(0) @binding(3) var<storage, read_write> ids: array<u32>; // [rows, {{.K}}]
@group(0) @binding(4) var<storage, read_write> stats: array<vec4<f32>>; // [rows]: four numbers as in sums
@group(0) @binding(5) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "bits_of" .}}
{{template "sort_pairs" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  let valid = row < params.rows;
  // A row past the end has no parts, but its lanes must take part in the barriers.
  let parts = select(0u, params.row_parts, valid);
  let first = row * params.row_parts;
  var largest = -3.4028234e38;
  for (var i = lane; i < parts; i += {{.Lanes}}u) {
    largest = max(largest, sums[first + i].x);
  }
  largest = reduce_max(lane, largest);
  var total = vec3<f32>(0.0);
  for (var i = lane; i < parts; i += {{.Lanes}}u) {
    let s = sums[first + i];
    total += vec3<f32>(s.y * exp(s.x - largest), s.z, s.w);
  }
  let sum = reduce_sum(lane, total.x);
  let nans = reduce_sum(lane, total.y);
  let infinities = reduce_sum(lane, total.z);

  let n = parts * {{.K}}u;
  for (var round = 0u; round < params.rounds; round++) {
    for (var i = lane; i < {{.Tile}}u; i += {{.Lanes}}u) {
      if (round == 0u || i >= {{.K}}u) {
        let at = i + round * {{sub .Tile .K}}u;
        var pair = vec2<u32>(0u, 0xffffffffu);
        if (at < n) {
          pair = best[first * {{.K}}u + at];
        }
        keys[i] = pair.x;
        places[i] = pair.y;
      }
    }
    sort_pairs(lane);
  }
  if (valid && lane < {{.K}}u) {
    values[row * {{.K}}u + lane] = bits_of(keys[lane]);
    ids[row * {{.K}}u + lane] = places[lane];
  }
  if (valid && lane == 0u) {
    // If no element is finite, the sum is 0, and 0 replaces largest.
    stats[row] = vec4<f32>(select(0.0, largest, sum > 0.0), sum, nans, infinities);
  }
}
