// dst[i0, i1, ...] = src[start + sum of i_k * stride_k]. The index wraps around at 2^32, so strides can be
// negative. An invocation copies one element of {{.Vec}} words.
{{- $T := "u32"}}{{if eq .Vec 4}}{{$T = "vec4<u32>"}}{{end}}
struct Params {
  n: u32, // elements
  start: u32, // first index in src
{{- range $k := .Rank}}
  size_{{$k}}: u32, // size of a dim of dst
{{- end}}
{{- range $k := .Rank}}
  stride_{{$k}}: u32, // in src
{{- end}}
}

@group(0) @binding(0) var<storage, read> src: array<{{$T}}>;
@group(0) @binding(1) var<storage, read_write> dst: array<{{$T}}>;
@group(0) @binding(2) var<uniform> params: Params;

{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  var rest = i;
  var at = params.start;
{{- $last := sub .Rank 1}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
  at += (rest % params.size_{{$k}}) * params.stride_{{$k}};
  rest /= params.size_{{$k}};
{{- end}}
  dst[i] = src[at];
}
