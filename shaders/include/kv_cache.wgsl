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

// The same as whoever reads them from the cache has them. A compiler that sees a float turned into a half and
// back again may leave out both: it does not know that no context is so long.
fn reread(words: vec2<u32>) -> vec4<f32> {
  return cached(words | vec2<u32>(params.context >> 31u));
}
{{- else}}
// Four elements as a cache has them.
fn stored(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// The same as whoever reads them from the cache has them.
fn reread(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}
{{- end}}
{{end}}
