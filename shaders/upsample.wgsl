// Images with another height and width{{if .Bilinear}}, interpolated{{end}}.
// An invocation computes one pixel.
struct Params {
  n: u32, // pixels of y
  in_h: u32, // height of x
  in_w: u32,
  out_h: u32,
  out_w: u32,
  step_h: f32, // distance in x between two pixels of y
  step_w: f32,
}

{{binding}} var<storage, read> x: array<f32>;
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

fn element(i: u32) {
  let at = vec2<f32>(vec2<u32>(i / params.out_w % params.out_h, i % params.out_w));
  let apart = vec2<f32>(params.step_h, params.step_w);
  let last = vec2<u32>(params.in_h, params.in_w) - 1u;
  let plane = i / (params.out_w * params.out_h) * params.in_h * params.in_w;
{{- if .Bilinear}}
{{- if .Align}}
  let place = at * apart;
{{- else}}
  let place = max((at + 0.5) * apart - 0.5, vec2<f32>(0.0));
{{- end}}
  let first = min(vec2<u32>(place), last);
  let second = min(first + 1u, last);
  let weight = min(place - vec2<f32>(first), vec2<f32>(1.0));
  let top = plane + first.x * params.in_w;
  let bottom = plane + second.x * params.in_w;
  y[i] = (1.0 - weight.x) * ((1.0 - weight.y) * x[top + first.y] + weight.y * x[top + second.y]) +
    weight.x * ((1.0 - weight.y) * x[bottom + first.y] + weight.y * x[bottom + second.y]);
{{- else}}
  let place = min(vec2<u32>(at * apart), last);
  y[i] = x[plane + place.x * params.in_w + place.y];
{{- end}}
}
{{template "each_element" .}}
