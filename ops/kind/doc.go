// Package kind is what all operators are built from: the row that describes a kind of operator (Kind) with
// the types of its arguments, integers that may follow a SymInt (Int), routes with their reasons, and the
// kernels that templates and constants make.
package kind
