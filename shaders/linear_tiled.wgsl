// y = x * w' + bias, a tile of {{.Tile}} x {{.Tile}} results a workgroup. Tiles of x and of the weights pass
// through workgroup memory, {{mul .Quads 4}} columns at a time; the next ones are loaded while these are
// multiplied.
{{- $q4 := eq .Weights "q4"}}
{{- $loads := div (mul .Tile .Quads) 256}}
struct Params {
  m: u32, // rows of x
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
  k: u32, // columns of x and of w
}

@group(0) @binding(0) var<storage, read> x: array<{{if .Vec}}vec4<f32>{{else}}f32{{end}}>;
{{- if $q4}}
@group(0) @binding(1) var<storage, read> weights: array<u32>; // [n, k / 8]
// [n / {{if .HalfScales}}8, groups, 8{{else}}4, groups, 4{{end}}]
@group(0) @binding(2) var<storage, read> scales: array<{{if .HalfScales}}u32{{else}}f32{{end}}>;
{{- else}}
@group(0) @binding(1) var<storage, read> weights: array<{{if .Vec}}vec4<f32>{{else}}f32{{end}}>; // [n, k]
{{- end}}
{{- $next := 2}}{{if $q4}}{{$next = 3}}{{end}}
{{- if .Bias}}
@group(0) @binding({{$next}}) var<storage, read> bias: array<f32>;
{{- $next = add $next 1}}
{{- end}}
@group(0) @binding({{$next}}) var<storage, read_write> y: array<f32>;
@group(0) @binding({{add $next 1}}) var<uniform> params: Params;

{{template "tile_memory" .}}
{{- if $q4}}
{{template "q4_unpack" .}}
{{- if .HalfScales}}
fn scale(row: u32, group: u32, groups: u32) -> f32 {
  let pair = unpack2x16float(scales[((row >> 3u) * groups + group) * 4u + ((row & 7u) >> 1u)]);
  return select(pair.x, pair.y, (row & 1u) == 1u);
}
{{- else}}
fn scale(row: u32, group: u32, groups: u32) -> f32 {
  return scales[((row >> 2u) * groups + group) * 4u + (row & 3u)];
}
{{- end}}
{{- end}}

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
{{- if not $q4}}

fn load_w(row: u32, quad: u32) -> vec4<f32> {
{{- if .Vec}}
  let quads = params.k / 4u;
  return select(vec4<f32>(0.0), weights[row * quads + min(quad, quads - 1u)], quad < quads);
{{- else}}
  let at = row * params.k;
  let last = params.k - 1u;
  let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(4u * quad);
  let v = vec4<f32>(weights[at + min(c.x, last)], weights[at + min(c.y, last)], weights[at + min(c.z, last)],
    weights[at + min(c.w, last)]);
  return select(vec4<f32>(0.0), v, c <= vec4<u32>(last));
{{- end}}
}
{{- end}}

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
  let x_row{{$i}} = min(row0 + a_row{{$i}}, params.m - 1u);
{{- end}}
{{- if $q4}}
  let words = params.k / 8u;
  let groups = words / {{.GroupWords}}u;
  let b_row = lane % {{.Tile}}u;
  let b_word = lane / {{.Tile}}u;
  let w_row = min(column0 + b_row, params.n - 1u);
{{- else}}
{{- range $i := $loads}}
  let w_row{{$i}} = min(column0 + a_row{{$i}}, params.n - 1u);
{{- end}}
{{- end}}
{{- template "tile_sums" .}}
{{- range $i := $loads}}
  var next_a{{$i}} = load_x(x_row{{$i}}, quad);
{{- end}}
{{- if $q4}}
  let word0 = min(b_word, words - 1u);
  var next_b = weights[w_row * words + word0];
  var next_scale = scale(w_row, word0 / {{.GroupWords}}u, groups);
{{- else}}
{{- range $i := $loads}}
  var next_b{{$i}} = load_w(w_row{{$i}}, quad);
{{- end}}
{{- end}}
  let steps = (params.k + {{sub (mul .Quads 4) 1}}u) / {{mul .Quads 4}}u;
  for (var step = 0u; step < steps; step++) {
{{- range $i := $loads}}
    tiles[tile_place(a_row{{$i}}, quad)] = next_a{{$i}};
{{- end}}
{{- if $q4}}
    let even = (q4_even(next_b) - even_zero) * next_scale;
    let odd = (q4_odd(next_b) - odd_zero) * (next_scale / odd_step);
    tiles[second + tile_place(b_row, 2u * b_word)] = vec4<f32>(even.x, odd.x, even.y, odd.y);
    tiles[second + tile_place(b_row, 2u * b_word + 1u)] = vec4<f32>(even.z, odd.z, even.w, odd.w);
{{- else}}
{{- range $i := $loads}}
    tiles[second + tile_place(a_row{{$i}}, quad)] = next_b{{$i}};
{{- end}}
{{- end}}
    workgroupBarrier();
    let ahead = (step + 1u) * {{.Quads}}u + quad;
{{- range $i := $loads}}
    next_a{{$i}} = load_x(x_row{{$i}}, ahead);
{{- end}}
{{- if $q4}}
    let word = min((step + 1u) * {{div .Quads 2}}u + b_word, words - 1u);
    next_b = weights[w_row * words + word];
    next_scale = scale(w_row, word / {{.GroupWords}}u, groups);
{{- else}}
{{- range $i := $loads}}
    next_b{{$i}} = load_w(w_row{{$i}}, ahead);
{{- end}}
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
{{- range $j := $n}}
    if (n{{$j}} < params.n) {
      y[at + n{{$j}}] = sum{{$i}}_{{$j}}{{if $.Bias}} + bias{{$j}}{{end}};
    }
{{- end}}
  }
{{- end}}
}
