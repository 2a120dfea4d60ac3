package graph

// CeilingKernels are the kernels that measure the peak rates of a device. In each round, an invocation of
// Copy copies a 16-byte element from its first binding to its second, and an invocation of FMA does
// FlopsPerRound operations in registers. Empty does nothing. Fill runs once and fills the memory to be
// copied with data that resembles model weights.
type CeilingKernels struct {
	Fill, Copy, FMA, Empty *Kernel
	FlopsPerRound          int
}
