// The elements of x, with elements of one value around them. An invocation computes one element.
struct Params {
  n: u32, // elements of y
  value: u32,
{{- range $k := .Rank}}
  size_{{$k}}: u32, // of y
{{- end}}
{{- range $k := .Rank}}
  in_{{$k}}: u32, // size of x
{{- end}}
{{- range $k := .Rank}}
  first_{{$k}}: u32, // index in y of the first element of x, modulo 2^32
{{- end}}
{{- range $k := .Rank}}
  stride_{{$k}}: u32, // in x
{{- end}}
}

{{binding}} var<storage, read> x: array<u32>;
{{binding}} var<storage, read_write> y: array<u32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  var rest = i;
  var at = 0u;
  var inside = true;
{{- $last := sub .Rank 1}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
  {
    let index = rest % params.size_{{$k}} - params.first_{{$k}}; // wraps outside of x
    rest /= params.size_{{$k}};
    inside = inside && index < params.in_{{$k}};
    at += index * params.stride_{{$k}};
  }
{{- end}}
  var v = params.value;
  if (inside) {
    v = x[at];
  }
  y[i] = v;
}
{{template "each_element" .}}
