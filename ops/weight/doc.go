// Package weight defines the storage formats of constant weight matrices. Each format has a Go file, which
// describes how the blocks of a model file are rearranged for the device, and how a row is read back in
// float64. A Matrix holds the weights of Rows outputs by Cols inputs in one of these formats. Operators
// declare the matrix as constants of a graph.
package weight
