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
  return i / params.position % params.positions;
}
{{end}}

{{define "rotary_params"}}
  n: u32, // invocations
  position: u32, // invocations of one position{{if .Both}} of q{{end}}: all its heads
  positions: u32, // that {{if .Both}}q and k have{{else}}x has{{end}}
  head: u32, // invocations of a head
{{- if .Both}}
  q: u32, // invocations of q; the others are of k
  k_position: u32, // invocations of one position of k
{{- end}}
{{- end}}
