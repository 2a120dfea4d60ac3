// Numbers of 6 bits, SixesPer of them for 32 columns of a row, less Middle. Two of each of four rows lie
// together in two words: one with their low four bits, a byte to a row, and of one that serves two such twos
// a byte for rows 0 and 1, and the next but one for rows 2 and 3, with the high two.
{{define "sixes_binding"}}
{{binding}} var<storage, read> scales: array<u32>; // [n / 4, twos / 2, 3]
{{- end}}

// Number i of a row.
{{define "sixes_function"}}
fn six(row: u32, i: u32) -> f32 {
  let at = (row >> 2u) * ({{.Columns}} / {{div 64 .SixesPer}}u) + (i >> 1u);
  let low = scales[at / 2u * 3u + (at & 1u)] >> ((row & 3u) * 8u + (i & 1u) * 4u);
  let high = scales[at / 2u * 3u + 2u] >>
    ((row & 2u) * 8u + (at & 1u) * 8u + (row & 1u) * 4u + (i & 1u) * 2u);
  return f32(i32((low & 15u) | ((high & 3u) << 4u)) - {{.Middle}});
}
{{- end}}

// They are turned into floats as weights are, as 1024 + six and 64 + six.
{{define "sixes_floats"}}
fn first_sixes(words: vec2<u32>) -> vec4<f32> {
  let a = unpack2x16float((words.x & 0x000f000fu) | ((words.y << 4u) & 0x00300030u) | 0x64006400u);
  let b = unpack2x16float(((words.x >> 8u) & 0x000f000fu) | (words.y & 0x00300030u) | 0x64006400u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - {{add 1024 .Middle}}.0;
}

fn second_sixes(words: vec2<u32>) -> vec4<f32> {
  let a = unpack2x16float((words.x & 0x00f000f0u) | ((words.y << 6u) & 0x03000300u) | 0x54005400u);
  let b = unpack2x16float(((words.x >> 8u) & 0x00f000f0u) | ((words.y << 2u) & 0x03000300u) | 0x54005400u);
  return vec4<f32>(a.x, b.x, a.y, b.y) - {{add 64 .Middle}}.0;
}
{{- end}}

// In a GEMV: the words that a chunk's numbers of four rows are in, and what they count in.
{{define "sixes_scales"}}
{{template "sixes_floats" .}}

struct Scales {
  sixes: vec2<u32>,
  supers: {{template "supers_type" .}},
}

fn load_scales(row: u32, chunk: u32) -> Scales {
  let two = row / 4u * {{div (mul .Chunks .SixesPer) 2}}u + chunk{{if eq .SixesPer 1}} / 2u{{end}};
  let at = two / 2u * 3u;
  return Scales(vec2<u32>(scales[at + (two & 1u)], scales[at + 2u]), {{template "supers_load" .}});
}
{{- end}}

// The words shifted to where first_sixes takes the number of a chunk, or both first_sixes and second_sixes.
{{define "sixes_words"}}
{{- if eq .SixesPer 2}}
      let sixes = vec2<u32>(scale_bits.sixes.x, scale_bits.sixes.y >> ((chunk & 1u) * 8u));
{{- else}}
      let sixes = vec2<u32>(scale_bits.sixes.x >> ((chunk & 1u) * 4u),
        scale_bits.sixes.y >> ((chunk & 2u) * 4u + (chunk & 1u) * 2u));
{{- end}}
{{- end}}

// The parts of Q4_K and Q5_K, whose groups of 32 columns have a scale and a zero.
{{define "sixes_scale"}}
{{template "sixes_function" (set . "SixesPer" 2 "Middle" 0)}}

{{template "supers_function" (set . "Which" 0)}}

fn scale(row: u32, eight: u32) -> f32 {
  return six(row, eight / 4u * 2u) * super_scale(row, eight);
}
{{- end}}

{{define "sixes_zero"}}
{{template "supers_function" (set . "Which" 1)}}

fn zero(row: u32, eight: u32) -> f32 {
  return six(row, eight / 4u * 2u + 1u) * -super_zero(row, eight);
}
{{- end}}

{{define "sixes_factors"}}
{{- template "supers_factors" .}}
{{- template "sixes_words" (set . "SixesPer" 2)}}
      let scale0 = first_sixes(sixes) * super_scale;
      let zero0 = second_sixes(sixes) * -super_zero;
{{- end}}
