{{define "rank"}}
// The keys of the logits of all experts (see key_of), four in a vector. Past the last expert there are zeros.
var<workgroup> keys: array<vec4<u32>, {{div (add .Experts 3) 4}}>;

// Returns how many experts a router prefers to an expert: those with a larger key, and those with the same
// key and a lower index.
fn rank(expert: u32) -> u32 {
  let key = vec4<u32>(keys[expert / 4u][expert % 4u]);
  var before = vec4<u32>(0u);
  for (var i = 0u; i < {{div (add .Experts 3) 4}}u; i++) {
    let other = keys[i];
    let index = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(4u * i);
    let first = (other > key) | ((other == key) & (index < vec4<u32>(expert)));
    before += select(vec4<u32>(0u), vec4<u32>(1u), first);
  }
  return before.x + before.y + before.z + before.w;
}
{{- end}}
