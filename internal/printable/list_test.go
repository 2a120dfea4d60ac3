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
