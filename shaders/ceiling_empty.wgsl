// Does nothing, but declares a buffer that it could write. This measures the time of a dispatch itself, and
// of the barrier that the buffer makes necessary after the previous dispatch.
@group(0) @binding(0) var<storage, read_write> out: array<f32>;

@compute @workgroup_size({{.Lanes}})
fn main() {
  if (arrayLength(&out) == 0u) {
    out[0] = 1.0;
  }
}
