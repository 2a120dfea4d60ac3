// Finds the index of the largest element in each part of each row. Among equal elements the first one wins,
// and NaN is larger than any number. A workgroup searches a part{{if not .Pairs}}, which is a whole
// row{{end}}.
struct Params {
  parts: u32, // total number of parts, in all rows
  row_parts: u32,
  width: u32, // elements of a row
  part: u32, // elements of a part; the last part of a row may have fewer
}

@group(0) @binding(0) var<storage, read> x: array<{{if eq .Vec 4}}vec4<u32>{{else}}u32{{end}}>;
// {{if .Pairs}}key and {{end}}index in the row
@group(0) @binding(1) var<storage, read_write> y: array<{{if .Pairs}}vec2<u32>{{else}}u32{{end}}>;
{{- if .Value}}
@group(0) @binding(2) var<storage, read_write> value: array<u32>; // bits of the element
@group(0) @binding(3) var<uniform> params: Params;
{{- else}}
@group(0) @binding(2) var<uniform> params: Params;
{{- end}}

{{template "flat_group" .}}
{{template "reduce_first_largest" .}}
{{template "key_of" .}}
{{- if .Value}}{{template "bits_of" .}}{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let part = flat_group(wid, groups);
  let valid = part < params.parts;
  let row = part / params.row_parts;
  // A part past the end has no elements, but its lanes must take part in the barriers.
  let first = part % params.row_parts * params.part;
  let end = select(first, min(first + params.part, params.width), valid);
  var key = 0u;
  var place = 0xffffffffu;
{{- if eq .Vec 4}}
  for (var i = first / 4u + lane; i < end / 4u; i += {{.Lanes}}u) {
    let bits = x[row * (params.width / 4u) + i];
    for (var j = 0u; j < 4u; j++) {
      let k = key_of(bits[j]);
      place = select(place, 4u * i + j, k > key);
      key = max(key, k);
    }
  }
{{- else}}
  for (var i = first + lane; i < end; i += {{.Lanes}}u) {
    let k = key_of(x[row * params.width + i]);
    place = select(place, i, k > key);
    key = max(key, k);
  }
{{- end}}
  let best = reduce_first_largest(lane, vec2<u32>(key, place));
  if (lane == 0u && valid) {
    y[part] = best{{if not .Pairs}}.y{{end}};
{{- if .Value}}
    value[part] = bits_of(best.x);
{{- end}}
  }
}
