// router/softmax_chosen: Experts 128, K 8, Lanes 128, Normalize, Scale 1, Single
// workgroup [128 1 1], 736 bytes of workgroup memory
// bindings: logits, experts (written), weights (written), counts (written), sorted (written)
// params: 

// Chooses the 8 of 128 experts with the largest logits of a token, the largest first.
// Among equal ones, the expert with the lowest index comes first. The kernel also computes the weights of the
// chosen experts. There is only one token. Its pairs of token and expert are also counted
// and sorted.

@group(0) @binding(0) var<storage, read> logits: array<u32>; // bits of f32
@group(0) @binding(1) var<storage, read_write> experts: array<u32>; // [tokens, 8]
@group(0) @binding(2) var<storage, read_write> weights: array<f32>; // [tokens, 8]
@group(0) @binding(3) var<storage, read_write> counts: array<u32>; // [128]
@group(0) @binding(4) var<storage, read_write> sorted: array<u32>; // [128 + 1] offsets, then [8] pairs

// Converts the bits of an f32 to an unsigned key. Elements are compared by their keys, which is exact: -0
// equals 0, and NaN is larger than any number. No element has the key 0.
fn key_of(bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return 0xffffffffu;
  }
  return select(0x80000000u - magnitude, 0x80000000u + magnitude, bits == magnitude);
}

var<workgroup> shares: array<f32, 8>; // the weights before they are normalized

fn key_at(e: u32) -> u32 {
  return key_of(logits[e]);
}

var<workgroup> keys: array<vec4<u32>, 32>; // of each group; 0 past the last expert
var<workgroup> maxima: array<vec4<u32>, 8>; // the largest keys of four groups
var<workgroup> best: array<u32, 8>; // groups with the largest maxima
var<workgroup> chosen: array<u32, 8>;

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
  for (var g = lane; g < 32u; g += 128u) {
    var four = vec4<u32>(0u);
    if (g < 32u) {
      four[0] = key_at(4u * g + 0u);
      four[1] = key_at(4u * g + 1u);
      four[2] = key_at(4u * g + 2u);
      four[3] = key_at(4u * g + 3u);
      keys[g] = four;
    }
    maxima[g / 4u][g % 4u] = max(max(four.x, four.y), max(four.z, four.w));
  }
  workgroupBarrier();
  for (var g = lane; g < 32u; g += 128u) {
    let key = maxima[g / 4u][g % 4u];
    var place = 0u;
    for (var i = 0u; i < 8u; i++) {
      place += before(maxima[i], 4u * i, key, g);
    }
    if (place < 8u) {
      best[place] = g;
    }
  }
  workgroupBarrier();
  for (var c = lane; c < 32u; c += 128u) {
    let group = best[c / 4u];
    let key = keys[group][c % 4u];
    let expert = 4u * group + c % 4u;
    var place = 0u;
    for (var i = 0u; i < 8u; i++) {
      place += before(keys[best[i]], 4u * best[i], key, expert);
    }
    if (place < 8u) {
      chosen[place] = expert;
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) lane: u32) {
  let to = 0u;
  choose(lane);
  // 8 lanes compute the weights.
  let slot = min(lane, 7u);
  let expert = chosen[slot];
  let logit = bitcast<f32>(logits[expert]);
  // The softmax over the chosen logits equals the softmax over all logits, divided by the sum of the chosen.
  var weight = exp(logit - bitcast<f32>(logits[chosen[0]]));
  if (lane < 8u) {
    shares[lane] = weight;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < 8u; i++) {
    sum += shares[i];
  }
  weight /= sum;
  if (lane < 8u) {
    experts[to + lane] = expert;
    weights[to + lane] = weight;
  }
  for (var e = lane; e < 128u; e += 128u) {
    var before = 0u;
    var count = 0u;
    for (var i = 0u; i < 8u; i++) {
      before += select(0u, 1u, chosen[i] < e);
      count += select(0u, 1u, chosen[i] == e);
    }
    counts[e] = count;
    sorted[e] = before;
  }
  if (lane < 8u) {
    var before = 0u;
    for (var i = 0u; i < 8u; i++) {
      before += select(0u, 1u, chosen[i] < expert);
    }
    sorted[129u + before] = lane;
  }
  if (lane == 0u) {
    sorted[128] = 8u;
  }
}
