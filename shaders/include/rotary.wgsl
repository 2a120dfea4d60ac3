{{define "rotary_bindings"}}
{{- if .Both}}
{{binding}} var<storage, read> q: array<{{.T}}>;
{{binding}} var<storage, read> k: array<{{.T}}>;
{{- else}}
{{binding}} var<storage, read> x: array<{{.T}}>;
{{- end}}
{{binding}} var<storage, read> cosine: array<{{.C}}>; // [positions, {{.Columns}}]
{{binding}} var<storage, read> sine: array<{{.C}}>;
{{- if .Both}}
{{binding}} var<storage, read_write> yq: array<{{.T}}>;
{{binding}} var<storage, read_write> yk: array<{{.T}}>;
{{- else}}
{{binding}} var<storage, read_write> y: array<{{.T}}>;
{{- end}}
{{binding}} var<uniform> params: Params;
{{end}}

// Functions that read and write the rotated tensors: x, or q followed by k. They work on vectors, and an
// invocation processes Each vectors.
{{define "rotary_elements"}}
{{- if .Both}}
// Returns element e of q followed by k.
fn element(e: u32) -> {{.T}} {
  let of_q = params.q{{if gt .Each 1}} * {{.Each}}u{{end}};
  if (e < of_q) {
    return q[e];
  }
  return k[e - of_q];
}

fn put(e: u32, v: {{.T}}) {
  let of_q = params.q{{if gt .Each 1}} * {{.Each}}u{{end}};
  if (e < of_q) {
    yq[e] = v;
  } else {
    yk[e - of_q] = v;
  }
}
{{- else}}
fn element(e: u32) -> {{.T}} {
  return x[e];
}

fn put(e: u32, v: {{.T}}) {
  y[e] = v;
}
{{- end}}

// Returns the index of the position that invocation i processes. The first position of the step has index 0.
fn position_of(i: u32) -> u32 {
{{- if .Both}}
  if (i >= params.q) {
    return (i - params.q) / params.k_position % params.positions;
  }
{{- end}}
  return (params.skip + i / params.position) % params.positions;
}
{{end}}

{{define "rotary_params"}}
  n: u32, // invocations
  position: u32, // invocations for all heads of one position{{if .Both}} of q{{end}}
  positions: u32, // number of positions{{if .Both}} in k{{end}}
  skip: u32, // index of the first position in {{if .Both}}q{{else}}x{{end}}
  head: u32, // invocations for a head
{{- if .Both}}
  q: u32, // invocations for q; the others are for k
  k_position: u32, // invocations for one position of k
{{- end}}
{{- end}}

// Functions that rotate vectors of 4 elements as they are loaded. The constant Turn says which elements of a
// head form pairs.
{{define "rotary_vector"}}
{{- if eq .Turn "halves"}}
// Rotates x, which is vector quad of a head. other has the other elements of the pairs.
fn turned(x: vec4<f32>, other: vec4<f32>, quad: u32) -> vec4<f32> {
  let angle = params.angle + min(quad, {{sub (mul 2 .Half) 1}}u);
  let y = x * cosine[angle] + select(other, -other, quad < {{.Half}}u) * sine[angle];
  return select(x, y, quad < {{mul 2 .Half}}u);
}

// Returns the index of the vector with the other elements of the pairs.
fn other_half(quad: u32) -> u32 {
  return select(max(quad, {{.Half}}u) - {{.Half}}u, quad + {{.Half}}u, quad < {{.Half}}u);
}
{{- else}}
// Rotates x, which is vector quad of a head.
fn turned(x: vec4<f32>, quad: u32) -> vec4<f32> {
  let c = cosine[quad];
  let s = sine[quad];
  return vec4<f32>(x.x * c.x - x.y * s.x, x.x * s.x + x.y * c.x, x.z * c.y - x.w * s.y,
    x.z * s.y + x.w * c.y);
}
{{- end}}
{{end}}

// An expression for vector quad of the head of X that starts at index at. If Norms is true, the vector is
// multiplied by the weights of a norm. If Turn is set, the vector is then rotated.
{{define "rotary_turn"}}
{{- if eq .Turn "halves"}}turned({{template "rotary_from" (set . "Quad" "quad")}},
    {{- /**/}} {{template "rotary_from" (set . "Quad" "other_half(quad)")}}, quad)
{{- else if .Turn}}turned({{template "rotary_from" (set . "Quad" "quad")}}, quad)
{{- else}}{{.X}}[at + quad]{{end}}
{{- end}}

{{define "rotary_from"}}
{{- .X}}[at + {{.Quad}}]{{if .Norms}} * {{.X}}_weight[{{.Quad}}]{{end}}
{{- end}}
