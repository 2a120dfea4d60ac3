// y = {{if .Gated}}{{.Gated}}(x * gate') * (x * up'){{else}}x * w' + bias{{end}}
{{- if .Residual}} + residual{{if .Shared}}, if there is one,{{end}}{{end}} for
{{- if .Last}} the last row{{else if eq .Batch 1}} a row{{else}} {{.Batch}} rows{{end}} of x.
{{- if .Gated}} w has the rows of gate, then those of up.{{end}} A workgroup processes
// {{.Rows}} rows of {{if .Gated}}gate and as many of up{{else}}w{{end}}. A lane loads a chunk of the columns
// of x, and keeps it in registers while it processes all these rows. In the end, the partial results of all
// lanes are added up.
//
// A lane processes four rows at a time. When it uses the stored bits of a row, it starts to load the row that
// is four rows later, so that this load runs while the next rows are processed. After the last row of a
// chunk, it loads the first row of the next chunk.
{{- $unrolled := and .N (eq .N (mul .Rows (div (or .N 1) .Rows))) (le .Chunks .Lanes)}}
{{- if not $unrolled}} The loop has no constant bounds, so that compilers
// do not unroll it: a step has to fetch the code of most kernels from memory, so code should be short.
{{- end}}
{{- $rows := .Rows}}{{if .Gated}}{{$rows = mul 2 .Rows}}{{end}}
{{- $sums := mul $rows .Batch}}
{{- $several := gt .Batch 1}}
{{- $parts := div .Lanes $sums}}
{{- $adders := .Lanes}}{{if .Sum}}{{$adders = .Sum}}{{end}}{{/* lanes that add up the given squares */}}
{{- $shares := div (add .Given (sub $adders 1)) $adders}}{{/* number of these sums for each lane */}}
{{- $uneven := lt .Given (mul $shares $adders)}}
{{- $norms := and .Norm (or .Sum (not .Given))}}{{/* this kernel computes the sum of squares of x */}}
{{- $put := "="}}{{$next_chunk := "chunk"}}{{$more := ""}}{{$end := ""}}
{{- if ne .Chunks .Lanes}}
  {{- $put = "+="}}{{$next_chunk = "next_chunk"}}
  {{- $more = printf "if (next_chunk < %du) { " .Chunks}}{{$end = " }"}}
{{- end}}
{{- $n := "params.n"}}{{if .N}}{{$n = "n"}}{{end}}
{{- $of_n := "rows of w"}}{{if .Gated}}{{$of_n = "rows of gate and of up"}}{{end}}
{{- $params := or $several (not .N) .Last .Shared .LastOfStream}}
{{- $f := set . "GEMV" true "Wide" (gt .Eights 1) "Partial" false "Count" $n
  "Columns" (printf "%du" (mul .Chunks (mul 8 .Eights)))}}
{{- if $params}}
struct Params {
{{- if $several}}
  m: u32, // rows of y{{if not .Residual}} and of x{{end}}
{{- end}}
{{- if not .N}}
  n: u32, // {{$of_n}}
{{- end}}
{{- if $several}}
  stride: u32, // number of elements from one row of y to the next
{{- end}}
{{- if not .N}}
  first: u32, // column of y that row 0 of w computes
{{- end}}
{{- if .Last}}
  x_from: u32, // vectors of x before its last row
{{- end}}
{{- if .Residual}}
{{- if $several}}
  x_rows: u32, // as many rows as y, or a single row that is used for all rows of y
  residual_rows: u32, // as many rows as x, or a single row that is used for all rows
{{- else if .Last}}
  residual_from: u32, // elements of the residual before the row that is added
{{- end}}
{{- if .Shared}}
  residual_rows: u32, // 0 if there is no residual
{{- end}}
{{- end}}
{{- if .LastOfStream}}
  stream_from: u32, // vectors of the stream before its last row
{{- end}}
}
{{- end}}

{{if .N}}const n = {{.N}}u; // {{$of_n}}{{end}}
{{- if .Norm}}
const eps = {{.Eps}}f; // of the norm{{if .Sum}}s{{end}} whose result is x
{{- end}}

{{binding}} var<storage, read> x: array<vec4<f32>>;
{{- template "format_bindings" $f}}
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<f32>;
{{- end}}
{{- if .Given}}
{{binding}} var<storage, read> squares: array<f32>; // sums of squares of the row that is normalized
{{- end}}
{{- if .Sum}}
{{binding}} var<storage, read> stream: array<vec4<f32>>; // the residual, to which x times its scale is added
{{- end}}
{{- if $norms}}
{{binding}} var<storage, read> norm: array<vec4<f32>>; // weights of the norm{{if .Sum}}, interleaved{{end}}
{{- end}}
{{binding}} var<storage, read_write> y: array<f32>;
{{- if .Made}}
{{binding}} var<storage, read_write> made: array<vec4<f32>>; // the sum
{{- end}}
{{- if .Next}}
{{binding}} var<storage, read> next_weight: array<f32>; // weights of the norm of y
{{binding}} var<storage, read_write> weighted: array<f32>; // y times these weights
{{binding}} var<storage, read_write> next_squares: array<f32>; // sums of squares of y, one for each workgroup
{{- end}}
{{- if $params}}
{{binding}} var<uniform> params: Params;
{{- end}}

{{template "flat_group" .}}
{{- if or .Spread .Next .Leaves}}
{{- template "spread" .}}
{{- end}}
{{template "format" $f}}
{{- template "gemv" $f}}

{{template "gemv_partial" (set . "Sums" $sums)}}

{{- if .Norm}}

// The squares are added up in the same loop as the products. The scale of the norm is applied after the loop.
var<private> squared_sum: f32;
var<workgroup> squared: array<f32, {{.Lanes}}>;
var<workgroup> part_squared: array<f32, {{$parts}}>;
{{- end}}
{{- if .Sum}}

// The scale of the norm that is part of the sum. It is needed before x can be computed.
var<private> sum_scale: f32;
var<workgroup> added: array<f32, {{.Sum}}>;
{{- if .Made}}
var<private> maker: u32; // index of the workgroup; each workgroup stores some groups of 32 columns of the sum
{{- end}}
{{- end}}
{{- $chunks := div (mul .Chunks .Eights) 4}}{{/* number of chunks of 32 columns of x */}}
{{- if .HeadQuads}}

// Returns the factors of the four splits, whose weighted sums add up to a head of x. They are computed from
// the largest scores and the sums of weights, which are stored after the weighted sums (see sdpa_fd_split).
fn shares_of(head: u32) -> vec4<f32> {
  let tops = x[{{mul 32 $chunks}}u + 2u * head];
  let totals = x[{{mul 32 $chunks}}u + 2u * head + 1u];
  let weights = exp(tops - max(max(tops.x, tops.y), max(tops.z, tops.w)));
  return weights / dot(weights, totals);
}

// Returns four columns of x.
fn columns(shares: vec4<f32>, column: u32) -> vec4<f32> {
  let at = spread(column, {{$chunks}}u);
  return shares.x * x[at] + shares.y * x[at + {{mul 8 $chunks}}u] +
    shares.z * x[at + {{mul 16 $chunks}}u] + shares.w * x[at + {{mul 24 $chunks}}u];
}
{{- else}}

// Returns four columns of the row of x that starts at index row.
fn columns(row: u32, at: u32) -> vec4<f32> {
{{- if $norms}}
{{- if .Sum}}
  let place = spread(at, {{$chunks}}u);
  let base = stream[
    {{- if .LastOfStream}}params.stream_from + {{end}}{{if .SpreadStream}}place{{else}}at{{end}}];
  let v = fma(x[place], vec4<f32>(sum_scale), base);
{{- if .Made}}
  if (at / 8u{{if lt .Made $chunks}} % {{.Made}}u{{end}} == maker) {
    made[{{if .SpreadMade}}place{{else}}at{{end}}] = v;
  }
{{- end}}
{{- else}}
  let v = x[row + at];
{{- end}}
  squared_sum += dot(v, v);
  return v * norm[{{if .Sum}}place{{else}}at{{end}}];
{{- else}}
  return x[row + {{if .Spread}}spread(at, {{$chunks}}u){{else}}at{{end}}];
{{- end}}
}
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
{{- if $several}}
  // Neighboring workgroups read the same weights.
  let batches = (params.m + {{sub .Batch 1}}u) / {{.Batch}}u;
  let id = flat_group(wid, groups);
  var group_row = id * {{.Rows}}u;
  var batch0 = 0u;
  if (batches > 1u) { // divisions are slow
    group_row = id / batches * {{.Rows}}u;
    batch0 = id % batches * {{.Batch}}u;
  }
  if (group_row >= {{$n}}) {
    return; // the grid can be larger than the current shape needs
  }
{{- else}}
  // The first loads do not wait for params{{if and .Ragged (not .N)}} other than n{{end}}.
  // A workgroup past the last row computes meaningless sums, and writes nothing.
  let group_row = flat_group(wid, groups) * {{.Rows}}u;
{{- end}}
{{- template "gemv_begin" $f}}
{{- range $r := 4}}
  var row{{$r}} = load_near(group_row + {{$r}}u, lane);
{{- end}}
{{- if defined "format_scale"}}
  var scale_bits = load_scales(group_row, lane);
{{- end}}
{{- range $i := $shares}}
  let square{{$i}} = squares[{{if $.Sum}}lane % {{$adders}}u{{else}}lane{{end}} + {{mul $i $adders}}u];
{{- end}}
  // The result that this lane computes in the end. Other numbers that it needs for this are loaded now, too.
  let sum = lane % {{$sums}}u;
  let row = group_row + sum % {{.Rows}}u;
  let column = {{if not .N}}params.first + {{end}}row;
{{- if $several}}
  let batch = batch0 + sum / {{.Rows}}u;
{{- end}}
{{- if .Bias}}
  let column_bias = bias[column];
{{- end}}
{{- $beside := "column"}}
{{- if .Last}}{{$beside = "params.residual_from + column"}}{{end}}
{{- if $several}}{{$beside = "min(batch, params.residual_rows - 1u) * params.stride + column"}}{{end}}
{{- if .Shared}}
  var beside = 0.0;
  if (params.residual_rows > 0u) {
    beside = residual[{{$beside}}];
  }
{{- else if .Residual}}
  let beside = residual[{{$beside}}];
{{- end}}
{{- if .Next}}
  let column_weight = next_weight[column];
{{- end}}
{{- if $several}}
{{- $x_rows := "params.m"}}{{if .Residual}}{{$x_rows = "params.x_rows"}}{{end}}
{{- range $b := .Batch}}
  let x_row{{$b}} = min(batch0 + {{$b}}u, {{$x_rows}} - 1u) * {{mul $.Chunks (mul 2 $.Eights)}}u;
{{- end}}
{{- else}}
  let x_row0 = {{if .Last}}params.x_from{{else}}0u{{end}};
{{- end}}
{{- if $unrolled}}
  let rows = {{$rows}}u;
{{- else}}
{{- if .Gated}}
  // This number is the same in each workgroup, but the compiler should not know it, and not unroll the loop.
{{- end}}
  let rows = min({{$rows}}u, {{if .Gated}}2u * {{end}}{{$n}} - group_row);
{{- end}}
{{- if .Sum}}
  var addend = 0.0;
{{- template "given_squares" (set . "Into" "addend" "Adders" $adders "Shares" $shares "Uneven" $uneven)}}
  if (lane < {{.Sum}}u) {
    added[lane] = addend;
  }
  workgroupBarrier();
  addend = 0.0;
  for (var i = 0u; i < {{.Sum}}u; i++) {
    addend += added[i];
  }
  sum_scale = inverseSqrt(addend / {{mul .Chunks (mul 8 .Eights)}}.0 + eps);
{{- if .Made}}
  maker = group_row / {{.Rows}}u;
{{- end}}
{{- end}}
{{- if eq .Chunks .Lanes}}
  {
    let chunk = lane;
{{- else}}
  for (var chunk = lane; chunk < {{.Chunks}}u; chunk += {{.Lanes}}u) {
{{- end}}
{{- range $b := .Batch}}
{{- template "gemv_x" (set $f "B" $b)}}
{{- end}}
    for (var done = 0u; done < rows; done += 4u) {
      let last = done + 4u >= rows;
{{- if eq .Chunks .Lanes}}
      let next = select(done + 4u, done, last); // the last rows are loaded again
{{- else}}
      let next = select(done + 4u, 0u, last);
      let next_chunk = select(chunk, chunk + {{.Lanes}}u, last);
{{- end}}
      let next_row = group_row + next
        {{- if .Gated}} + select(0u, {{$n}} - {{.Rows}}u, next >= {{.Rows}}u){{end}};
{{- if defined "format_scale"}}
{{- template "gemv_factors" $f}}
      {{$more}}scale_bits = load_scales(next_row, {{$next_chunk}});{{$end}}
{{- end}}
{{- range $r := 4}}
{{- $row := set $f "R" $r}}
{{- template "gemv_weights" $row}}
      {{$more}}row{{$r}} = load_near(next_row + {{$r}}u, {{$next_chunk}});{{$end}}
{{- range $b := $.Batch}}
{{- template "gemv_dot" (set $row "B" $b)}}
      partial[place(lane, done + {{add (mul $b $rows) $r}}u)] {{$put}} sum{{$b}}_{{$r}};
{{- end}}
{{- end}}
    }
  }
{{- if not .Sum}}
{{- template "given_squares" (set . "Into" "squared_sum" "Adders" $adders "Shares" $shares "Uneven" $uneven)}}
{{- end}}
{{- template "gemv_add_up" (set . "Sums" $sums "Parts" $parts)}}
{{- if .Next}}
  var square = 0.0;
{{- end}}
  if (row < {{$n}}{{if $several}} && batch < params.m{{end}}{{if .Next}} && part == 0u{{end}}) {
{{- if .Norm}}
    let scale = inverseSqrt(squared_sum / {{mul .Chunks (mul 8 .Eights)}}.0 + eps);
    result *= scale;
{{- if .Gated}}
    up *= scale;
{{- end}}
{{- end}}
{{- if .Bias}}
    result += column_bias;
{{- end}}
{{- if .Residual}}
    result += beside;
{{- end}}
{{- if .Gated}}
    let v = result;
    result = {{.Expr}};
{{- end}}
{{- if .Leaves}}
    y[4u * spread(column / 4u, {{.Leaves}}u) + column % 4u] = result;
{{- else}}
    y[{{if $several}}batch * params.stride + {{end}}column] = result;
{{- end}}
{{- if .Next}}
    weighted[4u * spread(column / 4u, {{.Next}}u) + column % 4u] = result * column_weight;
    square = result * result;
{{- end}}
  }
{{- if .Next}}
  if (part == 0u) {
    partial[sum] = square;
  }
  workgroupBarrier();
  if (lane == 0u && group_row < {{$n}}) {
    for (var i = 1u; i < {{$sums}}u; i++) {
      square += partial[i];
    }
    next_squares[group_row / {{.Rows}}u] = square;
  }
{{- end}}
}

{{- /* Adds to Into the Shares sums of squares that a lane has loaded. Adders lanes together add up all sums
  of squares of the norm's row. */}}
{{- define "given_squares"}}
{{- range $i := .Shares}}
  {{$.Into}} += {{if $.Uneven}}select(0.0, square{{$i}}, lane + {{mul $i $.Adders}}u < {{$.Given}}u)
    {{- else}}square{{$i}}{{end}};
{{- end}}
{{- end}}
