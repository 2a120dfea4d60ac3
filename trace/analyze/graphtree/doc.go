// Package graphtree computes the graph as a tree of layers, blocks, operators and values, with what each
// takes in a selection of steps.
package graphtree
