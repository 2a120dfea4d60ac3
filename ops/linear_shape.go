package ops

import (
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/grid"
	"gpuscope/ops/internal/shape"
	"gpuscope/trace"
)

// linearShape is how a kernel divides the work: the tuned numbers, chosen in one place from the sizes of the
// weights and the device's limits. The zero shape says that there is no such kernel.
type linearShape struct {
	lanes int // of a workgroup
	// Of a tiled kernel: rows of a tile of results, teams of lanes that share the columns of x between them,
	// and how many times 4 columns a team has in workgroup memory at a time.
	tile, teams, quads int
	// rows of the weights that a workgroup takes, of gate as many as of up. Of a GEMV: rows of x, and how
	// many times 8 columns a lane takes at a time.
	rows, batch, eights int
}

// chunk is how many columns a lane of a GEMV takes at a time.
func (s *linearShape) chunk() int { return 8 * s.eights }

// grid is that of m rows of x with n rows of k weights.
func (s *linearShape) grid(p *graph.Planner, m, n, k int, rest ...trace.Term) grid.Grid {
	if s.tile > 0 {
		return p.Tiles(s.lanes, grid.Split("cols", n, s.rows), grid.Split("rows", m, s.tile), rest...)
	}
	return p.Rows(s.lanes, k/s.chunk(), grid.Split("cols", n, s.rows), grid.Split("rows", m, s.batch))
}

// linearTuning are the numbers that measurements settle; the rest follows from sizes and limits.
// BenchmarkLinearTuning tries others.
type linearTuning struct {
	// rows of the weights that a workgroup of a GEMV takes where there are enough of them, and the lanes of
	// it at most.
	rows, lanes int
	// norm is how many weights may read a norm's output for them to take it in. A norm of one row costs a
	// level, and taking it in costs in proportion to the workgroups that then do: on an H200 as much where
	// they have some 70 million weights.
	norm int
	// sum is the same of a sum with a norm, and a norm of that, of which more is loaded.
	sum int
	// fill is how many workgroups a large GPU takes to be full, and busy how many of a GEMV, so that while
	// one waits others work; tiles is how many tiles of 128 rows it has at once, an H200 three on each
	// multiprocessor.
	fill, busy, tiles int
	// quads is how many times 4 columns four teams need to have in workgroup memory at a time, each.
	quads int
	// once is how many lanes of a GEMV a large GPU runs at once: an H200 some 768 on each multiprocessor.
	once int
}

var tuned = linearTuning{
	rows: 16, lanes: 256, norm: 64 << 20, sum: 20 << 20, fill: 128, busy: 256, tiles: 132 * 3, quads: 4,
	once: 132 * 768,
}

// tileColumns is how many columns a tile of results has.
const tileColumns = 64

// rowsBeside are the rows of weights of all products that run side by side.
func (o *linear) rowsBeside() int { return max(o.w.Rows, o.beside) }

// tilesAcross is how many tiles are side by side, those of other products too.
func (o *linear) tilesAcross() int { return shape.DivUp(max(o.w.Rows, o.tiled), tileColumns) }

// tile64Rows is how many rows of x make so few tiles of 64 that they fill the device once, or half where
// columns can be split; 64 in any case, but none where split64 and split128 take all after batches.
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

// Rows of tiles, those of split64 and tile64, and the others.
const smallTile, largeTile = 64, 128

// The fewest columns that a split of them has, and how many splits are many.
const splitColumns, manySplits = 256, 4

// batchRows are the rows of x up to which batches of them take a GEMV.
const batchRows = 16

// splittable says whether workgroups may share the columns of a tile.
func (o *linear) splittable() bool {
	return o.gated == nil && len(o.parts) <= 1 && o.w.Cols >= 2*splitColumns
}

// manySplits says whether there are columns for many splits, and tiles across for half of a device at most: a
// tile takes its time alone as beside a hundred, so that these are faster at once.
func (o *linear) manySplits() bool {
	return o.splittable() && o.w.Cols >= manySplits*splitColumns && o.tilesAcross() <= tuned.fill/2
}

// splitTiles64 and splitTiles128 are the shapes of tiles whose columns workgroups share.
func splitTiles64(o *linear, limits *gpu.Limits) linearShape {
	if !o.manySplits() {
		return linearShape{}
	}
	return tiles(smallTile, 1)(o, limits)
}

func splitTiles128(o *linear, limits *gpu.Limits) linearShape {
	if !o.splittable() {
		return linearShape{}
	}
	return tiles(largeTile, 1)(o, limits)
}

// splitRows is how many rows of x make so few tiles that a device has two splits of each at once.
func (o *linear) splitRows() int { return tuned.tiles / 2 / o.tilesAcross() * largeTile }

// splits says whether there is a route on which workgroups share the columns of x.
func (o *linear) splits() bool { return slices.ContainsFunc(splitRoutes[:], o.Routes.Has) }

// splitsOf are how many there are of the columns of some rows on a route: as many as a device has tiles of at
// once. Of those of 64 rows, of which it has two for one, there are twice as many as that; where these would
// not fill it, they have fewer columns.
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

// tiles64 has four teams where 64 rows make few tiles, and workgroup memory serves four of them.
func tiles64(o *linear, limits *gpu.Limits) linearShape {
	four := tiles(smallTile, 4)(o, limits)
	if four.quads < tuned.quads || o.tilesAcross() > tuned.fill {
		return tiles(smallTile, 2)(o, limits)
	}
	return four
}

// tiles is the shape of kernels by tiles: in each team a lane has 8 x 8 results.
func tiles(tile, teams int) func(*linear, *gpu.Limits) linearShape {
	return func(o *linear, limits *gpu.Limits) linearShape {
		if o.Last {
			return linearShape{}
		}
		// With fewer columns than these there would be no weights to load for some lanes.
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

// batch is the shape of a GEMV for a few rows of x. Where 8 does not divide the columns it would load them
// one by one.
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

// gemvRows is how many rows of so many weights a workgroup of a GEMV takes; of a gate and an up, two halves,
// as many of either.
func gemvRows(rows, halves int) int {
	n := tuned.rows / halves
	for n > 4 && rows/halves/n < tuned.busy {
		n /= 2
	}
	return n
}

// gemvOfLast is the shape of a GEMV for the last of several rows.
func (o *linear) gemvOfLast(limits *gpu.Limits) linearShape {
	if !o.Last {
		return linearShape{}
	}
	return o.gemv(limits)
}

// gemvOfSplits is the shape of a GEMV for a row that is left in splits.
func (o *linear) gemvOfSplits(limits *gpu.Limits) linearShape {
	if !o.takesLeft(linearSplits) {
		return linearShape{}
	}
	return o.gemv(limits)
}

// gemv is the shape of a GEMV for one row of x.
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
	// As few steps over the columns as workgroup memory allows, and no more lanes than these take.
	lanes := int(min(limits.MaxInvocations, limits.MaxWorkgroupX))
	memory := int(limits.MaxWorkgroupStorage) - o.w.Format.WorkgroupBytes
	if norm, ok := o.before.(*rmsNorm); ok && norm.sum != nil {
		memory -= 4 * sumLanes
	}
	// A lane has a share of each sum and one of a norm's squares, and every so many lanes these together.
	fit := memory * sums / (4 * (sums*(sums+1) + 1))
	chunks, most := o.w.Cols/s.chunk(), min(lanes, fit, tuned.lanes)
	steps := shape.DivUp(chunks, most)
	// Where some workgroups would wait for others, half the lanes, of 64 or more, have more of them run at
	// once; where all do and there is room, half the rows a workgroup have more loads on their way. Loads
	// from a table would then have too few lanes beside them.
	all := func() int { return shape.DivUp(rows/halves, s.rows) * shape.DivUp(chunks, steps) }
	if s.eights > 1 && o.w.Format.WorkgroupBytes == 0 {
		room := tuned.once
		// With a single scale to a lane's columns of a row some more may wait; what has several takes longer
		// to begin a chunk than that gains.
		if o.w.Format.Pieces[0].Cols <= 32 {
			if all() > tuned.once && chunks/steps >= 64 {
				steps *= 2
			}
			room = room * 5 / 4
		}
		// To make x of splits takes four times the loads.
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
