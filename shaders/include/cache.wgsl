{{define "cache_load"}}
// Four elements of the KV cache.
fn cache_load(i: u32) -> vec4<f32> {
{{- if .Half}}
  let words = cache[i];
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
{{- else}}
  return cache[i];
{{- end}}
}
{{end}}
