// Package basic holds the operators on plain tensors and on SymInts: unary, binary and comparing operators,
// reductions, gathers (permute, slice, select and others), cat, view, softmax, layer norm, argmax, top k.
// Operators that differ in a formula are a family: one file with a table, and a row for each member.
package basic
