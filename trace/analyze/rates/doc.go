// Package rates summarizes a run. It computes the tokens per second of each phase, and the share and the cost
// of each kernel.
package rates
