// Package run runs the steps of a model on a device: it takes tokens, launches the graph, reads the picked
// token back, keeps the transcript of a text and looks after the clock probe.
package run
