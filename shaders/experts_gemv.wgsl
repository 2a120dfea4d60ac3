{{- if .Combine}}
// y =
{{- if .Residual}} residual +{{end}} x * w[expert]'{{if .Bias}} + bias[expert]{{end}}, times the expert's
// weight, summed over the {{.K}} chosen experts of a token. Each slot of a token has its row of x. A
// workgroup processes {{.Rows}} rows of the matrix of each of these experts. A lane processes chunks of any
// slot.
{{- else}}
// y =
{{- if .Gated}} {{.Gated}}(x * gate[expert]') * (x * up[expert]')
{{- else}} x * w[expert]'{{end}}{{if .Bias}} + bias[expert]{{end}}
{{- /* */}} for each of the {{.K}} chosen experts of a token.
{{- if .EachSlot}} Each slot of a token
// has its row of x.
{{- else}} All slots
// of a token read the same row of x.
{{- end}}
{{- if .Gated}} The matrix of an expert has the rows of gate, then those of up.{{end}}
// A workgroup processes {{.Rows}} rows of
{{- if .Gated}} gate and as many of up, of one expert{{else}} the matrix of one expert{{end}}.
{{- end}}
// The loop is that of linear_gemv.
{{- $rows := .Rows}}{{$halves := 1}}{{if .Gated}}{{$rows = mul 2 .Rows}}{{$halves = 2}}{{end}}
{{- $sums := $rows}}
{{- $parts := div .Lanes $sums}}
{{- $shares := div (add .Given (sub .Lanes 1)) .Lanes}}{{/* number of given squares for each lane */}}
{{- $all := .Chunks}}{{if .Combine}}{{$all = mul .K .Chunks}}{{end}}{{/* chunks that the lanes share */}}
{{- $at := "chunk"}}{{if .Combine}}{{$at = "column"}}{{end}}{{/* chunk of a row of w */}}
{{- $stack := printf "%du" (mul .Stack (mul $halves .N))}}
{{- if .Several}}{{$stack = printf "params.experts * %du" (mul $halves .N)}}{{end}}
{{- $put := "+="}}{{$more := printf "if (next_chunk < %du) { " $all}}{{$end := " }"}}
{{- if eq $all .Lanes}}{{$put = "="}}{{$more = ""}}{{$end = ""}}{{end}}
{{- $unrolled := and (eq .N (mul .Rows (div .N .Rows))) (le $all .Lanes)}}
{{- $f := set . "GEMV" true "Wide" (gt .Eights 1) "Partial" false "HeadQuads" 0 "Run" 0
  "Count" $stack "Columns" (printf "%du" (mul .Chunks (mul 8 .Eights)))}}
{{- if or .Tokens .Several}}
struct Params {
{{- if .Tokens}}
  tokens: u32,
{{- end}}
{{- if .Several}}
  first: u32, // first expert of this part of the matrices
  experts: u32, // number of experts of this part
{{- end}}
}
{{- end}}

const n = {{.N}}u; // {{if .Gated}}rows of gate and of up{{else}}rows of w{{end}} of an expert
{{- if .Norm}}
const eps = {{.Eps}}f; // of the norm whose result is x
{{- end}}

{{binding}} var<storage, read> x: array<vec4<f32>>;
{{- template "format_bindings" $f}}
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>; // [experts, {{if .Gated}}2, {{end}}n]
{{- end}}
{{- if .Choose}}
{{binding}} var<storage, read> logits: array<u32>; // bits of f32, one for each of {{.Choose}} experts
{{- else}}
{{binding}} var<storage, read> experts: array<u32>; // [tokens, {{.K}}]
{{- end}}
{{- if .Combine}}
{{binding}} var<storage, read> shares: array<f32>; // [tokens, {{.K}}]: the weights of the experts
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<f32>;
{{- end}}
{{- if .Given}}
{{binding}} var<storage, read> squares: array<f32>; // sums of squares of the row that is normalized
{{- else if .Norm}}
{{binding}} var<storage, read> norm: array<vec4<f32>>; // weights of the norm
{{- end}}
{{binding}} var<storage, read_write> y: array<f32>;
{{- if or .Tokens .Several}}
{{binding}} var<uniform> params: Params;
{{- end}}


{{- if .Spread}}
{{- template "spread" .}}
{{- end}}
{{template "format" $f}}
{{- template "gemv" $f}}

{{- if .Choose}}

{{template "key_of" .}}
fn key_at(e: u32) -> u32 {
  return key_of(logits[e]);
}
{{template "choose" (set . "Experts" .Choose)}}
{{- end}}

{{template "gemv_partial" (set . "Sums" $sums)}}

{{- if .Combine}}

var<private> share: f32; // weight of the expert whose columns the lane processes
{{- end}}

{{- if .Norm}}

// The squares are added up in the same loop as the products. The scale of the norm is applied after the loop.
var<private> squared_sum: f32;
var<workgroup> squared: array<f32, {{.Lanes}}>;
var<workgroup> part_squared: array<f32, {{$parts}}>;
{{- end}}

// Returns four columns of the row of x that starts at index row.
fn columns(row: u32, at: u32) -> vec4<f32> {
{{- if and .Norm (not .Given)}}
  let v = x[row + at];
  squared_sum += dot(v, v);
  return v * norm[at];
{{- else if .Spread}}
  return x[row + spread(at, {{div (mul .Chunks .Eights) 4}}u)];
{{- else}}
  return x[row + at]{{if .Combine}} * share{{end}};
{{- end}}
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
{{- if .Tokens}}
  let token = wid.{{if .Combine}}y{{else}}z{{end}};
  if (token >= params.tokens) {
    return; // the grid can be larger than the current shape needs
  }
{{- end}}
  let group_row = wid.x * {{.Rows}}u;
{{- if .Combine}}
  let pair = {{if .Tokens}}token * {{.K}}u{{else}}0u{{end}}; // the first slot of the token
{{- else}}
  let pair = {{if .Tokens}}token * {{.K}}u + {{end}}wid.y;
{{- end}}
  let x_row0 = {{if .EachSlot}}pair * {{mul .Chunks (mul 2 .Eights)}}u
    {{- else if .Tokens}}token * {{mul .Chunks (mul 2 .Eights)}}u{{else}}0u{{end}};
{{- if .Combine}}
  var chunk = lane;
  var column = chunk % {{.Chunks}}u;
  let slot = pair + {{if gt .Lanes $all}}min(chunk / {{.Chunks}}u, {{sub .K 1}}u)
    {{- else}}chunk / {{.Chunks}}u{{end}};
  var first = experts[slot] * n + group_row; // first row of w that is processed
  share = shares[slot];
{{- else}}
{{- range $i := $shares}}
  let square{{$i}} = squares[lane + {{mul $i $.Lanes}}u];
{{- end}}
{{- if .Choose}}
  choose(lane); // as the router does, which runs at the same time
  let expert = chosen[wid.y];
{{- else}}
  let expert = experts[pair]{{if .Several}} - params.first{{end}};
{{- end}}
{{- if .Several}}
  if (expert >= params.experts) {
    return; // another dispatch has the matrix of this expert
  }
{{- end}}
  let first = expert * {{if .Gated}}(2u * n){{else}}n{{end}} + group_row; // first row of w that is processed
{{- end}}
{{- template "gemv_begin" $f}}
{{- range $r := 4}}
  var row{{$r}} = load_near(first + {{$r}}u, {{if $.Combine}}column{{else}}lane{{end}});
{{- end}}
{{- if defined "format_scale"}}
  var scale_bits = load_scales(first, {{if .Combine}}column{{else}}lane{{end}});
{{- end}}
  // The result that this lane computes in the end.
  let sum = lane % {{$sums}}u;
  let row = group_row + sum % {{.Rows}}u;
{{- if $unrolled}}
  let rows = {{$rows}}u;
{{- else}}
  let rows = min({{$rows}}u, {{if .Gated}}2u * {{end}}n - group_row);
{{- end}}
{{- if eq $all .Lanes}}
  {
{{- if not .Combine}}
    let chunk = lane;
{{- end}}
{{- else if .Combine}}
  for (; chunk < {{$all}}u; chunk += {{.Lanes}}u) {
    let ahead = min(chunk + {{.Lanes}}u, {{sub $all 1}}u);
    let next_slot = pair + ahead / {{.Chunks}}u;
    let next_column = ahead % {{.Chunks}}u;
    let next_first = experts[next_slot] * n + group_row;
{{- else}}
  for (var chunk = lane; chunk < {{$all}}u; chunk += {{.Lanes}}u) {
{{- end}}
{{- template "gemv_x" (set $f "B" 0)}}
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
{{- if eq $all .Lanes}}
      let next = select(done + 4u, done, last); // the last rows are loaded again
{{- else}}
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + {{.Lanes}}u, last);
{{- if .Combine}}
      let next_at = select(column, next_column, last);
{{- end}}
{{- end}}
      let next_row = next +
        {{- if and .Combine (ne $all .Lanes)}} select(first, next_first, last){{else}} first{{end}}
        {{- if .Gated}} + select(0u, n - {{.Rows}}u, next >= {{.Rows}}u){{end}};
{{- $to := $at}}{{if ne $all .Lanes}}{{$to = "next_chunk"}}{{if .Combine}}{{$to = "next_at"}}{{end}}{{end}}
{{- if defined "format_scale"}}
{{- template "gemv_factors" $f}}
      {{$more}}scale_bits = load_scales(next_row, {{$to}});{{$end}}
{{- end}}
{{- range $r := 4}}
{{- $row := set $f "R" $r}}
{{- template "gemv_weights" $row}}
      {{$more}}row{{$r}} = load_near(next_row + {{$r}}u, {{$to}});{{$end}}
{{- template "gemv_dot" (set $row "B" 0)}}
      partial[place(lane, done + {{$r}}u)] {{$put}} sum0_{{$r}};
{{- end}}
    }
{{- if and .Combine (ne $all .Lanes)}}
    first = next_first;
    column = next_column;
    share = shares[next_slot];
{{- end}}
  }
{{- range $i := $shares}}
  squared_sum +=
    {{- if le (mul (add $i 1) $.Lanes) $.Given}} square{{$i}};
    {{- else}} select(0.0, square{{$i}}, lane + {{mul $i $.Lanes}}u < {{$.Given}}u);
    {{- end}}
{{- end}}
{{- template "gemv_add_up" (set . "Sums" $sums "Parts" $parts "Next" 0)}}
  if (row < n) {
{{- if .Norm}}
    let scale = inverseSqrt(squared_sum / {{mul .Chunks (mul 8 .Eights)}}.0 + eps);
    result *= scale;
{{- if .Gated}}
    up *= scale;
{{- end}}
{{- end}}
{{- if .Combine}}
{{- if .Bias}}
    for (var j = 0u; j < {{.K}}u; j++) {
      result += shares[pair + j] * bias[experts[pair + j] * n + row];
    }
{{- end}}
    let to = {{if .Tokens}}token * n + {{end}}row;
    y[to] = {{if .Residual}}residual[to] + {{if ne .Alpha 1.0}}{{.Alpha}}f * {{end}}{{end}}result;
{{- else}}
{{- if .Bias}}
    let bias_at = {{if .Several}}experts[pair]{{else}}expert{{end}} *
      {{- if .Gated}} (2u * n){{else}} n{{end}} + row;
    result += bias[bias_at];
{{- if .Gated}}
    up += bias[bias_at + n];
{{- end}}
{{- end}}
{{- if .Gated}}
    let v = result;
    result = {{.Expr}};
{{- end}}
    y[pair * n + row] = result;
{{- end}}
  }
}
