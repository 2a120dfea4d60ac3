// Package verify compares the results of the device with a float64 reference. It chooses the elements to
// compare and computes their errors.
package verify
