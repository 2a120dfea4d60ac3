package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// filled returns for each region of a frame whether it has content.
func filled(d *driver) map[region]bool {
	lines := strings.Split(ansi.Strip(d.app.View()), "\n")
	there := map[region]bool{}
	for name, r := range d.app.rects() {
		for y := r.Y; y < min(len(lines), r.Y+r.H); y++ {
			part := ansi.Cut(lines[y], r.X, r.X+r.W)
			if strings.Contains(part, "Computing") {
				there[name] = false
				break
			}
			there[name] = there[name] || strings.TrimSpace(part) != ""
		}
	}
	return there
}

// The old content stays until the new content is ready. No frame between them is empty.
func TestNoFrameIsEmptyBetweenTwoContents(t *testing.T) {
	for _, view := range some(viewKeys()) {
		d := drive(t, 160, 40, llama, nil, Options{}).press(view)
		if d.app.jobs.Busy > 0 {
			t.Fatal("jobs are still running")
		}
		before := filled(d)
		for _, k := range strings.Fields(", , . v v V V F F F F b m ] [ z z u j k") {
			still := func(when string) {
				t.Helper()
				now := filled(d)
				for name, was := range before {
					if _, shown := now[name]; was && shown && !now[name] {
						t.Errorf("view %s, %s %s: region %v is empty:\n%s", view, when, k, name, d.screen())
					}
				}
			}
			d.touch(k)
			still("after")
			for n := 0; d.app.jobs.Busy > 0; n++ {
				d.update(<-d.messages)
				still(fmt.Sprintf("%d messages after", n+1))
			}
			before = filled(d)
		}
	}
}
