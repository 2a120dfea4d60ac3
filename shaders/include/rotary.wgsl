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

// What is turned, as vectors of an invocation's size, of which an invocation has Each: x, or q and k one
// behind the other.
{{define "rotary_elements"}}
{{- if .Both}}
// Element e of q and k, one behind the other.
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

// The position of invocation i, of those that are turned.
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
  position: u32, // invocations of one position{{if .Both}} of q{{end}}: all its heads
  positions: u32, // that {{if .Both}}k has{{else}}there are{{end}}
  skip: u32, // the first of them that {{if .Both}}q{{else}}x{{end}} has
  head: u32, // invocations of a head
{{- if .Both}}
  q: u32, // invocations of q; the others are of k
  k_position: u32, // invocations of one position of k
{{- end}}
{{- end}}

// Vectors of 4 of heads that are turned as they are loaded: Turn says which elements are pairs.
{{define "rotary_vector"}}
{{- if eq .Turn "halves"}}
// Vector quad of a head, turned with the one half of the turned elements away.
fn turned(x: vec4<f32>, other: vec4<f32>, quad: u32) -> vec4<f32> {
  let angle = params.angle + min(quad, {{sub (mul 2 .Half) 1}}u);
  let y = x * cosine[angle] + select(other, -other, quad < {{.Half}}u) * sine[angle];
  return select(x, y, quad < {{mul 2 .Half}}u);
}

// The vector that a vector is turned with.
fn other_half(quad: u32) -> u32 {
  return select(max(quad, {{.Half}}u) - {{.Half}}u, quad + {{.Half}}u, quad < {{.Half}}u);
}
{{- else}}
// Vector quad of a head, turned.
fn turned(x: vec4<f32>, quad: u32) -> vec4<f32> {
  let c = cosine[quad];
  let s = sine[quad];
  return vec4<f32>(x.x * c.x - x.y * s.x, x.x * s.x + x.y * c.x, x.z * c.y - x.w * s.y,
    x.z * s.y + x.w * c.y);
}
{{- end}}
{{end}}

// Vector quad of X from at on, by the weights of a norm where there are Norms.
{{define "rotary_turn"}}
{{- if eq .Turn "halves"}}turned({{template "rotary_from" (set . "Quad" "quad")}},
    {{- /**/}} {{template "rotary_from" (set . "Quad" "other_half(quad)")}}, quad)
{{- else if .Turn}}turned({{template "rotary_from" (set . "Quad" "quad")}}, quad)
{{- else}}{{.X}}[at + quad]{{end}}
{{- end}}

{{define "rotary_from"}}
{{- .X}}[at + {{.Quad}}]{{if .Norms}} * {{.X}}_weight[{{.Quad}}]{{end}}
{{- end}}
