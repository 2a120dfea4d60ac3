// The parts of formats of which four bits of a weight, q or its lowest, lie eight to a word, column k of them
// at bits 4k. A GEMV takes four words at a time where it has chunks of as many eights.
{{define "nibbles_binding"}}
{{- if .GEMV}}
// [n, {{.Chunks}}]
{{binding}} var<storage, read> weights: array<{{if eq .Eights 4}}vec4<u32>{{else}}u32{{end}}>;
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 8]
{{- end}}
{{- end}}

{{define "nibbles_load"}}
alias Bits = u32;
{{- if not .GEMV}}

fn load(row: u32, eight: u32) -> Bits {
  return weights[row * ({{.Columns}} / 8u) + eight];
}
{{- end}}
{{- end}}

{{define "nibbles_halves"}}
// The even and the odd columns of a word as floats 256 + q and 16 + q, without any error: two at a time, as
// halves of which the mantissas count in ones from bits 2 and 6 on. Who sums many weights takes off once what
// they have too much.
fn evens(w: u32) -> vec4<f32> {
  let a = unpack2x16float(((w << 2u) & 0x003c003cu) | 0x5c005c00u);
  let b = unpack2x16float(((w >> 6u) & 0x003c003cu) | 0x5c005c00u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}

fn odds(w: u32) -> vec4<f32> {
  let a = unpack2x16float(((w << 2u) & 0x03c003c0u) | 0x4c004c00u);
  let b = unpack2x16float(((w >> 6u) & 0x03c003c0u) | 0x4c004c00u);
  return vec4<f32>(a.x, b.x, a.y, b.y);
}
{{- end}}

{{define "nibbles_floats"}}
{{- template "nibbles_halves" .}}

fn floats(w: Bits) -> Eight {
  let even = evens(w) - 256.0;
  let odd = odds(w) - 16.0;
  return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
{{- end}}

{{define "nibbles_gemv_load"}}
      let b{{.R}} = weights[row{{.R}} * {{.Chunks}}u + chunk];
{{- if eq .Eights 4}}
{{- range $e := 4}}
      let w{{$.R}}_{{$e}} = b{{$.R}}[{{$e}}];
{{- end}}
{{- else}}
      let w{{.R}}_0 = b{{.R}};
{{- end}}
{{- end}}

// A fifth bit of each, those of 32 columns in a word of highs, from the lowest up.
{{define "fives_bindings"}}
{{- template "nibbles_binding" .}}
{{binding}} var<storage, read> highs: array<u32>; // [n, columns / 32]
{{- end}}

// {{.Middle}} is taken from q.
{{define "fives_functions"}}
struct Bits {
  low: u32,
  high: u32, // at bits 0 to 7
}

// q under the exponent of 2^23, where the mantissa counts in ones. No bit is lost.
fn floats(b: Bits) -> Eight {
  let low = (vec4<u32>(b.low, b.low >> 4u, b.low >> 8u, b.low >> 12u) & vec4<u32>(15u)) |
    (vec4<u32>(b.high << 4u, b.high << 3u, b.high << 2u, b.high << 1u) & vec4<u32>(16u));
  let high = (vec4<u32>(b.low >> 16u, b.low >> 20u, b.low >> 24u, b.low >> 28u) & vec4<u32>(15u)) |
    (vec4<u32>(b.high, b.high >> 1u, b.high >> 2u, b.high >> 3u) & vec4<u32>(16u));
  return Eight(bitcast<vec4<f32>>(low | vec4<u32>(0x4b000000u)) - {{add 8388608 .Middle}}.0,
    bitcast<vec4<f32>>(high | vec4<u32>(0x4b000000u)) - {{add 8388608 .Middle}}.0);
}
{{- if not .GEMV}}

fn load(row: u32, eight: u32) -> Bits {
  let at = row * ({{.Columns}} / 8u) + eight;
  return Bits(weights[at], highs[at >> 2u] >> ((at & 3u) * 8u));
}
{{- end}}
{{- end}}

{{define "fives_gemv_load"}}
      let b{{.R}} = weights[row{{.R}} * {{.Chunks}}u + chunk];
{{- if eq .Eights 4}}
      let h{{.R}} = highs[row{{.R}} * {{.Chunks}}u + chunk];
{{- range $e := 4}}
      let w{{$.R}}_{{$e}} = Bits(b{{$.R}}[{{$e}}], h{{$.R}}{{if $e}} >> {{mul 8 $e}}u{{end}});
{{- end}}
{{- else}}
      let w{{.R}}_0 = Bits(b{{.R}},
        highs[(row{{.R}} * {{.Chunks}}u + chunk) >> 2u] >> ((chunk & 3u) * 8u));
{{- end}}
{{- end}}
