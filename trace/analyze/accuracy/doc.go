// Package accuracy lists the dispatches of each step that were compared with a reference. It finds which of
// them diverge, and which inherit an error from an earlier dispatch.
package accuracy
