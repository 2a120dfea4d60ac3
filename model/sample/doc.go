// Package sample picks the next token: the sampling options, the part of the graph that finds the highest
// logits, and the draw on the host.
package sample
