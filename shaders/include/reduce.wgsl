{{define "partial"}}
var<workgroup> partial: array<f32, {{.Lanes}}>;
{{end}}
{{define "reduce_sum"}}
// The sum of v over the workgroup's lanes, for each lane. Every lane must call it.
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
// The largest v over the workgroup's lanes, for each lane. Every lane must call it.
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
