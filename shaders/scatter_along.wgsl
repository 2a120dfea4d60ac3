// x, with the elements of src at the places along dim {{.Axis}} that index lists. An invocation computes one
// element of y, from the last element of src that has its place.
struct Params {
  n: u32, // elements of y
{{- range $k := .Rank}}
  size_{{$k}}: u32, // of y
{{- end}}
{{- range $k := .Rank}}
  in_{{$k}}: u32, // size of index
{{- end}}
{{- range $k := .Rank}}
  index_stride_{{$k}}: u32,
{{- end}}
{{- range $k := .Rank}}
  src_stride_{{$k}}: u32,
{{- end}}
}

{{binding}} var<storage, read> x: array<u32>;
{{binding}} var<storage, read> index: array<i32>;
{{binding}} var<storage, read> src: array<u32>;
{{binding}} var<storage, read_write> y: array<u32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  var rest = i;
  var inside = true;
  var first = 0u; // in index
  var src_first = 0u;
  var row = 0u;
{{- $last := sub .Rank 1}}{{$axis := .Axis}}
{{- range $j := .Rank}}{{$k := sub $last $j}}
  {
    let at = rest % params.size_{{$k}};
    rest /= params.size_{{$k}};
{{- if eq $k $axis}}
    row = at;
{{- else}}
    inside = inside && at < params.in_{{$k}};
    first += at * params.index_stride_{{$k}};
    src_first += at * params.src_stride_{{$k}};
{{- end}}
  }
{{- end}}
  var v = x[i];
  if (inside) {
    for (var j = params.in_{{.Axis}}; j > 0u; j--) {
      if (index[first + (j - 1u) * params.index_stride_{{.Axis}}] == i32(row)) {
        v = src[src_first + (j - 1u) * params.src_stride_{{.Axis}}];
        break;
      }
    }
  }
  y[i] = v;
}
{{template "each_element" .}}
