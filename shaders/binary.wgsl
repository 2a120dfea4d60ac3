// y = {{.Op}} of a and b. An invocation computes {{.Vec}} elements.
{{- if .Rank}} An operand is repeated along the dims in which its stride is 0.{{end}}
{{- $E := "f32"}}{{if .Ints}}{{$E = "i32"}}{{end}}
{{- $R := $E}}{{if .Truth}}{{$R = "f32"}}{{end}}
{{- $T := $E}}{{if eq .Vec 4}}{{$T = printf "vec4<%s>" $E}}{{$R = printf "vec4<%s>" $R}}{{end}}
struct Params {
  n: u32, // invocations
{{- if .Alpha}}
  alpha: {{if .Ints}}u32{{else}}f32{{end}}, // factor of b
{{- end}}
{{- range $k := .Rank}}
  size_{{$k}}: u32, // size of a dim of y
{{- end}}
{{- range $k := .Rank}}
  a_stride_{{$k}}: u32,
{{- end}}
{{- range $k := .Rank}}
  b_stride_{{$k}}: u32,
{{- end}}
}

@group(0) @binding(0) var<storage, read> a: array<{{$T}}>;
@group(0) @binding(1) var<storage, read> b: array<{{$T}}>;
@group(0) @binding(2) var<storage, read_write> y: array<{{$R}}>;
@group(0) @binding(3) var<uniform> params: Params;

{{.Needs}}
{{template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
{{- if .Rank}}
  var rest = i;
  var ia = 0u;
  var ib = 0u;
{{- $last := sub .Rank 1}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
  {
    let at = rest % params.size_{{$k}};
    rest /= params.size_{{$k}};
    ia += at * params.a_stride_{{$k}};
    ib += at * params.b_stride_{{$k}};
  }
{{- end}}
{{- else}}
  let ia = i;
  let ib = i;
{{- end}}
  let u = a[ia];
  let v = b[ib];
  y[i] = {{.Expr}};
}
