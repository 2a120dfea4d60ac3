{{- $step := mul .Quads .Teams}}{{/* in vectors of 4 columns */}}
{{- if .Gated}}
// y = {{.Gated}}(x * gate') * (x * up'). A workgroup computes a tile of {{.Tile}} x 32 results. A lane
// computes 8 x 4 results, from 8 x 8 products. w has the rows of gate, followed by the rows of up
{{- if .Experts}}, for
// each of {{.Experts}} experts{{end}}.
{{- else if .Split}}
// sums = x * w' for one of several splits of the columns of x. A workgroup computes a tile of {{.Tile}} x 64
// sums, and a lane computes 8 x 8 of them. linear_sums adds up the splits.
{{- else}}
// y = x * w' + bias{{if .Residual}} + residual{{end}}. A workgroup computes a tile of {{.Tile}} x 64 results,
// and a lane computes 8 x 8 of them.
{{- end}}
{{- if .Experts}} A row of y is a pair of a token and an expert, and w is the
// matrix of this expert. The rows of a tile have the same expert.
{{- end}}
{{- if gt .Teams 1}}
// There are {{.Teams}} teams of lanes, because a GPU has unused lanes if there are few tiles. Each team
// computes sums over some of the columns of a step. In the end the teams add up their sums.
{{- end}}
//
// Workgroup memory has a tile of x and a tile of the weights, {{mul 4 $step}} columns at a time. The next
// tiles are loaded while the current ones are multiplied. A lane reads the 8 numbers of a column as two
// vectors. In the inner loop, which takes most of the time, it reads from one row of workgroup memory at
// constant indices, so that no index has to be computed or checked.
{{- if eq .Teams 1}} The direction of the loop
// over rows alternates, so that each multiplication shares one factor with the previous one. With two new
// factors and the sum, a GPU would read three registers, which could be in the same bank.
{{- end}}
{{- $tall := div .Tile 8}}{{/* lanes of a team along the rows; along the columns there are 8 */}}
{{- $eights := div .Quads 2}}{{/* groups of 8 columns of a team */}}
{{- $loads := .Quads}}
{{- $weights := div (mul 64 $eights) .Tile}}
{{- $f := set . "GEMV" false "Wide" false "Columns" "params.k"}}
struct Params {
{{- if not .Experts}}
  m: u32, // rows of y{{if not (or .Residual .Split)}} and of x{{end}}
{{- end}}
  n: u32, // rows of {{if .Gated}}gate and of up{{else}}w{{end}}{{if .Experts}}, for each expert{{end}}
{{- if not .Experts}}
  stride: u32, // number of elements from one row of y to the next
  first: u32, // column of y that row 0 of w computes
{{- else if .Several}}
  first: u32, // first expert of this part of the matrices
  experts: u32, // number of experts of this part
{{- end}}
  k: u32, // columns of x and of w
{{- if or .Residual .Split}}
  x_rows: u32, // as many rows as y, or a single row that is used for all rows of y
{{- end}}
{{- if .Residual}}
  residual_rows: u32, // as many rows as x, or a single row that is used for all rows
{{- end}}
{{- if .Split}}
  splits: u32,
{{- end}}
}

{{binding}} var<storage, read> x: array<{{if .Even}}vec4<f32>{{else}}f32{{end}}>;
{{- template "format_bindings" $f}}
{{- if .Bias}}
{{binding}} var<storage, read> bias: array<f32>;
{{- end}}
{{- if .Experts}}
// For each expert the number of pairs of lower experts, the number of all pairs, and then the sorted pairs.
{{binding}} var<storage, read> sorted: array<u32>;
{{- end}}
{{- if .Residual}}
{{binding}} var<storage, read> residual: array<f32>;
{{- end}}
{{binding}} var<storage, read_write>
{{- if .Split}} sums: array<f32>; // [splits, m, n]
{{- else}} y: array<f32>;
{{- end}}
{{binding}} var<uniform> params: Params;

// A row of these arrays has what a lane reads: 8 rows of x, or 8 columns of y. Each team has its own rows of
// the arrays. Two vectors are one column of x or w. There are 2 unused vectors after every 4 columns, and 1
// unused vector at the end. Because of these, lanes that store or read at the same time use different memory
// banks.
{{- $row := add (mul .Quads 10) 1}}
var<workgroup> x_tile: array<array<vec4<f32>, {{$row}}>, {{mul .Teams $tall}}>;
var<workgroup> w_tile: array<array<vec4<f32>, {{$row}}>, {{mul .Teams 8}}>;

{{template "format" $f}}

{{- if .Experts}}

// The tile of this workgroup: the expert plus 1, or 0 if there is no such tile, and the first of its sorted
// pairs.
var<workgroup> tile: vec2<u32>;
var<workgroup> pairs: array<u32, {{.Tile}}>;
var<private> expert: u32;
var<private> pairs_in_tile: u32;

// Finds the tile with index at, and its pairs. Tiles of expert e begin where row
// sorted[e] + {{sub .Tile 1}} e would be, so that there are enough for the pairs of each expert. Some of them
// have no pairs. Returns false if the tile has no pairs. All lanes must call this function.
fn find_tile(at: u32, lane: u32) -> bool {
  for (var e = lane; e < {{.Experts}}u; e += {{mul .Tile .Teams}}u) {
    let begin = sorted[e];
    let first = begin + (at - (begin + {{sub .Tile 1}}u * e) / {{.Tile}}u) * {{.Tile}}u;
    if (at >= (begin + {{sub .Tile 1}}u * e) / {{.Tile}}u && first < sorted[e + 1u]) {
      tile = vec2<u32>(e + 1u, first);
    }
  }
  let found = workgroupUniformLoad(&tile);
  if (found.x == 0u) {
    return false;
  }
  expert = found.x - 1u;
  let end = sorted[found.x];
  pairs_in_tile = end - found.y;
  if (lane < {{.Tile}}u) {
    pairs[lane] = sorted[{{add .Experts 1}}u + min(found.y + lane, end - 1u)];
  }
  workgroupBarrier();
  return true;
}
{{- end}}

// Returns columns 4 quad to 4 quad + 3 of a row of x{{if not .Even}}, with zeros past the last column{{end}}.
fn load_x(row: u32, quad: u32) -> vec4<f32> {
{{- if .Even}}
  return x[row * (params.k / 4u) + quad];
{{- else}}
  let at = row * params.k;
  let last = params.k - 1u;
  let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(4u * quad);
  let v = vec4<f32>(x[at + min(c.x, last)], x[at + min(c.y, last)], x[at + min(c.z, last)],
    x[at + min(c.w, last)]);
  return select(vec4<f32>(0.0), v, c <= vec4<u32>(last));
{{- end}}
}

{{- if and .Gated .Bias}}

// Returns four biases of the expert, starting with a row of gate or up.
fn biases(row: u32) -> vec4<f32> {
  let at = expert * 2u * params.n + row;
  return vec4<f32>(bias[at], bias[at + 1u], bias[at + 2u], bias[at + 3u]);
}
{{end}}
{{- if .Gated}}
fn joined(v: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
  return {{.Expr}};
}
{{- end}}

// Stores four columns of a row of {{if .Split}}a split{{else}}y{{end}}, starting at column.
fn put({{if .Split}}split: u32, {{end}}row: u32, column: u32, sum: vec4<f32>) {
{{- if .Experts}}
  if (row >= pairs_in_tile) {
    return;
  }
  let at = pairs[row] * params.n + column;
{{- if and .Bias (not .Gated)}}
  let bias_at = expert * params.n + column;
{{- end}}
{{- else}}
  if (row >= params.m) {
    return;
  }
  let at = {{if .Split}}(split * params.m + row){{else}}row{{end}} * params.stride + params.first + column;
{{- end}}
{{- if .Residual}}
  let residual_at = min(row, params.residual_rows - 1u) * params.stride + params.first + column;
{{- end}}
{{- range $c := 4}}
  if (column + {{$c}}u < params.n) {
    {{if $.Split}}sums{{else}}y{{end}}[at + {{$c}}u] = sum[{{$c}}]
      {{- if and $.Bias (not $.Gated)}} +
        {{- /* */}} bias[{{if $.Experts}}bias_at{{else}}params.first + column{{end}} + {{$c}}u]{{end}}
      {{- if $.Residual}} + residual[residual_at + {{$c}}u]{{end}};
  }
{{- end}}
}

@compute @workgroup_size({{mul .Tile .Teams}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
{{- if .Experts}}
  let row0 = 0u;
{{- else}}
  let row0 = wid.y * {{.Tile}}u;
{{- end}}
  let column0 = wid.x * {{if .Gated}}32u{{else}}64u{{end}};
{{- if .Experts}}
  if (!find_tile(wid.y, lane)) {
    return; // the grid is large enough for any distribution of tokens to experts
  }
{{- if .Several}}
  if (expert < params.first || expert - params.first >= params.experts) {
    return; // another dispatch has the matrix of this expert
  }
  let w_row = (expert - params.first) * {{if .Gated}}2u * {{end}}params.n;
{{- else}}
  let w_row = expert * {{if .Gated}}2u * {{end}}params.n;
{{- end}}
{{- else}}
  if (row0 >= params.m || column0 >= params.n{{if .Split}} || wid.z >= params.splits{{end}}) {
    return; // the grid can be larger than the current shape needs
  }
{{- end}}
  // Lane (tx, ty) multiplies rows 8 ty to 8 ty + 7 of x by rows 4 tx to 4 tx + 3 of
  {{- if .Gated}} gate and of up{{else}} w, and by the 4 rows that are 32 further{{end}}.
  // 8 x 4 lanes run together. Among them, neighbors read the same weights, and every second of four lanes
  // reads the same part of x. A GPU reads this once for both lanes.
  let team = lane / {{.Tile}}u;
  let mate = lane % {{.Tile}}u;
  let tx = (mate >> 1u) & 7u;
  let ty = ((mate >> 5u) << 2u) + ((mate >> 3u) & 2u) + (mate & 1u);
  let x_read = team * {{$tall}}u + ty;
  let w_read = team * 8u + tx;
  // What this lane loads, and where in workgroup memory it stores this. Past the last row it loads the last
  // row again, and the results are not stored.
  {{- if not .Even}} Past the last column it uses zeros for x, with any w.{{end}}
  let x_quad = mate % {{.Quads}}u;
  let quad = team * {{.Quads}}u + x_quad;
{{- range $i := $loads}}
  let x_row{{$i}} = mate / {{$.Quads}}u + {{mul $i (div $.Tile $.Quads)}}u;
{{- if $.Experts}}
  let x_from{{$i}} = pairs[x_row{{$i}}]{{if $.Slots}} / {{$.Slots}}u{{end}};
{{- else}}
  let x_from{{$i}} = min(row0 + x_row{{$i}}, params.{{if or $.Residual $.Split}}x_rows{{else}}m{{end}} - 1u);
{{- end}}
  let x_to{{$i}} = team * {{$tall}}u + x_row{{$i}} / 8u;
  let x_at{{$i}} = x_quad * 10u + ((x_row{{$i}} >> 2u) & 1u);
{{- end}}
  let w_eight = mate % {{$eights}}u;
  let eight = team * {{$eights}}u + w_eight;
  let eights = {{if .Partial}}(params.k + 7u){{else}}params.k{{end}} / 8u;
{{- range $i := $weights}}
  let w_row{{$i}} = mate / {{$eights}}u + {{mul $i (div $.Tile $eights)}}u;
  let w_from{{$i}} = {{if $.Experts}}w_row + {{end}}
    {{- if $.Gated}}column0 + w_row{{$i}} % 32u + w_row{{$i}} / 32u * params.n
    {{- else}}min(column0 + w_row{{$i}}, params.n - 1u){{end}};
  let w_to{{$i}} = team * 8u + ((w_row{{$i}} >> 2u) & 7u);
  let w_at{{$i}} = w_eight * 20u + w_row{{$i}} / 32u;
{{- end}}
{{- range $i := 8}}
{{- range $j := 8}}
  var sum{{$i}}_{{$j}} = 0.0;
{{- end}}
{{- end}}
  let steps = (params.k + {{sub (mul $step 4) 1}}u) / {{mul $step 4}}u;
{{- $quad0 := "quad"}}{{$eight0 := "eight"}}
{{- if .Split}}
  let begin = wid.z * steps / params.splits;
  let end = (wid.z + 1u) * steps / params.splits;
{{- $quad0 = printf "begin * %du + quad" $step}}{{$eight0 = printf "begin * %du + eight" (div $step 2)}}
{{- end}}
{{- range $i := $loads}}
  var x{{$i}} = load_x(x_from{{$i}}, {{$quad0}});
{{- end}}
  let eight0 = {{if .Even}}{{$eight0}}{{else}}min({{$eight0}}, eights - 1u){{end}};
{{- range $i := $weights}}
  var w{{$i}} = load(w_from{{$i}}, eight0);
{{- if defined "format_scale"}}
  var w{{$i}}_scale = scale(w_from{{$i}}, eight0);
{{- end}}
{{- if defined "format_zero"}}
  var w{{$i}}_zero = zero(w_from{{$i}}, eight0);
{{- end}}
{{- end}}
  for (var step = {{if .Split}}begin; step < end{{else}}0u; step < steps{{end}}; step++) {
{{- range $i := $loads}}
{{- range $c := 4}}
    x_tile[x_to{{$i}}][x_at{{$i}}{{if $c}} + {{mul 2 $c}}u{{end}}][x_row{{$i}} & 3u] = x{{$i}}[{{$c}}];
{{- end}}
{{- end}}
{{- range $i := $weights}}
    let f{{$i}} = floats(w{{$i}});
    let low{{$i}} = {{template "weights" (set $ "Of" (printf "f%d.low" $i) "By" (printf "w%d_" $i))}};
    let high{{$i}} = {{template "weights" (set $ "Of" (printf "f%d.high" $i) "By" (printf "w%d_" $i))}};
{{- range $c := 4}}
    w_tile[w_to{{$i}}][w_at{{$i}}{{if $c}} + {{mul 2 $c}}u{{end}}][w_row{{$i}} & 3u] = low{{$i}}[{{$c}}];
{{- end}}
{{- range $c := 4}}
    w_tile[w_to{{$i}}][w_at{{$i}} + {{add 10 (mul 2 $c)}}u][w_row{{$i}} & 3u] = high{{$i}}[{{$c}}];
{{- end}}
{{- end}}
    workgroupBarrier();
    let ahead = min(step + 1u, {{if .Split}}end{{else}}steps{{end}} - 1u);
    let quad1 = ahead * {{$step}}u + quad;
{{- range $i := $loads}}
    x{{$i}} = load_x(x_from{{$i}}, quad1);
{{- end}}
    let eight1 = {{if .Even}}ahead * {{div $step 2}}u + eight
    {{- else}}min(ahead * {{div $step 2}}u + eight, eights - 1u){{end}};
{{- range $i := $weights}}
    w{{$i}} = load(w_from{{$i}}, eight1);
{{- if defined "format_scale"}}
    w{{$i}}_scale = scale(w_from{{$i}}, eight1);
{{- end}}
{{- if defined "format_zero"}}
    w{{$i}}_zero = zero(w_from{{$i}}, eight1);
{{- end}}
{{- end}}
{{- range $q := .Quads}}
{{- range $c := 4}}
    {
{{- $at := add (mul 10 $q) (mul 2 $c)}}
      let a0 = x_tile[x_read][{{$at}}];
      let a1 = x_tile[x_read][{{add $at 1}}];
      let b0 = w_tile[w_read][{{$at}}];
      let b1 = w_tile[w_read][{{add $at 1}}];
{{- range $i := 8}}
{{- range $at := 8}}
{{- $j := $at}}
{{- if eq $.Teams 1}}{{$j = swing $at 8 $i}}{{end}}
      sum{{$i}}_{{$j}} = fma({{number "a" $i}}, {{number "b" $j}}, sum{{$i}}_{{$j}});
{{- end}}
{{- end}}
    }
{{- end}}
{{- end}}
    workgroupBarrier();
  }
{{- if gt .Teams 1}}
  // Teams add up their sums in pairs. The first team of a pair keeps the first half of its rows, and passes
  // the sums of the second half to the other team. The other team does the opposite.
{{- template "meet" (set . "Keep" 4 "Apart" (div .Teams 2))}}
{{- end}}
{{- if eq .Teams 4}}
{{- template "meet" (set . "Keep" 2 "Apart" 1)}}
{{- end}}
  let row = row0 + 8u * ty{{if gt .Teams 1}} + {{div 8 .Teams}}u * team{{end}};
  let column = column0 + 4u * tx;
{{- range $i := div 8 .Teams}}
{{- if $.Gated}}
  put(row + {{$i}}u, column, joined({{template "row_sums" (set $ "Row" $i "Half" 0)}}
    {{- if $.Bias}} + biases(column){{end}},
    {{- ""}} {{template "row_sums" (set $ "Row" $i "Half" 1)}}
    {{- if $.Bias}} + biases(params.n + column){{end}}));
{{- else}}
{{- range $g := 2}}
  put({{if $.Split}}wid.z, {{end}}row + {{$i}}u, column + {{mul 32 $g}}u,
    {{- ""}} {{template "row_sums" (set $ "Row" $i "Half" $g)}});
{{- end}}
{{- end}}
{{- end}}
}

{{- /* Each team adds Keep rows of sums of another team to its own sums. The indices of the two teams differ
  by Apart. */}}
{{- define "meet"}}
  {
    let keeps = vec4<bool>((team & {{.Apart}}u) == 0u);
    let partner = lane ^ {{mul .Apart .Tile}}u;
{{- range $i := .Keep}}
{{- range $g := 2}}
    let low{{$i}}_{{$g}} = {{template "row_sums" (set $ "Row" $i "Half" $g)}};
    let high{{$i}}_{{$g}} = {{template "row_sums" (set $ "Row" (add $i $.Keep) "Half" $g)}};
    x_tile[lane >> 3u][{{mul 8 $g}}u + (lane & 7u)] = select(low{{$i}}_{{$g}}, high{{$i}}_{{$g}}, keeps);
{{- end}}
    workgroupBarrier();
{{- range $g := 2}}
    let whole{{$i}}_{{$g}} = select(high{{$i}}_{{$g}}, low{{$i}}_{{$g}}, keeps) +
      x_tile[partner >> 3u][{{mul 8 $g}}u + (lane & 7u)];
{{- range $c := 4}}
    sum{{$i}}_{{add $c (mul 4 $g)}} = whole{{$i}}_{{$g}}[{{$c}}];
{{- end}}
{{- end}}
    workgroupBarrier();
{{- end}}
  }
{{- end}}

{{- /* An expression for the sums of one of a lane's rows, in half of the lane's columns. */}}
{{- define "row_sums"}}
{{- $j := mul 4 .Half}}vec4<f32>(sum{{.Row}}_{{$j}}, sum{{.Row}}_{{add $j 1}}, sum{{.Row}}_{{add $j 2}},
    {{- ""}} sum{{.Row}}_{{add $j 3}})
{{- end}}
