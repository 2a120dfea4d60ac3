{{define "kv_cache"}}
{{- if .HalfCache}}
// Returns four elements of a cache that stores f16 numbers, two in each word.
fn cached(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
{{- else}}
// Returns four elements of a cache that stores f32 numbers.
fn cached(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}
{{- end}}
{{end}}
{{define "kv_stored"}}
{{- if .HalfCache}}
// Converts four elements to the form in which a cache stores them: f16 numbers, two in each word.
fn stored(elements: vec4<f32>) -> vec2<u32> {
  return vec2<u32>(pack2x16float(elements.xy), pack2x16float(elements.zw));
}

// Returns the elements as later steps will read them from the cache, which means rounded to f16. A compiler
// could remove a conversion to f16 and back. It does not know that params.context >> 31u is always 0, so here
// it cannot.
fn reread(words: vec2<u32>) -> vec4<f32> {
  return cached(words | vec2<u32>(params.context >> 31u));
}
{{- else}}
// Returns four elements in the form in which a cache stores them.
fn stored(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}

// Returns the elements as later steps will read them from the cache.
fn reread(elements: vec4<f32>) -> vec4<f32> {
  return elements;
}
{{- end}}
{{end}}
