// Package accuracy lists the dispatches that were compared with a reference, for each step. It finds the
// dispatches that diverge, and those that inherit an error from an earlier dispatch.
package accuracy
