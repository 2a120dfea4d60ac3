// ceiling_fma with Lanes 256, Sums 2, Unroll 2: workgroup [256 1 1], 0 bytes of workgroup memory
// binding 0: out (written)
// param at 0: u32 rounds
// param at 4: f32 scale
// param at 8: f32 offset
// param at 12: f32 never

// Multiplies and adds in registers: 2 sums of four numbers that do not wait for each other, each
// 2 times a round. What is measured is how many the device does in a second; nothing is written
// unless a sum is "never", which it cannot be.
struct Params {
  rounds: u32,
  scale: f32,
  offset: f32,
  never: f32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
  let a = vec4<f32>(params.scale);
  let b = vec4<f32>(params.offset);
  var s0 = vec4<f32>(f32(lane + 0u));
  var s1 = vec4<f32>(f32(lane + 1u));
  for (var r = 0u; r < params.rounds; r++) {
    s0 = fma(s0, a, b);
    s1 = fma(s1, a, b);
    s0 = fma(s0, a, b);
    s1 = fma(s1, a, b);
  }
  let sum = s0 + s1;
  if (sum.x + sum.y + sum.z + sum.w == params.never) {
    out[0] = sum.x;
  }
}
