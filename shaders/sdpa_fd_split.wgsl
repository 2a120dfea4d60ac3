// Attention of one token over one split of the positions, for {{.Heads}} query head{{if gt .Heads 1}}s{{end}}
// that share a KV head: the sum of v weighted by exp(score - max), not yet divided by the sum of the weights,
// and that sum and max. Of the last split it also appends the token's k and v to the caches.
{{- $T := "f32"}}{{if eq .Heads 2}}{{$T = "vec2<f32>"}}{{else if eq .Heads 4}}{{$T = "vec4<f32>"}}{{end}}
{{- $parts := div 64 .HeadQuads}}
struct Params {
  context: u32, // positions, the token's own included
  start: u32, // the first position that it sees
  splits: u32,
  split_len: u32,
  kv_heads: u32,
  scale: f32,
}

{{- $C := "vec4<f32>"}}{{if .HalfCache}}{{$C = "vec2<u32>"}}{{end}}

@group(0) @binding(0) var<storage, read> q: array<f32>; // [q_heads, {{mul 4 .HeadQuads}}]
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>; // [kv_heads, {{.HeadQuads}}]
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
// [positions, kv_heads, {{.HeadQuads}}]
@group(0) @binding(3) var<storage, read_write> k_cache: array<{{$C}}>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<{{$C}}>;
@group(0) @binding(5) var<storage, read_write> part_o: array<vec4<f32>>; // [q_heads, splits, {{.HeadQuads}}]
@group(0) @binding(6) var<storage, read_write> part_ml: array<vec2<f32>>; // [q_heads, splits]: max, sum
@group(0) @binding(7) var<uniform> params: Params;

{{template "flat_group" .}}
{{template "kv_cache" .}}
// {{$T}} has a value for each of the {{.Heads}} query heads.
var<workgroup> query: array<{{$T}}, {{mul 4 .HeadQuads}}>;
var<workgroup> partial: array<{{$T}}, 64>;
var<workgroup> weight: array<{{$T}}, 64>; // of the positions of a block
var<workgroup> sums: array<{{$T}}, 256>; // [lane, 4]

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
  let split = id % params.splits;
  let head_group = id / params.splits;
  let kv_head = head_group / {{.HeadGroups}}u;
  if (kv_head >= params.kv_heads) {
    return; // a grid that is larger than the live shape needs
  }
  let head0 = head_group * {{.Heads}}u;
  let begin = params.start + split * params.split_len;
  let end = min(begin + params.split_len, params.context);
  for (var d = lane; d < {{mul 4 .HeadQuads}}u; d += 64u) {
    let at = head0 * {{mul 4 .HeadQuads}}u + d;
    query[d] = params.scale * {{if eq .Heads 1}}q[at]{{else}}{{$T}}(q[at]{{range $h := .Heads}}{{if $h}},
      q[at + {{mul $h (mul 4 $.HeadQuads)}}u]{{end}}{{end}}){{end}};
  }
  // The workgroups of other query heads of the KV head write the same. Each reads what it wrote itself.
  if (begin < params.context && end == params.context && lane < {{.HeadQuads}}u) {
    let src = kv_head * {{.HeadQuads}}u + lane;
    let dst = (params.context - 1u) * params.kv_heads * {{.HeadQuads}}u + src;
{{- if .HalfCache}}
    k_cache[dst] = vec2<u32>(pack2x16float(k[src].xy), pack2x16float(k[src].zw));
    v_cache[dst] = vec2<u32>(pack2x16float(v[src].xy), pack2x16float(v[src].zw));
{{- else}}
    k_cache[dst] = k[src];
    v_cache[dst] = v[src];
{{- end}}
  }
  storageBarrier();
  workgroupBarrier();
  let column = lane % {{.HeadQuads}}u;
  let part = lane / {{.HeadQuads}}u;
  var largest = {{$T}}(-1e30);
  var sum = {{$T}}(0.0);
{{- range $d := 4}}
  var o{{$d}} = {{$T}}(0.0);
{{- end}}
  // Blocks of 64 positions. First a lane has a position, then a column of v and every {{$parts}}th position.
  for (var first = begin; first < end; first += 64u) {
    let there = first + lane < end;
    let row = (min(first + lane, end - 1u) * params.kv_heads + kv_head) * {{.HeadQuads}}u;
    var score = {{$T}}(0.0);
{{- range $i := .HeadQuads}}
    let k{{$i}} = cached(k_cache[row + {{$i}}u]);
    score = fma({{$T}}(k{{$i}}.w), query[{{add (mul 4 $i) 3}}],
      fma({{$T}}(k{{$i}}.z), query[{{add (mul 4 $i) 2}}],
      fma({{$T}}(k{{$i}}.y), query[{{add (mul 4 $i) 1}}],
      fma({{$T}}(k{{$i}}.x), query[{{mul 4 $i}}], score))));
{{- end}}
    partial[lane] = select({{$T}}(-1e30), score, there);
    workgroupBarrier();
    for (var s = 32u; s > 0u; s >>= 1u) {
      if (lane < s) {
        partial[lane] = max(partial[lane], partial[lane + s]);
      }
      workgroupBarrier();
    }
    let before = largest;
    largest = max(before, partial[0]);
    weight[lane] = select({{$T}}(0.0), exp(score - largest), there);
    workgroupBarrier();
    let shrink = exp(before - largest);
    sum *= shrink;
{{- range $d := 4}}
    o{{$d}} *= shrink;
{{- end}}
    if (part < {{$parts}}u) {
      let positions = min(64u, end - first);
      for (var j = part; j < positions; j += {{$parts}}u) {
        let value = cached(v_cache[((first + j) * params.kv_heads + kv_head) * {{.HeadQuads}}u + column]);
        let w = weight[j];
        sum += w;
        o0 = fma(w, {{$T}}(value.x), o0);
        o1 = fma(w, {{$T}}(value.y), o1);
        o2 = fma(w, {{$T}}(value.z), o2);
        o3 = fma(w, {{$T}}(value.w), o3);
      }
    }
    workgroupBarrier();
  }
  partial[lane] = sum;
{{- range $d := 4}}
  sums[4u * lane + {{$d}}u] = o{{$d}};
{{- end}}
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
{{- if gt $parts 1}}
  for (var p = 1u; p < {{$parts}}u; p++) {
    sum += partial[p * {{.HeadQuads}}u + column];
{{- range $d := 4}}
    o{{$d}} += sums[4u * (p * {{$.HeadQuads}}u + column) + {{$d}}u];
{{- end}}
  }
{{- end}}
{{- range $h := .Heads}}
{{- $x := ""}}{{if gt $.Heads 1}}{{$x = printf ".%s" (slice "xyzw" $h (add $h 1))}}{{end}}
  part_o[((head0 + {{$h}}u) * params.splits + split) * {{$.HeadQuads}}u + column] = vec4<f32>(o0{{$x}},
    o1{{$x}}, o2{{$x}}, o3{{$x}});
{{- end}}
  if (column == 0u) {
{{- range $h := .Heads}}
{{- $x := ""}}{{if gt $.Heads 1}}{{$x = printf ".%s" (slice "xyzw" $h (add $h 1))}}{{end}}
    part_ml[(head0 + {{$h}}u) * params.splits + split] = vec2<f32>(largest{{$x}}, sum{{$x}});
{{- end}}
  }
}
