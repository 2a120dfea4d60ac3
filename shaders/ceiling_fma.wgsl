// Does multiply-adds in registers, to {{.Sums}} independent sums of four numbers each, {{.Unroll}} times in
// each round. This measures how many multiply-adds the device does in a second. The kernel writes a sum only
// if it equals the param never, which does not happen. Without this write, a compiler would remove the sums.
{{- $sums := .Sums}}{{$unroll := .Unroll}}
struct Params {
  rounds: u32,
  scale: f32,
  offset: f32,
  never: f32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(local_invocation_index) lane: u32) {
  let a = vec4<f32>(params.scale);
  let b = vec4<f32>(params.offset);
{{- range $i := $sums}}
  var s{{$i}} = vec4<f32>(f32(lane + {{$i}}u));
{{- end}}
  for (var r = 0u; r < params.rounds; r++) {
{{- range $u := $unroll}}
{{- range $i := $sums}}
    s{{$i}} = fma(s{{$i}}, a, b);
{{- end}}
{{- end}}
  }
  let sum = s0{{range $i := $sums}}{{if $i}} + s{{$i}}{{end}}{{end}};
  if (sum.x + sum.y + sum.z + sum.w == params.never) {
    out[0] = sum.x;
  }
}
