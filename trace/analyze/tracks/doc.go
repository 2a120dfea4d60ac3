// Package tracks places what the CPU and the GPU did in a step on one time axis.
package tracks
