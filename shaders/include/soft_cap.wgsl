// A function that limits scores smoothly: soft_cap(s) = cap * tanh(s / cap). T is the type of s. s / cap is
// clamped because some drivers compute tanh with exponentials, which overflow.
{{define "soft_cap"}}
{{- if .SoftCap}}
fn soft_cap(s: {{.T}}) -> {{.T}} {
  return {{.SoftCap}}f * tanh(clamp(s / {{.SoftCap}}f, {{.T}}(-15.0), {{.T}}(15.0)));
}
{{end}}
{{- end}}
