// Rotates each pair (x[j], x[j + R/2]) of the first R elements of a head{{if .Both}} of q and k{{end}},
// and copies the other elements. The tables have a cosine and a sine for each of R columns of each position.
// An invocation processes {{if eq .Vec 4}}4 pairs{{else}}a pair{{end}}.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
{{- $r := set . "T" $T "C" $T "Columns" "R" "Each" 2}}
struct Params {
{{- template "rotary_params" $r}}
  half: u32, // invocations of a head that rotate a pair
  start: u32, // row of the tables for the first position
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
  let j = i % params.head;
  let first = i / params.head * 2u * params.head;
  if (j >= params.half) {
    put(first + 2u * j, element(first + 2u * j));
    put(first + 2u * j + 1u, element(first + 2u * j + 1u));
    return;
  }
  let low = first + j;
  let high = low + params.half;
  let angle = (params.start + position_of(i)) * 2u * params.half + j;
  let a = element(low);
  let b = element(high);
  put(low, a * cosine[angle] - b * sine[angle]);
  put(high, b * cosine[angle + params.half] + a * sine[angle + params.half]);
}
