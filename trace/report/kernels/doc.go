// Package kernels shows the kernels of a trace, the candidate tokens of its steps, and trials of operators.
package kernels
