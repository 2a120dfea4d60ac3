// Package tracks shows on one time axis what the CPU and the GPU did during a step.
package tracks
