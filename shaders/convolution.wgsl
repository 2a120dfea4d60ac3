// {{if .Transposed}}Transposed convolution{{else}}Convolution{{end}}: an invocation computes one position of
// {{.Block}} channels of y, with a kernel of {{.KernelH}} x {{.KernelW}}.
{{- $size := mul .KernelH .KernelW}}
struct Params {
  n: u32, // invocations
  in_h: u32, // height of x
  in_w: u32,
  out_h: u32,
  out_w: u32,
  in_channels: u32, // channels of x
  blocks: u32, // channels of y / {{.Block}}
  group_in: u32, // channels of x in a group
  group_out: u32, // channels of y in a group
{{- if .Limited}}
  lo: f32,
  hi: f32,
{{- end}}
}

{{binding}} var<storage, read> x: array<f32>;
{{binding}} var<storage, read> weight: array<f32>;
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>;
{{- end}}
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;
{{if .Limited}}
// v limited to the range from lo to hi. NaN stays NaN.
fn limited(v: f32) -> f32 {
  return select(clamp(v, params.lo, params.hi), v, (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u);
}
{{end}}
fn element(i: u32) {
  let ox = i % params.out_w;
  let oy = i / params.out_w % params.out_h;
  let plane = i / (params.out_w * params.out_h);
  let channel = plane % params.blocks * {{.Block}}u; // the first of the channels
  let batch = plane / params.blocks;
  let group = channel / params.group_out;
  let in_size = params.in_h * params.in_w;
  let x_first = (batch * params.in_channels + group * params.group_in) * in_size;
{{- if .Transposed}}
  let weight_first = (group * params.group_in * params.group_out + channel % params.group_out) * {{$size}}u;
  let weight_step = params.group_out * {{$size}}u; // to the next channel of x
{{- if eq .Block 4}}
  let weight_next = {{$size}}u; // to the next channel of y
{{- end}}
{{- else}}
  let weight_first = channel * params.group_in * {{$size}}u;
  let weight_step = {{$size}}u;
{{- if eq .Block 4}}
  let weight_next = params.group_in * {{$size}}u;
{{- end}}
{{- end}}
{{- if .Bias}}
{{- if eq .Block 4}}
  var sum = vec4<f32>(bias[channel], bias[channel + 1u], bias[channel + 2u], bias[channel + 3u]);
{{- else}}
  var sum = bias[channel];
{{- end}}
{{- else}}
  var sum = {{if eq .Block 4}}vec4<f32>(0.0){{else}}0.0{{end}};
{{- end}}
  for (var ky = 0u; ky < {{.KernelH}}u; ky++) {
{{- template "source" (set . "To" "iy" "At" "oy" "K" "ky" "In" "in_h"
      "Stride" .StrideH "Padding" .PaddingH "Dilation" .DilationH)}}
    for (var kx = 0u; kx < {{.KernelW}}u; kx++) {
{{- template "source" (set . "To" "ix" "At" "ox" "K" "kx" "In" "in_w"
      "Stride" .StrideW "Padding" .PaddingW "Dilation" .DilationW)}}
      var at = x_first + iy * params.in_w + ix;
      var w = weight_first + ky * {{.KernelW}}u + kx;
      for (var c = 0u; c < params.group_in; c++) {
{{- if eq .Block 4}}
        sum += x[at] * vec4<f32>(weight[w], weight[w + weight_next], weight[w + 2u * weight_next],
          weight[w + 3u * weight_next]);
{{- else}}
        sum += x[at] * weight[w];
{{- end}}
        at += in_size;
        w += weight_step;
      }
    }
  }
  let out_size = params.out_h * params.out_w;
  let to = (batch * params.blocks * {{.Block}}u + channel) * out_size + oy * params.out_w + ox;
{{- if eq .Block 4}}
  for (var k = 0u; k < 4u; k++) {
    y[to + k * out_size] = {{if .Limited}}limited(sum[k]){{else}}sum[k]{{end}};
  }
{{- else}}
  y[to] = {{if .Limited}}limited(sum){{else}}sum{{end}};
{{- end}}
}
{{template "each_element" .}}

{{- define "source"}}
{{- if .Transposed}}
    let {{.To}}_from = {{.At}} + {{.Padding}}u - {{.K}} * {{.Dilation}}u; // wraps below 0
    let {{.To}} = {{.To}}_from / {{.Stride}}u;
    if ({{.To}}_from > 0x7fffffffu || {{.To}}_from % {{.Stride}}u != 0u || {{.To}} >= params.{{.In}}) {
      continue;
    }
{{- else}}
    let {{.To}} = {{.At}} * {{.Stride}}u + {{.K}} * {{.Dilation}}u - {{.Padding}}u; // wraps below 0
    if ({{.To}} >= params.{{.In}}) {
      continue;
    }
{{- end}}
{{- end}}
