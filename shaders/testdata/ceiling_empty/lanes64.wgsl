// ceiling_empty with Lanes 64: workgroup [64 1 1], 0 bytes of workgroup memory
// binding 0: out (read and written)

// Does nothing to a buffer that it may write: what is measured is the dispatch itself, behind the barrier
// that the dispatch before it makes necessary.
@group(0) @binding(0) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main() {
  if (arrayLength(&out) == 0u) {
    out[0] = 1.0;
  }
}
