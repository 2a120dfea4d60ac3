// Package basic has the operators on plain tensors and on SymInts: unary, binary and comparison operators,
// reductions, gathers (permute, slice, select and others), cat, view, softmax, layer norm, argmax and top k.
// Operators that differ only in a formula share a file, which has a table with a row for each operator.
package basic
