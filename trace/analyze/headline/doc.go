// Package headline answers the first question about a run: what to fix first, and how much faster the model
// would then be. Its numbers are the same on the screen, in tables and in the report. Package report/advice
// puts them into sentences.
package headline
