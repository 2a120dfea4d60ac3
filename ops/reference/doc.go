// Package reference computes graphs in float64 on the CPU, to check the results of GPU kernels. Each operator
// has its own plain reference implementation. Tolerance says how far the result of a kernel can be from the
// reference.
package reference
