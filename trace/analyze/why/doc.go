// Package why explains why a dispatch has its grid. It finds the step in which the grid was planned, the
// shapes that changed in this step, and the chain of operators from the inputs of the graph to the dispatch.
package why
