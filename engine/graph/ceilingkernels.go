package graph

// CeilingKernels are kernels that measure a device. An invocation of each does so many rounds of its work:
// Copy moves an element of 16 bytes from its first binding to its second, FMA does FlopsPerRound operations
// in registers, Empty nothing. Fill is run once: it makes the memory of the copy such as a model has.
type CeilingKernels struct {
	Fill, Copy, FMA, Empty *Kernel
	FlopsPerRound          int
}
