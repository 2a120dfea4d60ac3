// Package rates summarizes a run: tokens per second for each phase, and the share and the cost of each
// kernel.
package rates
