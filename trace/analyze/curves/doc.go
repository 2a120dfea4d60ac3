// Package curves computes how times, grids and bytes change with the position or the number of tokens. It
// fits lines to the times. It also finds level shifts, changes of the grid or route, and the places at which
// the next changes will occur.
package curves
