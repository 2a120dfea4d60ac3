// y = rows of a table, or of a range of its rows. An invocation gives eight columns of a row.
{{- $f := set . "GEMV" false "Wide" false "Columns" "params.width"}}
struct Params {
  n: u32, // invocations: eights of all rows asked for
  width: u32, // of a row
  vocabulary: u32,
  first: u32, // row of the table that the range begins with
  rows: u32, // of the range
}
{{template "format_bindings" $f}}
{{binding}} var<storage, read> indices: array<i32>;
{{binding}} var<storage, read_write> y: array<{{if .Partial}}f32{{else}}vec4<f32>{{end}}>;
{{binding}} var<uniform> params: Params;

{{template "flat_thread" .}}
{{template "format" $f}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let eights = {{if .Partial}}(params.width + 7u){{else}}params.width{{end}} / 8u;
  // An id that the table does not have must not read outside of it; the host is the one to report it.
  let id = u32(clamp(indices[i / eights], 0, i32(params.vocabulary) - 1));
  if (id < params.first || id - params.first >= params.rows) {
    return; // another range has it
  }
  let row = id - params.first;
  let eight = i % eights;
  let w = floats(load(row, eight));
{{- if defined "format_scale"}}
  let its_scale = scale(row, eight);
{{- end}}
{{- if defined "format_zero"}}
  let its_zero = zero(row, eight);
{{- end}}
  let low = {{template "weights" (set . "Of" "w.low" "By" "its_")}};
  let high = {{template "weights" (set . "Of" "w.high" "By" "its_")}};
{{- if .Partial}}
  let at = i / eights * params.width + 8u * eight;
  let left = params.width - 8u * eight;
{{- range $c := 8}}
  if (left > {{$c}}u) {
    y[at + {{$c}}u] = {{if lt $c 4}}low[{{$c}}]{{else}}high[{{sub $c 4}}]{{end}};
  }
{{- end}}
{{- else}}
  y[2u * i] = low;
  y[2u * i + 1u] = high;
{{- end}}
}
