{{define "partial"}}
var<workgroup> partial: array<f32, {{.Lanes}}>;
{{end}}
{{define "reduce_sum"}}
// Returns, to every lane, the sum of v over all lanes of the workgroup. Every lane must call this function.
fn reduce_sum(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = {{div .Lanes 2}}u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] += partial[lane + s];
    }
    workgroupBarrier();
  }
  let total = partial[0];
  workgroupBarrier();
  return total;
}
{{end}}
{{define "reduce_max"}}
// Returns, to every lane, the largest v of all lanes of the workgroup. Every lane must call this function.
fn reduce_max(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = {{div .Lanes 2}}u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = max(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}
{{end}}
{{define "reduce_join"}}
// Combines v of all lanes of the workgroup with the function join. It returns the result to every lane.
// Every lane must call this function.
fn reduce_join(lane: u32, v: f32) -> f32 {
  partial[lane] = v;
  workgroupBarrier();
  for (var s = {{div .Lanes 2}}u; s > 0u; s >>= 1u) {
    if (lane < s) {
      partial[lane] = join(partial[lane], partial[lane + s]);
    }
    workgroupBarrier();
  }
  return partial[0];
}
{{end}}
{{define "reduce_first_largest"}}
var<workgroup> bests: array<vec2<u32>, {{.Lanes}}>;

// Returns, to every lane, the pair (key, place) with the largest key of all lanes of the workgroup. Among
// equal keys, the smallest place wins. Every lane must call this function.
fn reduce_first_largest(lane: u32, pair: vec2<u32>) -> vec2<u32> {
  bests[lane] = pair;
  workgroupBarrier();
  for (var s = {{div .Lanes 2}}u; s > 0u; s >>= 1u) {
    if (lane < s) {
      let mine = bests[lane];
      let other = bests[lane + s];
      if (other.x > mine.x || (other.x == mine.x && other.y < mine.y)) {
        bests[lane] = other;
      }
    }
    workgroupBarrier();
  }
  return bests[0];
}
{{end}}
