package graphtest

import "strings"

// Mentions reports whether an error mentions names and numbers, separated by spaces in facts, in that order.
// Tests check the facts of an error with it, so that its wording can change.
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
