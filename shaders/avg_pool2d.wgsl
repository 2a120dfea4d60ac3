// The mean of each window of {{.KernelH}} x {{.KernelW}} elements. An invocation computes one element.
struct Params {
  n: u32, // elements of y
  in_h: u32, // height of x
  in_w: u32,
  out_h: u32,
  out_w: u32,
}

{{binding}} var<storage, read> x: array<f32>;
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  let in = vec2<i32>(i32(params.in_h), i32(params.in_w));
  let padding = vec2<i32>({{.PaddingH}}, {{.PaddingW}});
  let at = vec2<i32>(i32(i / params.out_w % params.out_h), i32(i % params.out_w));
  let start = at * vec2<i32>({{.StrideH}}, {{.StrideW}}) - padding;
  let end = min(start + vec2<i32>({{.KernelH}}, {{.KernelW}}), in + padding);
  let low = max(start, vec2<i32>(0));
  let high = min(end, in);
  let first = i32(i / (params.out_w * params.out_h)) * in.x * in.y;
  var sum = 0.0;
  for (var iy = low.x; iy < high.x; iy++) {
    for (var ix = low.y; ix < high.y; ix++) {
      sum += x[first + iy * in.y + ix];
    }
  }
{{- if .Divisor}}
  y[i] = sum / {{.Divisor}}.0;
{{- else if .CountPadding}}
  let size = end - start;
  y[i] = sum / f32(size.x * size.y);
{{- else}}
  let size = high - low;
  y[i] = sum / f32(size.x * size.y);
{{- end}}
}
{{template "each_element" .}}
