package widget

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"gpuscope/trace/table"
)

// Paint is the purpose of a piece of text. Views name paints; only this file defines colors. Color never
// carries a meaning alone: a glyph or a word always carries the same meaning.
type Paint int

const (
	Plain    Paint = iota // the default color of the terminal
	Dim                   // less important text that gives context
	Strong                // headings and the name of the selected object
	Accent                // the current view and keys that can be pressed
	Selected              // the selected row
	Good                  // success
	Warn                  // needs attention
	Bad                   // refused or broken
	GraphA                // charts: the main series (work, decode)
	GraphB                // charts: the second series (timing, prefill)
	HeatB                 // heat of a number: from 5 % of the whole (table.Warm)
	HeatC                 // from 10 % (table.Hot)
	HeatD                 // from 25 % (table.Hottest)
	paints                // number of paints
)

// paletteColors is a theme. Each paint has a color for dark backgrounds, a color for light backgrounds, and
// the nearest of the eight basic terminal colors. Dark backgrounds use the bright variant of the basic
// color. On light backgrounds green, yellow and cyan are hard to read, so onLight can name another basic
// color. The theme "auto" uses the background that the terminal reports.
type paletteColors [paints]struct {
	dark, light string
	basic       basic
	onLight     basic // replaces basic on a light background
	bold        bool
	under       bool
}

// basic is one of the eight basic colors of a terminal, or gray (bright black). Two paints that the user must
// be able to distinguish have different basic colors. Gray is only for text that gives context.
type basic int

const (
	none basic = iota // default text color of the terminal
	red
	green
	yellow
	blue
	magenta
	cyan
	_
	grey // bright black
)

// of returns the color's number in ANSI escape sequences: on a dark background, that of the bright variant.
func (b basic) of(dark bool) string {
	switch {
	case b == none:
		return ""
	case b == grey || !dark:
		return strconv.Itoa(int(b))
	}
	return strconv.Itoa(int(b) + 8)
}

// palettes holds the themes by name. The high-contrast theme uses only blue and orange, which people with
// red-green color blindness can distinguish.
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
		HeatB:    {dark: "#ffe0a3", light: "#5c3a00", bold: true},
		HeatC:    {dark: "#ffb000", light: "#8a4b00", basic: yellow, onLight: red},
		HeatD:    {dark: "#ffb000", light: "#8a4b00", basic: yellow, onLight: red, bold: true, under: true},
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
	HeatB:    {dark: "#d7af87", light: "#875f5f", basic: magenta},
	HeatC:    {dark: "#f0883e", light: "#870000", basic: red},
	HeatD:    {dark: "#ff5f5f", light: "#d70000", basic: red, bold: true},
}

// ThemeNames lists the values of Options.Theme. ColorNames lists the values of Options.Color.
var (
	ThemeNames = []string{"auto", "dark", "light", "high-contrast"}
	ColorNames = []string{"auto", "never", "ansi", "256", "true"}
)

// Theme holds the escape sequence that starts each paint, because rendering a style for each cell is slow.
type Theme struct {
	start [paints]string
	end   string
}

// NewTheme returns the named theme. `color` is one of ColorNames. `isDark` reports whether the background is
// dark; nil means a dark background.
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
		if profile == termenv.ANSI { // termenv could choose the same basic color for two paints
			color = c.basic.of(dark)
			if !dark && c.onLight != none {
				color = c.onLight.of(dark)
			}
		}
		if color != "" {
			style = style.Foreground(lipgloss.Color(color))
		}
		// The escape sequence of the style is everything before the x.
		t.start[i], _, _ = strings.Cut(style.Render("x"), "x")
	}
	if profile != termenv.Ascii {
		t.end = "\x1b[0m"
	}
	return t, nil
}

// heats has the paint of each heat. Cold numbers have the paint of their row.
var heats = [...]Paint{table.Warm: HeatB, table.Hot: HeatC, table.Hottest: HeatD}

// heatSigns stand before a number with heat, so that heat can be seen without colors.
var heatSigns = [...]string{" ", "░", "▒", "█"}

// Put returns s with the paint applied.
func (t *Theme) Put(p Paint, s string) string {
	if t.start[p] == "" || s == "" {
		return s
	}
	return t.start[p] + s + t.end
}

// Hinted formats keys and their meanings for one line of w cells. It leaves out pairs that do not fit.
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

// colorProfile determines which colors to use: those of the color flag, else of the variable NO_COLOR, else
// of CLICOLOR_FORCE, else those that the terminal supports.
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
