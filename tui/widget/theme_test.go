package widget

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muesli/termenv"
)

// Paints that appear next to each other can be distinguished in every theme, with any number of colours and
// on either background.
func TestPaintsAreDistinguishable(t *testing.T) {
	same := map[string][][2]Paint{ // glyphs and words distinguish these, as they do without colour
		"high-contrast": {
			{Accent, Good},
			{Good, GraphA},
			{Warn, GraphB},
			{Plain, Dim},
			{GraphB, HeatC},
			{Warn, HeatC},
			{Bad, HeatD},
		},
	}
	few := [][2]Paint{ // few of the 16 colours can be read on a light background
		{Good, GraphA}, {Strong, HeatB}, {GraphB, HeatB}, {Warn, HeatC}, {Bad, HeatD},
	}
	for _, name := range ThemeNames {
		for _, color := range []string{"ansi", "256", "true"} {
			for _, dark := range []bool{false, true} {
				th, err := NewTheme(name, color, io.Discard, func() bool { return dark })
				if err != nil {
					t.Fatal(err)
				}
				for a := range paints {
					for b := range a {
						pair := [2]Paint{b, a}
						meant := slices.Contains(same[name], pair) ||
							color == "ansi" && slices.Contains(few, pair)
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

// Paints can be read on common terminal backgrounds. Their contrast is at least 4.5, and at least 3 for
// dimmed text. With 16 colours, which the terminal defines, it is at least 3 with the weakest common palette.
func TestPaintsCanBeRead(t *testing.T) {
	grounds := map[bool][]string{
		true:  {"#000000", "#0d1117", "#1e1e1e", "#282c34"},
		false: {"#ffffff", "#f6f8fa", "#fdf6e3", "#eeeeee"},
	}
	xterm := map[string]string{
		"1": "#cd0000", "2": "#00cd00", "3": "#cdcd00", "4": "#0000ee", "5": "#cd00cd", "6": "#00cdcd",
		"8": "#7f7f7f", "9": "#ff0000", "10": "#00ff00", "11": "#ffff00", "12": "#5c5cff", "13": "#ff00ff",
		"14": "#00ffff",
	}
	for _, name := range ThemeNames {
		for _, color := range []string{"ansi", "256", "true"} {
			for dark, grounds := range grounds {
				if name == "light" && dark || name == "dark" && !dark {
					continue
				}
				th, err := NewTheme(name, color, io.Discard, func() bool { return dark })
				if err != nil {
					t.Fatal(err)
				}
				least := 4.5
				if color == "ansi" {
					grounds, least = grounds[:1], 3
				}
				for p := range paints {
					ink := inkOf(t, th.start[p], xterm)
					for _, ground := range grounds {
						least := least
						if p == Dim {
							least = 3
						}
						if got := contrast(ink, ground); ink != "" && got < least {
							t.Errorf("theme %s, colours %s: paint %d is %s on %s: contrast %.2f, want %.1f",
								name, color, p, ink, ground, got, least)
						}
					}
				}
			}
		}
	}
}

// inkOf returns the colour that an escape sequence sets, as #rrggbb, or "" for the terminal's default colour.
func inkOf(t *testing.T, sequence string, basic map[string]string) string {
	codes := strings.Split(strings.TrimSuffix(strings.TrimPrefix(sequence, "\x1b["), "m"), ";")
	for i, code := range codes {
		n, _ := strconv.Atoi(code)
		switch {
		case code == "38" && codes[i+1] == "2":
			var rgb [3]int
			for c := range rgb {
				rgb[c], _ = strconv.Atoi(codes[i+2+c])
			}
			return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
		case code == "38":
			n, _ := strconv.Atoi(codes[i+2])
			return termenv.ConvertToRGB(termenv.ANSI256Color(n)).Hex()
		case n >= 30 && n < 38 || n >= 90 && n < 98:
			number := strconv.Itoa(n%10 + n/90*8)
			if basic[number] == "" {
				t.Fatalf("colour %s of 16 is used but has no known value", number)
			}
			return basic[number]
		}
	}
	return ""
}

// contrast returns the contrast of two colours, as defined by the Web Content Accessibility Guidelines.
func contrast(a, b string) float64 {
	light := func(hex string) float64 {
		r, g, b := termenv.ConvertToRGB(termenv.RGBColor(hex)).LinearRgb()
		return 0.2126*r + 0.7152*g + 0.0722*b + 0.05
	}
	return max(light(a)/light(b), light(b)/light(a))
}

// Without colour nothing is painted. Lip Gloss then drops reverse and bold too, so glyphs and words must be
// enough.
func TestWithoutColourNothingIsPainted(t *testing.T) {
	th, err := NewTheme("dark", "never", io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	for p := range paints {
		if got := th.Put(p, "x"); got != "x" {
			t.Errorf("paint %d: %q", p, got)
		}
	}
}

// The flag has priority over NO_COLOR, NO_COLOR over CLICOLOR_FORCE, and CLICOLOR_FORCE over the terminal's
// capabilities.
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
