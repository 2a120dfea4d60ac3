// Package deviation shows how far the outputs of dispatches differ from a float64 reference.
package deviation
