{{/* The partial results of the lanes of a GEMV, and how they are added up. Needs: .Sums, the number of sums
of a workgroup; .Parts, the number of groups of as many lanes; and the constants Lanes, Norm, Gated, Rows and
Next of the kernel. */}}
{{define "gemv_partial"}}var<workgroup> partial: array<f32, {{mul .Lanes .Sums}}>;

// Returns the index in partial of a lane's partial result for a sum. Lanes that write the same sum, or read
// neighboring sums, use different memory banks.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * {{.Sums}}u +
    (sum ^ {{if ge .Sums 32}}(lane & 31u){{else}}((lane / {{div 32 .Sums}}u) & {{sub .Sums 1}}u){{end}});
}
{{- end}}
{{define "gemv_add_up"}}
{{- $parts := .Parts}}{{$squares := "part_squared"}}
{{- $middle := and (ge .Parts 32) (eq .Parts (mul 8 (div .Parts 8)))}}
{{- if $middle}}{{$parts = 8}}{{$squares = "squared"}}{{end}}
{{- if .Norm}}
  squared[lane] = squared_sum;
{{- end}}
  workgroupBarrier();
  // {{.Parts}} lanes add up each of the {{.Sums}} sums.
  let part = lane / {{.Sums}}u;
  var result = 0.0;
{{- if .Norm}}
  squared_sum = 0.0;
{{- end}}
  for (var i = 0u; i < {{.Sums}}u; i++) {
    result += partial[place(i * {{.Parts}}u + part, sum)];
{{- if .Norm}}
    squared_sum += squared[i * {{.Parts}}u + part];
{{- end}}
  }
{{- if or (gt .Parts 1) .Gated .Next}}
  // Store the result at an index that no other lane has read.
  partial[place(part, sum)] = result;
{{- if .Norm}}
  if (sum == 0u) {
    part_squared[part] = squared_sum;
  }
{{- end}}
  workgroupBarrier();
{{- if $middle}}
  // 8 lanes add up the {{.Parts}} results of each sum.
  if (part < 8u) {
    for (var i = 1u; i < {{div .Parts 8}}u; i++) {
      result += partial[place(i * 8u + part, sum)];
{{- if .Norm}}
      squared_sum += part_squared[i * 8u + part];
{{- end}}
    }
    partial[place(part, sum)] = result;
{{- if .Norm}}
    if (sum == 0u) {
      squared[part] = squared_sum;
    }
{{- end}}
  }
  workgroupBarrier();
{{- end}}
{{- if not .Next}}
  if (part > 0u{{if .Gated}} || sum >= {{.Rows}}u{{end}}) {
    return;
  }
{{- end}}
  for (var i = 1u; i < {{$parts}}u; i++) {
    result += partial[place(i, sum)];
{{- if .Norm}}
    squared_sum += {{$squares}}[i];
{{- end}}
  }
{{- end}}
{{- if .Gated}}
  var up = 0.0;
  for (var i = 0u; i < {{$parts}}u; i++) {
    up += partial[place(i, sum + {{.Rows}}u)];
  }
{{- end}}
{{- end}}
