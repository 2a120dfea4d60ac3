// y = x * w' + bias{{if .Residual}} + residual{{end}}, a tile of {{.Tile}} x {{.Tile}} results a workgroup.
// Tiles of x and of the weights pass through workgroup memory, {{mul .Quads 4}} columns at a time; the next
// ones are loaded while these are multiplied.
{{- $loads := div (mul .Tile .Quads) 256}}
{{- $f := set . "GEMV" false "Columns" "params.k"}}
struct Params {
  m: u32, // rows of y{{if not .Residual}} and of x{{end}}
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
  k: u32, // columns of x and of w
{{- if .Residual}}
  x_rows: u32, // as many as y has, or one that serves all
  residual_rows: u32, // likewise
{{- end}}
}

{{binding}} var<storage, read> x: array<{{if .Vec}}vec4<f32>{{else}}f32{{end}}>;
{{- template "format_bindings" $f}}
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<f32>;
{{- end}}
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

{{template "tile_memory" .}}
{{template "format" $f}}

// Columns 4 quad to 4 quad + 3 of a row of x, and zeros after the last.
fn load_x(row: u32, quad: u32) -> vec4<f32> {
{{- if .Vec}}
  let quads = params.k / 4u;
  return select(vec4<f32>(0.0), x[row * quads + min(quad, quads - 1u)], quad < quads);
{{- else}}
  let at = row * params.k;
  let last = params.k - 1u;
  let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(4u * quad);
  let v = vec4<f32>(x[at + min(c.x, last)], x[at + min(c.y, last)], x[at + min(c.z, last)],
    x[at + min(c.w, last)]);
  return select(vec4<f32>(0.0), v, c <= vec4<u32>(last));
{{- end}}
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row0 = wid.y * {{.Tile}}u;
  let column0 = wid.x * {{.Tile}}u;
  if (row0 >= params.m || column0 >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
  let tx = lane & 15u;
  let ty = lane >> 4u;
  // What this lane loads. Rows past the end are the last row again: their results go nowhere. Columns past
  // the end are zeros of x, whatever w.
  let quad = lane % {{.Quads}}u;
{{- range $i := $loads}}
  let a_row{{$i}} = (lane + {{mul $i 256}}u) / {{$.Quads}}u;
  let x_row{{$i}} = min(row0 + a_row{{$i}}, params.{{if $.Residual}}x_rows{{else}}m{{end}} - 1u);
{{- end}}
  let eights = {{if .Partial}}(params.k + 7u){{else}}params.k{{end}} / 8u;
  let b_row = lane % {{.Tile}}u;
  let b_eight = lane / {{.Tile}}u;
  let w_row = min(column0 + b_row, params.n - 1u);
{{- template "tile_sums" .}}
{{- range $i := $loads}}
  var next_a{{$i}} = load_x(x_row{{$i}}, quad);
{{- end}}
  let eight0 = min(b_eight, eights - 1u);
  var next_b = load(w_row, eight0);
{{- if defined "format_scale"}}
  var next_scale = scale(w_row, eight0);
{{- end}}
{{- if defined "format_zero"}}
  var next_zero = zero(w_row, eight0);
{{- end}}
  let steps = (params.k + {{sub (mul .Quads 4) 1}}u) / {{mul .Quads 4}}u;
  for (var step = 0u; step < steps; step++) {
{{- range $i := $loads}}
    tiles[tile_place(a_row{{$i}}, quad)] = next_a{{$i}};
{{- end}}
    let b = floats(next_b);
    tiles[second + tile_place(b_row, 2u * b_eight)] =
      {{template "weights" (set . "Of" "b.low" "By" "next_")}};
    tiles[second + tile_place(b_row, 2u * b_eight + 1u)] =
      {{template "weights" (set . "Of" "b.high" "By" "next_")}};
    workgroupBarrier();
    let ahead = (step + 1u) * {{.Quads}}u + quad;
{{- range $i := $loads}}
    next_a{{$i}} = load_x(x_row{{$i}}, ahead);
{{- end}}
    let eight = min((step + 1u) * {{div .Quads 2}}u + b_eight, eights - 1u);
    next_b = load(w_row, eight);
{{- if defined "format_scale"}}
    next_scale = scale(w_row, eight);
{{- end}}
{{- if defined "format_zero"}}
    next_zero = zero(w_row, eight);
{{- end}}
{{- template "tile_product" .}}
    workgroupBarrier();
  }
{{- $n := div .Tile 16}}
{{- range $j := $n}}
  let n{{$j}} = column0 + tx + {{mul $j 16}}u;
{{- if $.Bias}}
  let bias{{$j}} = bias[params.first + min(n{{$j}}, params.n - 1u)];
{{- end}}
{{- end}}
{{- range $i := $n}}
  let m{{$i}} = row0 + ty + {{mul $i 16}}u;
  if (m{{$i}} < params.m) {
    let at = m{{$i}} * params.stride + params.first;
{{- if $.Residual}}
    let residual_at = min(m{{$i}}, params.residual_rows - 1u) * params.stride + params.first;
{{- end}}
{{- range $j := $n}}
    if (n{{$j}} < params.n) {
      y[at + n{{$j}}] = sum{{$i}}_{{$j}}{{if $.Bias}} + bias{{$j}}{{end}}{{if $.Residual}} +
        residual[residual_at + n{{$j}}]{{end}};
    }
{{- end}}
  }
{{- end}}
}
