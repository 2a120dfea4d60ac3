// Package kernels shows the kernels of a trace, their candidates and the trials that chose between them.
package kernels
