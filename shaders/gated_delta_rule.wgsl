// A gated delta rule: a workgroup processes all tokens of the step for {{.Cols}} columns of the state of one
// head. A lane holds {{.Rows}} rows of one column in registers{{if gt .Down 1}}, and {{.Down}} lanes together
// hold a column{{end}}. The workgroup loads up to {{.Tokens}} tokens at a time.
{{- $lanes := mul .Cols .Down}}
{{- $quads := div .Rows 4}}
{{- $vectors := div .KeyDim 4}}
{{- $keys := mul .KeyHeads .KeyDim}}
{{- $width := add (mul 2 $keys) (mul .ValueHeads .ValueDim)}}
{{- $down := .Down}}
{{- $valueDim := .ValueDim}}
{{- $stride := mul (mul 4 .Down) .ValueDim}}{{/* from one group of four rows of a lane to the next */}}
struct Params {
  tokens: u32,
  state_from: u32, // index of the first element that the state before the step has in state
  state_to: u32, // index of the first element of the state after the step
  fresh: u32, // 1 if the state before the step is zero
}

{{binding}} var<storage, read> qkv: array<f32>;
{{binding}} var<storage, read> alpha: array<f32>;
{{binding}} var<storage, read> beta: array<f32>;
{{binding}} var<storage, read> a: array<f32>;
{{binding}} var<storage, read> dt: array<f32>;
{{binding}} var<storage, read_write> state: array<f32>;
{{binding}} var<storage, read_write> y: array<f32>;
{{binding}} var<uniform> params: Params;

const eps = {{.Eps}}f; // of the norms of queries and keys

var<workgroup> queries: array<vec4<f32>, {{mul .Tokens $vectors}}>;
var<workgroup> keys: array<vec4<f32>, {{mul .Tokens $vectors}}>;
var<workgroup> values: array<f32, {{mul .Tokens .Cols}}>;
var<workgroup> parts: array<vec4<f32>, {{$lanes}}>; // parts of |q|^2, |k|^2 and q * k
// Of each token: decay, strength of the write, 1 / |k|, and 1 / |q| / sqrt(D).
var<workgroup> factors: array<vec4<f32>, {{.Tokens}}>;
var<workgroup> both: array<f32, {{.Tokens}}>; // product of the normalized query and key of each token
{{- if gt .Down 1}}
var<workgroup> sums: array<vec2<f32>, {{mul 2 $lanes}}>; // of two tokens in turn
{{- end}}

{{- template "delta_rule" .}}

@compute @workgroup_size({{$lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = wid.y;
  let key_head = {{if .Tiled}}head % {{.KeyHeads}}u{{else}}head / {{div .ValueHeads .KeyHeads}}u{{end}};
  let column = wid.x * {{.Cols}}u + lane % {{.Cols}}u;
  let down = lane / {{.Cols}}u; // the lane holds groups of four rows down, down + {{.Down}}, ...
  let first = (head * {{.KeyDim}}u + down * 4u) * {{.ValueDim}}u + column;
  let here = column < {{.ValueDim}}u; // the last workgroup of a head may have fewer columns
{{- range $i := $quads}}
  var s{{$i}} = vec4<f32>(0.0);
{{- end}}
  if (here && params.fresh == 0u) {
    let at = params.state_from + first;
{{- range $i := $quads}}
    s{{$i}} = vec4<f32>(
      state[at + {{mul $i $stride}}u],
      state[at + {{add (mul $i $stride) $valueDim}}u],
      state[at + {{add (mul $i $stride) (mul 2 $valueDim)}}u],
      state[at + {{add (mul $i $stride) (mul 3 $valueDim)}}u]);
{{- end}}
  }
  for (var begin = 0u; begin < params.tokens; begin += {{.Tokens}}u) {
    let count = min({{.Tokens}}u, params.tokens - begin);
    workgroupBarrier(); // the tokens before these are no longer needed
    for (var i = lane; i < count * {{$vectors}}u; i += {{$lanes}}u) {
      let at = (begin + i / {{$vectors}}u) * {{$width}}u + key_head * {{.KeyDim}}u
        + i % {{$vectors}}u * 4u;
      queries[i] = vec4<f32>(qkv[at], qkv[at + 1u], qkv[at + 2u], qkv[at + 3u]);
      keys[i] = vec4<f32>(qkv[at + {{$keys}}u], qkv[at + {{add $keys 1}}u], qkv[at + {{add $keys 2}}u],
        qkv[at + {{add $keys 3}}u]);
    }
    for (var i = lane; i < count * {{.Cols}}u; i += {{$lanes}}u) {
      let c = wid.x * {{.Cols}}u + i % {{.Cols}}u;
      if (c < {{.ValueDim}}u) {
        let token = begin + i / {{.Cols}}u;
        values[i] = qkv[token * {{$width}}u + {{mul 2 $keys}}u + head * {{.ValueDim}}u + c];
      }
    }
    workgroupBarrier();
    let mine = lane / {{.Down}}u; // the token of which this lane adds up a part
    var part = vec4<f32>(0.0);
    if (mine < count) {
      for (var i = lane % {{.Down}}u; i < {{$vectors}}u; i += {{.Down}}u) {
        let q = queries[mine * {{$vectors}}u + i];
        let k = keys[mine * {{$vectors}}u + i];
        part += vec4<f32>(product(q, q), product(k, k), product(q, k), 0.0);
      }
    }
    parts[lane] = part;
    workgroupBarrier();
    if (lane < count) {
      var sum = vec4<f32>(0.0);
      for (var i = 0u; i < {{.Down}}u; i++) {
        sum += parts[lane * {{.Down}}u + i];
      }
      let at = (begin + lane) * {{.ValueHeads}}u + head;
      let of_query = inverseSqrt(sum.x + eps) * inverseSqrt({{.KeyDim}}.0);
      let of_key = inverseSqrt(sum.y + eps);
      let decay = exp(a[head] * softplus(alpha[at] + dt[head]));
      factors[lane] = vec4<f32>(decay, 1.0 / (1.0 + exp(-beta[at])), of_key, of_query);
      both[lane] = sum.z * of_query * of_key;
    }
    workgroupBarrier();
    for (var t = 0u; t < count; t++) {
      let f = factors[t];
      let at = t * {{$vectors}}u + down;
      var sum = vec2<f32>(0.0); // products of the column with the key and with the query
{{- range $i := $quads}}
      let k{{$i}} = keys[at + {{mul $i $down}}u];
      sum += vec2<f32>(product(s{{$i}}, k{{$i}}), product(s{{$i}}, queries[at + {{mul $i $down}}u]));
{{- end}}
{{- if gt .Down 1}}
      let turn = (t & 1u) * {{$lanes}}u;
      sums[turn + lane] = sum;
      workgroupBarrier();
      sum = sums[turn + lane % {{.Cols}}u]
{{- range $i := $down}}{{if $i}} + sums[turn + lane % {{$.Cols}}u + {{mul $i $.Cols}}u]{{end}}{{end}};
{{- end}}
      let d = fma(-(f.x * f.z), sum.x, values[t * {{.Cols}}u + lane % {{.Cols}}u]) * f.y;
      let write = f.z * d;
{{- range $i := $quads}}
      s{{$i}} = fma(vec4<f32>(write), k{{$i}}, f.x * s{{$i}});
{{- end}}
      if (here && lane < {{.Cols}}u) {
        y[((begin + t) * {{.ValueHeads}}u + head) * {{.ValueDim}}u + column] =
          fma(f.x * f.w, sum.y, both[t] * d);
      }
    }
  }
  if (here) {
    let at = params.state_to + first;
{{- range $i := $quads}}
    state[at + {{mul $i $stride}}u] = s{{$i}}.x;
    state[at + {{add (mul $i $stride) $valueDim}}u] = s{{$i}}.y;
    state[at + {{add (mul $i $stride) (mul 2 $valueDim)}}u] = s{{$i}}.z;
    state[at + {{add (mul $i $stride) (mul 3 $valueDim)}}u] = s{{$i}}.w;
{{- end}}
  }
}
