// Package memory computes which values share memory in a step, and how many bytes of the memory are live.
package memory
