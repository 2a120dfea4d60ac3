// Looks up rows of a table, or of a range of its rows{{if .Scaled}}, and multiplies them by a factor{{end}}.
// An invocation computes 8 columns of a row.
{{- if .Each}} For a single row it
// also computes the element-wise part of the next norm.
{{- end}}
{{- $f := set . "GEMV" false "Wide" false "Columns" "params.width"}}
struct Params {
  n: u32, // invocations: one for each 8 columns of all looked-up rows
  width: u32, // columns of a row
  vocabulary: u32,
  first: u32, // first row of the range
  rows: u32, // number of rows of the range
}
{{template "format_bindings" $f}}
{{binding}} var<storage, read> indices: array<i32>;
{{- if .Scaled}}
{{binding}} var<storage, read> factor: array<f32>; // factor of all elements
{{- end}}
{{binding}} var<storage, read_write> y: array<{{if .Partial}}f32{{else}}vec4<f32>{{end}}>;
{{- if .Each}}
{{binding}} var<storage, read> next_weight: array<vec4<f32>>; // weights of the norm of y
{{binding}} var<storage, read_write> weighted: array<vec4<f32>>; // y times these weights
{{binding}} var<storage, read_write> next_squares: array<f32>; // sums of squares of {{.Each}} columns of y
{{- end}}
{{binding}} var<uniform> params: Params;

{{template "flat_thread" .}}
{{template "format" $f}}
{{- if .Each}}
{{- template "spread" .}}

var<workgroup> squares: array<f32, {{mul 2 .Lanes}}>; // sums of squares of four columns each
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>
  {{- if .Each}},
  @builtin(local_invocation_index) lane: u32{{end}}) {
{{- if .Each}}
  let thread = flat_thread(gid, groups);
  let i = min(thread, params.n - 1u); // invocations past the row must reach the barrier
{{- else}}
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
{{- end}}
  let eights = {{if .Partial}}(params.width + 7u){{else}}params.width{{end}} / 8u;
  // An id that is not in the table must not read other memory. The host must check ids and report errors.
  let id = u32(clamp(indices[i / eights], 0, i32(params.vocabulary) - 1));
{{- if not .Each}}
  if (id < params.first || id - params.first >= params.rows) {
    return; // another range has this row
  }
{{- end}}
  let row = id - params.first;
  let eight = i % eights;
  let w = floats(load(row, eight));
{{- if defined "format_scale"}}
  let its_scale = scale(row, eight);
{{- end}}
{{- if defined "format_zero"}}
  let its_zero = zero(row, eight);
{{- end}}
{{- $by := ""}}{{if .Scaled}}{{$by = "factor[0] * "}}{{end}}
  let low = {{$by}}{{template "weights" (set . "Of" "w.low" "By" "its_")}};
  let high = {{$by}}{{template "weights" (set . "Of" "w.high" "By" "its_")}};
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
{{- if .Each}}
  weighted[spread(2u * i, params.width / 32u)] = low * next_weight[2u * i];
  weighted[spread(2u * i + 1u, params.width / 32u)] = high * next_weight[2u * i + 1u];
  squares[2u * lane] = select(0.0, dot(low, low), thread < params.n);
  squares[2u * lane + 1u] = select(0.0, dot(high, high), thread < params.n);
  workgroupBarrier();
{{- $sums := div (mul 8 .Lanes) .Each}}
  let first = (thread - lane) / {{.Lanes}}u * {{$sums}}u; // index of the workgroup's first sum
  for (var s = lane; s < {{$sums}}u && (first + s) * {{.Each}}u < params.width; s += {{.Lanes}}u) {
    var sum = 0.0;
    for (var four = 0u; four < {{div .Each 4}}u; four++) {
      sum += squares[s * {{div .Each 4}}u + four];
    }
    next_squares[first + s] = sum;
  }
{{- end}}
}
