// copy with Lanes 64, Vec 1: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: src
// binding 1: dst (written)
// param at 0: u32 n
// param at 4: u32 width
// param at 8: u32 rows
// param at 12: u32 src_start
// param at 16: u32 src_block
// param at 20: u32 src_row
// param at 24: u32 dst_start
// param at 28: u32 dst_block
// param at 32: u32 dst_row

// Copies blocks of rows of elements between two dense tensors that differ in how far apart blocks and rows
// are. All in elements of 1 words; an invocation copies one.
struct Params {
  n: u32, // elements
  width: u32, // elements of a row
  rows: u32, // of a block
  src_start: u32,
  src_block: u32,
  src_row: u32,
  dst_start: u32,
  dst_block: u32,
  dst_row: u32,
}

@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

// The index of an invocation in a grid of one dimension that may have been folded into two.
fn flat_thread(gid: vec3<u32>, groups: vec3<u32>) -> u32 {
  return gid.x + gid.y * (groups.x * 64u);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = flat_thread(gid, groups);
  if (i >= params.n) {
    return;
  }
  let column = i % params.width;
  let line = i / params.width;
  let row = line % params.rows;
  let block = line / params.rows;
  dst[params.dst_start + block * params.dst_block + row * params.dst_row + column] =
    src[params.src_start + block * params.src_block + row * params.src_row + column];
}
