// y = x * w' + bias for {{if eq .Batch 1}}a row{{else}}{{.Batch}} rows{{end}} of x. A workgroup takes
// {{.Rows}} rows of w: each lane holds its columns of x while it goes through the rows, a chunk of columns at
// a time, and what it sums for each result meets what the other lanes have once, at the end.
{{- $q4 := eq .Weights "q4"}}
{{- $sums := mul .Rows .Batch}}
{{- $parts := div .Lanes $sums}}
{{- /* rows of w that are loaded before the first is used */ -}}
{{- $ahead := 8}}{{if lt .Rows 8}}{{$ahead = .Rows}}{{end}}
{{- $chunk := 8}}{{$scaleRows := 4}}{{$scaleLoads := div .Rows 4}}
{{- if $q4}}
{{- $chunk = mul 8 .Words}}
{{- if .HalfScales}}
{{- $scaleRows = 8}}{{$scaleLoads = div (add .Rows 4) 8}}
{{- end}}
{{- end}}
struct Params {
  m: u32, // rows of x
  n: u32, // rows of w
  stride: u32, // of the rows of y
  first: u32, // column of y that row 0 of w makes
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
{{- if $q4}}
// [n, {{.Chunks}}]
@group(0) @binding(1) var<storage, read> weights: array<{{if eq .Words 4}}vec4<u32>{{else}}u32{{end}}>;
// [n / {{$scaleRows}}, {{div .Chunks .GroupChunks}}, {{$scaleRows}}]
@group(0) @binding(2) var<storage, read> scales: array<{{if .HalfScales}}vec4<u32>{{else}}vec4<f32>{{end}}>;
{{- else}}
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>; // [n, {{mul 2 .Chunks}}]
{{- end}}
{{- $next := 2}}{{if $q4}}{{$next = 3}}{{end}}
{{- if .Bias}}
@group(0) @binding({{$next}}) var<storage, read> bias: array<f32>;
{{- $next = add $next 1}}
{{- end}}
@group(0) @binding({{$next}}) var<storage, read_write> y: array<f32>;
@group(0) @binding({{add $next 1}}) var<uniform> params: Params;

{{template "flat_group" .}}
{{- if $q4}}
{{template "q4_unpack" .}}
{{- end}}
var<workgroup> partial: array<f32, {{mul .Lanes $sums}}>;

// Where a lane's share of a sum lies: lanes that write the same sum, or read neighbouring ones, meet in no
// memory bank.
fn place(lane: u32, sum: u32) -> u32 {
  return lane * {{$sums}}u +
    (sum ^ {{if ge $sums 32}}(lane & 31u){{else}}((lane / {{div 32 $sums}}u) & {{sub $sums 1}}u){{end}});
}

fn total(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  // Workgroups that read the same weights are neighbours.
  let batches = (params.m + {{sub .Batch 1}}u) / {{.Batch}}u;
  let id = flat_group(wid, groups);
  let row0 = id / batches * {{.Rows}}u;
  let batch0 = id % batches * {{.Batch}}u;
  if (row0 >= params.n) {
    return; // a grid that is larger than the live shape needs
  }
{{- range $b := .Batch}}
  let x_row{{$b}} = min(batch0 + {{$b}}u, params.m - 1u) * {{mul $.Chunks (div $chunk 4)}}u;
{{- range $r := $.Rows}}
  var sum{{$b}}_{{$r}} = 0.0;
{{- end}}
{{- end}}
{{- range $r := .Rows}}
  let w_row{{$r}} = {{if $.Ragged}}min(row0 + {{$r}}u,
    params.n - 1u){{else}}(row0 + {{$r}}u){{end}} * {{if $q4}}{{$.Chunks}}{{else}}{{mul 2 $.Chunks}}{{end}}u;
{{- end}}
{{- if $q4}}
{{- range $s := $scaleLoads}}
  let scale_row{{$s}} = (row0 / {{$scaleRows}}u + {{$s}}u) * {{div $.Chunks $.GroupChunks}}u;
{{- end}}
{{- end}}
{{- if eq .Chunks .Lanes}}
  {
    let chunk = lane;
{{- else}}
  for (var chunk = lane; chunk < {{.Chunks}}u; chunk += {{.Lanes}}u) {
{{- end}}
{{- if $q4}}
{{- range $b := .Batch}}
{{- range $w := $.Words}}
    let u{{$b}}_{{$w}} = x[x_row{{$b}} + chunk * {{mul 2 $.Words}}u + {{mul 2 $w}}u];
    let v{{$b}}_{{$w}} = x[x_row{{$b}} + chunk * {{mul 2 $.Words}}u + {{add (mul 2 $w) 1}}u];
    let even{{$b}}_{{$w}} = vec4<f32>(u{{$b}}_{{$w}}.xz, v{{$b}}_{{$w}}.xz);
    let odd{{$b}}_{{$w}} = vec4<f32>(u{{$b}}_{{$w}}.yw, v{{$b}}_{{$w}}.yw) / odd_step;
{{- end}}
    let zero{{$b}} = total((even{{$b}}_0{{range $w := $.Words}}{{if $w}} +
      even{{$b}}_{{$w}}{{end}}{{end}}) * even_zero +
      (odd{{$b}}_0{{range $w := $.Words}}{{if $w}} + odd{{$b}}_{{$w}}{{end}}{{end}}) * odd_zero);
{{- end}}
    let group = chunk / {{.GroupChunks}}u;
{{- range $s := $scaleLoads}}
{{- if $.HalfScales}}
    let scale_word{{$s}} = scales[scale_row{{$s}} + group];
{{- else}}
    let scales{{$s}} = scales[scale_row{{$s}} + group];
{{- end}}
{{- end}}
{{- if .HalfScales}}
{{- if eq .Rows 4}}
    let scale_pair = select(scale_word0.xy, scale_word0.zw, (row0 & 4u) == 4u);
    let scales0 = vec4<f32>(unpack2x16float(scale_pair.x), unpack2x16float(scale_pair.y));
{{- else}}
{{- range $s := $scaleLoads}}
    let scales{{mul $s 2}} = vec4<f32>(unpack2x16float(scale_word{{$s}}.x),
      unpack2x16float(scale_word{{$s}}.y));
    let scales{{add (mul $s 2) 1}} = vec4<f32>(unpack2x16float(scale_word{{$s}}.z),
      unpack2x16float(scale_word{{$s}}.w));
{{- end}}
{{- end}}
{{- end}}
{{- range $h := div .Rows $ahead}}
    {
{{- range $i := $ahead}}
{{- $r := add (mul $h $ahead) $i}}
      let w{{$r}} = weights[w_row{{$r}} + chunk];
{{- end}}
{{- range $i := $ahead}}
{{- $r := add (mul $h $ahead) $i}}
{{- if eq $.Words 1}}
      let e{{$r}} = q4_even(w{{$r}});
      let o{{$r}} = q4_odd(w{{$r}});
{{- end}}
{{- range $b := $.Batch}}
{{- $t := printf "t%d_%d" $b $r}}
{{- if eq $.Words 4}}
      var {{$t}} = q4_even(w{{$r}}.x) * even{{$b}}_0;
      {{$t}} = fma(q4_odd(w{{$r}}.x), odd{{$b}}_0, {{$t}});
      {{$t}} = fma(q4_even(w{{$r}}.y), even{{$b}}_1, {{$t}});
      {{$t}} = fma(q4_odd(w{{$r}}.y), odd{{$b}}_1, {{$t}});
      {{$t}} = fma(q4_even(w{{$r}}.z), even{{$b}}_2, {{$t}});
      {{$t}} = fma(q4_odd(w{{$r}}.z), odd{{$b}}_2, {{$t}});
      {{$t}} = fma(q4_even(w{{$r}}.w), even{{$b}}_3, {{$t}});
      {{$t}} = fma(q4_odd(w{{$r}}.w), odd{{$b}}_3, {{$t}});
{{- else}}
      let {{$t}} = fma(o{{$r}}, odd{{$b}}_0, e{{$r}} * even{{$b}}_0);
{{- end}}
      sum{{$b}}_{{$r}} = fma(scales{{div $r 4}}[{{sub $r (mul 4 (div $r 4))}}], total({{$t}}) - zero{{$b}},
        sum{{$b}}_{{$r}});
{{- end}}
{{- end}}
    }
{{- end}}
{{- else}}
{{- range $b := .Batch}}
    let u{{$b}} = x[x_row{{$b}} + 2u * chunk];
    let v{{$b}} = x[x_row{{$b}} + 2u * chunk + 1u];
{{- end}}
{{- range $r := .Rows}}
    let w{{$r}} = weights[w_row{{$r}} + 2u * chunk];
    let z{{$r}} = weights[w_row{{$r}} + 2u * chunk + 1u];
{{- end}}
{{- range $r := .Rows}}
{{- range $b := $.Batch}}
    sum{{$b}}_{{$r}} += total(fma(v{{$b}}, z{{$r}}, u{{$b}} * w{{$r}}));
{{- end}}
{{- end}}
{{- end}}
  }
{{- range $b := .Batch}}
{{- range $r := $.Rows}}
  partial[place(lane, {{add (mul $b $.Rows) $r}}u)] = sum{{$b}}_{{$r}};
{{- end}}
{{- end}}
  workgroupBarrier();
  // {{$parts}} lanes to each of the {{$sums}} sums.
  let sum = lane % {{$sums}}u;
  let part = lane / {{$sums}}u;
  var result = 0.0;
  for (var i = 0u; i < {{$sums}}u; i++) {
    result += partial[place(i * {{$parts}}u + part, sum)];
  }
{{- if gt $parts 1}}
  workgroupBarrier();
  partial[lane] = result;
  workgroupBarrier();
  if (part > 0u) {
    return;
  }
  for (var i = 1u; i < {{$parts}}u; i++) {
    result += partial[i * {{$sums}}u + sum];
  }
{{- end}}
  let batch = batch0 + sum / {{.Rows}}u;
  let row = row0 + sum % {{.Rows}}u;
  if (batch < params.m && row < params.n) {
    y[batch * params.stride + params.first + row] = result{{if .Bias}} + bias[params.first + row]{{end}};
  }
}
