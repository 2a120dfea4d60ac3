// Package phases shows the profile of a run: tokens per second in each phase, and the kernels of each
// phase.
package phases
