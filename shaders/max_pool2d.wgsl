// The largest element of each window of {{.KernelH}} x {{.KernelW}} elements. An invocation computes one
// element.
struct Params {
  n: u32, // elements of y
  in_h: u32, // height of x
  in_w: u32,
  out_h: u32,
  out_w: u32,
}

{{binding}} var<storage, read> x: array<f32>;
{{binding}} var<storage, read_write> y: array<f32>;
{{- if .Indices}}
{{binding}} var<storage, read_write> indices: array<i32>;
{{- end}}
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  let top = i / params.out_w % params.out_h * {{.StrideH}}u - {{.PaddingH}}u; // wraps below 0
  let left = i % params.out_w * {{.StrideW}}u - {{.PaddingW}}u;
  let first = i / (params.out_w * params.out_h) * params.in_h * params.in_w;
  var best = bitcast<f32>(0xff800000u + min(params.n, 0u)); // minus infinity
{{- if .Indices}}
  var at = 0u;
{{- end}}
  var found = false;
  for (var ky = 0u; ky < {{.KernelH}}u; ky++) {
    let iy = top + ky * {{.DilationH}}u;
    for (var kx = 0u; kx < {{.KernelW}}u; kx++) {
      let ix = left + kx * {{.DilationW}}u;
      if (iy >= params.in_h || ix >= params.in_w) {
        continue;
      }
      let v = x[first + iy * params.in_w + ix];
      if (!found || v > best || (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u) { // larger, or NaN
        best = v;
{{- if .Indices}}
        at = iy * params.in_w + ix;
{{- end}}
        found = true;
      }
    }
  }
  y[i] = best;
{{- if .Indices}}
  indices[i] = i32(at);
{{- end}}
}
{{template "each_element" .}}
