// Package imports contains the test of this module's import rule: which package may import which other
// packages (docs/internals/architecture.md). It has only tests. A new package needs a line in the test's
// table, which forces its author to decide where the package belongs.
package imports
