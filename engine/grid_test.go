package engine

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
)

func gridPlanner() *Planner {
	limits := gpu.DefaultLimits()
	return &Planner{limits: &limits}
}

func TestGridsCoverTheirWork(t *testing.T) {
	tests := []struct {
		name string
		grid func(p *Planner) Grid
		want Grid
	}{
		{"one thread", func(p *Planner) Grid { return p.Threads(1, 64) }, Grid{1, 1, 1, 1, 63}},
		{"a full group", func(p *Planner) Grid { return p.Threads(64, 64) }, Grid{1, 1, 1, 1, 0}},
		{"one past", func(p *Planner) Grid { return p.Threads(65, 64) }, Grid{2, 1, 1, 2, 63}},
		{
			"largest unfolded", func(p *Planner) Grid { return p.Rows(65535, 64, 64) },
			Grid{65535, 1, 1, 65535, 0},
		},
		{
			"folded square", func(p *Planner) Grid { return p.Rows(65536, 64, 64) },
			Grid{256, 256, 1, 65536, 0},
		},
		{"half-idle rows", func(p *Planner) Grid { return p.Rows(3, 64, 32) }, Grid{3, 1, 1, 3, 96}},
		{
			"tiles", func(p *Planner) Grid { return p.Tiles(130, 64, 65, 64, 1, 256) },
			Grid{3, 2, 1, 6, 6*256 - 529},
		},
		{"strided", func(p *Planner) Grid { return p.Stride(100000) }, Grid{65535, 1, 1, 65535, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := gridPlanner()
			if got := test.grid(p); got != test.want || p.err != nil {
				t.Errorf("got %+v, %v, want %+v", got, p.err, test.want)
			}
		})
	}
}

func TestFoldIsNearlySquare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 65535*65535).Draw(t, "workgroups")
		x, y := fold(n, 65535)
		if x*y < n || x > 65535 || y > 65535 {
			t.Fatalf("%d workgroups as %d x %d", n, x, y)
		}
		if n > 65535 && (x*y-n)*(x*y-n) > 4*n {
			t.Fatalf("%d workgroups as %d x %d: %d launch for nothing", n, x, y, x*y-n)
		}
	})
}

func TestGridTheDeviceCannotRunIsRefused(t *testing.T) {
	for name, grid := range map[string]func(p *Planner) Grid{
		"no work":       func(p *Planner) Grid { return p.Threads(0, 64) },
		"negative":      func(p *Planner) Grid { return p.Rows(-1, 64, 64) },
		"over capacity": func(p *Planner) Grid { return p.Rows(65535*65535+1, 64, 64) },
		"wide tiles":    func(p *Planner) Grid { return p.Tiles(1<<30, 64, 1, 64, 1, 256) },
	} {
		p := gridPlanner()
		if g := grid(p); g != (Grid{}) || p.err == nil ||
			!strings.Contains(p.err.Error(), "the device takes 1 to 65535") {
			t.Errorf("%s: got %+v, %v", name, g, p.err)
		}
	}
}
