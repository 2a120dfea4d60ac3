// Package outline shows the graph as a tree, with the costs, times and memory of its operators and values.
package outline
