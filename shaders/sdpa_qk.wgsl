// scores = scale * q * k', for the positions that a token can see. A workgroup computes a tile of {{.Tile}}
// tokens x {{.Tile}} positions of a head.
{{- $loads := div (mul .Tile .Quads) 256}}
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, including those of these tokens
  position: u32, // position of the first token
  start: u32, // first position that the first token sees; rows of scores start with it
  window: u32, // largest number of positions that a token sees
  stride: u32, // number of elements from one row of scores to the next
  q_heads: u32,
  kv_heads: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [tokens, q_heads, {{.HeadQuads}}]
// [positions, kv_heads, {{.HeadQuads}}]
@group(0) @binding(1) var<storage, read> k_cache: array<{{if .HalfCache}}vec2<u32>{{else}}vec4<f32>{{end}}>;
@group(0) @binding(2) var<storage, read_write> scores: array<f32>; // [q_heads, tokens, stride]
@group(0) @binding(3) var<uniform> params: Params;

{{template "kv_cache" .}}
{{template "tile_memory" .}}
{{- template "soft_cap" (set . "T" "f32")}}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile_row = wid.y * {{.Tile}}u;
  let tile_column = wid.x * {{.Tile}}u;
  let head = wid.z;
  let first_position = params.start + tile_column;
  let first_token = params.position + tile_row;
  // There is nothing to do past the current shape, or if no token of the tile sees any position of the tile.
  if (tile_row >= params.tokens || first_position >= params.context || head >= params.q_heads ||
    first_position > first_token + {{sub .Tile 1}}u ||
    first_position + {{.Tile}}u + params.window <= first_token + 1u) {
    return;
  }
  let kv_head = head / (params.q_heads / params.kv_heads);
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % {{.Quads}}u;
{{- range $i := $loads}}
  let row{{$i}} = (lane + {{mul $i 256}}u) / {{$.Quads}}u;
  let q_row{{$i}} = (min(tile_row + row{{$i}}, params.tokens - 1u) * params.q_heads +
    head) * {{$.HeadQuads}}u;
  let k_row{{$i}} = (min(first_position + row{{$i}}, params.context - 1u) * params.kv_heads +
    kv_head) * {{$.HeadQuads}}u;
{{- end}}
{{- template "tile_sums" .}}
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
{{- $n := div .Tile 16}}
{{- range $i := $n}}
  let token{{$i}} = tile_row + ty + {{mul $i 16}}u;
  if (token{{$i}} < params.tokens) {
    let at = (head * params.tokens + token{{$i}}) * params.stride;
    let last = params.position + token{{$i}};
{{- range $j := $n}}
    let c{{$j}} = tile_column + tx + {{mul $j 16}}u;
    if (params.start + c{{$j}} <= last && params.start + c{{$j}} + params.window > last) {
      scores[at + c{{$j}}] = {{if $.SoftCap}}soft_cap({{end}}params.scale * sum{{$i}}_{{$j}}
        {{- if $.SoftCap}}){{end}};
    }
{{- end}}
  }
{{- end}}
}
