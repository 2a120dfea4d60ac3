// Functions that the kernels of the gated delta rule share. Sums are written with fma, so that all kernels
// round them in the same way.
{{define "delta_rule"}}
// Returns ln(1 + exp(x)).
fn softplus(x: f32) -> f32 {
  return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

// Returns the product of four elements of a and b.
fn product(a: vec4<f32>, b: vec4<f32>) -> f32 {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)));
}
{{- end}}
