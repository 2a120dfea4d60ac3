// Rotates each pair (x[2j], x[2j+1]) of a head{{if .Both}} of q and k{{end}}. The angle depends on the
// position and on the pair.
// An invocation rotates {{div .Vec 2}} {{if eq .Vec 4}}pairs{{else}}pair{{end}}.
{{- $T := "vec2<f32>"}}{{$C := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{$C = "vec2<f32>"}}{{end}}
{{- $r := set . "T" $T "C" $C "Columns" "pairs" "Each" 1}}
struct Params {
{{- template "rotary_params" $r}}
}
{{template "rotary_bindings" $r}}
{{template "flat_thread" .}}
{{- template "rotary_elements" $r}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let angle = position_of(i) * params.head + i % params.head;
  let c = cosine[angle];
  let s = sine[angle];
  let v = element(i);
{{- if eq .Vec 4}}
  put(i, vec4<f32>(v.x * c.x - v.y * s.x, v.x * s.x + v.y * c.x, v.z * c.y - v.w * s.y,
    v.z * s.y + v.w * c.y));
{{- else}}
  put(i, vec2<f32>(v.x * c - v.y * s, v.x * s + v.y * c));
{{- end}}
}
