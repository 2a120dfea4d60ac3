// Package experts computes how the routers of a mixture of experts divided tokens among the experts. It also
// computes how much of the work of the expert dispatches was padding.
package experts
