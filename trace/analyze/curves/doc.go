// Package curves computes how times, grids and bytes grow with the position or the number of tokens: fitted
// lines, shifts of level, changes of grid and route, and where those come next.
package curves
