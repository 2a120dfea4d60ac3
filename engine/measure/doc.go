// Package measure measures a GPU: Clock converts its timestamps to host time. Meter times single kernels.
// Ceilings measures its peak copy and arithmetic rates. Probe detects changes of its clock frequency.
package measure
