package graphtest

import "strings"

// Mentions reports whether an error contains the names and numbers in facts, in the same order. facts is a
// list separated by spaces. Tests use Mentions to check the facts of an error without depending on its
// wording.
func Mentions(err error, facts string) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for fact := range strings.FieldsSeq(facts) {
		_, after, found := strings.Cut(text, fact)
		if !found {
			return false
		}
		text = after
	}
	return true
}
