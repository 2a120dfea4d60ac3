// A causal convolution of {{.Taps}} tokens, separately for each channel: an invocation computes
// {{if eq .Vec 4}}four channels{{else}}one channel{{end}} of a token. Further invocations, one for each of
// {{sub .Taps 1}} tokens, store the last columns of the step in the state.
{{- $T := "f32"}}{{if eq .Vec 4}}{{$T = "vec4<f32>"}}{{end}}
struct Params {
  n: u32, // invocations
  tokens: u32,
  state_from: u32, // index of the first element that the state before the step has in state
  state_to: u32, // index of the first element of the state after the step
  fresh: u32, // 1 if the state before the step is zero
}

{{binding}} var<storage, read> x: array<{{$T}}>;
{{binding}} var<storage, read> weight: array<f32>;
{{- if .InGate}}
{{binding}} var<storage, read> in_gate: array<{{$T}}>;
{{- end}}
{{- if .OutGate}}
{{binding}} var<storage, read> out_gate: array<{{$T}}>;
{{- end}}
{{binding}} var<storage, read_write> state: array<{{$T}}>;
{{binding}} var<storage, read_write> y: array<{{$T}}>;
{{binding}} var<uniform> params: Params;

const columns = {{.Columns}}u; // {{if eq .Vec 4}}vectors{{else}}elements{{end}} of a token

// Returns a column of the state before the step, or of a token of the step after these.
fn column(at: u32, c: u32) -> {{$T}} {
  if (at >= {{sub .Taps 1}}u) {
    let i = (at - {{sub .Taps 1}}u) * columns + c;
    return x[i]{{if .InGate}} * in_gate[i]{{end}};
  }
  if (params.fresh == 1u) {
    return {{$T}}(0.0);
  }
  return state[params.state_from + at * columns + c];
}

fn element(i: u32) {
  let at = i / columns;
  let c = i % columns;
  if (at >= params.tokens) {
    state[params.state_to + i - params.tokens * columns] = column(at, c);
    return;
  }
  var sum = {{$T}}(0.0);
{{- $taps := .Taps}}{{$vec := .Vec}}
{{- range $k := .Taps}}
{{- if eq $vec 4}}
  sum += column(at + {{$k}}u, c) * vec4<f32>(weight[c * {{mul 4 $taps}}u + {{$k}}u],
    weight[c * {{mul 4 $taps}}u + {{add $taps $k}}u],
    weight[c * {{mul 4 $taps}}u + {{add (mul 2 $taps) $k}}u],
    weight[c * {{mul 4 $taps}}u + {{add (mul 3 $taps) $k}}u]);
{{- else}}
  sum += column(at + {{$k}}u, c) * weight[c * {{$taps}}u + {{$k}}u];
{{- end}}
{{- end}}
{{- if .SiLU}}
  sum = sum / (1.0 + exp(-sum));
{{- end}}
  y[i] = sum{{if .OutGate}} * out_gate[i]{{end}};
}
{{template "each_element" .}}
