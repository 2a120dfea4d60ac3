// One token's attention over a part of the positions: a workgroup takes a head and a split of split_length positions, 64 at a time. Lane t has position t of
// the 64 for the scores, then dims t, t + 64, ... of the output. It leaves the sum of exp(score - largest) * v, with largest and the
// sum of exponentials, for sdpa_reduce. A split behind the last position leaves zeros. Source: Dao et al., Flash-Decoding for long-context
// inference (2023).
struct Params {
  context: u32,
  splits: u32,
  split_length: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [1, {{.Heads}}, {{.D}}]
@group(0) @binding(1) var<storage, read> k_cache: array<{{if .Half}}vec2<u32>{{else}}vec4<f32>{{end}}>; // [C, {{.KVHeads}}, {{.D}}]
@group(0) @binding(2) var<storage, read> v_cache: array<{{if .Half}}u32{{else}}f32{{end}}>;
@group(0) @binding(3) var<storage, read_write> part_o: array<f32>; // [{{.Heads}}, splits, {{.D}}]
@group(0) @binding(4) var<storage, read_write> part_ml: array<vec2<f32>>; // [{{.Heads}}, splits]
@group(0) @binding(5) var<uniform> params: Params;

var<workgroup> weights: array<f32, 64>;
{{template "flat_group" .}}
{{template "partial" .}}
{{template "reduce_sum" .}}
{{template "reduce_max" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let head = id / params.splits;
  let split = id % params.splits;
  let there = head < {{.Heads}}u;
  let kv = head / {{div .Heads .KVHeads}}u;
  let start = select(params.context, split * params.split_length, there);
  let end = min(params.context, start + params.split_length);
  var largest = -1e30;
  var sum = 0.0;
{{- range $i := .PerLane}}
  var o{{$i}} = 0.0;
{{- end}}
  for (var c0 = start; c0 < end; c0 += 64u) {
    let c = c0 + lane;
    var score = -1e30;
    if (c < end) {
      var dots = vec4<f32>();
      let row = (c * {{.KVHeads}}u + kv) * {{div .D 4}}u;
      for (var d = 0u; d < {{div .D 4}}u; d++) {
{{- if .Half}}
        let words = k_cache[row + d];
        dots += q[head * {{div .D 4}}u + d] * vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
{{- else}}
        dots += q[head * {{div .D 4}}u + d] * k_cache[row + d];
{{- end}}
      }
      score = (dots.x + dots.y + dots.z + dots.w) * params.scale;
    }
    let m = max(largest, reduce_max(lane, score));
    var weight = 0.0;
    if (c < end) {
      weight = exp(score - m);
    }
    weights[lane] = weight;
    let shrink = exp(largest - m);
    sum = sum * shrink + reduce_sum(lane, weight);
    largest = m;
{{- range $i := .PerLane}}
    o{{$i}} *= shrink;
{{- end}}
    for (var j = 0u; j < min(64u, end - c0); j++) {
      let base = ((c0 + j) * {{.KVHeads}}u + kv) * {{.D}}u + lane;
{{- range $i := .PerLane}}
      if (lane + {{mul $i 64}}u < {{$.D}}u) {
{{- if $.Half}}
        let word = unpack2x16float(v_cache[(base + {{mul $i 64}}u) / 2u]);
        o{{$i}} += weights[j] * select(word.x, word.y, (base & 1u) == 1u);
{{- else}}
        o{{$i}} += weights[j] * v_cache[base + {{mul $i 64}}u];
{{- end}}
      }
{{- end}}
    }
    workgroupBarrier(); // before the next 64 overwrite weights
  }
  if (there) {
{{- range $i := .PerLane}}
    if (lane + {{mul $i 64}}u < {{$.D}}u) {
      part_o[id * {{$.D}}u + lane + {{mul $i 64}}u] = o{{$i}};
    }
{{- end}}
    if (lane == 0u) {
      part_ml[id] = vec2<f32>(largest, sum);
    }
  }
}
