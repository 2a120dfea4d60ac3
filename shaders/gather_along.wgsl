// Each element of y is an element of x, which index selects along dim {{.Axis}}. An invocation computes one
// element.
struct Params {
  n: u32, // elements of y
{{- range $k := .Rank}}
  size_{{$k}}: u32, // of y
{{- end}}
  in: u32, // size of dim {{.Axis}} of x
{{- range $k := .Rank}}
  stride_{{$k}}: u32, // in x
{{- end}}
}

{{binding}} var<storage, read> x: array<u32>;
{{binding}} var<storage, read> index: array<i32>;
{{binding}} var<storage, read_write> y: array<u32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  var rest = i;
  // An index outside of x selects the first or the last element, so that no other memory is read.
  var at = u32(clamp(index[i], 0, i32(params.in) - 1)) * params.stride_{{.Axis}};
{{- $last := sub .Rank 1}}{{$axis := .Axis}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
{{- if ne $k $axis}}
  at += rest % params.size_{{$k}} * params.stride_{{$k}};
{{- end}}
  rest /= params.size_{{$k}};
{{- end}}
  y[i] = x[at];
}
{{template "each_element" .}}
