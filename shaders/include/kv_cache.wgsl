{{define "kv_cache"}}
{{- if .HalfCache}}
// Four elements of a cache of halves, two to a word.
fn cached(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
{{- else}}
// Four elements of a cache.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}
{{- end}}
{{end}}
{{define "kv_stored"}}
{{- if .HalfCache}}
// Four elements as a cache of halves has them.
fn stored(elements: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(pack2x16float(elements.xy), pack2x16float(elements.zw));
}
{{- else}}
// Four elements as a cache has them.
fn stored(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}
{{- end}}
{{end}}
