// Package imports holds the import rule of this module: which package may import which
// (docs/internals/architecture.md). It has tests only. A new package needs a line in their table, and that
// line is the question: where does it belong?
package imports
