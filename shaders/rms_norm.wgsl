// A workgroup normalizes a row: y = x * inverseSqrt(mean(x^2) + eps) * weight
{{- if .Residual}} + residual{{end}}.
{{- if .Both}}
// The workgroups for the rows of other come after those for the rows of x.
{{- end}}
{{- $x := "base"}}{{if .Residual}}{{$x = "x_base"}}{{end}}
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  rows: u32,{{if .Both}} // rows of x and other together{{end}}
  width: u32, // elements
  eps: f32,
{{- if .Both}}
  first: u32, // elements of x; later elements are those of other
{{- end}}
{{- if .Residual}}
  skip: u32, // row of x and of residual from which row 0 of y is computed
  x_rows: u32, // as many rows as residual, or a single row that is used for all rows
  residual_rows: u32, // as many rows as x, or a single row that is used for all rows
{{- end}}
}

{{binding}} var<storage, read> x: array<{{$T}}>;
{{binding}} var<storage, read> weight: array<{{$T}}>;
{{binding}} var<storage, read_write> y: array<{{$T}}>;
{{- if .Both}}
{{binding}} var<storage, read> other: array<{{$T}}>;
{{binding}} var<storage, read> other_weight: array<{{$T}}>;
{{binding}} var<storage, read_write> other_y: array<{{$T}}>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<{{$T}}>;
{{- end}}
{{- if .Each}}
{{binding}} var<storage, read> next_weight: array<vec4<f32>>; // weights of the norm of y, which has one row
{{binding}} var<storage, read_write> weighted: array<vec4<f32>>; // y times these weights
{{binding}} var<storage, read_write> next_squares: array<f32>; // sums of squares of {{.Each}} columns of y
{{- end}}
{{binding}} var<uniform> params: Params;

{{template "flat_group" .}}
{{- if .Each}}
{{- template "spread" .}}
{{- end}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{- if .Both}}
// Returns element e of x followed by other.
fn element(e: u32) -> {{$T}} {
  let of_x = params.first{{if eq .Vec 4}} / 4u{{end}};
  if (e < of_x) {
    return x[e];
  }
  return other[e - of_x];
}

// Stores element e of the result, which is element i of its row. v is the normalized element before it is
// multiplied by the weight.
fn put(e: u32, i: u32, v: {{$T}}) {
  let of_x = params.first{{if eq .Vec 4}} / 4u{{end}};
  if (e < of_x) {
    y[e] = v * weight[i];
  } else {
    other_y[e - of_x] = v * other_weight[i];
  }
}
{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  // A row past the end has no elements, but its lanes must take part in the barriers.
  let width = select(0u, params.width / {{.Vec}}u, row < params.rows);
  let base = row * width;
{{- if .Residual}}
  let x_base = min(params.skip + row, params.x_rows - 1u) * width;
  let residual_base = min(params.skip + row, params.residual_rows - 1u) * width;
{{- end}}
  var squares = 0.0;
  for (var i = lane; i < width; i += {{.Lanes}}u) {
    let v = {{if .Both}}element(base + i){{else}}x[{{$x}} + i]{{end}};
    squares += {{if eq .Vec 4}}dot(v, v){{else}}v * v{{end}};
  }
  let scale = inverseSqrt(reduce_sum(lane, squares) / f32(params.width) + params.eps);
{{- if .Each}}
  for (var s = lane; s * {{div .Each 4}}u < width; s += {{.Lanes}}u) {
    var sum = 0.0;
    for (var i = s * {{div .Each 4}}u; i < min((s + 1u) * {{div .Each 4}}u, width); i++) {
      let v = x[x_base + i] * scale * weight[i] + residual[residual_base + i];
      y[base + i] = v;
      weighted[spread(i, params.width / 32u)] = v * next_weight[i];
      sum += dot(v, v);
    }
    next_squares[s] = sum;
  }
{{- else}}
  for (var i = lane; i < width; i += {{.Lanes}}u) {
{{- if .Both}}
    put(base + i, i, element(base + i) * scale);
{{- else}}
    y[base + i] = x[{{$x}} + i] * scale * weight[i]{{if .Residual}} + residual[residual_base + i]{{end}};
{{- end}}
  }
{{- end}}
}
