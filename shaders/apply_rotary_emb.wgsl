// Turns each pair (x[2j], x[2j+1]) of a head by the angle of its row and pair. An invocation turns
// {{div .Vec 2}} {{if eq .Vec 4}}pairs{{else}}pair{{end}}.
{{- $T := "vec2<f32>"}}{{$C := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{$C = "vec2<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  position: u32, // invocations of one position: all its heads
  positions: u32,
  head: u32, // invocations of a head
}

@group(0) @binding(0) var<storage, read> x: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> cosine: array<{{$C}}>; // [positions, pairs]
@group(0) @binding(2) var<storage, read> sine: array<{{$C}}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{$T}}>;
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let angle = (i / params.position) % params.positions * params.head + i % params.head;
  let c = cosine[angle];
  let s = sine[angle];
  let v = x[i];
{{- if eq .Vec 4}}
  y[i] = vec4<f32>(v.x * c.x - v.y * s.x, v.x * s.x + v.y * c.x, v.z * c.y - v.w * s.y,
    v.z * s.y + v.w * c.y);
{{- else}}
  y[i] = vec2<f32>(v.x * c - v.y * s, v.x * s + v.y * c);
{{- end}}
}
