{{define "flat_thread"}}
// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * {{.Lanes}}u);
}
{{end}}
{{define "flat_group"}}
// The index of a workgroup in a grid of one dimension that may have been folded into two.
fn flat_group(wid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return wid.x + wid.y * groups.x;
}
{{end}}

// Where vector four lies of a row of so many chunks of 32 columns that is spread: the first of each chunk
// beside that of the next, then the second ones, so that lanes of a GEMV, of which each has a chunk, load
// what lies together.
{{define "spread"}}

fn spread(four: u32, chunks: u32) -> u32 {
  return four % 8u * chunks + four / 8u;
}
{{- end}}
