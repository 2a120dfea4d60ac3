// y = {{if .Residual}}residual + {{end}}the sum of the {{.K}} rows of x of a token, each times its weight.
// An invocation computes {{.Vec}}
// {{- if eq .Vec 1}} element{{else}} elements{{end}} of y.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
}

{{binding}} var<storage, read> x: array<{{$T}}>; // [tokens, {{.K}}, width]
{{binding}} var<storage, read> weights: array<f32>; // [tokens, {{.K}}]
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<{{$T}}>;
{{- end}}
{{binding}} var<storage, read_write> y: array<{{$T}}>; // [tokens, width]
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  let slot = i / {{.Width}}u * {{.K}}u;
  let at = slot * {{.Width}}u + i % {{.Width}}u;
  var sum = x[at] * weights[slot];
  for (var j = 1u; j < {{.K}}u; j++) {
    sum = fma(x[at + j * {{.Width}}u], {{$T}}(weights[slot + j]), sum);
  }
  y[i] = {{if .Residual}}residual[i] + {{if ne .Alpha 1.0}}{{.Alpha}}f * {{end}}{{end}}sum;
}
{{template "each_element" .}}
