package tui

import (
	"io"
	"slices"
	"testing"
)

// Paints that stand side by side are told apart in every theme, with however few colours, on either
// background.
func TestPaintsAreToldApart(t *testing.T) {
	same := map[string][][2]paint{ // a glyph and a word tell these apart, as they do where there is no colour
		"high-contrast": {
			{accent, good}, {good, graphA}, {warn, graphB}, {dim, graphC}, {plain, dim}, {plain, graphC},
		},
	}
	usual := [][2]paint{{dim, graphC}}
	for _, name := range ThemeNames {
		for _, color := range []string{"ansi", "256", "true"} {
			for _, dark := range []bool{false, true} {
				th, err := newTheme(name, color, io.Discard, func() bool { return dark })
				if err != nil {
					t.Fatal(err)
				}
				for a := range paints {
					for b := range a {
						meant := slices.Contains(append(usual, same[name]...), [2]paint{b, a})
						if th.start[a] == th.start[b] && !meant {
							t.Errorf("theme %s, colours %s, dark %v: paints %d and %d are both %q",
								name, color, dark, b, a, th.start[a])
						}
					}
				}
			}
		}
	}
}

// Without colour nothing is painted at all: Lip Gloss drops reverse and bold too, so glyphs and words say it.
func TestWithoutColourNothingIsPainted(t *testing.T) {
	th, err := newTheme("dark", "never", io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	for p := range paints {
		if got := th.put(p, "x"); got != "x" {
			t.Errorf("paint %d: %q", p, got)
		}
	}
}

// The flag comes before NO_COLOR, that before CLICOLOR_FORCE, that before what the terminal can.
func TestWhoSaysHowManyColours(t *testing.T) {
	for _, c := range []struct{ flag, no, force, want string }{
		{"true", "1", "1", "TrueColor"},
		{"auto", "1", "1", "Ascii"},
		{"never", "", "1", "Ascii"},
		{"auto", "", "1", "ANSI"},
		{"auto", "", "", "Ascii"},
		{"", "", "", "Ascii"},
		{"ansi", "1", "", "ANSI"},
	} {
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("CLICOLOR_FORCE", c.force)
		if got, err := colorProfile(c.flag, io.Discard); err != nil || got.Name() != c.want {
			t.Errorf("%+v: %s, %v", c, got.Name(), err)
		}
	}
}
