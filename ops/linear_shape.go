package ops

import (
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/trace"
)

// linearShape describes how a kernel divides the work. It depends on the sizes of the weights and on the
// device's limits. The zero shape means that the operator does not have this kernel.
type linearShape struct {
	lanes int // lanes of a workgroup

	// The next fields are set for a tiled kernel.
	tile  int // rows of a tile of results
	teams int // number of teams of lanes; each team processes some of the columns of x
	quads int // groups of 4 columns that a team holds in workgroup memory at a time

	// rows is the number of weight rows that a workgroup processes. In a gated MLP, it is the number of rows
	// of gate, which equals that of up.
	rows int

	// The next fields are set for a GEMV.
	batch  int // rows of x that a workgroup processes
	eights int // groups of 8 columns that a lane processes at a time
}

// chunk returns the number of columns that a lane of a GEMV processes at a time.
func (s *linearShape) chunk() int { return 8 * s.eights }

// grid returns the grid of a dispatch that multiplies m rows of x by n weight rows. Each weight row has k
// weights.
func (s *linearShape) grid(p *graph.Planner, m, n, k int, rest ...trace.Term) grid.Grid {
	if s.tile > 0 {
		return p.Tiles(s.lanes, grid.Split("cols", n, s.rows), grid.Split("rows", m, s.tile), rest...)
	}
	return p.Rows(s.lanes, k/s.chunk(), grid.Split("cols", n, s.rows), grid.Split("rows", m, s.batch))
}

// linearTuning has the numbers that were found by measurement, with BenchmarkLinearTuning. All other numbers
// are computed from sizes and limits.
type linearTuning struct {
	// rows is the largest number of weight rows that a workgroup of a GEMV processes. It processes fewer rows
	// if there would otherwise be too few workgroups.
	rows  int
	lanes int // largest number of lanes of a workgroup of a GEMV
	// norm is a limit for the fusion rule `norm`: the linears after a norm compute the norm of one row only
	// if they have at most this many weights in total. A separate dispatch for the norm costs the time of one
	// level. Computing the norm in the linears costs time in proportion to the number of their workgroups. On
	// an H200 both costs are equal at about 70 million weights.
	norm int
	// sum is the limit for the fusion rule norm_sum, also in weights. With this rule, linears compute the sum
	// x + norm(y), and then the norm of this sum. The limit is lower than `norm`, because these kernels load
	// more data.
	sum  int
	fill int // number of tiles that fill a large GPU
	busy int // number of workgroups of a GEMV that fill a large GPU, even if some wait for memory
	// tiles is the number of tiles of 128 rows that a large GPU runs at once. An H200 runs three such tiles
	// on each of its 132 multiprocessors.
	tiles int
	// quads is a condition for using four teams. Workgroup memory must be large enough for this many groups
	// of 4 columns for each of the four teams. Otherwise there are only two teams.
	quads int
	// once is the number of lanes of a GEMV that a large GPU runs at once. An H200 runs about 768 on each
	// multiprocessor.
	once int
}

var tuned = linearTuning{
	rows: 16, lanes: 256, norm: 64 << 20, sum: 20 << 20, fill: 128, busy: 256, tiles: 132 * 3, quads: 4,
	once: 132 * 768,
}

// tileColumns is the number of columns in a tile of results.
const tileColumns = 64

// rowsBeside returns the total number of weight rows of this linear and of all linears that run in parallel
// with it.
func (o *linear) rowsBeside() int { return max(o.w.Rows, o.beside) }

// tilesAcross returns the number of tiles next to each other that cover all columns of y. It includes the
// tiles of linears that run in parallel.
func (o *linear) tilesAcross() int { return shape.DivUp(max(o.w.Rows, o.tiled), tileColumns) }

// tile64Rows returns the largest number of rows of x for which tile64 is preferred. With this number of rows,
// the tiles of tile64 fill the device once, or half of it if the columns can be split. The result is at least
// 64, with one exception: if split64 or split128 is always better for more than batchRows rows, the result is
// batchRows, and tile64 is never preferred.
func (o *linear) tile64Rows() int {
	fill := tuned.fill
	if o.splittable() {
		fill /= 2
	}
	if o.manySplits() {
		return batchRows
	}
	return max(smallTile, fill/o.tilesAcross()*smallTile)
}

// The number of rows in a tile of results: smallTile for the routes split64 and tile64, largeTile for
// split128 and tile128.
const smallTile, largeTile = 64, 128

const (
	splitColumns = 256 // smallest number of columns of a split
	manySplits   = 4   // smallest number of splits that the method manySplits calls many
)

// batchRows is the largest number of rows of x for the routes batch4 and batch8.
const batchRows = 16

// splittable() reports whether several workgroups can share the columns of x.
func (o *linear) splittable() bool {
	return o.gated == nil && len(o.parts) <= 1 && o.w.Cols >= 2*splitColumns
}

// manySplits() reports whether a linear should use many splits: it has enough columns for them, and its tiles
// fill at most half of a device. The device runs about a hundred tiles in parallel, in the same time as a
// single tile. So it is faster to divide the work into more splits.
func (o *linear) manySplits() bool {
	return o.splittable() && o.w.Cols >= manySplits*splitColumns && o.tilesAcross() <= tuned.fill/2
}

// splitTiles64 returns the shape of split64.
func splitTiles64(o *linear, limits *gpu.Limits) linearShape {
	if !o.manySplits() {
		return linearShape{}
	}
	return tiles(smallTile, 1)(o, limits)
}

// splitTiles128 returns the shape of split128.
func splitTiles128(o *linear, limits *gpu.Limits) linearShape {
	if !o.splittable() {
		return linearShape{}
	}
	return tiles(largeTile, 1)(o, limits)
}

// splitRows returns the largest number of rows of x for which split128 is preferred. Up to this number, a
// large GPU can run at least two splits of every tile at the same time.
func (o *linear) splitRows() int { return tuned.tiles / 2 / o.tilesAcross() * largeTile }

// splits() reports whether one of the routes in splitRoutes is available.
func (o *linear) splits() bool { return slices.ContainsFunc(splitRoutes[:], o.Routes.Has) }

// splitsOf returns the number of splits into which a route divides the columns, for m rows of x. It chooses
// as many splits as a device can run at once. A device runs twice as many tiles of 64 rows as of 128 rows. In
// addition, split64 uses twice as many splits as the device can run at once. If this still does not fill the
// device, each split of split64 can have half as many columns.
func (o *linear) splitsOf(route, m int) int {
	once, columns, tiles := tuned.tiles, splitColumns, o.tilesAcross()
	if route == linearSplit64 {
		once *= 2 * largeTile / smallTile
		if tiles*o.w.Cols < tuned.fill*columns {
			columns /= 2
		}
	}
	return max(1, min(once/(shape.DivUp(m, o.shapes[route].tile)*tiles), o.w.Cols/columns))
}

// tiles64 returns the shape of the route tile64. The shape has four teams if there are few tiles and
// workgroup memory is large enough, otherwise two.
func tiles64(o *linear, limits *gpu.Limits) linearShape {
	four := tiles(smallTile, 4)(o, limits)
	if four.quads < tuned.quads || o.tilesAcross() > tuned.fill {
		return tiles(smallTile, 2)(o, limits)
	}
	return four
}

// tiles(tile, teams) returns a function that returns the shape of a tiled kernel. In each team, a lane
// computes 8 x 8 results.
func tiles(tile, teams int) func(*linear, *gpu.Limits) linearShape {
	return func(o *linear, limits *gpu.Limits) linearShape {
		if o.Last {
			return linearShape{}
		}
		// With quads < tile/32, some lanes would have no weights to load.
		for quads := 4; quads >= tile/32; quads /= 2 {
			vectors := teams * (tile + tileColumns) / 8 * (10*quads + 1)
			if 16*vectors <= int(limits.MaxWorkgroupStorage) {
				return linearShape{
					tile: tile, teams: teams, quads: quads, lanes: tile * teams,
					rows: tileColumns * o.cols() / o.w.Rows,
				}
			}
		}
		return linearShape{}
	}
}

// batch(batch, rows) returns a function that returns the shape of a GEMV for a few rows of x. The shape is
// zero if the number of columns is not a multiple of 8, because the kernel would then have to load single
// columns.
func batch(batch, rows int) func(*linear, *gpu.Limits) linearShape {
	return func(o *linear, limits *gpu.Limits) linearShape {
		if !o.w.InGroupsOf8() || o.Last {
			return linearShape{}
		}
		s := linearShape{rows: rows, batch: batch, eights: 1, lanes: 64}
		memory := int(limits.MaxWorkgroupStorage) - o.w.Format.WorkgroupBytes
		for s.rows > 4 && 4*s.lanes*s.rows*s.batch > memory {
			s.rows /= 2
		}
		return s
	}
}

// gemvRows returns how many weight rows a workgroup of a GEMV processes. `rows` is the total number of weight
// rows. `halves` is 2 if the weights are those of gate and up, otherwise 1. If it is 2, the result is the
// number of rows of gate, which equals that of up.
func gemvRows(rows, halves int) int {
	n := tuned.rows / halves
	for n > 4 && rows/halves/n < tuned.busy {
		n /= 2
	}
	return n
}

// gemvOfLast returns the shape of a GEMV for the last of several rows.
func (o *linear) gemvOfLast(limits *gpu.Limits) linearShape {
	if !o.Last {
		return linearShape{}
	}
	return o.gemv(limits)
}

// gemvOfSplits returns the shape of a GEMV for a row that attention writes as partial results (splits).
func (o *linear) gemvOfSplits(limits *gpu.Limits) linearShape {
	if !o.takesLeft(linearSplits) {
		return linearShape{}
	}
	return o.gemv(limits)
}

// gemv returns the shape of a GEMV for one row of x.
func (o *linear) gemv(limits *gpu.Limits) linearShape {
	if !o.w.InGroupsOf8() {
		return linearShape{}
	}
	halves, rows := o.w.Rows/o.cols(), o.rowsBeside()
	s := linearShape{rows: gemvRows(rows, halves), batch: 1, eights: 1}
	sums := s.rows * halves
	if e := o.w.Format.MaxGroupsOf8; o.w.Cols%(8*e) == 0 && o.w.Cols/(8*e) >= sums {
		s.eights = e
	}
	// A lane processes one chunk of columns in each step. Use as few steps as the limits on lanes and on
	// workgroup memory allow, and no more lanes than this number of steps needs.
	lanes := int(min(limits.MaxInvocations, limits.MaxWorkgroupX))
	memory := int(limits.MaxWorkgroupStorage) - o.w.Format.WorkgroupBytes
	if norm, ok := o.before.(*rmsNorm); ok && norm.sum != nil {
		memory -= 4 * sumLanes
	}
	// In workgroup memory, each lane has a partial result of every sum, and of a norm's sum of squares.
	// Groups of lanes then combine these partial results. A group has as many lanes as there are sums, and
	// each group needs memory for one more number.
	fit := memory * sums / (4 * (sums*(sums+1) + 1))
	chunks, most := o.w.Cols/s.chunk(), min(lanes, fit, tuned.lanes)
	steps := shape.DivUp(chunks, most)
	// If the device cannot run all workgroups at once, the number of lanes in each is halved, so that more
	// workgroups run at once. A number below 64 is not halved. If the device could run twice as many
	// workgroups as there are, the number of rows for each workgroup is halved. More loads are then in
	// flight. Formats with a lookup table are excluded: with so few lanes, waiting for loads from the table
	// would take time.
	all := func() int { return shape.DivUp(rows/halves, s.rows) * shape.DivUp(chunks, steps) }
	if s.eights > 1 && o.w.Format.WorkgroupBytes == 0 {
		room := tuned.once
		// If a lane needs only one scale for its columns of a row, it is faster to use up to a quarter more
		// lanes than can run at once. If a lane needs several scales, starting each chunk takes more time
		// than additional lanes would save.
		if o.w.Format.Pieces[0].Cols <= 32 {
			if all() > tuned.once && chunks/steps >= 64 {
				steps *= 2
			}
			room = room * 5 / 4
		}
		// If x is computed from splits, each lane loads four times as much of x.
		if o.takesLeft(linearSplits) {
			room /= 2
		}
		if s.rows > 4 && 2*all() <= room {
			s.rows, sums = s.rows/2, sums/2
		}
	}
	s.lanes = shape.DivUp(shape.DivUp(chunks, steps), sums) * sums
	if s.lanes > most {
		s.lanes -= sums
	}
	return s
}
