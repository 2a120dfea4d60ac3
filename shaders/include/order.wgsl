{{define "key_of"}}
// Converts the bits of an f32 to an unsigned key. Elements are compared by their keys, which is exact: -0
// equals 0, and NaN is larger than any number. No element has the key 0.
fn key_of(bits: u32) -> u32 {
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return 0xffffffffu;
  }
  return select(0x80000000u - magnitude, 0x80000000u + magnitude, bits == magnitude);
}
{{end}}
{{define "bits_of"}}
// Returns the bits of the f32 from which key_of computed a key. NaN and 0 have lost their sign.
fn bits_of(key: u32) -> u32 {
  if (key == 0xffffffffu) {
    return 0x7fc00000u;
  }
  return select((0x80000000u - key) | 0x80000000u, key - 0x80000000u, key >= 0x80000000u);
}
{{end}}
{{define "sort_pairs"}}
// The pairs of a key and an index (place) that a workgroup sorts at a time.
var<workgroup> keys: array<u32, {{.Tile}}>;
var<workgroup> places: array<u32, {{.Tile}}>;

// Sorts the pairs: the largest key first, and the smallest place first among equal keys. Every lane must call
// this function. Source: the bitonic sorter of Batcher, Sorting networks and their applications (1968).
fn sort_pairs(lane: u32) {
  workgroupBarrier();
  for (var size = 2u; size <= {{.Tile}}u; size <<= 1u) {
    for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
      for (var t = lane; t < {{div .Tile 2}}u; t += {{.Lanes}}u) {
        let i = 2u * t - (t & (stride - 1u));
        let j = i + stride;
        let a = vec2<u32>(keys[i], places[i]);
        let b = vec2<u32>(keys[j], places[j]);
        let wrong = b.x > a.x || (b.x == a.x && b.y < a.y);
        if (wrong == ((i & size) == 0u)) {
          keys[i] = b.x;
          places[i] = b.y;
          keys[j] = a.x;
          places[j] = a.y;
        }
      }
      workgroupBarrier();
    }
  }
}
{{end}}
