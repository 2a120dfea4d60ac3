// The sums of the elements of a row up to each index. A workgroup computes a row, {{.Lanes}} elements at a
// time. In each pass, an invocation adds the sum that another one has, twice as far away as in the pass
// before (Hillis and Steele, Data Parallel Algorithms, 1986).
struct Params {
  rows: u32,
  width: u32, // elements of a row
}

{{binding}} var<storage, read> x: array<{{.Type}}>;
{{binding}} var<storage, read_write> y: array<{{.Type}}>;
{{binding}} var<uniform> params: Params;

var<workgroup> sums: array<{{.Type}}, {{.Lanes}}>;

{{template "flat_group" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let row = flat_group(wid, groups);
  if (row >= params.rows) { // the same for all invocations
    return;
  }
  var before = {{.Type}}(0); // the sum of the elements before this part
  for (var first = 0u; first < params.width; first += {{.Lanes}}u) {
    let at = row * params.width + first + lane;
    var sum = {{.Type}}(0);
    if (first + lane < params.width) {
      sum = x[at];
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var apart = 1u; apart < {{.Lanes}}u; apart *= 2u) {
      var other = {{.Type}}(0);
      if (lane >= apart) {
        other = sums[lane - apart];
      }
      workgroupBarrier();
      sum += other;
      sums[lane] = sum;
      workgroupBarrier();
    }
    if (first + lane < params.width) {
      y[at] = before + sum;
    }
    before += sums[{{sub .Lanes 1}}u];
    workgroupBarrier();
  }
}
