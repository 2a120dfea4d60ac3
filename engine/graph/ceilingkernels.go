package graph

// CeilingKernels measure what a device can do. Each invocation repeats its work for a number of rounds: Copy
// moves a 16-byte element from its first binding to its second, FMA does FlopsPerRound operations in
// registers, Empty does nothing. Fill runs once and fills the memory to copy with data like a model's.
type CeilingKernels struct {
	Fill, Copy, FMA, Empty *Kernel
	FlopsPerRound          int
}
