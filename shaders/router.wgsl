// Chooses the {{.K}} of {{.Experts}} experts with the largest
{{- if .Bias}} sums of score and bias{{else}} logits{{end}} of a token, the largest first.
// Among equal ones, the expert with the lowest index comes first. The kernel also computes the weights of the
// chosen experts.
{{- if .Single}} There is only one token. Its pairs of token and expert are also counted
// and sorted.
{{- else}} A workgroup processes a token.
{{- end}}
{{- $all := and (not .Sigmoid) (not .Normalize)}}{{/* softmax over all logits */}}
{{- $fours := div (add .Experts 3) 4}}
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
{{template "reduce_max" .}}
{{- end}}
{{- template "rank" .}}
var<workgroup> chosen: array<u32, {{.K}}>;
{{- if .Normalize}}
var<workgroup> shares: array<f32, {{.K}}>; // the weights before they are normalized
{{- end}}
{{- if .Sigmoid}}

fn sigmoid(v: f32) -> f32 {
  return 1.0 / (1.0 + exp(-v));
}
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main({{if not .Single}}@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  {{end}}@builtin(local_invocation_index) lane: u32) {
{{- if .Single}}
  let row = 0u;
  let to = 0u;
{{- else}}
  let token = flat_group(wid, groups);
  if (token >= params.tokens) {
    return; // the grid can be larger than the current shape needs
  }
  let row = token * {{.Experts}}u;
  let to = token * {{.K}}u;
{{- end}}
{{- if $all}}
  var largest = -3.4028234e38;
{{- end}}
  for (var e = lane; e < {{mul 4 $fours}}u; e += {{.Lanes}}u) {
    var key = 0u; // no logit has this key
    if (e < {{.Experts}}u) {
{{- if .Bias}}
      key = key_of(bitcast<u32>(sigmoid(bitcast<f32>(logits[row + e])) + bias[e]));
{{- else}}
      key = key_of(logits[row + e]);
{{- end}}
{{- if $all}}
      largest = max(largest, bitcast<f32>(logits[row + e]));
{{- end}}
    }
    keys[e / 4u][e % 4u] = key;
  }
{{- if $all}}
  largest = reduce_max(lane, largest);
  var total = 0.0;
  for (var e = lane; e < {{.Experts}}u; e += {{.Lanes}}u) {
    total += exp(bitcast<f32>(logits[row + e]) - largest);
  }
  total = reduce_sum(lane, total);
{{- else}}
  workgroupBarrier();
{{- end}}
  for (var e = lane; e < {{.Experts}}u; e += {{.Lanes}}u) {
    let place = rank(e);
    if (place < {{.K}}u) {
      chosen[place] = e;
    }
  }
  workgroupBarrier();
  // {{.K}} lanes compute the weights.
  let slot = min(lane, {{sub .K 1}}u);
  let expert = chosen[slot];
  let logit = bitcast<f32>(logits[row + expert]);
{{- if .Sigmoid}}
  var weight = sigmoid(logit);
{{- else if .Normalize}}
  // The softmax over the chosen logits equals the softmax over all logits, divided by the sum of the chosen.
  var weight = exp(logit - bitcast<f32>(logits[row + chosen[0]]));
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
