// Package accuracy lists the dispatches of each step that were compared with a reference. The package finds
// which of these dispatches diverge, and which inherit an error from an earlier dispatch.
package accuracy
