// Counts the tokens of each of {{.Experts}} experts, and sorts the pairs of a token and a chosen expert by
// expert. Pairs of the same expert keep their order. A workgroup finds the pairs of one expert, and a lane
// looks through a range of all pairs.
struct Params {
  pairs: u32,
  each: u32, // pairs of a lane
}

{{binding}} var<storage, read> experts: array<u32>; // [pairs]
{{binding}} var<storage, read_write> counts: array<u32>; // [{{.Experts}}]
// For each expert the number of pairs of lower experts, the number of all pairs, and then the sorted pairs.
{{binding}} var<storage, read_write> sorted: array<u32>;
{{binding}} var<uniform> params: Params;

{{template "flat_group" .}}
var<workgroup> sums: array<vec2<u32>, {{.Lanes}}>;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let expert = flat_group(wid, groups);
  if (expert >= {{.Experts}}u) {
    return; // the grid can be larger than the number of experts
  }
  let begin = min(lane * params.each, params.pairs);
  let end = min(begin + params.each, params.pairs);
  var found = vec2<u32>(0u); // pairs of lower experts, and pairs of this expert
  for (var pair = begin; pair < end; pair++) {
    let other = experts[pair];
    found += select(vec2<u32>(0u), vec2<u32>(1u), vec2<bool>(other < expert, other == expert));
  }
  // Each lane adds up its own numbers and those of all lanes before it.
  var upto = found;
  sums[lane] = upto;
  workgroupBarrier();
  for (var stride = 1u; stride < {{.Lanes}}u; stride <<= 1u) {
    if (lane >= stride) {
      upto += sums[lane - stride];
    }
    workgroupBarrier();
    sums[lane] = upto;
    workgroupBarrier();
  }
  let all = sums[{{sub .Lanes 1}}];
  var to = {{add .Experts 1}}u + all.x + upto.y - found.y;
  for (var pair = begin; pair < end; pair++) {
    if (experts[pair] == expert) {
      sorted[to] = pair;
      to++;
    }
  }
  if (lane == 0u) {
    counts[expert] = all.y;
    sorted[expert] = all.x;
    if (expert == {{sub .Experts 1}}u) {
      sorted[{{.Experts}}] = params.pairs;
    }
  }
}
