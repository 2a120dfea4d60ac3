// Package run runs the steps of a model on a device. It sets the input tokens, launches the graph, reads
// the picked token back, keeps the transcript of a text, and runs the clock probe.
package run
