// Package slopes shows how times and grids grow with the position or the number of tokens, and forecasts the
// next changes.
package slopes
