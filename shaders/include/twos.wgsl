// The parts of formats of which two bits of a weight, q or its lowest, lie sixteen to a word, those of
// columns 0 to 3 of both eights in the low half of it, those of 4 to 7 in the high one.
{{define "twos_binding"}}
{{- if .Wide}}
{{binding}} var<storage, read> weights: array<vec2<u32>>; // [n, {{.Chunks}}]
{{- else}}
{{binding}} var<storage, read> weights: array<u32>; // [n, columns / 16]
{{- end}}
{{- end}}
