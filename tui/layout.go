package tui

import (
	"fmt"

	"gpuscope/tui/widget"
)

// minWidth and minHeight are the size of the smallest screen on which the views are readable. mainHeight is
// the height for which the views are designed.
const (
	minWidth, minHeight = 60, 16
	mainHeight          = 24
)

// region is a part of the screen.
type region int

const (
	regionHeader region = iota // model, device, step, state
	regionTabs                 // views, selection, timing
	regionAbout                // summary of the selected steps
	regionTitle                // what the list shows
	regionList
	regionDivider // between list and detail when they are side by side
	regionDetailTitle
	regionDetail
	regionNotice // shows an error until the user dismisses it; also shows how long drawing takes
	regionHint
)

// zoom says which pane fills the screen.
type zoom int

const (
	zoomNone zoom = iota
	zoomList
	zoomDetail
)

// split is how far the user has moved the border between list and detail towards the detail. The unit is
// columns if the two are side by side, and rows if the detail is below the list.
type split struct{ columns, rows int }

// arrangement holds everything that determines the layout, except the size of the screen.
type arrangement struct {
	detail bool // the view has a detail pane
	zoom   zoom
	notice int // height of the notice, in lines
	split  split
}

// leastList and leastSide are the minimum widths, in columns, of the list and the detail when they are
// side by side.
const leastList, leastSide = 60, 30

// layout computes the rectangle of each region. The rectangles cover the whole screen and do not overlap.
func layout(w, h int, a arrangement) map[region]widget.Rect {
	m := map[region]widget.Rect{
		regionHeader: widget.Area(0, 0, w, 1),
		regionTabs:   widget.Area(0, 1, w, 1),
		regionAbout:  widget.Area(0, 2, w, 1),
		regionTitle:  widget.Area(0, 3, w, 1),
		regionHint:   widget.Area(0, h-1, w, 1),
	}
	notice := min(a.notice, max(0, h-12))
	if notice > 0 {
		m[regionNotice] = widget.Area(0, h-1-notice, w, notice)
	}
	top, rows := 4, h-5-notice
	switch {
	case !a.detail || a.zoom == zoomList:
		m[regionList] = widget.Area(0, top, w, rows)
	case a.zoom == zoomDetail:
		m[regionDetailTitle] = widget.Area(0, top, w, 1)
		m[regionDetail] = widget.Area(0, top+1, w, rows-1)
	case w >= widget.SideWidth:
		side := widget.Clamp(widget.Clamp(w/3, 40, 64)-a.split.columns, leastSide, w-1-leastList)
		list := w - 1 - side
		m[regionTitle] = widget.Area(0, top-1, list, 1)
		m[regionList] = widget.Area(0, top, list, rows)
		m[regionDivider] = widget.Area(list, top-1, 1, rows+1)
		m[regionDetailTitle] = widget.Area(list+1, top-1, side, 1)
		m[regionDetail] = widget.Area(list+1, top, side, rows)
	default:
		// The detail gets a fifth of the rows, or a third on a tall screen, but at least enough for
		// its first lines. The list keeps its header and a few rows.
		part := 5
		if h >= 46 {
			part = 3
		}
		detail := rows / part
		if h >= mainHeight {
			detail = max(detail, 4)
		}
		detail = widget.Clamp(detail-a.split.rows, 2, max(2, rows-6))
		m[regionList] = widget.Area(0, top, w, rows-detail-1)
		m[regionDetailTitle] = widget.Area(0, top+rows-detail-1, w, 1)
		m[regionDetail] = widget.Area(0, top+rows-detail, w, detail)
	}
	return m
}

// tooSmall returns the message shown instead of the views if the screen is too small, else "".
func tooSmall(w, h int) string {
	if w >= minWidth && h >= minHeight {
		return ""
	}
	return fmt.Sprintf("The window is %d x %d. gpuscope needs %d x %d. Enlarge it. The run continues.", w,
		h, minWidth, minHeight)
}
