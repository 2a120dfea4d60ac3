package widget

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// A Paint is what a piece of text is for. The views name paints, never colours; the colours of each theme are
// here and nowhere else. No paint carries a meaning alone: what is said in colour is said by a glyph or a
// word as well.
type Paint int

const (
	Plain    Paint = iota // the terminal's own
	Dim                   // what is there for context
	Strong                // headings, the name of what is looked at
	Accent                // the view one is in, what can be pressed
	Selected              // the selected row
	Good                  // fine, finished
	Warn                  // look here first
	Bad                   // refused, broken
	GraphA                // drawings: the main series (work, decode)
	GraphB                // drawings: the second series (timing, prefill)
	paints                // how many there are
)

// paletteColors is a theme: for each paint a colour for dark and one for light backgrounds, and the nearest
// of the eight that every terminal has, bright on dark ones; on light ones another where its green, yellow or
// cyan can hardly be read. Auto takes what the terminal says its background is.
type paletteColors [paints]struct {
	dark, light string
	basic       basic
	onLight     basic // in place of basic
	bold        bool
	under       bool
}

// basic is one of a terminal's own eight colours. Two paints that must be told apart have two: what stands
// for context is grey, and nothing else is.
type basic int

const (
	none basic = iota // the terminal's own text colour
	red
	green
	yellow
	blue
	magenta
	cyan
	_
	grey // bright black
)

// of is the number of a terminal's colour.
func (b basic) of(dark bool) string {
	switch {
	case b == none:
		return ""
	case b == grey || !dark:
		return strconv.Itoa(int(b))
	}
	return strconv.Itoa(int(b) + 8)
}

// Themes by name. High-contrast keeps to blue and orange, which people who do not tell red from green see
// apart.
var palettes = map[string]paletteColors{
	"auto":  calm,
	"dark":  calm,
	"light": calm,
	"high-contrast": {
		Dim:      {dark: "#d0d0d0", light: "#303030"},
		Strong:   {bold: true},
		Accent:   {dark: "#6cb6ff", light: "#003d99", basic: blue, bold: true},
		Selected: {dark: "#ffffff", light: "#000000", bold: true, under: true},
		Good:     {dark: "#6cb6ff", light: "#003d99", basic: blue},
		Warn:     {dark: "#ffb000", light: "#8a4b00", basic: yellow, onLight: red, bold: true},
		Bad:      {dark: "#ffb000", light: "#8a4b00", basic: yellow, onLight: red, bold: true, under: true},
		GraphA:   {dark: "#6cb6ff", light: "#003d99", basic: blue},
		GraphB:   {dark: "#ffb000", light: "#8a4b00", basic: yellow, onLight: red},
	},
}

var calm = paletteColors{
	Dim:      {dark: "#8b949e", light: "#57606a", basic: grey},
	Strong:   {bold: true},
	Accent:   {dark: "#58a6ff", light: "#0550ae", basic: blue, bold: true},
	Selected: {dark: "#e3b341", light: "#7d4e00", basic: yellow, onLight: magenta, bold: true},
	Good:     {dark: "#3fb950", light: "#116329", basic: green, onLight: blue},
	Warn:     {dark: "#d29922", light: "#7d4e00", basic: yellow, onLight: red},
	Bad:      {dark: "#ff7b72", light: "#a40e26", basic: red, bold: true},
	GraphA:   {dark: "#56b6c2", light: "#0a6a75", basic: cyan, onLight: blue},
	GraphB:   {dark: "#c678dd", light: "#7b2d8b", basic: magenta},
}

// ThemeNames are the values of Options.Theme, ColorNames those of Options.Color.
var (
	ThemeNames = []string{"auto", "dark", "light", "high-contrast"}
	ColorNames = []string{"auto", "never", "ansi", "256", "true"}
)

// Theme holds the escape sequence that starts each paint, made once: rendering a style anew for each cell of
// each frame is what makes a terminal program slow.
type Theme struct {
	start [paints]string
	end   string
}

// NewTheme builds the theme of that name for a terminal with that many colours. isDark tells of its
// background where the theme follows it; nil is dark.
func NewTheme(name, color string, out io.Writer, isDark func() bool) (*Theme, error) {
	colors, ok := palettes[orAuto(name)]
	if !ok {
		return nil, fmt.Errorf("theme %q: choose one of %s", name, strings.Join(ThemeNames, ", "))
	}
	profile, err := colorProfile(color, out)
	if err != nil {
		return nil, err
	}
	r := lipgloss.NewRenderer(out)
	r.SetColorProfile(profile)
	dark := name != "light"
	if (orAuto(name) == "auto" || name == "high-contrast") && profile != termenv.Ascii && isDark != nil {
		dark = isDark()
	}
	t := &Theme{}
	for i, c := range colors {
		style := r.NewStyle().Bold(c.bold).Underline(c.under)
		color := pick(dark, c.dark, c.light)
		if profile == termenv.ANSI { // what is nearest by arithmetic may be the same for two
			color = c.basic.of(dark)
			if !dark && c.onLight != none {
				color = c.onLight.of(dark)
			}
		}
		if color != "" {
			style = style.Foreground(lipgloss.Color(color))
		}
		// What Lip Gloss puts before a letter is the paint's start.
		t.start[i], _, _ = strings.Cut(style.Render("x"), "x")
	}
	if profile != termenv.Ascii {
		t.end = "\x1b[0m"
	}
	return t, nil
}

// Put paints s.
func (t *Theme) Put(p Paint, s string) string {
	if t.start[p] == "" || s == "" {
		return s
	}
	return t.start[p] + s + t.end
}

// Hinted are keys with what they do, as many as w cells have room for.
func (t *Theme) Hinted(said [][2]string, w int) string {
	var b strings.Builder
	used := 0
	for _, s := range said {
		if n := Width(s[0]) + Width(s[1]) + 3; used+n < w {
			used += n
			b.WriteString(" " + t.Put(Accent, s[0]) + " " + s[1] + " ")
		}
	}
	return b.String()
}

// colorProfile decides how many colours there are: the flag, then NO_COLOR, then CLICOLOR_FORCE, then the
// terminal.
func colorProfile(color string, out io.Writer) (termenv.Profile, error) {
	switch orAuto(color) {
	case "never":
		return termenv.Ascii, nil
	case "ansi":
		return termenv.ANSI, nil
	case "256":
		return termenv.ANSI256, nil
	case "true":
		return termenv.TrueColor, nil
	case "auto":
	default:
		return 0, fmt.Errorf("color %q: choose one of %s", color, strings.Join(ColorNames, ", "))
	}
	if os.Getenv("NO_COLOR") != "" {
		return termenv.Ascii, nil
	}
	return termenv.NewOutput(out).EnvColorProfile(), nil
}

func orAuto(s string) string {
	if s == "" {
		return "auto"
	}
	return s
}

func pick(dark bool, onDark, onLight string) string {
	if dark {
		return onDark
	}
	return onLight
}
