package graph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
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
		{
			"one thread", func(p *Planner) Grid { return p.Vectors(1, 1, 64) },
			Grid{X: 1, Y: 1, Z: 1, Groups: 1, Idle: 63},
		},
		{
			"a full group", func(p *Planner) Grid { return p.Vectors(64, 1, 64) },
			Grid{X: 1, Y: 1, Z: 1, Groups: 1, Idle: 0},
		},
		{
			"one past", func(p *Planner) Grid { return p.Vectors(65, 1, 64) },
			Grid{X: 2, Y: 1, Z: 1, Groups: 2, Idle: 63},
		},
		{
			"largest unfolded", func(p *Planner) Grid { return p.Rows(64, 64, Each("rows", 65535)) },
			Grid{X: 65535, Y: 1, Z: 1, Groups: 65535, Idle: 0},
		},
		{
			"folded square", func(p *Planner) Grid { return p.Rows(64, 64, Each("rows", 65536)) },
			Grid{X: 256, Y: 256, Z: 1, Groups: 65536, Idle: 0},
		},
		{
			"half-idle rows", func(p *Planner) Grid { return p.Rows(64, 32, Each("rows", 3)) },
			Grid{X: 3, Y: 1, Z: 1, Groups: 3, Idle: 96},
		},
		{
			"threads of 4 elements", func(p *Planner) Grid { return p.Vectors(514, 4, 64) },
			Grid{X: 3, Y: 1, Z: 1, Groups: 3, Idle: 3*64 - 129},
		},
		{
			"pieces of a count", func(p *Planner) Grid {
				rows := trace.Term{Name: "tokens", Value: 43, Times: 3, Per: 64}
				return p.Rows(64, 64, rows, Each("kv heads", 2))
			},
			Grid{X: 6, Y: 1, Z: 1, Groups: 6},
		},
		{
			"at most so many", func(p *Planner) Grid {
				parted := trace.Term{Name: "context", Value: 300, Per: 64, Most: 4}
				return p.Rows(64, 64, Each("heads", 2), parted)
			},
			Grid{X: 8, Y: 1, Z: 1, Groups: 8},
		},
		{
			"tiles", func(p *Planner) Grid {
				return p.Tiles(256, Split("cols", 130, 64), Split("rows", 65, 64))
			},
			Grid{X: 3, Y: 2, Z: 1, Groups: 6, Idle: 6*256 - 529},
		},
		{
			"blocks", func(p *Planner) Grid {
				return p.Rows(64, 60, Split("cols", 100, 16), Split("rows", 5, 4))
			},
			Grid{X: 14, Y: 1, Z: 1, Groups: 14, Idle: 14 * 4},
		},
		{
			"strided", func(p *Planner) Grid { return p.Stride(100000) },
			Grid{X: 65535, Y: 1, Z: 1, Groups: 65535, Idle: 0},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := gridPlanner()
			got := test.grid(p)
			said := got.describe(nil)
			if n := groupsOf(said.Terms); n != got.Groups && (said.Rule != "grid_stride" || n < got.Groups) {
				t.Errorf("%s %v make %d workgroups, not %d", said.Rule, said.Terms, n, got.Groups)
			}
			got.rule, got.terms = "", [maxTerms]trace.Term{}
			if got != test.want || p.err != nil {
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
		"no work":       func(p *Planner) Grid { return p.Vectors(0, 1, 64) },
		"negative":      func(p *Planner) Grid { return p.Rows(64, 64, Each("rows", -1)) },
		"over capacity": func(p *Planner) Grid { return p.Rows(64, 64, Each("rows", 65535*65535+1)) },
		"wide tiles": func(p *Planner) Grid {
			return p.Tiles(256, Split("cols", 1<<30, 64), Split("rows", 1, 64))
		},
	} {
		p := gridPlanner()
		if g := grid(p); g != (Grid{}) || p.err == nil ||
			!strings.Contains(p.err.Error(), "65535 per dimension") {
			t.Errorf("%s: got %+v, %v", name, g, p.err)
		}
	}
}

func TestPlanSaysHowItsGridCameAbout(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxWorkgroups = 4 // 14 fold into 4 x 4
	p := &Planner{limits: &limits}
	g := p.Rows(64, 60, Split("cols", 100, 16), Split("rows", 5, 4))
	want := &trace.Grid{Rule: "rows", Terms: []trace.Term{
		{Name: "cols", Value: 100, Per: 16}, {Name: "rows", Value: 5, Per: 4},
	}}
	got := g.describe(nil)
	if d := cmp.Diff(want, got); d != "" || g.Workgroups() != 16 || g.Groups != 14 {
		t.Errorf("%d workgroups, %d with work: %s", g.Workgroups(), g.Groups, d)
	}
	if again := g.describe(got); again != got {
		t.Error("the same arithmetic is made twice")
	}
	g.terms[1].Value++
	if other := g.describe(got); other == got || other.Terms[1].Value != 6 {
		t.Errorf("another arithmetic: %v", other)
	}
	if (&Grid{}).describe(nil) != nil {
		t.Error("a grid of no rule has one")
	}
}

func TestALargerGridCoversOthers(t *testing.T) {
	flat := func(x, y uint32) Grid { return Grid{X: x, Y: y, Z: 1, rule: "rows"} }
	tile := func(x, y, z uint32) Grid { return Grid{X: x, Y: y, Z: z, rule: tiles} }
	for _, c := range []struct {
		of   []Grid
		want [3]int
	}{
		{[]Grid{flat(65000, 1), flat(257, 257)}, [3]int{257, 257, 1}},
		{[]Grid{flat(257, 257), flat(65000, 1)}, [3]int{257, 257, 1}},
		{[]Grid{tile(16, 4, 6), tile(16, 1, 16)}, [3]int{16, 4, 16}},
	} {
		var g Grid
		for _, other := range c.of {
			g.cover(other)
		}
		if g.Counts() != c.want {
			t.Errorf("%v: %v, want %v", c.of, g.Counts(), c.want)
		}
	}
}
