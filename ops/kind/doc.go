// Package kind has the parts that all operators are built from. Kind describes a kind of operator and the
// types of its arguments. Int is an integer argument that can follow a SymInt. Routes chooses the kernel for
// a live shape, and Reason explains the choice. NewKernel expands a WGSL template with constants into a
// kernel.
package kind
