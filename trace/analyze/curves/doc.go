// Package curves computes how times, grids and bytes grow with the position or the number of tokens. The
// package finds fitted lines, level shifts, changes of grid and route, and the places of the next changes.
package curves
