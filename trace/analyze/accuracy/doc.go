// Package accuracy finds, step by step, which dispatches were compared with a reference, which of them
// diverge, and which inherit an error from an earlier one.
package accuracy
