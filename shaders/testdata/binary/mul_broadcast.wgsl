// binary/mul_broadcast: Lanes 64, Op mul, Rank 2, Vec 4
// workgroup [64 1 1], 0 bytes of workgroup memory
// bindings: a, b, y (written)
// params: u32 n, u32 size_0, u32 size_1, u32 a_stride_0, u32 a_stride_1, u32 b_stride_0, u32 b_stride_1

// y = mul of a and b. An invocation computes 4 elements. An operand is repeated along the dims in which its stride is 0.
struct Params {
  n: u32, // invocations
  size_0: u32, // size of a dim of y
  size_1: u32, // size of a dim of y
  a_stride_0: u32,
  a_stride_1: u32,
  b_stride_0: u32,
  b_stride_1: u32,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Returns the index of an invocation in a one-dimensional grid, which can be dispatched in two dimensions.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  var rest = i;
  var ia = 0u;
  var ib = 0u;
  {
    let at = rest % params.size_1;
    rest /= params.size_1;
    ia += at * params.a_stride_1;
    ib += at * params.b_stride_1;
  }
  {
    let at = rest % params.size_0;
    rest /= params.size_0;
    ia += at * params.a_stride_0;
    ib += at * params.b_stride_0;
  }
  let u = a[ia];
  let v = b[ib];
  y[i] = u * v;
}
