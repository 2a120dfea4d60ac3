package tui

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/report/roofs"
	"gpuscope/tui/view/roof"
)

// recorded drives the program with a trace from a GPU that has measured ceilings.
func recorded(t *testing.T, w, h int) *driver {
	t.Helper()
	tr, err := trace.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	return drive(t, w, h, tr, nil, Options{})
}

// The last chart of Curves is the roofline. The same key leaves it again.
func TestTheRooflineIsTheLastChart(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := recorded(t, size[0], size[1]).press("5")
		for range 4 {
			d.press("d")
		}
		d.sees("FLOP/byte").press("d").misses("FLOP/byte")
	}
	recorded(t, 120, 40).press("5", "d", "d", "d", "d").reads("title", "list").press("j", "j").reads("list")
}

// Every kernel with a rate has a point below the roof of its phase, apart from the error of the ceilings.
func TestKernelsAreBelowTheRoof(t *testing.T) {
	t.Parallel()
	d := recorded(t, 120, 40).press("5", "d", "d", "d", "d")
	page, ok := d.app.view().(*roof.Page)
	if !ok {
		t.Fatalf("the view is a %T", d.app.view())
	}
	r := page.Rows.Table.From.(*roofs.Roofs)
	points := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		x, ok := row.Intensity()
		if !ok || row.FlopsPerS <= 0 {
			continue
		}
		points++
		if most := r.Roof(row.Phase, x); row.FlopsPerS > 1.1*most {
			t.Errorf("%s: %.3g FLOP/s, above the roof of %.3g", row.Kernel, row.FlopsPerS, most)
		}
	}
	if points < 3 {
		t.Errorf("%d points", points)
	}
}

// A software device has no roofline, and the screen says why.
func TestASoftwareDeviceHasNoRoofline(t *testing.T) {
	t.Parallel()
	tr, err := trace.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	tr.Device.AdapterType = trace.AdapterCPU
	d := drive(t, 120, 40, tr, nil, Options{}).press("5", "d", "d", "d", "d")
	d.sees("there is no roofline", "software device").press("esc").misses("Roofline")
}
