package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/tui/view/dispatch"
)

// At each width the list next to the detail has these columns and shows both grids of a change. Kernel names
// are shortened to make room.
func TestCostsAndChangesOfGridsKeepTheirPlace(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	for _, w := range []int{80, 110, 120, 200} {
		d := live(t, w, 60).press("2", "c", "v")
		d.sees("Δ prefill", "128→4096 r", "5376→128")
		lines := strings.Split(d.screen(), "\n")
		head := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " op ") })
		list, _, _ := strings.Cut(lines[head], "│")
		golden.Text(fmt.Sprintf("%3d wide", w), strings.Join(strings.Fields(list), " "))
	}
}

// A column next to the bars names the layer that is an outlier.
func TestOutlierIsInItsColumn(t *testing.T) {
	t.Parallel()
	live(t, 200, 50).press("2", "c", "R").sees("19.0 µs", "L10 +5 %").reads("list")
}

// If grids are pinned, the wasted time is shown next to a time of the same dispatches, at every width.
func TestWasteAndTimeAreOfTheSameDispatches(t *testing.T) {
	t.Parallel()
	tr := *llama
	tr.Static = true
	for _, w := range []int{80, 120, 200} {
		head := drive(t, w, 40, &tr, nil, Options{}).press("2").line("# op")
		head, _, _ = strings.Cut(head, "│")
		if !strings.Contains(head, " total") || strings.Contains(head, " µs ") != (w >= dispatch.Roomy) {
			t.Errorf("at %d columns: %q, want total", w, head)
		}
	}
}

// A filter can leave rows that have a value in common. The column of that value stays, because the user may
// look for it or sort by it.
func TestAFilterTakesNoColumnAway(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2").sees("kernel", "grid")
	d.press("/").typed("attn.k").press("enter", "o", "m").sees("kernel", "grid", "total↓").reads("title")
	d.press("o", "g").sees("grid↓")
}

// The letters that sort by a column are shown in the headings without moving them.
func TestLettersMoveNoHeading(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1]).press("2", "c")
		before := d.line("kernel")
		if d.press("o").sees("sort by:"); d.line("kernel") != before {
			t.Errorf("%v: the headings are\n%s\nand with letters\n%s", size, before, d.line("kernel"))
		}
	}
}
