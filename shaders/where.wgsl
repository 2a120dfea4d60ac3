// y = a where the condition is not 0, else b. An operand is repeated along the dims in which its stride is
// 0. An invocation computes one element.
struct Params {
  n: u32, // elements of y
{{- range $k := .Rank}}
  size_{{$k}}: u32, // of y
{{- end}}
{{- range $k := .Rank}}
  condition_stride_{{$k}}: u32,
{{- end}}
{{- range $k := .Rank}}
  a_stride_{{$k}}: u32,
{{- end}}
{{- range $k := .Rank}}
  b_stride_{{$k}}: u32,
{{- end}}
}

{{binding}} var<storage, read> condition: array<f32>;
{{binding}} var<storage, read> a: array<u32>;
{{binding}} var<storage, read> b: array<u32>;
{{binding}} var<storage, read_write> y: array<u32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  var rest = i;
  var ic = 0u;
  var ia = 0u;
  var ib = 0u;
{{- $last := sub .Rank 1}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
  {
    let at = rest % params.size_{{$k}};
    rest /= params.size_{{$k}};
    ic += at * params.condition_stride_{{$k}};
    ia += at * params.a_stride_{{$k}};
    ib += at * params.b_stride_{{$k}};
  }
{{- end}}
  y[i] = select(b[ib], a[ia], condition[ic] != 0.0);
}
{{template "each_element" .}}
