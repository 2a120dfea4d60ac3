package experts

import (
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// tiling describes how a kernel divides the work. The zero tiling means that there is no such kernel.
type tiling struct {
	lanes int // lanes of a workgroup
	rows  int // weight rows that a workgroup processes; in a gated kernel, rows of gate

	// The next fields are set for a tiled kernel. See linear_tiled.wgsl.
	tile, teams, quads int

	eights int // for a GEMV: groups of 8 columns that a lane processes at a time
}

// chunk returns the number of columns that a lane of a GEMV processes at a time.
func (s *tiling) chunk() int { return 8 * s.eights }

// Indices of routes.
const (
	routeGEMV  = 0 // one token
	routePairs = 1 // each pair is computed as one row times a matrix
)

// routes lists the routes, ordered from the fewest tokens to the most.
var routes = []struct {
	name  string
	why   kind.Reason
	upTo  float64 // the route is preferred up to this number of pairs for each expert, on average
	tile  int     // rows of a tile; 0 if the route is not tiled
	teams int
}{
	routeGEMV:  {"gemv", kind.OneToken, 0, 0, 0},
	routePairs: {"pairs", kind.FewPairs, 11, 0, 0},
	{"tile32", kind.Pairs32, 32, 32, 4},
	{"tile64", kind.Pairs64, 192, 64, 2},
	{"tile128", kind.PairsMany, 0, 128, 1},
}

var routeNames = func() (names []string) {
	for _, r := range routes {
		names = append(names, r.name)
	}
	return names
}()

// makeKernels chooses the routes and makes their kernels.
func (o *linear) makeKernels(b *graph.Builder) {
	o.routes, o.shapes = make(kind.Routes, len(routes)), make([]tiling, len(routes))
	o.kernels = make([]*graph.Kernel, len(routes))
	for i, r := range routes {
		o.routes[i] = kind.Route{Name: r.name, Why: r.why, Only: i == routeGEMV}
		if r.tile > 0 {
			o.shapes[i] = o.tiles(b.Limits(), r.tile, r.teams)
		} else {
			o.shapes[i] = o.gemv(b.Limits())
		}
		if o.shapes[i].lanes == 0 {
			continue
		}
		switch {
		case i == routeGEMV:
			o.routes[i].UpTo = 1
		case r.upTo == 0:
			o.routes[i].UpTo = kind.Always
		default:
			o.routes[i].UpTo = max(1, int(r.upTo*float64(o.n)/float64(o.k)))
		}
		o.kernels[i] = o.newKernel(b, i)
	}
}

// tileColumns is the number of weight rows in a tile of results.
const tileColumns = 64

// tiles returns the shape of a tiled kernel. It has fewer teams if workgroup memory is small.
func (o *linear) tiles(limits *gpu.Limits, tile, teams int) tiling {
	memory := int(limits.MaxWorkgroupStorage) - 4*tile - 8
	for ; teams >= 1; teams /= 2 {
		for quads := 4; quads >= max(2, tile/32); quads /= 2 {
			lanes := tile * teams
			vectors := teams * (tile + tileColumns) / 8 * (10*quads + 1)
			if 16*vectors <= memory && lanes <= int(limits.MaxInvocations) {
				return tiling{
					tile: tile, teams: teams, quads: quads, lanes: lanes,
					rows: tileColumns * o.cols() / o.rows(),
				}
			}
		}
	}
	return tiling{}
}

// The numbers that a GEMV needs, as in linearTuning of package ops.
const (
	mostRows  = 16        // largest number of weight rows of a workgroup
	mostLanes = 256       // largest number of lanes of a workgroup
	busy      = 256       // number of workgroups that fill a large GPU
	once      = 132 * 768 // number of lanes that a large GPU runs at once
)

// gemv returns the shape of a GEMV. It is the shape that a linear would use if its matrix had the rows of all
// experts of a token.
func (o *linear) gemv(limits *gpu.Limits) tiling {
	halves := o.rows() / o.cols()
	rows, cols := o.k*o.rows(), o.w.Cols
	if o.combine != nil { // the columns of all slots are one row
		rows, cols = o.rows(), o.k*o.w.Cols
	}
	s := tiling{rows: mostRows / halves, eights: 1}
	if o.router != nil {
		s.rows *= 2 // each workgroup repeats the choice of the experts
	}
	for s.rows > 4 && rows/halves/s.rows < busy {
		s.rows /= 2
	}
	sums := s.rows * halves
	if e := o.w.Format.MaxGroupsOf8; o.w.Cols%(8*e) == 0 && cols/(8*e) >= sums {
		s.eights = e
	}
	memory := int(limits.MaxWorkgroupStorage) - o.w.Format.WorkgroupBytes
	if o.router != nil {
		memory -= 8*(o.n+o.k) + 64
	}
	// In workgroup memory, each lane has a partial result of every sum, and of a norm's sum of squares.
	// Groups of lanes then combine these partial results. A group has as many lanes as there are sums, and
	// each group needs memory for one more number.
	fit := memory * sums / (4 * (sums*(sums+1) + 1))
	chunks := cols / s.chunk()
	most := min(int(min(limits.MaxInvocations, limits.MaxWorkgroupX)), fit, mostLanes)
	steps := shape.DivUp(chunks, most)
	all := func() int { return shape.DivUp(rows/halves, s.rows) * shape.DivUp(chunks, steps) }
	if s.eights > 1 && o.w.Format.WorkgroupBytes == 0 {
		room := once
		if o.w.Format.Pieces[0].Cols <= 32 {
			if all() > once && chunks/steps >= 64 {
				steps *= 2
			}
			room = room * 5 / 4
		}
		// On an H100, fewer rows for each workgroup make two kinds of products slower. With `router`, every
		// workgroup repeats the choice of the experts. With `combine`, every workgroup loads the rows of all
		// slots.
		if o.router == nil && o.combine == nil && s.rows > 4 && 2*all() <= room {
			s.rows, sums = s.rows/2, sums/2
		}
	}
	s.lanes = shape.DivUp(shape.DivUp(chunks, steps), sums) * sums
	if s.lanes > most {
		s.lanes -= sums
	}
	return s
}

// newKernel makes the kernel of a route.
func (o *linear) newKernel(b *graph.Builder, route int) *graph.Kernel {
	s, name := &o.shapes[route], o.w.Format.KindName("linear_experts")+"_"+routes[route].name
	c := o.w.Format.AddConstants(b, shaders.Constants{
		"Bias": o.bias != graph.None, "Several": len(o.parts) > 1, "Gated": "", "Expr": shaders.Text(""),
	})
	if o.gated != nil {
		vec := 1
		if s.tile > 0 {
			vec = 4
		}
		c["Gated"], c["Expr"] = o.gated.Act.Kind, o.gated.Expr(vec, "up")
	}
	if s.tile > 0 {
		c["Experts"], c["Slots"] = o.n, 0
		if !o.eachSlot {
			c["Slots"] = o.k
		}
		c["Residual"], c["Split"], c["Tile"], c["Teams"], c["Quads"] = false, false, s.tile, s.teams, s.quads
		c["Even"], c["Partial"] = o.w.Cols%(4*s.quads*s.teams) == 0, false
		return kind.NewKernelAs(b, name, "linear_tiled", c)
	}
	c["Lanes"], c["Rows"], c["Eights"], c["Chunks"] = s.lanes, s.rows, s.eights, o.w.Cols/s.chunk()
	c["N"], c["K"], c["Stack"], c["Ragged"] = o.cols(), o.k, o.n, o.cols()%s.rows != 0
	c["Choose"] = 0
	if o.chooses(route) {
		c["Choose"] = o.n
	}
	c["Combine"], c["EachSlot"], c["Tokens"] = o.combines(route), o.eachSlot, route != routeGEMV
	c["Residual"], c["Alpha"] = false, float32(1)
	if o.combines(route) {
		c["Residual"], c["Alpha"] = o.combine.residual != graph.None, o.combine.alpha
	}
	c["Norm"], c["Eps"], c["Given"], c["Spread"] = false, float32(0), 0, false
	if o.takesNorm(route) {
		c["Norm"], c["Eps"], c["Given"], c["Spread"] = true, o.norm.Eps, o.norm.Sums, o.norm.prepared()
	}
	c["Groups"] = 1
	if g := o.w.Format.Group; g > 0 {
		c["Groups"] = max(1, s.chunk()/g)
	}
	return kind.NewKernelAs(b, name, "experts_gemv", c)
}
