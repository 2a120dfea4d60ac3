// A gated delta rule for one token: a workgroup processes {{.Cols}} columns of the state of one head. A lane
// holds four rows of four columns. It starts all its loads before it uses any of them. The sums have the same
// order as in gated_delta_rule, so both kernels give the same bits. A step has to fetch the code from memory
// in each layer, so the code is short.
{{- $across := div .Cols 4}}
{{- $quads := div .KeyDim 4}}
{{- $keys := mul .KeyHeads $quads}}
{{- $values := div .ValueDim 4}}
{{- $list := add (mul 2 $across) 1}}
struct Params {
  state_from: u32, // index of the first vector that the state before the step has in state
  state_to: u32, // index of the first vector of the state after the step
  fresh: u32, // 1 if the state before the step is zero
}

{{binding}} var<storage, read> qkv: array<vec4<f32>>;
{{binding}} var<storage, read> alpha: array<f32>;
{{binding}} var<storage, read> beta: array<f32>;
{{binding}} var<storage, read> a: array<f32>;
{{binding}} var<storage, read> dt: array<f32>;
{{binding}} var<storage, read_write> state: array<vec4<f32>>;
{{binding}} var<storage, read_write> y: array<vec4<f32>>;
{{binding}} var<uniform> params: Params;

const eps = {{.Eps}}f; // of the norms of queries and keys

// Each group of four rows has a list of sums: products of the columns with the key, then with the query, and
// last |q|^2, |k|^2 and q * k.
var<workgroup> parts: array<vec4<f32>, {{mul $quads $list}}>;
// The sums of {{div $quads .Down}} of these lists each.
var<workgroup> sums: array<vec4<f32>, {{mul .Down $list}}>;
{{template "delta_rule" .}}

// Returns the products of four rows of the state with a key or a query.
fn products(s0: vec4<f32>, s1: vec4<f32>, s2: vec4<f32>, s3: vec4<f32>, k: vec4<f32>) -> vec4<f32> {
  return fma(s3, vec4<f32>(k.w), fma(s2, vec4<f32>(k.z), fma(s1, vec4<f32>(k.y), s0 * k.x)));
}

@compute @workgroup_size({{mul $across $quads}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let head = wid.y;
  let key_head = {{if .Tiled}}head % {{.KeyHeads}}u{{else}}head / {{div .ValueHeads .KeyHeads}}u{{end}};
  let across = lane % {{$across}}u;
  let down = lane / {{$across}}u;
  let column = wid.x * {{$across}}u + across; // index of a group of four columns
  let here = column < {{$values}}u; // the last workgroup of a head may have fewer columns
  let first = (head * {{.KeyDim}}u + down * 4u) * {{$values}}u + column;
  let q = qkv[key_head * {{$quads}}u + down];
  let k = qkv[key_head * {{$quads}}u + down + {{$keys}}u];
  let v = qkv[{{mul 2 $keys}}u + head * {{$values}}u + column];
  let x = alpha[head] + dt[head];
  let factor = a[head];
  let gate = beta[head];
  var s0 = vec4<f32>(0.0);
  var s1 = vec4<f32>(0.0);
  var s2 = vec4<f32>(0.0);
  var s3 = vec4<f32>(0.0);
  if (params.fresh == 0u) {
    let at = params.state_from + first;
    s0 = state[at];
    s1 = state[at + {{$values}}u];
    s2 = state[at + {{mul 2 $values}}u];
    s3 = state[at + {{mul 3 $values}}u];
  }
  let decay = exp(factor * softplus(x));
  let strength = 1.0 / (1.0 + exp(-gate));
  let part = down * {{$list}}u + across;
  parts[part] = products(s0, s1, s2, s3, k);
  parts[part + {{$across}}u] = products(s0, s1, s2, s3, q);
  if (across == 0u) {
    parts[part + {{mul 2 $across}}u] = vec4<f32>(product(q, q), product(k, k), product(q, k), 0.0);
  }
  workgroupBarrier();
  if (lane < {{mul .Down $list}}u) {
    var sum = parts[lane];
{{- range $i := div $quads .Down}}{{if $i}}
    sum += parts[lane + {{mul $i (mul $.Down $list)}}u];
{{- end}}{{end}}
    sums[lane] = sum;
  }
  workgroupBarrier();
  var of_key = sums[across];
  var norms = sums[{{mul 2 $across}}];
{{- range $i := .Down}}{{if $i}}
  of_key += sums[across + {{mul $i $list}}u];
  norms += sums[{{add (mul 2 $across) (mul $i $list)}}];
{{- end}}{{end}}
  let key_scale = inverseSqrt(norms.y + eps);
  let d = fma(vec4<f32>(-(decay * key_scale)), of_key, v) * strength;
  let write = key_scale * d;
  s0 = fma(write, vec4<f32>(k.x), decay * s0);
  s1 = fma(write, vec4<f32>(k.y), decay * s1);
  s2 = fma(write, vec4<f32>(k.z), decay * s2);
  s3 = fma(write, vec4<f32>(k.w), decay * s3);
  if (here && down == 0u) {
    var of_query = sums[across + {{$across}}u];
{{- range $i := .Down}}{{if $i}}
    of_query += sums[across + {{add $across (mul $i $list)}}u];
{{- end}}{{end}}
    let query_scale = inverseSqrt(norms.x + eps) * inverseSqrt({{.KeyDim}}.0);
    y[head * {{$values}}u + column] =
      fma(vec4<f32>(decay * query_scale), of_query, norms.z * query_scale * key_scale * d);
  }
  if (here) {
    let at = params.state_to + first;
    state[at] = s0;
    state[at + {{$values}}u] = s1;
    state[at + {{mul 2 $values}}u] = s2;
    state[at + {{mul 3 $values}}u] = s3;
  }
}
