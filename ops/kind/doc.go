// Package kind has the parts that all operators are built from. Kind describes a kind of operator and the
// types of its arguments. Int is an integer argument that is fixed or read from a SymInt. Routes chooses one
// of an operator's implementations for the shape of a step, and Reason explains the choice. NewKernel makes a
// kernel from a WGSL template and constants.
package kind
