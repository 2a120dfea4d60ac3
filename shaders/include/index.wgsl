{{define "flat_thread"}}
// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * {{.Lanes}}u);
}
{{end}}
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
