// Attention of a tile of 64 rows over the positions they may see, 64 at a time, with no scores in memory. A
// row is a token of a query head; the {{.Group}} query heads of a KV head make {{.Group}} rows of each token,
// so that they share what is loaded of k and v. The largest score and the sum of the weights of a row are
// carried along, and what was summed so far is scaled when a larger score comes. Source: Dao and others,
// FlashAttention-2 (2023).
{{- $n := 4}}{{/* rows of a lane: the components of a vector */}}
{{- $loads := div (mul 64 .Quads) 256}}
{{- $columns := div (add .HeadQuads 15) 16}}
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, these tokens' included
  position: u32, // of the first token
  window: u32, // positions that a token sees at most
  kv_heads: u32,
  scale: f32,
}

{{- $C := "vec4<f32>"}}{{if .HalfCache}}{{$C = "vec2<u32>"}}{{end}}

// [tokens, kv_heads, {{.Group}}, {{.HeadQuads}}]
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k_cache: array<{{$C}}>; // [positions, kv_heads, {{.HeadQuads}}]
@group(0) @binding(2) var<storage, read> v_cache: array<{{$C}}>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>; // like q
@group(0) @binding(4) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "kv_cache" .}}
{{template "tile_memory" .}}

// The place of vector quad of a row of 64 weights, which take the place of both tiles.
fn weight_place(row: u32, quad: u32) -> u32 {
  return row * 16u + (quad ^ (row & 7u));
}

// The place of a row of q or y, less that of its KV head.
fn row_place(row: u32, kv_head: u32) -> u32 {
  return ((row / {{.Group}}u * params.kv_heads + kv_head) * {{.Group}}u +
    row % {{.Group}}u) * {{.HeadQuads}}u;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // The tiles of the last tokens have the most positions to go through, and start first.
  let rows = params.tokens * {{.Group}}u;
  let row_tiles = (rows + 63u) / 64u;
  let id = flat_group(wid, groups);
  if (id >= row_tiles * params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let kv_head = id % params.kv_heads;
  let tile_row = (row_tiles - 1u - id / params.kv_heads) * 64u;
  let last_token = min(tile_row + 63u, rows - 1u) / {{.Group}}u;
  let end = params.position + last_token + 1u;
  let first_end = params.position + tile_row / {{.Group}}u + 1u;
  let begin = max(first_end, params.window) - params.window;
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % {{.Quads}}u;
{{- range $i := $loads}}
  let row{{$i}} = (lane + {{mul $i 256}}u) / {{$.Quads}}u;
  let q_row{{$i}} = row_place(min(tile_row + row{{$i}}, rows - 1u), kv_head);
{{- end}}
  // What a lane keeps of its four rows. The totals are of its own positions.
  let token = (vec4<u32>(tile_row + ty) + vec4<u32>(0u, 16u, 32u, 48u)) / {{.Group}}u;
  let last = vec4<u32>(params.position) + token;
  var largest = vec4<f32>(-1e30);
  var total = vec4<f32>(0.0);
{{- range $i := $n}}
{{- range $u := $columns}}
  var o{{$i}}_{{$u}} = vec4<f32>(0.0);
{{- end}}
{{- end}}
{{- range $u := $columns}}
  let column{{$u}} = min(tx + {{mul $u 16}}u, {{sub $.HeadQuads 1}}u);
{{- end}}
  for (var tile_column = begin; tile_column < end; tile_column += 64u) {
{{- template "tile_sums" .}}
{{- range $i := $loads}}
    let k_row{{$i}} = (min(tile_column + row{{$i}}, end - 1u) * params.kv_heads + kv_head) * {{$.HeadQuads}}u;
{{- end}}
    for (var first = 0u; first < {{.HeadQuads}}u; first += {{.Quads}}u) {
      let at = min(first + quad, {{sub .HeadQuads 1}}u);
      let there = first + quad < {{.HeadQuads}}u;
{{- range $i := $loads}}
      tiles[tile_place(row{{$i}}, quad)] = select(vec4<f32>(0.0), q[q_row{{$i}} + at], there);
      tiles[second + tile_place(row{{$i}}, quad)] = select(vec4<f32>(0.0), cached(k_cache[k_row{{$i}} + at]),
        there);
{{- end}}
      workgroupBarrier();
{{- template "tile_product" .}}
      workgroupBarrier();
    }
{{- range $j := $n}}
    let c{{$j}} = vec4<u32>(tile_column + tx + {{mul $j 16}}u);
    let seen{{$j}} = (c{{$j}} <= last) & (c{{$j}} + vec4<u32>(params.window) > last);
    let score{{$j}} = select(vec4<f32>(-1e30),
      params.scale * vec4<f32>(sum0_{{$j}}, sum1_{{$j}}, sum2_{{$j}}, sum3_{{$j}}), seen{{$j}});
{{- end}}
    // The largest score of each row: of a lane's own, then of the 16 lanes that share the row.
    tiles[lane] = max(max(score0, score1), max(score2, score3));
    workgroupBarrier();
    let before = largest;
    for (var i = 0u; i < 16u; i++) {
      largest = max(largest, tiles[(lane & 240u) + i]);
    }
    workgroupBarrier();
    let shrink = exp(before - largest);
{{- range $j := $n}}
    let weight{{$j}} = select(vec4<f32>(0.0), exp(score{{$j}} - largest), seen{{$j}});
{{- $column := printf "(tx + %du)" (mul $j 16)}}
    tiles[weight_place(ty, {{$column}} / 4u)][tx & 3u] = weight{{$j}}.x;
    tiles[weight_place(ty + 16u, {{$column}} / 4u)][tx & 3u] = weight{{$j}}.y;
    tiles[weight_place(ty + 32u, {{$column}} / 4u)][tx & 3u] = weight{{$j}}.z;
    tiles[weight_place(ty + 48u, {{$column}} / 4u)][tx & 3u] = weight{{$j}}.w;
{{- end}}
    total = total * shrink + ((weight0 + weight1) + (weight2 + weight3));
{{- range $i := $n}}
{{- range $u := $columns}}
    o{{$i}}_{{$u}} *= shrink.{{slice "xyzw" $i (add $i 1)}};
{{- end}}
{{- end}}
    workgroupBarrier();
    let quads = (min(64u, end - tile_column) + 3u) / 4u;
    for (var c = 0u; c < quads; c++) {
      let v_row = tile_column + 4u * c;
{{- range $p := 4}}
      let v_row{{$p}} = (min(v_row + {{$p}}u, end - 1u) * params.kv_heads + kv_head) * {{$.HeadQuads}}u;
{{- range $u := $columns}}
      let v{{$p}}_{{$u}} = cached(v_cache[v_row{{$p}} + column{{$u}}]);
{{- end}}
{{- end}}
{{- range $i := $n}}
      let w{{$i}} = tiles[weight_place(ty + {{mul $i 16}}u, c)];
{{- range $u := $columns}}
      o{{$i}}_{{$u}} = fma(vec4<f32>(w{{$i}}.w), v3_{{$u}},
        fma(vec4<f32>(w{{$i}}.z), v2_{{$u}},
        fma(vec4<f32>(w{{$i}}.y), v1_{{$u}}, fma(vec4<f32>(w{{$i}}.x), v0_{{$u}}, o{{$i}}_{{$u}}))));
{{- end}}
{{- end}}
    }
    workgroupBarrier();
  }
  tiles[lane] = total;
  workgroupBarrier();
  var sum = vec4<f32>(0.0);
  for (var i = 0u; i < 16u; i++) {
    sum += tiles[(lane & 240u) + i];
  }
{{- range $i := $n}}
  if (tile_row + ty + {{mul $i 16}}u < rows) {
    let at = row_place(tile_row + ty + {{mul $i 16}}u, kv_head);
{{- range $u := $columns}}
    if (tx + {{mul $u 16}}u < {{$.HeadQuads}}u) {
      y[at + column{{$u}}] = o{{$i}}_{{$u}} / sum.{{slice "xyzw" $i (add $i 1)}};
    }
{{- end}}
  }
{{- end}}
}
