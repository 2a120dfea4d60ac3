// y = x * w' + bias{{if .Residual}} + residual, if there is one,{{end}} for
{{- if eq .Batch 1}} a row{{else}} {{.Batch}} rows{{end}} of x. A workgroup takes
// {{.Rows}} rows of w: each lane holds its columns of x while it goes through the rows, a chunk of columns at
// a time, and what it sums for each result meets what the other lanes have once, at the end.
//
// {{.Ahead}} rows are loaded before the first is used. The loop over them has no constant bounds, so that it
// stays one: a step fetches the code of most kernels from memory.
{{- $sums := mul .Rows .Batch}}
{{- $parts := div .Lanes $sums}}
{{- $f := set . "GEMV" true "Partial" false "Rows" .Ahead
  "Columns" (printf "%du" (mul .Chunks (mul 8 .Eights)))}}
struct Params {
  m: u32, // rows of y{{if not .Residual}} and of x{{end}}
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
{{- if .Residual}}
  x_rows: u32, // as many as y has, or one that serves all
  residual_rows: u32, // likewise; 0 where there is no residual
{{- end}}
}

{{binding}} var<storage, read> x: array<vec4<f32>>;
{{- template "format_bindings" $f}}
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<f32>;
{{- end}}
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

{{template "flat_group" .}}
{{template "format" $f}}
var<workgroup> partial: array<f32, {{mul .Lanes $sums}}>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * {{$sums}}u +
    (sum ^ {{if ge $sums 32}}(lane & 31u){{else}}((lane / {{div 32 $sums}}u) & {{sub $sums 1}}u){{end}});
}

fn total(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + {{sub .Batch 1}}u) / {{.Batch}}u;
  let id = flat_group(wid, groups);
  var group_row = id * {{.Rows}}u;
  var batch0 = 0u;
  if (batches > 1u) { // dividing takes a while
    group_row = id / batches * {{.Rows}}u;
    batch0 = id % batches * {{.Batch}}u;
  }
  if (group_row >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
{{- template "gemv_begin" $f}}
{{- $x_rows := "params.m"}}{{if .Residual}}{{$x_rows = "params.x_rows"}}{{end}}
{{- range $b := .Batch}}
  let x_row{{$b}} = min(batch0 + {{$b}}u, {{$x_rows}} - 1u) * {{mul $.Chunks (mul 2 $.Eights)}}u;
{{- end}}
  let end = min(group_row + {{.Rows}}u, params.n);
{{- if eq .Chunks .Lanes}}
  {
    let chunk = lane;
{{- else}}
  for (var chunk = lane; chunk < {{.Chunks}}u; chunk += {{.Lanes}}u) {
{{- end}}
{{- range $b := .Batch}}
{{- template "gemv_x" (set $f "B" $b)}}
{{- end}}
    for (var first_row = group_row; first_row < end; first_row += {{.Ahead}}u) {
{{- range $r := .Ahead}}
      let row{{$r}} = {{if $.Ragged}}min(first_row + {{$r}}u, end - 1u){{else}}first_row + {{$r}}u{{end}};
{{- end}}
{{- template "gemv_offsets" $f}}
{{- template "gemv_scales" $f}}
{{- range $r := .Ahead}}
{{- template "gemv_load" (set $f "R" $r)}}
{{- end}}
{{- range $r := .Ahead}}
{{- $row := set $f "R" $r}}
{{- template "gemv_floats" $row}}
{{- range $b := $.Batch}}
      var sum{{$b}}_{{$r}} = 0.0;
{{- template "gemv_dot" (set $row "B" $b)}}
      partial[place(lane, first_row - group_row + {{add (mul $b $.Rows) $r}}u)]
        {{- if ne $.Chunks $.Lanes}} +{{end}}= sum{{$b}}_{{$r}};
{{- end}}
{{- end}}
    }
  }
  workgroupBarrier();
  // {{$parts}} lanes to each of the {{$sums}} sums.
  let sum = lane % {{$sums}}u;
  let part = lane / {{$sums}}u;
  var result = 0.0;
  for (var i = 0u; i < {{$sums}}u; i++) {
    result += partial[place(i * {{$parts}}u + part, sum)];
  }
{{- if gt $parts 1}}
  workgroupBarrier();
  partial[lane] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < {{$parts}}u; i++) {
    result += partial[i * {{$sums}}u + sum];
  }
{{- end}}
  let batch = batch0 + sum / {{.Rows}}u;
  let row = group_row + sum % {{.Rows}}u;
  if (batch < params.m && row < params.n) {
    let column = params.first + row;
{{- if .Bias}}
    result += bias[column];
{{- end}}
{{- if .Residual}}
    if (params.residual_rows > 0u) {
      result += residual[min(batch, params.residual_rows - 1u) * params.stride + column];
    }
{{- end}}
    y[batch * params.stride + column] = result;
  }
}
