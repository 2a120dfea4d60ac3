// The parts for an array of 6-bit numbers, such as scales. A row has SixesPer numbers for each 32 columns.
// Middle is subtracted from each number. The numbers of 4 rows are stored together: three words have numbers
// 4i to 4i + 3 of these rows. The first word has the low four bits of numbers 4i and 4i + 1, with one byte
// for each row. The second word has those of numbers 4i + 2 and 4i + 3. The third word has the high two bits:
// bytes 0 and 2 for numbers 4i and 4i + 1, bytes 1 and 3 for the other two. The lower byte of each pair is
// for rows 0 and 1, the higher byte for rows 2 and 3.
{{define "sixes_binding"}}
{{binding}} var<storage, read> scales: array<u32>; // [n / 4, numbers / 4, 3]
{{- end}}

// Returns the number with index i in a row.
{{define "sixes_function"}}
fn six(row: u32, i: u32) -> f32 {
  let at = (row >> 2u) * ({{.Columns}} / {{div 64 .SixesPer}}u) + (i >> 1u);
  let low = scales[at / 2u * 3u + (at & 1u)] >> ((row & 3u) * 8u + (i & 1u) * 4u);
  let high = scales[at / 2u * 3u + 2u] >>
    ((row & 2u) * 8u + (at & 1u) * 8u + (row & 1u) * 4u + (i & 1u) * 2u);
  return f32(i32((low & 15u) | ((high & 3u) << 4u)) - {{.Middle}});
}
{{- end}}

// Convert the numbers of four rows to floats. The 6 bits become mantissa bits of an f16 number, whose value
// is 1024 + number in first_sixes, and 64 + number in second_sixes.
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

// For a GEMV: the words with the numbers of four rows for a chunk, and their super-block scales.
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

// Shifts the words such that first_sixes reads the first number of the chunk. If the chunk has two numbers,
// second_sixes reads the second one.
{{define "sixes_words"}}
{{- if eq .SixesPer 2}}
      let sixes = vec2<u32>(scale_bits.sixes.x, scale_bits.sixes.y >> ((chunk & 1u) * 8u));
{{- else}}
      let sixes = vec2<u32>(scale_bits.sixes.x >> ((chunk & 1u) * 4u),
        scale_bits.sixes.y >> ((chunk & 2u) * 4u + (chunk & 1u) * 2u));
{{- end}}
{{- end}}

// The parts that Q4_K and Q5_K share: each group of 32 columns has a scale and a zero.
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
