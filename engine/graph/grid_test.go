package graph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

func gridPlanner() *Planner {
	limits := gpu.DefaultLimits()
	return &Planner{limits: &limits}
}

func TestGridsCoverTheirWork(t *testing.T) {
	tests := []struct {
		name string
		grid func(p *Planner) grid.Grid
		want grid.Grid
	}{
		{
			"one thread", func(p *Planner) grid.Grid { return p.Vectors(1, 1, 64) },
			grid.Grid{X: 1, Y: 1, Z: 1, Groups: 1, Idle: 63},
		},
		{
			"a full group", func(p *Planner) grid.Grid { return p.Vectors(64, 1, 64) },
			grid.Grid{X: 1, Y: 1, Z: 1, Groups: 1, Idle: 0},
		},
		{
			"one past", func(p *Planner) grid.Grid { return p.Vectors(65, 1, 64) },
			grid.Grid{X: 2, Y: 1, Z: 1, Groups: 2, Idle: 63},
		},
		{
			"largest unfolded", func(p *Planner) grid.Grid {
				return p.Rows(64, 64, grid.Each("rows", 65535))
			},
			grid.Grid{X: 65535, Y: 1, Z: 1, Groups: 65535, Idle: 0},
		},
		{
			"folded square", func(p *Planner) grid.Grid { return p.Rows(64, 64, grid.Each("rows", 65536)) },
			grid.Grid{X: 256, Y: 256, Z: 1, Groups: 65536, Idle: 0},
		},
		{
			"half-idle rows", func(p *Planner) grid.Grid { return p.Rows(64, 32, grid.Each("rows", 3)) },
			grid.Grid{X: 3, Y: 1, Z: 1, Groups: 3, Idle: 96},
		},
		{
			"threads of 4 elements", func(p *Planner) grid.Grid { return p.Vectors(514, 4, 64) },
			grid.Grid{X: 3, Y: 1, Z: 1, Groups: 3, Idle: 3*64 - 129},
		},
		{
			"pieces of a count", func(p *Planner) grid.Grid {
				rows := trace.Term{Name: "tokens", Value: 43, Times: 3, Per: 64}
				return p.Rows(64, 64, rows, grid.Each("kv heads", 2))
			},
			grid.Grid{X: 6, Y: 1, Z: 1, Groups: 6},
		},
		{
			"at most so many", func(p *Planner) grid.Grid {
				parted := trace.Term{Name: "context", Value: 300, Per: 64, Most: 4}
				return p.Rows(64, 64, grid.Each("heads", 2), parted)
			},
			grid.Grid{X: 8, Y: 1, Z: 1, Groups: 8},
		},
		{
			"tiles", func(p *Planner) grid.Grid {
				return p.Tiles(256, grid.Split("cols", 130, 64), grid.Split("rows", 65, 64))
			},
			grid.Grid{X: 3, Y: 2, Z: 1, Groups: 6, Idle: 6*256 - 529},
		},
		{
			"blocks", func(p *Planner) grid.Grid {
				return p.Rows(64, 60, grid.Split("cols", 100, 16), grid.Split("rows", 5, 4))
			},
			grid.Grid{X: 14, Y: 1, Z: 1, Groups: 14, Idle: 14 * 4},
		},
		{
			"strided", func(p *Planner) grid.Grid { return p.Stride(100000) },
			grid.Grid{X: 65535, Y: 1, Z: 1, Groups: 65535, Idle: 0},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := gridPlanner()
			got := test.grid(p)
			said := got.Describe(nil)
			if n := grid.GroupsOf(said.Terms); n != got.Groups && (said.Rule != "grid_stride" ||
				n < got.Groups) {
				t.Errorf("%s %v make %d workgroups, not %d", said.Rule, said.Terms, n, got.Groups)
			}
			got.Rule, got.Terms = "", [grid.MaxTerms]trace.Term{}
			if got != test.want || p.err != nil {
				t.Errorf("got %+v, %v, want %+v", got, p.err, test.want)
			}
		})
	}
}

func TestFoldIsNearlySquare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 65535*65535).Draw(t, "workgroups")
		x, y := grid.Fold(n, 65535)
		if x*y < n || x > 65535 || y > 65535 {
			t.Fatalf("%d workgroups as %d x %d", n, x, y)
		}
		if n > 65535 && (x*y-n)*(x*y-n) > 4*n {
			t.Fatalf("%d workgroups as %d x %d: %d launch for nothing", n, x, y, x*y-n)
		}
	})
}

func TestGridTheDeviceCannotRunIsRefused(t *testing.T) {
	for name, of := range map[string]func(p *Planner) grid.Grid{
		"no work":  func(p *Planner) grid.Grid { return p.Vectors(0, 1, 64) },
		"negative": func(p *Planner) grid.Grid { return p.Rows(64, 64, grid.Each("rows", -1)) },
		"over capacity": func(p *Planner) grid.Grid {
			return p.Rows(64, 64, grid.Each("rows", 65535*65535+1))
		},
		"wide tiles": func(p *Planner) grid.Grid {
			return p.Tiles(256, grid.Split("cols", 1<<30, 64), grid.Split("rows", 1, 64))
		},
	} {
		p := gridPlanner()
		if g := of(p); g != (grid.Grid{}) || p.err == nil ||
			!strings.Contains(p.err.Error(), "65535 per dimension") {
			t.Errorf("%s: got %+v, %v", name, g, p.err)
		}
	}
}

func TestPlanSaysHowItsGridCameAbout(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxWorkgroups = 4 // 14 fold into 4 x 4
	p := &Planner{limits: &limits}
	g := p.Rows(64, 60, grid.Split("cols", 100, 16), grid.Split("rows", 5, 4))
	want := &trace.Grid{Rule: "rows", Terms: []trace.Term{
		{Name: "cols", Value: 100, Per: 16}, {Name: "rows", Value: 5, Per: 4},
	}}
	got := g.Describe(nil)
	if d := cmp.Diff(want, got); d != "" || g.Workgroups() != 16 || g.Groups != 14 {
		t.Errorf("%d workgroups, %d with work: %s", g.Workgroups(), g.Groups, d)
	}
	if again := g.Describe(got); again != got {
		t.Error("the same arithmetic is made twice")
	}
	g.Terms[1].Value++
	if other := g.Describe(got); other == got || other.Terms[1].Value != 6 {
		t.Errorf("another arithmetic: %v", other)
	}
	if (&grid.Grid{}).Describe(nil) != nil {
		t.Error("a grid of no rule has one")
	}
}

func TestALargerGridCoversOthers(t *testing.T) {
	flat := func(x, y uint32) grid.Grid { return grid.Grid{X: x, Y: y, Z: 1, Rule: "rows"} }
	tile := func(x, y, z uint32) grid.Grid { return grid.Grid{X: x, Y: y, Z: z, Rule: grid.Tiled} }
	for _, c := range []struct {
		of   []grid.Grid
		want [3]int
	}{
		{[]grid.Grid{flat(65000, 1), flat(257, 257)}, [3]int{257, 257, 1}},
		{[]grid.Grid{flat(257, 257), flat(65000, 1)}, [3]int{257, 257, 1}},
		{[]grid.Grid{tile(16, 4, 6), tile(16, 1, 16)}, [3]int{16, 4, 16}},
	} {
		var g grid.Grid
		for _, other := range c.of {
			g.Cover(other)
		}
		if g.Counts() != c.want {
			t.Errorf("%v: %v, want %v", c.of, g.Counts(), c.want)
		}
	}
}
