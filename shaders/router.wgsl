// Chooses the {{.K}} of {{.Experts}} experts with the largest
{{- if .Bias}} sums of score and bias{{else}} logits{{end}} of a token, the largest first.
// Among equal ones, the expert with the lowest index comes first. The kernel also computes the weights of the
// chosen experts.
{{- if .Single}} There is only one token. Its pairs of token and expert are also counted
// and sorted.
{{- else}} A workgroup processes a token.
{{- end}}
{{- $all := and (not .Sigmoid) (not .Normalize)}}{{/* softmax over all logits */}}
{{- $row := "row + "}}{{if .Single}}{{$row = ""}}{{end}}
{{- if not .Single}}
struct Params {
  tokens: u32,
}
{{- end}}

{{binding}} var<storage, read> logits: array<u32>; // bits of f32
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>; // is added to the scores before the choice
{{- end}}
{{- if .Factors}}
{{binding}} var<storage, read> factors: array<f32>; // the weight of an expert is multiplied by its factor
{{- end}}
{{binding}} var<storage, read_write> experts: array<u32>; // [tokens, {{.K}}]
{{binding}} var<storage, read_write> weights: array<f32>; // [tokens, {{.K}}]
{{- if .Single}}
{{binding}} var<storage, read_write> counts: array<u32>; // [{{.Experts}}]
{{binding}} var<storage, read_write> sorted: array<u32>; // [{{.Experts}} + 1] offsets, then [{{.K}}] pairs
{{- else}}
{{binding}} var<uniform> params: Params;
{{template "flat_group" .}}
{{- end}}
{{template "key_of" .}}
{{- if $all}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{- end}}
{{- if not .Single}}
var<private> row: u32; // index of the token's first logit
{{- end}}
{{- if .Normalize}}
var<workgroup> shares: array<f32, {{.K}}>; // the weights before they are normalized
{{- end}}
{{- if .Sigmoid}}

fn sigmoid(v: f32) -> f32 {
  return 1.0 / (1.0 + exp(-v));
}
{{- end}}

fn key_at(e: u32) -> u32 {
{{- if .Bias}}
  return key_of(bitcast<u32>(sigmoid(bitcast<f32>(logits[{{$row}}e])) + bias[e]));
{{- else}}
  return key_of(logits[{{$row}}e]);
{{- end}}
}
{{template "choose" .}}

@compute @workgroup_size({{.Lanes}})
fn main({{if not .Single}}@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  {{end}}@builtin(local_invocation_index) lane: u32) {
{{- if .Single}}
  let to = 0u;
{{- else}}
  let token = flat_group(wid, groups);
  if (token >= params.tokens) {
    return; // the grid can be larger than the current shape needs
  }
  row = token * {{.Experts}}u;
  let to = token * {{.K}}u;
{{- end}}
  choose(lane);
{{- if $all}}
  let largest = bitcast<f32>(logits[{{$row}}chosen[0]]);
  var total = 0.0;
  for (var e = lane; e < {{.Experts}}u; e += {{.Lanes}}u) {
    total += exp(bitcast<f32>(logits[{{$row}}e]) - largest);
  }
  total = reduce_sum(lane, total);
{{- end}}
  // {{.K}} lanes compute the weights.
  let slot = min(lane, {{sub .K 1}}u);
  let expert = chosen[slot];
  let logit = bitcast<f32>(logits[{{$row}}expert]);
{{- if .Sigmoid}}
  var weight = sigmoid(logit);
{{- else if .Normalize}}
  // The softmax over the chosen logits equals the softmax over all logits, divided by the sum of the chosen.
  var weight = exp(logit - bitcast<f32>(logits[{{$row}}chosen[0]]));
{{- else}}
  var weight = exp(logit - largest) / total;
{{- end}}
{{- if .Normalize}}
  if (lane < {{.K}}u) {
    shares[lane] = weight;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < {{.K}}u; i++) {
    sum += shares[i];
  }
  weight /= sum;
{{- end}}
  if (lane < {{.K}}u) {
    experts[to + lane] = expert;
    weights[to + lane] = weight
      {{- if ne .Scale 1.0}} * {{.Scale}}f{{end}}{{if .Factors}} * factors[expert]{{end}};
  }
{{- if .Single}}
  for (var e = lane; e < {{.Experts}}u; e += {{.Lanes}}u) {
    var before = 0u;
    var count = 0u;
    for (var i = 0u; i < {{.K}}u; i++) {
      before += select(0u, 1u, chosen[i] < e);
      count += select(0u, 1u, chosen[i] == e);
    }
    counts[e] = count;
    sorted[e] = before;
  }
  if (lane < {{.K}}u) {
    var before = 0u;
    for (var i = 0u; i < {{.K}}u; i++) {
      before += select(0u, 1u, chosen[i] < expert);
    }
    sorted[{{add .Experts 1}}u + before] = lane;
  }
  if (lane == 0u) {
    sorted[{{.Experts}}] = {{.K}}u;
  }
{{- end}}
}
