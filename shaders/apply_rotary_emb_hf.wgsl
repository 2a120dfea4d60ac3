// Turns each pair (x[j], x[j + R/2]) of the first R elements of a head, and copies the rest. Tables hold a
// cosine and a sine for each of R columns of a position. An invocation has
// {{if eq .Vec 4}}4 pairs{{else}}a pair{{end}}.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  position: u32, // invocations of one position: all its heads
  positions: u32, // that x has
  head: u32, // invocations of a head
  half: u32, // those of them that turn
  start: u32, // the first position's row of the tables
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> cosine: array<{{$T}}>; // [all positions, R]
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
  let j = i % params.head;
  let first = i / params.head * 2u * params.head;
  if (j >= params.half) {
    y[first + 2u * j] = x[first + 2u * j];
    y[first + 2u * j + 1u] = x[first + 2u * j + 1u];
    return;
  }
  let low = first + j;
  let high = low + params.half;
  let angle = (params.start + (i / params.position) % params.positions) * 2u * params.half + j;
  let a = x[low];
  let b = x[high];
  y[low] = a * cosine[angle] - b * sine[angle];
  y[high] = b * cosine[angle + params.half] + a * sine[angle + params.half];
}
