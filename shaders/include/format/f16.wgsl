// A weight is an f16 number. A word has two weights.
{{define "format_bindings"}}
{{binding}} var<storage, read> weights: array<vec4<u32>>; // [n, columns / 8]
{{- end}}

{{define "format_functions"}}
alias Bits = vec4<u32>;

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * ({{.Columns}} / 8u) + eight];
}
{{- end}}

{{define "format_floats"}}
fn floats(b: Bits) -> Eight {
  return Eight(vec4<f32>(unpack2x16float(b.x), unpack2x16float(b.y)),
    vec4<f32>(unpack2x16float(b.z), unpack2x16float(b.w)));
}
{{- end}}
