// Package rates adds up a run: tokens per second by phase, and the share and the cost of each kernel.
package rates
