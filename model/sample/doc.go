// Package sample picks the next token. It contains the sampling options, the part of the graph that finds
// the highest logits, and the random draw on the host.
package sample
