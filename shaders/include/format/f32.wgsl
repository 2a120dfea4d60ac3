// A weight is an f32 number. Partial is true if the number of columns is not a multiple of 8.
{{define "format_bindings"}}
{{binding}} var<storage, read> weights: array<{{if .Partial}}f32{{else}}vec4<f32>{{end}}>; // [n, columns]
{{- end}}

{{define "format_functions"}}
alias Bits = Eight;

fn load(row: u32, eight: u32) -> Bits {
{{- if .Partial}}
  let at = row * {{.Columns}};
  let last = {{.Columns}} - 1u;
  let c = 8u * eight;
  return Eight(
    vec4<f32>(weights[at + min(c, last)], weights[at + min(c + 1u, last)],
      weights[at + min(c + 2u, last)], weights[at + min(c + 3u, last)]),
    vec4<f32>(weights[at + min(c + 4u, last)], weights[at + min(c + 5u, last)],
      weights[at + min(c + 6u, last)], weights[at + min(c + 7u, last)]));
{{- else}}
  let at = row * ({{.Columns}} / 4u) + 2u * eight;
  return Eight(weights[at], weights[at + 1u]);
{{- end}}
}
{{- end}}

{{define "format_floats"}}
fn floats(b: Bits) -> Eight {
  return b;
}
{{- end}}
