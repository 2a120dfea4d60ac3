// Attention of one token for {{.Heads}} query head{{if gt .Heads 1}}s{{end}} of a KV head,
{{- if .Whole}} over all positions that the token sees.{{else}} over one split of the positions. The output
// is the sum of v weighted by exp(score - max), before the division by the sum of weights. The sum of weights
// and max are written too.{{end}}
{{- if not .Cached}}
// The last split also appends the token's k and v to the caches.
{{- end}}
{{- if .Leaves}}
// The output is stored in the order in which the lanes of a GEMV load it.
{{- end}}
{{- if .Turn}}
// The kernel {{if .Norms}}normalizes and {{end}}rotates q
{{- if .Cached}} as it loads it{{else}} and k as it loads them{{end}}.
{{- end}}
//
// A workgroup processes its positions in blocks, and loads the next block while it processes the current one.
// {{.Row}} lanes share the key of a position. {{.HeadQuads}} lanes share its value, and each of them has four
// columns. The lanes that have the values of the same positions form a part. Each part has its own largest
// score and its own sums, so a block needs only one barrier. One more barrier comes before the parts are
// combined.
{{- $T := "f32"}}{{if eq .Heads 2}}{{$T = "vec2<f32>"}}{{else if eq .Heads 4}}{{$T = "vec4<f32>"}}{{end}}
{{- $C := "vec4<f32>"}}{{if .HalfCache}}{{$C = "vec2<u32>"}}{{end}}
{{- $quads := div (add .HeadQuads (sub .Row 1)) .Row}}{{/* vectors of a key that a lane processes */}}
{{- $block := div .Lanes .Row}}
{{- $own := 1}}{{if .Cached}}{{$own = 0}}{{end}}{{/* keys of the token itself */}}
{{- $parts := div .Lanes .HeadQuads}}
{{- $turns := div (add $block (sub $parts 1)) $parts}}{{/* positions of a block that a part processes */}}
struct Params {
  context: u32, // number of positions, including the token's own
  start: u32, // the first position that the token sees
{{- if not .Whole}}
  splits: u32,
  split_len: u32,
{{- end}}
  kv_heads: u32,
  scale: f32,
{{- if eq .Turn "halves"}}
  angle: u32, // index in cosine and sine of the first vector for the token's position
{{- end}}
{{- if .Norms}}
  eps: f32, // of the norms of q and k
{{- end}}
}

{{binding}} var<storage, read> q: array<vec4<f32>>; // [q_heads, {{.HeadQuads}}]
{{- if not .Cached}}
{{binding}} var<storage, read> k: array<vec4<f32>>; // [kv_heads, {{.HeadQuads}}]
{{binding}} var<storage, read> v: array<vec4<f32>>;
{{- end}}
{{- if .Turn}}
{{- $A := "vec2<f32>"}}{{if eq .Turn "halves"}}{{$A = "vec4<f32>"}}{{end}}
{{binding}} var<storage, read> cosine: array<{{$A}}>;
{{binding}} var<storage, read> sine: array<{{$A}}>;
{{- end}}
{{- if .Norms}}
{{binding}} var<storage, read> q_weight: array<vec4<f32>>; // weights of the norms of heads
{{- if not .Cached}}
{{binding}} var<storage, read> k_weight: array<vec4<f32>>;
{{- end}}
{{- end}}
{{- if .Sinks}}
{{binding}} var<storage, read> sinks: array<f32>; // for each query head, a score without a value
{{- end}}
// [positions, kv_heads, {{.HeadQuads}}]
{{- $access := "read_write"}}{{if .Cached}}{{$access = "read"}}{{end}}
{{binding}} var<storage, {{$access}}> k_cache: array<{{$C}}>;
{{binding}} var<storage, {{$access}}> v_cache: array<{{$C}}>;
{{- if .Whole}}
{{binding}} var<storage, read_write> y: array<f32>; // [q_heads, {{mul 4 .HeadQuads}}]
{{- if .Leaves}}, interleaved{{end}}
{{- else if .Leaves}}
// [4, q_heads, {{mul 4 .HeadQuads}}] weighted sums, interleaved; then, for each head, the largest scores of
// the four splits, and their sums of weights
{{binding}} var<storage, read_write> parts: array<f32>;
{{- else}}
// [splits, q_heads, {{mul 4 .HeadQuads}} sums, then the largest score, the sum of the weights and two zeros]
{{binding}} var<storage, read_write> parts: array<f32>;
{{- end}}
{{binding}} var<uniform> params: Params;

{{template "flat_group" .}}
{{- if .Leaves}}
{{- template "spread" .}}
{{end}}
{{template "kv_cache" .}}
{{- if not .Cached}}
{{template "kv_stored" .}}
{{- end}}
{{- template "soft_cap" (set . "T" $T)}}
{{- if .Turn}}
{{- template "rotary_vector" .}}
{{- end}}
// Returns vector quad of a query head.
fn query_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * {{.HeadQuads}}u;
  return {{template "rotary_turn" (set . "X" "q")}};
}

{{- if not .Cached}}

// Returns vector quad of the token's key.
fn key_of(head: u32, quad: u32) -> vec4<f32> {
  let at = head * {{.HeadQuads}}u;
  return {{template "rotary_turn" (set . "X" "k")}};
}
{{- end}}

// A {{$T}} has a value for each query head. The array products has one product for each lane, for two blocks,
// which alternate.
var<workgroup> products: array<{{$T}}, {{mul 2 .Lanes}}>;
{{- if not .Cached}}
var<workgroup> own_products: array<{{$T}}, {{.Row}}>; // products with the token's own key
{{- end}}
// The results of the parts.
var<workgroup> sums: array<{{$T}}, {{mul 4 .Lanes}}>;
var<workgroup> largests: array<{{$T}}, {{$parts}}>;
var<workgroup> totals: array<{{$T}}, {{$parts}}>;
{{- if .Norms}}
// Sums of squares: for each query head
{{- if not .Cached}}, then for the key{{end}}. Each of {{.Row}} lanes has its own.
var<workgroup> squares: array<f32, {{mul .Row (add .Heads $own)}}>;

fn square(x: vec4<f32>) -> f32 {
  return dot(x, x);
}

// Returns the scale of the norm of a head. The sums of squares of this head start at index first.
fn norm_of(first: u32) -> f32 {
  return inverseSqrt((squares[first]{{range $r := .Row}}{{if $r}} + squares[first + {{$r}}u]{{end}}{{end}}) /
    {{mul 4 .HeadQuads}}.0 + params.eps);
}
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(wid, groups);
{{- if .Whole}}
  let head_group = id;
{{- else}}
  let split = id % params.splits;
  let head_group = id / params.splits;
{{- end}}
  let kv_head = head_group / {{.HeadGroups}}u;
  if (kv_head >= params.kv_heads) {
    return; // the grid can be larger than the current shape needs
  }
  let head0 = head_group * {{.Heads}}u;
  // The caches are read from position begin to position end.
{{- if .Whole}}
  let begin = params.start;
  let end = params.context{{if not .Cached}} - 1u;
  let appends = true{{end}};
{{- else}}
  let begin = params.start + split * params.split_len;
  let end = min(begin + params.split_len, params.context{{if not .Cached}} - 1u);
  let appends = begin + params.split_len >= params.context{{else}}){{end}};
{{- end}}
  let last = max(end, 1u) - 1u;
  let place = lane / {{.Row}}u;
  let part = lane / {{.HeadQuads}}u;
  let column = lane % {{.HeadQuads}}u;
{{- range $i := $quads}}
  let quad{{$i}} = min(lane % {{$.Row}}u + {{mul $i $.Row}}u, {{sub $.HeadQuads 1}}u);
{{- end}}
{{- if not .Cached}}
{{- range $i := $quads}}
  let new_key{{$i}} = key_of(kv_head, quad{{$i}});
{{- end}}
  let new_value = v[kv_head * {{.HeadQuads}}u + column];
{{- end}}
  var row = (min(begin + place, last) * params.kv_heads + kv_head) * {{.HeadQuads}}u;
{{- range $i := $quads}}
  var k{{$i}} = k_cache[row + quad{{$i}}];
{{- end}}
{{- range $t := $turns}}
  row = (min(begin + part + {{mul $t $parts}}u, last) * params.kv_heads + kv_head) * {{$.HeadQuads}}u;
  var v{{$t}} = v_cache[row + column];
{{- end}}
{{- if .Norms}}
  if (place == 0u) {
{{- range $h := add .Heads $own}}
{{- $x := printf "q[(head0 + %du) * %du" $h $.HeadQuads}}
{{- if eq $h $.Heads}}{{$x = printf "k[kv_head * %du" $.HeadQuads}}{{end}}
    squares[lane + {{mul $h $.Row}}u] =
{{- range $i := $quads}}{{if $i}} +{{end}}
{{- if le (mul (add $i 1) $.Row) $.HeadQuads}} square({{$x}} + quad{{$i}}])
{{- else}}
      select(0.0, square({{$x}} + quad{{$i}}]), lane + {{mul $i $.Row}}u < {{$.HeadQuads}}u){{end}}
{{- end}};
{{- end}}
  }
  workgroupBarrier();
{{- range $h := .Heads}}
  let scale{{$h}} = params.scale * norm_of({{mul $h $.Row}}u);
{{- end}}
{{- if not .Cached}}
  let key_scale = norm_of({{mul .Heads .Row}}u);
{{- end}}
{{- end}}
{{- range $i := $quads}}
{{- range $h := $.Heads}}
  let q{{$h}}_{{$i}} = {{if $.Norms}}scale{{$h}}{{else}}params.scale{{end}} *
{{- $x := printf "query_of(head0 + %du, quad%d)" $h $i}}
{{- if le (mul (add $i 1) $.Row) $.HeadQuads}} {{$x}};
{{- else}}
    select(vec4<f32>(0.0), {{$x}}, lane % {{$.Row}}u + {{mul $i $.Row}}u < {{$.HeadQuads}}u);
{{- end}}
{{- end}}
{{- range $d := 4}}{{$x := slice "xyzw" $d (add $d 1)}}
  let query{{$i}}_{{$d}} = {{$T}}(q0_{{$i}}.{{$x}}
{{- range $h := $.Heads}}{{if $h}}, q{{$h}}_{{$i}}.{{$x}}{{end}}{{end}});
{{- end}}
{{- end}}
{{- if not .Cached}}
  // The workgroups for other query heads of the same KV head append the same k and v.
  var own_value = vec4<f32>(0.0);
  if (appends) {
    let dst = ((params.context - 1u) * params.kv_heads + kv_head) * {{.HeadQuads}}u;
    if (place == 0u) {
      var product = {{$T}}(0.0);
{{- range $i := $quads}}
      let key{{$i}} = stored(new_key{{$i}}{{if $.Norms}} * key_scale{{end}});
      k_cache[dst + quad{{$i}}] = key{{$i}};
      let own{{$i}} = reread(key{{$i}});
{{- range $d := 4}}
      product = fma({{$T}}(own{{$i}}.{{slice "xyzw" $d (add $d 1)}}), query{{$i}}_{{$d}}, product);
{{- end}}
{{- end}}
      own_products[lane] = product;
    }
    if (part == 0u) {
      let value = stored(new_value);
      v_cache[dst + column] = value;
      own_value = reread(value);
    }
  }
  workgroupBarrier();
{{- end}}
  var largest = {{$T}}(-1e30);
  var total = {{$T}}(0.0);
{{- range $d := 4}}
  var o{{$d}} = {{$T}}(0.0);
{{- end}}
  var turn = 0u;
  for (var first = begin; first < end; first += {{$block}}u) {
    let next = first + {{$block}}u;
    row = (min(next + place, last) * params.kv_heads + kv_head) * {{.HeadQuads}}u;
{{- range $i := $quads}}
    let next_k{{$i}} = k_cache[row + quad{{$i}}];
{{- end}}
{{- range $t := $turns}}
    row = (min(next + part + {{mul $t $parts}}u, last) * params.kv_heads + kv_head) * {{$.HeadQuads}}u;
    let next_v{{$t}} = v_cache[row + column];
{{- end}}
    var product = {{$T}}(0.0);
{{- range $i := $quads}}
    let key{{$i}} = cached(k{{$i}});
{{- range $d := 4}}
    product = fma({{$T}}(key{{$i}}.{{slice "xyzw" $d (add $d 1)}}), query{{$i}}_{{$d}}, product);
{{- end}}
{{- end}}
    products[turn + lane] = product;
    workgroupBarrier();
    if (part < {{$parts}}u) {
      let before = largest;
{{- range $t := $turns}}
      let place{{$t}} = part + {{mul $t $parts}}u;
      let seen{{$t}} = first + place{{$t}} < end
{{- if gt (mul $turns $parts) $block}} && place{{$t}} < {{$block}}u{{end}};
      let at{{$t}} = turn + min(place{{$t}}, {{sub $block 1}}u) * {{$.Row}}u;
      let score{{$t}} = select({{$T}}(-1e30), {{if $.SoftCap}}soft_cap({{end}}products[at{{$t}}]
        {{- range $r := $.Row}}{{if $r}} +
        products[at{{$t}} + {{$r}}u]{{end}}{{end}}{{if $.SoftCap}}){{end}}, seen{{$t}});
      largest = max(largest, score{{$t}});
{{- end}}
      let shrink = exp(before - largest);
      total *= shrink;
{{- range $d := 4}}
      o{{$d}} *= shrink;
{{- end}}
{{- range $t := $turns}}
      let weight{{$t}} = exp(score{{$t}} - largest);
      let value{{$t}} = cached(v{{$t}});
      total += weight{{$t}};
{{- range $d := 4}}
      o{{$d}} = fma(weight{{$t}}, {{$T}}(value{{$t}}.{{slice "xyzw" $d (add $d 1)}}), o{{$d}});
{{- end}}
{{- end}}
    }
    turn = {{.Lanes}}u - turn;
{{- range $i := $quads}}
    k{{$i}} = next_k{{$i}};
{{- end}}
{{- range $t := $turns}}
    v{{$t}} = next_v{{$t}};
{{- end}}
  }
{{- if not .Cached}}
  if (appends && part == 0u) {
    let score = {{if .SoftCap}}soft_cap({{end}}own_products[0]{{range $r := .Row}}{{if $r}} +
      own_products[{{$r}}]{{end}}{{end}}{{if .SoftCap}}){{end}};
    let before = largest;
    largest = max(before, score);
{{- if .Sinks}}
    let sink = {{$T}}({{range $h := .Heads}}{{if $h}}, {{end}}sinks[head0 + {{$h}}u]{{end}});
    largest = max(largest, sink);
{{- end}}
    let shrink = exp(before - largest);
    let weight = exp(score - largest);
    total = fma(total, shrink, weight){{if .Sinks}} + exp(sink - largest){{end}};
{{- range $d := 4}}
    o{{$d}} = fma(o{{$d}}, shrink, weight * own_value.{{slice "xyzw" $d (add $d 1)}});
{{- end}}
  }
{{- end}}
  if (part < {{$parts}}u && column == 0u) {
    largests[part] = largest;
    totals[part] = total;
  }
  if (part < {{$parts}}u) {
{{- range $d := 4}}
    sums[part * {{mul 4 $.HeadQuads}}u + {{mul $d $.HeadQuads}}u + column] = o{{$d}};
{{- end}}
  }
  workgroupBarrier();
{{- $wide := lt .Lanes (mul 4 .HeadQuads)}}
{{- if $wide}}
  for (var at = lane; at < {{mul 4 .HeadQuads}}u; at += {{.Lanes}}u) {
{{- else}}
  if (lane >= {{mul 4 .HeadQuads}}u) {
    return;
  }
{{- end}}
{{- range $p := $parts}}
  let largest{{$p}} = largests[{{$p}}];
{{- end}}
  largest = largest0;
{{- range $p := $parts}}{{if $p}}
  largest = max(largest, largest{{$p}});
{{- end}}{{end}}
  total = {{$T}}(0.0);
  var sum = {{$T}}(0.0);
{{- range $p := $parts}}
  let weight{{$p}} = exp(largest{{$p}} - largest);
  total = fma(totals[{{$p}}], weight{{$p}}, total);
  sum = fma(sums[{{mul $p (mul 4 $.HeadQuads)}}u + {{if $wide}}at{{else}}lane{{end}}], weight{{$p}}, sum);
{{- end}}
{{- if $wide}}
  let column = at % {{.HeadQuads}}u;
  let part = at / {{.HeadQuads}}u;
{{- end}}
{{- if not .Leaves}}
  let element = 4u * column + part;
{{- end}}
{{- range $h := .Heads}}
{{- $x := ""}}{{if gt $.Heads 1}}{{$x = printf ".%s" (slice "xyzw" $h (add $h 1))}}{{end}}
{{- $element := printf "(head0 + %du) * %du + element" $h (mul 4 $.HeadQuads)}}
{{- if $.Leaves}}
{{- $element = printf "4u * spread((head0 + %du) * %du + column, %du) + part" $h $.HeadQuads $.Leaves}}
{{- end}}
{{- if $.Whole}}
  y[{{$element}}] = sum{{$x}} / total{{$x}};
{{- else if $.Leaves}}
  parts[split * {{mul 32 $.Leaves}}u + {{$element}}] = sum{{$x}};
{{- else}}
  let at{{$h}} = (split * params.kv_heads * {{mul $.Heads $.HeadGroups}}u + head0 + {{$h}}u) *
    {{add (mul 4 $.HeadQuads) 4}}u;
  parts[at{{$h}} + element] = sum{{$x}};
{{- end}}
{{- end}}
{{- if not .Whole}}
  if ({{if $wide}}at{{else}}lane{{end}} == 0u) {
{{- range $h := .Heads}}
{{- $x := ""}}{{if gt $.Heads 1}}{{$x = printf ".%s" (slice "xyzw" $h (add $h 1))}}{{end}}
{{- if $.Leaves}}
    let tail{{$h}} = {{mul 128 $.Leaves}}u + 8u * (head0 + {{$h}}u) + split;
    parts[tail{{$h}}] = largest{{$x}};
    parts[tail{{$h}} + 4u] = total{{$x}};
{{- else}}
    parts[at{{$h}} + {{mul 4 $.HeadQuads}}u] = largest{{$x}};
    parts[at{{$h}} + {{add (mul 4 $.HeadQuads) 1}}u] = total{{$x}};
    parts[at{{$h}} + {{add (mul 4 $.HeadQuads) 2}}u] = 0.0;
    parts[at{{$h}} + {{add (mul 4 $.HeadQuads) 3}}u] = 0.0;
{{- end}}
{{- end}}
  }
{{- end}}
{{- if $wide}}
  }
{{- end}}
}
