// Package phases shows the profile of a run: tokens per second by phase, and its kernels.
package phases
