package cli

import "testing"

func TestDistanceCountsEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"run", "run", 0},
		{"rnu", "run", 1},
		{"devces", "devices", 1},
		{"", "ab", 2},
		{"graph", "gaph", 1},
		{"x", "version", 7},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
