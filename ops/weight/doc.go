// Package weight defines the storage formats of constant weight matrices. Each format has a Go file. The
// file describes how the blocks of a model file are rearranged for the device, and how a row of the
// rearranged weights is converted to float64. A Matrix has a row for each output and a column for each
// input, in one of these formats. Operators declare the matrix as constants of a graph.
package weight
