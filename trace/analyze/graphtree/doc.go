// Package graphtree computes the graph as a tree of layers, blocks, operators and values, with the time,
// cost and waste of each in a selection of steps.
package graphtree
