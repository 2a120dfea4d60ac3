package tui

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// The size of a cell of a picture and the margin around the screen, in pixels.
const cellWidth, cellHeight, margin = 8, 17, 10

// svg draws a screen as a terminal of w by h cells shows it, on a dark background. Blocks, shades and bars
// are drawn as boxes, so that they join in any font. Text is stretched to its cells.
func svg(screen, title string, w, h int) string {
	e := vt.NewEmulator(w, h)
	fmt.Fprint(e, strings.ReplaceAll(screen, "\n", "\r\n"))
	var b strings.Builder
	width, height := w*cellWidth+2*margin, h*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d"`+
		` font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13"`+
		` fill="#e6edf3">`+"\n<title>%s</title>\n"+
		`<rect width="%[1]d" height="%[2]d" rx="8" fill="#0d1117"/>`+"\n",
		width, height, width, height, html.EscapeString(title))
	for y := range h {
		var text strings.Builder
		for x := 0; x < w; {
			c := e.CellAt(x, y)
			if box := cellBox(c, x, y); box != "" {
				b.WriteString(box)
				x++
				continue
			}
			run, from := "", x
			for x < w {
				next := e.CellAt(x, y)
				if !next.Style.Equal(&c.Style) || cellBox(next, x, y) != "" ||
					strings.HasSuffix(run, "  ") && next.Content != " " {
					break
				}
				run += max(next.Content, " ")
				x += max(1, next.Width)
			}
			if run = strings.TrimRight(run, " "); run != "" {
				n := len([]rune(run))
				fmt.Fprintf(&text, `<tspan x="%d" textLength="%d"%s>%s</tspan>`,
					margin+from*cellWidth, n*cellWidth, look(c.Style), html.EscapeString(run))
			}
		}
		if text.Len() > 0 {
			fmt.Fprintf(&b, `<text y="%d" xml:space="preserve">%s</text>`+"\n",
				margin+y*cellHeight+13, text.String())
		}
	}
	return b.String() + "</svg>\n"
}

// look returns a style as SVG attributes.
func look(s uv.Style) string {
	out := fill(s.Fg)
	if s.Attrs&uv.AttrBold != 0 {
		out += ` font-weight="bold"`
	}
	if s.Underline != 0 {
		out += ` text-decoration="underline"`
	}
	return out
}

func fill(c color.Color) string {
	if c == nil {
		return ""
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf(` fill="#%02x%02x%02x"`, r>>8, g>>8, b>>8)
}

// cellBox returns the box of a glyph that is drawn as a box: blocks of eighths, shades, bars and rules. It
// returns "" for other glyphs.
func cellBox(c *uv.Cell, column, line int) string {
	runes := []rune(c.Content)
	if len(runes) != 1 {
		return ""
	}
	x, y, w, h, opacity := 0.0, 0.0, 8.0, 8.0, "" // in eighths of a cell
	switch r := runes[0]; {
	case r == '▀':
		h = 4
	case r >= '▁' && r <= '█':
		h = float64(r-'▁') + 1
		y = 8 - h
	case r >= '▉' && r <= '▏':
		w = 7 - float64(r-'▉')
	case r >= '░' && r <= '▓':
		opacity = fmt.Sprintf(` opacity="%.2f"`, float64(r-'░'+1)/4)
	case r == '│':
		x, w = 3.5, 1
	case r == '─':
		y, h = 3.75, 0.5
	default:
		return ""
	}
	const wide, high = cellWidth / 8.0, cellHeight / 8.0
	return fmt.Sprintf(`<rect x="%.5g" y="%.5g" width="%.5g" height="%.5g"%s%s/>`+"\n",
		float64(margin+column*cellWidth)+x*wide, float64(margin+line*cellHeight)+y*high, w*wide, h*high,
		fill(c.Style.Fg), opacity)
}
