// Package memory computes which values share memory in a step, and how many bytes of it are live.
package memory
