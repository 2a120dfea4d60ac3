{{define "flat_thread"}}
// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * {{.Lanes}}u);
}
{{end}}

// The entry point of a kernel in which each invocation computes one element. The kernel defines
// fn element(i: u32), and its params start with n, the number of elements. The grid may be larger than n.
{{define "each_element"}}
{{- template "flat_thread" .}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i < params.n) {
    element(i);
  }
}
{{- end}}
{{define "flat_group"}}
// Returns the index of a workgroup in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}
{{end}}

// Returns the index at which an interleaved row stores a vector of four columns. The row consists of chunks
// of 32 columns, which are 8 vectors. It stores the first vectors of all chunks, then the second vectors of
// all chunks, and so on. In a GEMV, where each lane loads one chunk, neighboring lanes then load
// neighboring addresses.
{{define "spread"}}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}
{{- end}}
