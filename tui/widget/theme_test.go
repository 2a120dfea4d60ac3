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

// Paints that stand side by side are told apart in every theme, with however few colours, on either
// background.
func TestPaintsAreDistinguishable(t *testing.T) {
	same := map[string][][2]Paint{ // a glyph and a word tell these apart, as they do where there is no colour
		"high-contrast": {
			{Accent, Good}, {Good, GraphA}, {Warn, GraphB}, {Plain, Dim},
		},
	}
	few := [][2]Paint{{Good, GraphA}} // of the colours that can be read on a light ground in 16
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

// What is painted can be read on the grounds that terminals have: at a contrast of 4.5, what is there for
// context at 3; with sixteen colours, which are the terminal's own, at 3 with the poorest that are common.
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

// inkOf is the colour that an escape sequence sets as #rrggbb, "" for the terminal's own.
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
				t.Fatalf("colour %s of sixteen is used and not known", number)
			}
			return basic[number]
		}
	}
	return ""
}

// contrast of two colours, as the Web Content Accessibility Guidelines define it.
func contrast(a, b string) float64 {
	light := func(hex string) float64 {
		r, g, b := termenv.ConvertToRGB(termenv.RGBColor(hex)).LinearRgb()
		return 0.2126*r + 0.7152*g + 0.0722*b + 0.05
	}
	return max(light(a)/light(b), light(b)/light(a))
}

// Without colour nothing is painted at all: Lip Gloss drops reverse and bold too, so glyphs and words say it.
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
