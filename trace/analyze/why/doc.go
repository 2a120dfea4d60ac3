// Package why explains why a dispatch has its grid. It finds the step in which the grid was planned, and the
// shapes that changed in this step. It also finds the chain of operators from the inputs of the graph to the
// dispatch.
package why
