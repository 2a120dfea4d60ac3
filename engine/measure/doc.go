// Package measure measures a GPU. Clock converts GPU timestamps to host time. Meter times single kernels.
// Ceilings measures the peak copy and arithmetic rates. Probe detects changes of the GPU's clock frequency.
package measure
