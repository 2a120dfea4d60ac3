// Package deviation shows how far dispatches are from a float64 reference.
package deviation
