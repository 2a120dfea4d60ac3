package tokenizer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/text/tokenizer"
)

// sameIDs compares the ids of a tokenizer.json from a bug report with those of Hugging Face's tokenizers.
func sameIDs(t *testing.T, name string, want map[string][]int) {
	t.Helper()
	t.Parallel()
	tok, err := tokenizer.Open(shared(t, "cases", name+".tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for text, ids := range want {
		got, err := tok.Encode(text, tokenizer.Options{Special: true})
		if diff := cmp.Diff(ids, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

func TestStepsAfterByteLevelSeeTheByteAlphabet(t *testing.T) {
	sameIDs(t, "bytelevel-then-digits", map[string][]int{"ü": {195, 188}, "a1ü2": {97, 49, 195, 188, 50}})
}

func TestNestedClassesInPatterns(t *testing.T) {
	sameIDs(t, "nested-class", map[string][]int{
		" Hello, [x]": {32, 72, 101, 108, 108, 111, 44, 32, 91, 120, 93}, "۔a|b": {219, 148, 97, 124, 98},
	})
}

func TestPossessiveQuantifiersInPatterns(t *testing.T) {
	sameIDs(t, "possessive", map[string][]int{"a1234 do'n": {97, 49, 50, 51, 52, 32, 100, 111, 39, 110}})
}

func TestIntersectionsOfClassesInPatterns(t *testing.T) {
	sameIDs(t, "class-intersection", map[string][]int{"漢ab か": {230, 188, 162, 97, 98, 32, 227, 129, 139}})
}

func TestReplaceByPattern(t *testing.T) {
	sameIDs(t, "replace-regex", map[string][]int{"a   b  c d": {97, 32, 98, 32, 99, 32, 100}})
}

func TestLowercase(t *testing.T) {
	sameIDs(t, "lowercase", map[string][]int{"HÉLLO İ": {104, 195, 169, 108, 108, 111, 32, 105, 204, 135}})
}

func TestAddedTokensInThePreviousTokensWhiteSpace(t *testing.T) {
	sameIDs(t, "rstrip-over-added", map[string][]int{
		"<x>\n\na": {264, 265, 97}, "<x> \n\n  a": {264, 265, 32, 32, 97},
		"a<x>  \n\n\n\nb": {97, 264, 265, 265, 98},
	})
}
