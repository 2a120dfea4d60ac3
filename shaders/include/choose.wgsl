// The function choose puts the K of Experts experts with the largest keys into the array chosen, the largest
// first. Among equal keys, the lowest index comes first. The kernel defines key_at(e), which returns the key
// of an expert (see key_of).
//
// A lane computes the largest key of a group of four experts. The experts to choose are in the K groups in
// which this key is largest, so only these are compared with each other.
{{define "choose"}}
{{- $fours := div (add .Experts 3) 4}}
{{- $maxima := div (add $fours 3) 4}}
{{- $best := .K}}{{if lt $fours .K}}{{$best = $fours}}{{end}}
var<workgroup> keys: array<vec4<u32>, {{$fours}}>; // of each group; 0 past the last expert
var<workgroup> maxima: array<vec4<u32>, {{$maxima}}>; // the largest keys of four groups
var<workgroup> best: array<u32, {{$best}}>; // groups with the largest maxima
var<workgroup> chosen: array<u32, {{.K}}>;

// Returns how many of four keys are larger than a key, or equal to it and at a lower index. The first of the
// four has the index at.
fn before(keys: vec4<u32>, at: u32, key: u32, index: u32) -> u32 {
  let indices = vec4<u32>(0u, 1u, 2u, 3u) + vec4<u32>(at);
  let first = (keys > vec4<u32>(key)) | ((keys == vec4<u32>(key)) & (indices < vec4<u32>(index)));
  let ones = select(vec4<u32>(0u), vec4<u32>(1u), first);
  return ones.x + ones.y + ones.z + ones.w;
}

// All lanes must call this function.
fn choose(lane: u32) {
  for (var g = lane; g < {{mul 4 $maxima}}u; g += {{.Lanes}}u) {
    var four = vec4<u32>(0u);
    if (g < {{$fours}}u) {
{{- range $c := 4}}
{{- if lt (sub (mul 4 $fours) (sub 4 $c)) $.Experts}}
      four[{{$c}}] = key_at(4u * g + {{$c}}u);
{{- else}}
      if (g < {{sub $fours 1}}u) {
        four[{{$c}}] = key_at(4u * g + {{$c}}u);
      }
{{- end}}
{{- end}}
      keys[g] = four;
    }
    maxima[g / 4u][g % 4u] = max(max(four.x, four.y), max(four.z, four.w));
  }
  workgroupBarrier();
  for (var g = lane; g < {{$fours}}u; g += {{.Lanes}}u) {
    let key = maxima[g / 4u][g % 4u];
    var place = 0u;
    for (var i = 0u; i < {{$maxima}}u; i++) {
      place += before(maxima[i], 4u * i, key, g);
    }
    if (place < {{$best}}u) {
      best[place] = g;
    }
  }
  workgroupBarrier();
  for (var c = lane; c < {{mul 4 $best}}u; c += {{.Lanes}}u) {
    let group = best[c / 4u];
    let key = keys[group][c % 4u];
    let expert = 4u * group + c % 4u;
    var place = 0u;
    for (var i = 0u; i < {{$best}}u; i++) {
      place += before(keys[best[i]], 4u * best[i], key, expert);
    }
    if (place < {{.K}}u) {
      chosen[place] = expert;
    }
  }
  workgroupBarrier();
}
{{- end}}
