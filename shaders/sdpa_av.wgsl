// y = weights * v, over the positions that a token can see. A workgroup computes a tile of {{.Tile}} tokens x
// 64 columns of a head. It loads {{mul .Quads 4}} positions at a time into workgroup memory.
{{- $loads := div (mul .Tile .Quads) 256}}
{{- $vloads := div (mul .Quads 64) 256}}
{{- $n := div .Tile 16}}
struct Params {
  tokens: u32,
  context: u32, // positions in the cache, including those of these tokens
  position: u32, // position of the first token
  start: u32, // first position that the first token sees; rows of weights start with it
  window: u32, // largest number of positions that a token sees
  quads: u32, // vectors of 4 weights in a row
  q_heads: u32,
  kv_heads: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<vec4<f32>>; // [q_heads, tokens, quads]
// [positions, kv_heads, {{.HeadQuads}}]
@group(0) @binding(1) var<storage, read> v_cache: array<{{if .HalfCache}}vec2<u32>{{else}}vec4<f32>{{end}}>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [tokens, q_heads, {{.HeadQuads}}]
@group(0) @binding(3) var<uniform> params: Params;

{{template "kv_cache" .}}
{{template "tile_places" .}}
var<workgroup> tile_a: array<vec4<f32>, {{mul .Tile .Quads}}>;
var<workgroup> tile_v: array<vec4<f32>, {{mul .Quads 64}}>; // [positions, 16]

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let tile_row = wid.y * {{.Tile}}u;
  let tile_column = wid.x * 16u;
  let head = wid.z;
  if (tile_row >= params.tokens || tile_column >= {{.HeadQuads}}u || head >= params.q_heads) {
    return; // the grid can be larger than the current shape needs
  }
  let kv_head = head / (params.q_heads / params.kv_heads);
  let tx = lane & 15u;
  let ty = lane >> 4u;
  let quad = lane % {{.Quads}}u;
{{- range $i := $loads}}
  let row{{$i}} = (lane + {{mul $i 256}}u) / {{$.Quads}}u;
  let token_a{{$i}} = min(tile_row + row{{$i}}, params.tokens - 1u);
  let a_row{{$i}} = (head * params.tokens + token_a{{$i}}) * params.quads;
{{- end}}
{{- range $i := $n}}
  var sum{{$i}} = vec4<f32>(0.0);
{{- end}}
  let row_a = ty * {{.Quads}}u;
  let mask_a = tile_mask(ty);
  let v_column = min(tile_column + tx, {{sub .HeadQuads 1}}u);
  // The range of positions that at least one token of the tile sees.
  let end = min(params.context, params.position + tile_row + {{.Tile}}u) - params.start;
  let next = params.position + tile_row + 1u - params.start;
  let begin = (max(next, params.window) - params.window) / 4u * 4u;
  for (var first = begin; first < end; first += {{mul .Quads 4}}u) {
{{- range $i := $loads}}
    {
      // Weights of positions that a token does not see were never written.
      let c = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(params.start + first + 4u * quad);
      let last = vec4<u32>(params.position + token_a{{$i}});
      let a = weights[a_row{{$i}} + min(first / 4u + quad, params.quads - 1u)];
      tile_a[tile_place(row{{$i}}, quad)] = select(vec4<f32>(0.0), a,
        (c <= last) & (c + vec4<u32>(params.window) > last));
    }
{{- end}}
{{- range $i := $vloads}}
    {
      let c = ty + {{mul $i 16}}u;
      tile_v[c * 16u +
        tx] = cached(v_cache[(min(params.start + first + c, params.context - 1u) * params.kv_heads +
        kv_head) * {{$.HeadQuads}}u + v_column]);
    }
{{- end}}
    workgroupBarrier();
{{- range $q := .Quads}}
    {
{{- range $c := 4}}
      let v{{$c}} = tile_v[{{mul 16 (add (mul $q 4) $c)}}u + tx];
{{- end}}
{{- range $i := $n}}
      let a{{$i}} = tile_a[row_a + {{mul $i (mul 16 $.Quads)}}u + ({{$q}}u ^ mask_a)];
      sum{{$i}} = fma(vec4<f32>(a{{$i}}.w), v3,
        fma(vec4<f32>(a{{$i}}.z), v2,
        fma(vec4<f32>(a{{$i}}.y), v1, fma(vec4<f32>(a{{$i}}.x), v0, sum{{$i}}))));
{{- end}}
    }
{{- end}}
    workgroupBarrier();
  }
  if (tile_column + tx < {{.HeadQuads}}u) {
{{- range $i := $n}}
    let token{{$i}} = tile_row + ty + {{mul $i 16}}u;
    if (token{{$i}} < params.tokens) {
      y[(token{{$i}} * params.q_heads + head) * {{$.HeadQuads}}u + tile_column + tx] = sum{{$i}};
    }
{{- end}}
  }
}
