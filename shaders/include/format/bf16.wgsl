// A weight is the upper 16 bits of an f32. A word has two weights.
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
  let even = b << vec4<u32>(16u);
  let odd = b & vec4<u32>(0xffff0000u);
  return Eight(bitcast<vec4<f32>>(vec4<u32>(even.x, odd.x, even.y, odd.y)),
    bitcast<vec4<f32>>(vec4<u32>(even.z, odd.z, even.w, odd.w)));
}
{{- end}}
