// Package graphtree computes the graph as a tree of layers, blocks, operators and values. Each node has its
// time, cost and waste in a selection of steps.
package graphtree
