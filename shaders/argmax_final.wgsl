// Finds the index of the largest element in each row, from the keys and indices that argmax.wgsl found for
// the parts of the row. A workgroup processes a row.
struct Params {
  rows: u32,
  row_parts: u32,
}

@group(0) @binding(0) var<storage, read> parts: array<vec2<u32>>; // key and index in the row
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // index in the row
{{- if .Value}}
@group(0) @binding(2) var<storage, read_write> value: array<u32>; // bits of the element
@group(0) @binding(3) var<uniform> params: Params;
{{- else}}
@group(0) @binding(2) var<uniform> params: Params;
{{- end}}

{{template "flat_group" .}}
{{template "reduce_first_largest" .}}
{{- if .Value}}{{template "bits_of" .}}{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  let valid = row < params.rows;
  let n = select(0u, params.row_parts, valid);
  var best = vec2<u32>(0u, 0xffffffffu);
  for (var i = lane; i < n; i += {{.Lanes}}u) {
    let other = parts[row * params.row_parts + i];
    if (other.x > best.x) {
      best = other;
    }
  }
  best = reduce_first_largest(lane, best);
  if (lane == 0u && valid) {
    y[row] = best.y;
{{- if .Value}}
    value[row] = bits_of(best.x);
{{- end}}
  }
}
