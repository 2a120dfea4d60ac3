{{- $lanes := mul .Across .Down}}
{{- $tall := mul 8 .Down}}{{/* rows of a tile */}}
{{- $positions := mul 4 .Across}}
{{- $step := mul 4 .Quads}}{{/* columns, or positions, that are in workgroup memory at a time */}}
{{- $steps := div (add .HeadQuads (sub .Quads 1)) .Quads}}
{{- $uneven := sub (mul $steps .Quads) .HeadQuads}}
{{- $stages := div $positions $step}}
{{- $columns := div (add .HeadQuads (sub .Across 1)) .Across}}{{/* vectors of a row of y that a lane has */}}
{{- $of_q := div (mul $tall .Quads) $lanes}}{{/* vectors of a step that a lane loads */}}
{{- $of_k := div (mul $positions .Quads) $lanes}}
{{- $of_v := div (add (mul $step .HeadQuads) (sub $lanes 1)) $lanes}}
// Attention for a tile of {{$tall}} rows, over the positions that the rows can see, {{$positions}} positions
// at a time. The scores are never written to memory. A row is one token of one query head. Each token has
// {{.Group}} rows, for the {{.Group}} query heads of a KV head, which share the loaded parts of k and v. For
// each row the kernel keeps the largest score and the sum of weights so far. If it finds a larger score, it
// rescales the sums so far. Source: Dao and others, FlashAttention-2 (2023).
//
// A lane computes 8 rows: the scores of 4 positions, and {{mul 4 $columns}} columns of y. The scores are
// products of q and k, computed {{$step}} columns of a head at a time. y is a product of weights and v,
// computed {{$step}} positions at a time. As in linear_tiled, the next tiles are loaded while the current
// ones are multiplied, and the order of the rows alternates: down for one number of k or v, and up for the
// next.
{{- if .Split}}
//
// A workgroup processes one of the splits of the positions. sdpa_fd_reduce combines the splits.
{{- end}}
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, including those of these tokens
  position: u32, // position of the first token
  window: u32, // largest number of positions that a token sees
  kv_heads: u32,
  scale: f32,
{{- if .Split}}
  splits: u32,
  split_len: u32, // positions of a split; a whole number of tiles
{{- end}}
}

{{- $C := "vec4<f32>"}}{{if .HalfCache}}{{$C = "vec2<u32>"}}{{end}}

// [tokens, kv_heads, {{.Group}}, {{.HeadQuads}}]
{{binding}} var<storage, read> q: array<vec4<f32>>;
{{binding}} var<storage, read> k_cache: array<{{$C}}>; // [positions, kv_heads, {{.HeadQuads}}]
{{binding}} var<storage, read> v_cache: array<{{$C}}>;
{{- if .Sinks}}
{{binding}} var<storage, read> sinks: array<f32>; // [kv_heads, {{.Group}}] scores without a value
{{- end}}
{{- if .Split}}
// [splits, tokens, q_heads, {{.HeadQuads}} sums, then the largest score and the sum of the weights]
{{binding}} var<storage, read_write> parts: array<vec4<f32>>;
{{- else}}
{{binding}} var<storage, read_write> y: array<vec4<f32>>; // the same dims as q
{{- end}}
{{binding}} var<uniform> params: Params;

{{template "flat_group" .}}
{{template "kv_cache" .}}
{{- template "soft_cap" (set . "T" "vec4<f32>")}}

// Rows that lanes read: q, and later the weights. For 8 rows there are two vectors for each column of q, or
// for each position of the weights, which are divided into stages of {{$step}} positions. There are 2 unused
// vectors after every 4 columns, and 1 unused vector at the end. Because of these, lanes that store or read
// at the same time use different memory banks.
{{- $row := add (mul .Quads 10) 1}}
var<workgroup> row_tile: array<array<array<vec4<f32>, {{$row}}>, {{.Down}}>, {{$stages}}>;
// Columns that lanes read: k, with a vector of positions for each column, and later v, with {{$columns}}
// vectors of columns for each position.
{{- $column := add (mul .Quads 6) 1}}
{{- if lt $column (add (mul $step $columns) 1)}}{{$column = add (mul $step $columns) 1}}{{end}}
var<workgroup> column_tile: array<array<vec4<f32>, {{$column}}>, {{.Across}}>;
// For each row: the largest score so far, and the factor that rescales the sums so far.
var<workgroup> tops: array<vec4<f32>, {{mul 2 .Down}}>;
var<workgroup> shrinks: array<vec4<f32>, {{mul 2 .Down}}>;

// Returns the index in q or y of a row of a KV head.
fn row_place(row: u32, kv_head: u32) -> u32 {
  return ((row / {{.Group}}u * params.kv_heads + kv_head) * {{.Group}}u +
    row % {{.Group}}u) * {{.HeadQuads}}u;
}

{{- if .Split}}

// Returns the index in parts of a row of a split.
fn part_place(row: u32, kv_head: u32, split: u32) -> u32 {
  let first = split * params.tokens * params.kv_heads * {{.Group}}u;
  return (first + row_place(row, kv_head) / {{.HeadQuads}}u) * {{add .HeadQuads 1}}u;
}
{{- end}}

// Returns the index in a cache of a position of a KV head.
fn cache_place(position: u32, kv_head: u32) -> u32 {
  return (position * params.kv_heads + kv_head) * {{.HeadQuads}}u;
}

@compute @workgroup_size({{$lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // The tiles of the last tokens start first, because they have the most positions to process.
  let rows = params.tokens * {{.Group}}u;
  let row_tiles = (rows + {{sub $tall 1}}u) / {{$tall}}u;
{{- if .Split}}
  let group = flat_group(wid, groups);
  let id = group / params.splits;
  let split = group % params.splits;
{{- else}}
  let id = flat_group(wid, groups);
{{- end}}
  if (id >= row_tiles * params.kv_heads) {
    return; // the grid can be larger than the current shape needs
  }
  let kv_head = id % params.kv_heads;
  let tile_row = (row_tiles - 1u - id / params.kv_heads) * {{$tall}}u;
  let last_token = min(tile_row + {{sub $tall 1}}u, rows - 1u) / {{.Group}}u;
  let last_end = params.position + last_token + 1u;
  let first_end = params.position + tile_row / {{.Group}}u + 1u;
{{- if .Split}}
  let split_begin = max(params.position + 1u, params.window) - params.window + split * params.split_len;
  let end = min(last_end, split_begin + params.split_len);
  let begin0 = max(max(first_end, params.window) - params.window, split_begin);
  let begin = begin0 - (begin0 - split_begin) % {{$positions}}u;
{{- else}}
  let end = last_end;
  let begin = max(first_end, params.window) - params.window;
{{- end}}
  // Lane (tx, ty) has rows 8 ty to 8 ty + 7 of the tile. 8 x 4 lanes run together. Among these, neighbors
  // read the same part of k and v, and every second of four lanes reads the same part of q and the weights.
{{- if eq .Across 16}}
  let tx = ((lane >> 1u) & 7u) + ((lane >> 2u) & 8u);
  let ty = ((lane >> 6u) << 2u) + ((lane >> 3u) & 2u) + (lane & 1u);
{{- else}}
  let tx = (lane >> 1u) & 7u;
  let ty = ((lane >> 5u) << 2u) + ((lane >> 3u) & 2u) + (lane & 1u);
{{- end}}
  // What this lane loads, and where in workgroup memory it stores this.
  let quad = lane % {{.Quads}}u;
{{- range $i := $of_q}}
  let q_row{{$i}} = lane / {{$.Quads}}u + {{mul $i (div $lanes $.Quads)}}u;
  let q_from{{$i}} = row_place(min(tile_row + q_row{{$i}}, rows - 1u), kv_head);
  let q_to{{$i}} = q_row{{$i}} / 8u;
  let q_at{{$i}} = quad * 10u + ((q_row{{$i}} >> 2u) & 1u);
{{- end}}
{{- range $i := $of_k}}
  let k_row{{$i}} = lane / {{$.Quads}}u + {{mul $i (div $lanes $.Quads)}}u;
  let k_to{{$i}} = k_row{{$i}} / 4u;
{{- end}}
{{- range $i := $of_v}}
  let v_item{{$i}} = min(lane + {{mul $i $lanes}}u, {{sub (mul $step $.HeadQuads) 1}}u);
  let v_row{{$i}} = v_item{{$i}} / {{$.HeadQuads}}u;
  let v_quad{{$i}} = v_item{{$i}} % {{$.HeadQuads}}u;
  let v_to{{$i}} = v_quad{{$i}} % {{$.Across}}u;
  let v_at{{$i}} = v_row{{$i}} * {{$columns}}u + v_quad{{$i}} / {{$.Across}}u;
{{- end}}
  // The last position that each of a lane's rows sees.
{{- range $h := 2}}
  let last{{$h}} = vec4<u32>(params.position) +
    (vec4<u32>(tile_row + 8u * ty + {{mul 4 $h}}u) + vec4<u32>(0u, 1u, 2u, 3u)) / {{$.Group}}u;
{{- end}}
{{- if .SoftCap}}
  let to_base2 = 1.4426950408889634; // weights are computed as powers of 2
{{- else}}
  let scale = params.scale * 1.4426950408889634; // weights are computed as powers of 2
{{- end}}
{{- if .Sinks}}
  // The sink of the row with index lane{{if .Split}}. It is a score of the first split{{end}}.
  let sink_row = min(tile_row + lane, rows - 1u);
  let sink = {{if .Split}}select(-1e20, {{end}}max(-1e20,
    sinks[kv_head * {{.Group}}u + sink_row % {{.Group}}u] * 1.4426950408889634)
    {{- if .Split}}, split == 0u){{end}};
  // Masked scores are smaller than the largest score, so their weight is 0.
  var largest = sink;
{{- else}}
  var largest = -1e20; // of the row with index lane; masked scores are smaller, so their weight is 0
{{- end}}
  var total0 = vec4<f32>(0.0); // sums of weights over the lane's own positions
  var total1 = vec4<f32>(0.0);
{{- range $i := 8}}
{{- range $u := $columns}}
  var o{{$i}}_{{$u}} = vec4<f32>(0.0);
{{- end}}
{{- end}}
  let at0 = {{if $uneven}}min(quad, {{sub .HeadQuads 1}}u){{else}}quad{{end}};
{{- range $i := $of_q}}
  var q{{$i}} = q[q_from{{$i}} + at0];
{{- end}}
{{- range $i := $of_k}}
  var k{{$i}} = k_cache[cache_place(min(begin + k_row{{$i}}, end - 1u), kv_head) + at0];
{{- end}}
  for (var tile_column = begin; tile_column < end; tile_column += {{$positions}}u) {
{{- range $j := 4}}
    var sum0_{{$j}} = vec4<f32>(0.0);
    var sum1_{{$j}} = vec4<f32>(0.0);
{{- end}}
    for (var step = 0u; step < {{$steps}}u; step++) {
{{- if $uneven}}
      let there = step * {{.Quads}}u + quad < {{.HeadQuads}}u;
{{- end}}
{{- range $i := $of_q}}
      let of_q{{$i}} = {{if $uneven}}select(vec4<f32>(0.0), q{{$i}}, there){{else}}q{{$i}}{{end}};
{{- range $c := 4}}
      row_tile[0][q_to{{$i}}][q_at{{$i}} + {{mul 2 $c}}u][q_row{{$i}} & 3u] = of_q{{$i}}[{{$c}}];
{{- end}}
{{- end}}
{{- range $i := $of_k}}
      let of_k{{$i}} = cached(k{{$i}});
{{- range $c := 4}}
      column_tile[k_to{{$i}}][quad * 6u + {{$c}}u][k_row{{$i}} & 3u] = of_k{{$i}}[{{$c}}];
{{- end}}
{{- end}}
      workgroupBarrier();
      // Load for the next step, or for the first step of the next tile.
      let wraps = step + 1u == {{$steps}}u;
      let at = {{if $uneven}}min({{end}}select((step + 1u) * {{.Quads}}u, 0u, wraps) + quad
        {{- if $uneven}}, {{sub .HeadQuads 1}}u){{end}};
      let k_from = select(tile_column, tile_column + {{$positions}}u, wraps);
{{- range $i := $of_q}}
      q{{$i}} = q[q_from{{$i}} + at];
{{- end}}
{{- range $i := $of_k}}
      k{{$i}} = k_cache[cache_place(min(k_from + k_row{{$i}}, end - 1u), kv_head) + at];
{{- end}}
{{- range $x := .Quads}}
{{- range $c := 4}}
      {
        let a0 = row_tile[0][ty][{{add (mul 10 $x) (mul 2 $c)}}];
        let a1 = row_tile[0][ty][{{add (mul 10 $x) (add (mul 2 $c) 1)}}];
        let b = column_tile[tx][{{add (mul 6 $x) $c}}];
{{- range $j := 4}}
{{- range $at := 8}}
{{- $i := swing $at 8 $j}}
{{- $sum := printf "sum%d_%d[%d]" (div $i 4) $j (sub $i (mul 4 (div $i 4)))}}
        {{$sum}} = fma({{number "a" $i}}, b[{{$j}}], {{$sum}});
{{- end}}
{{- end}}
      }
{{- end}}
{{- end}}
      workgroupBarrier();
    }
{{- range $i := $of_v}}
    var v{{$i}} = v_cache[cache_place(min(tile_column + v_row{{$i}}, end - 1u), kv_head) + v_quad{{$i}}];
{{- end}}
{{- range $j := 4}}
{{- if $.SoftCap}}
    sum0_{{$j}} = soft_cap(sum0_{{$j}} * params.scale) * to_base2;
    sum1_{{$j}} = soft_cap(sum1_{{$j}} * params.scale) * to_base2;
{{- else}}
    sum0_{{$j}} *= scale;
    sum1_{{$j}} *= scale;
{{- end}}
{{- end}}
    if (tile_column + {{$positions}}u > first_end || tile_column + params.window < last_end) {
      // At least one row does not see all of these positions.
{{- range $j := 4}}
      let c{{$j}} = vec4<u32>(tile_column + 4u * tx + {{$j}}u);
{{- range $h := 2}}
      sum{{$h}}_{{$j}} = select(vec4<f32>(-1e30), sum{{$h}}_{{$j}},
        (c{{$j}} <= last{{$h}}) & (c{{$j}} + vec4<u32>(params.window) > last{{$h}}));
{{- end}}
{{- end}}
    }
    // Find the largest score of each row: first in each lane, then in all {{.Across}} lanes of the row.
{{- range $h := 2}}
    column_tile[tx][2u * ty + {{$h}}u] = max(max(sum{{$h}}_0, sum{{$h}}_1), max(sum{{$h}}_2, sum{{$h}}_3));
{{- end}}
    workgroupBarrier();
    if (lane < {{$tall}}u) {
      let before = largest;
{{- range $t := .Across}}
      largest = max(largest, column_tile[{{$t}}][lane >> 2u][lane & 3u]);
{{- end}}
      tops[lane >> 2u][lane & 3u] = largest;
      shrinks[lane >> 2u][lane & 3u] = exp2(before - largest);
    }
    workgroupBarrier();
{{- range $h := 2}}
    let shrink{{$h}} = shrinks[2u * ty + {{$h}}u];
    total{{$h}} *= shrink{{$h}};
{{- range $j := 4}}
    let weight{{$h}}_{{$j}} = exp2(sum{{$h}}_{{$j}} - tops[2u * ty + {{$h}}u]);
    total{{$h}} += weight{{$h}}_{{$j}};
    row_tile[tx / {{$.Quads}}u][ty][tx % {{$.Quads}}u * 10u + {{add (mul 2 $j) $h}}u] = weight{{$h}}_{{$j}};
{{- end}}
{{- end}}
{{- range $i := 8}}
{{- range $u := $columns}}
    o{{$i}}_{{$u}} *= {{number "shrink" $i}};
{{- end}}
{{- end}}
    let stages = (min({{$positions}}u, end - tile_column) + {{sub $step 1}}u) / {{$step}}u;
    for (var stage = 0u; stage < stages; stage++) {
{{- range $i := $of_v}}
      column_tile[v_to{{$i}}][v_at{{$i}}] = cached(v{{$i}});
{{- end}}
      workgroupBarrier();
      let v_from = tile_column + (stage + 1u) * {{$step}}u;
{{- range $i := $of_v}}
      v{{$i}} = v_cache[cache_place(min(v_from + v_row{{$i}}, end - 1u), kv_head) + v_quad{{$i}}];
{{- end}}
{{- range $x := .Quads}}
{{- range $c := 4}}
      {
        let a0 = row_tile[stage][ty][{{add (mul 10 $x) (mul 2 $c)}}];
        let a1 = row_tile[stage][ty][{{add (mul 10 $x) (add (mul 2 $c) 1)}}];
{{- range $u := $columns}}
        let b{{$u}} = column_tile[tx][{{add (mul $columns (add (mul 4 $x) $c)) $u}}];
{{- range $c := 4}}
{{- range $at := 8}}
{{- $i := swing $at 8 $c}}
{{- $o := printf "o%d_%d[%d]" $i $u $c}}
        {{$o}} = fma({{number "a" $i}}, b{{$u}}[{{$c}}], {{$o}});
{{- end}}
{{- end}}
{{- end}}
      }
{{- end}}
{{- end}}
      workgroupBarrier();
    }
  }
  column_tile[tx][2u * ty] = total0;
  column_tile[tx][2u * ty + 1u] = total1;
  workgroupBarrier();
  if (lane < {{$tall}}u) {
    var total = {{if .Sinks}}exp2(sink - largest){{else}}0.0{{end}};
{{- range $t := .Across}}
    total += column_tile[{{$t}}][lane >> 2u][lane & 3u];
{{- end}}
{{- if .Split}}
    if (tile_row + lane < rows) {
      parts[part_place(tile_row + lane, kv_head, split) + {{.HeadQuads}}u] =
        vec4<f32>(largest * 0.6931471805599453, total, 0.0, 0.0);
    }
  }
{{- else}}
    shrinks[lane >> 2u][lane & 3u] = 1.0 / total;
  }
  workgroupBarrier();
{{- range $h := 2}}
  let share{{$h}} = shrinks[2u * ty + {{$h}}u];
{{- end}}
{{- end}}
{{- range $i := 8}}
  if (tile_row + 8u * ty + {{$i}}u < rows) {
    let at = {{if $.Split}}part_place(tile_row + 8u * ty + {{$i}}u, kv_head, split)
      {{- else}}row_place(tile_row + 8u * ty + {{$i}}u, kv_head){{end}} + tx;
{{- range $u := $columns}}
    if (tx + {{mul $u $.Across}}u < {{$.HeadQuads}}u) {
{{- if $.Split}}
      parts[at + {{mul $u $.Across}}u] = o{{$i}}_{{$u}};
{{- else}}
      y[at + {{mul $u $.Across}}u] = o{{$i}}_{{$u}} * {{number "share" $i}};
{{- end}}
    }
{{- end}}
  }
{{- end}}
}
