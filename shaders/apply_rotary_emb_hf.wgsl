// Turns each pair (x[j], x[j + D/2]) of a head of D. Tables hold a cosine and a sine for each of the D
// columns of a position. An invocation turns {{if eq .Vec 4}}4 pairs{{else}}a pair{{end}}.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  position: u32, // invocations of one position: all its heads
  positions: u32, // that x has
  half: u32, // invocations of a head
  start: u32, // the first position's row of the tables
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> cosine: array<{{$T}}>; // [all positions, D]
@group(0) @binding(2) var<storage, read> sine: array<{{$T}}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let j = i % params.half;
  let low = i / params.half * 2u * params.half + j;
  let high = low + params.half;
  let angle = (params.start + (i / params.position) % params.positions) * 2u * params.half + j;
  let a = x[low];
  let b = x[high];
  y[low] = a * cosine[angle] - b * sine[angle];
  y[high] = b * cosine[angle + params.half] + a * sine[angle + params.half];
}
