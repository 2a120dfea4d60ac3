// Package outline shows the graph as a tree, with what its operators and values take.
package outline
