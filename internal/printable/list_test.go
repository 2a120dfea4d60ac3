package printable

import "testing"

func TestListsAreSentences(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Dims([]int{}), "[]"},
		{Dims([]uint64{7}), "[7]"},
		{Dims([]int{256, 512}), "[256, 512]"},
		{Choice([]string{}), "none"},
		{Choice([]int{32}), "32"},
		{Choice([]int{32, 64}), "32 or 64"},
		{Choice([]string{"a", "b", "c"}), "a, b or c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestNumbersThatFollowEachOtherAreARange(t *testing.T) {
	for want, list := range map[string][]int{
		"": nil, "3": {3},
		"0–15": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, "0–4, 6": {0, 1, 2, 3, 4, 6},
		"1, 3, 5–6": {1, 3, 5, 6},
	} {
		if got := Ranges(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}
