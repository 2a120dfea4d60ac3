// Package verify compares what the device computed with a float64 reference: which elements are sampled, and
// how far they are off.
package verify
