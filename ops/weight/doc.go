// Package weight holds the formats of constant weight matrices, one to a file: how blocks of a file lie on
// the device, and how a row is read back in float64. A Matrix is weights of Rows outputs by Cols inputs in
// one of these formats; operators declare it as constants of a graph.
package weight
