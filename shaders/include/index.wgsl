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
