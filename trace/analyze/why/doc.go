// Package why finds the cause of a dispatch's grid: the step that planned it, the shapes that changed, and
// the chain of operators from the inputs to the dispatch.
package why
