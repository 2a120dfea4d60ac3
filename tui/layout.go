package tui

import "fmt"

// The smallest screen on which the views say what they mean, and the one they are drawn for.
const (
	minWidth, minHeight   = 60, 16
	mainWidth, mainHeight = 80, 24
)

// region is a part of the screen.
type region int

const (
	regionHeader region = iota // model, device, state
	regionTabs                 // views, step
	regionCost                 // what the step cost
	regionTitle                // what the list shows
	regionList
	regionDetailTitle
	regionDetail
	regionNotice // an error that waits to be dismissed
	regionHint
)

// rect is a part of the screen in cells, from the top left.
type rect struct{ x, y, w, h int }

// zoom says which pane has the screen for itself.
type zoom int

const (
	zoomNone zoom = iota
	zoomList
	zoomDetail
)

// arrangement is what the layout depends on besides the size.
type arrangement struct {
	detail bool // the view has a detail pane
	zoom   zoom
	notice int // lines of the notice
	split  int // rows (or columns) by which the person moved the split
}

// layout says where everything is. It is the only place that computes sizes: panes get rectangles. The
// rectangles tile the screen.
func layout(w, h int, a arrangement) map[region]rect {
	m := map[region]rect{
		regionHeader: {0, 0, w, 1},
		regionTabs:   {0, 1, w, 1},
		regionCost:   {0, 2, w, 1},
		regionTitle:  {0, 3, w, 1},
		regionHint:   {0, h - 1, w, 1},
	}
	notice := min(a.notice, max(0, h-12))
	if notice > 0 {
		m[regionNotice] = rect{0, h - 1 - notice, w, notice}
	}
	top, rows := 4, h-5-notice
	switch {
	case !a.detail || a.zoom == zoomList:
		m[regionList] = rect{0, top, w, rows}
	case a.zoom == zoomDetail:
		m[regionDetailTitle] = rect{0, top, w, 1}
		m[regionDetail] = rect{0, top + 1, w, rows - 1}
	case w >= 240:
		// The detail stands at the right where the list keeps its columns.
		side := clamp(80-a.split, 40, w-mainWidth)
		m[regionList] = rect{0, top, w - side, rows}
		m[regionDetailTitle] = rect{w - side, top, side, 1}
		m[regionDetail] = rect{w - side, top + 1, side, rows - 1}
	default:
		// The list needs its header and a few rows; the detail takes a fifth, at least what its first lines
		// need.
		detail := clamp(rows/5-a.split, 2, max(2, rows-6))
		if a.split == 0 && h >= mainHeight {
			detail = max(detail, 4)
		}
		m[regionList] = rect{0, top, w, rows - detail - 1}
		m[regionDetailTitle] = rect{0, top + rows - detail - 1, w, 1}
		m[regionDetail] = rect{0, top + rows - detail, w, detail}
	}
	return m
}

// tooSmall says, in words, why nothing is drawn; "" where the screen is large enough.
func tooSmall(w, h int) string {
	if w >= minWidth && h >= minHeight {
		return ""
	}
	return fmt.Sprintf("The window is %d x %d. gpuscope needs %d x %d. Make it larger; the run goes on.", w,
		h, minWidth, minHeight)
}

func clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }
