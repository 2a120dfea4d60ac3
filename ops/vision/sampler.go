package vision

import (
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// GridSampler2D adds grid_sampler_2d: the pixels of x at the points listed in `grid`. A point consists of a
// position along the width of x and a position along its height, both from -1 to 1. If `align` is true, -1
// and 1 are the middles of the first and the last pixel. Otherwise they are the outer edges of these pixels.
//
//	x        [N, C, H, W]
//	grid     [N, P, Q, 2]
//	mode     0 interpolates between the four nearest pixels, 1 copies the nearest pixel
//	padding  pixels outside of x: 0 makes them zero, 1 repeats the border, 2 reflects x at the border
//	y        [N, C, P, Q]
func GridSampler2D(b *graph.Builder, name string, x, points graph.ValueID, mode, padding int, align bool,
) graph.ValueID {
	return kindSampler.BuildOne(b, name, kind.Args{
		"x": x, "grid": points, "interpolation_mode": mode, "padding_mode": padding, "align_corners": align,
	})
}

var kindSampler = kind.Kind{
	Name: "grid_sampler_2d", Doc: "The pixels of x at the points that grid lists.",
	Args: []kind.Arg{
		kind.Required("x", kind.F32Tensor), kind.Required("grid", kind.F32Tensor),
		kind.Optional("interpolation_mode", kind.IntType, 0), kind.Optional("padding_mode", kind.IntType, 0),
		kind.Optional("align_corners", kind.BoolType, false),
	},
	Constructors: []string{"GridSampler2D"}, Add: addSampler,
}

// The modes of grid_sampler_2d.
const (
	sampleBilinear = iota
	sampleNearest
)

const (
	outsideZero = iota
	outsideBorder
	outsideReflected
)

func addSampler(c *kind.Call) []graph.ValueID {
	o := &sampler{
		x: c.ArgTensor("x"), grid: c.ArgTensor("grid"), y: c.Out("", graph.F32),
		mode: c.ArgInt("interpolation_mode"), padding: c.ArgInt("padding_mode"), align: c.ArgBool("align_corners"),
	}
	x, points := c.MaxDims(o.x), c.MaxDims(o.grid)
	switch {
	case len(x) != 4 || len(points) != 4 || points[3] != 2 || c.MinDims(o.grid)[3] != 2:
		return c.Fail("x has dims %v and grid has dims %v; want rank 4 for both, and 2 as the last dim of grid",
			x, points)
	case o.mode < sampleBilinear || o.mode > sampleNearest:
		return c.Fail("interpolation_mode is %d, want 0 (bilinear) or 1 (nearest)", o.mode)
	case o.padding < outsideZero || o.padding > outsideReflected:
		return c.Fail("padding_mode is %d, want 0 (zeros), 1 (border) or 2 (reflection)", o.padding)
	}
	o.kernel = c.NewKernel("grid_sampler_2d", shaders.Constants{
		"Lanes": kind.ThreadLanes, "Nearest": o.mode == sampleNearest, "Border": o.padding != outsideZero,
		"Reflect": o.padding == outsideReflected, "Align": o.align,
	})
	return c.AddOp(o, o.y)
}

type sampler struct {
	x, grid, y    graph.ValueID
	mode, padding int
	align         bool
	kernel        *graph.Kernel
}

func (o *sampler) Spec() graph.Spec {
	return graph.Spec{
		Kind: "grid_sampler_2d", Inputs: []graph.ValueID{o.x, o.grid}, Outputs: []graph.ValueID{o.y},
		Slots: []graph.Slot{{
			Uses: kind.Uses(o.kernel, graph.Bind("x", o.x), graph.Bind("grid", o.grid), graph.Bind("y", o.y)),
		}},
		Attrs: map[string]any{
			"interpolation_mode": o.mode, "padding_mode": o.padding, "align_corners": o.align,
		},
	}
}

// Corners returns the corners at which the batch of x and of grid is the same.
func (o *sampler) Corners(r *graph.Ranges) []graph.Corner {
	var corners []graph.Corner
	most := min(r.Max(o.x)[0], r.Max(o.grid)[0])
	least := min(max(r.Min(o.x)[0], r.Min(o.grid)[0]), most)
	for i, of := range []func(graph.ValueID) []int{r.Max, r.Min} {
		x, points := append([]int{}, of(o.x)...), append([]int{}, of(o.grid)...)
		x[0] = []int{most, least}[i]
		points[0] = x[0]
		if o.x == o.grid {
			corners = append(corners, graph.Corner{{Value: o.x, Dims: x}})
			continue
		}
		corners = append(corners, graph.Corner{{Value: o.x, Dims: x}, {Value: o.grid, Dims: points}})
	}
	return corners
}

func (o *sampler) Plan(p *graph.Planner) error {
	x, points := p.Dims(o.x), p.Dims(o.grid)
	if x[0] != points[0] {
		return p.Errorf("x has dims %v and grid has dims %v; want the same batch size (first dim)", x, points)
	}
	p.SetDims(o.y, x[0], x[1], points[1], points[2])
	n := x[0] * x[1] * points[1] * points[2]
	l := p.Dispatch(0, p.Vectors(n, 1, kind.ThreadLanes))
	l.Params.U32("n", n).U32("channels", x[1]).U32("in_h", x[2]).U32("in_w", x[3]).
		U32("points", points[1]*points[2])
	l.Bytes = 4 * (int64(p.Numel(o.x)) + int64(p.Numel(o.grid)) + int64(n))
	l.FLOPs = 16 * int64(n)
	return nil
}

func (o *sampler) Reference(r *reference.Ref) {
	x, points := r.Tensor(o.x), r.Tensor(o.grid)
	h, w, count := x.Dims[2], x.Dims[3], points.Dims[1]*points.Dims[2]
	y := reference.Zeros(x.Dims[0], x.Dims[1], points.Dims[1], points.Dims[2])
	for i := range y.Data {
		plane := x.Data[i/count*h*w:][:h*w]
		at := points.Row(i/count/x.Dims[1]*count + i%count)
		ix, iy := o.place(at[0], w), o.place(at[1], h)
		if o.mode == sampleNearest {
			y.Data[i] = pixel(plane, math.RoundToEven(iy), math.RoundToEven(ix), h, w)
			continue
		}
		left, top := math.Floor(ix), math.Floor(iy)
		across, down := ix-left, iy-top
		for _, c := range [][3]float64{
			{top, left, (1 - down) * (1 - across)},
			{top, left + 1, (1 - down) * across},
			{top + 1, left, down * (1 - across)},
			{top + 1, left + 1, down * across},
		} {
			y.Data[i] += pixel(plane, c[0], c[1], h, w) * c[2]
		}
	}
	r.Set(o.y, y)
}

// pixel returns a pixel of a plane, or 0 outside of the plane.
func pixel(plane []float64, row, col float64, h, w int) float64 {
	if !(row >= 0 && row < float64(h) && col >= 0 && col < float64(w)) {
		return 0
	}
	return plane[int(row)*w+int(col)]
}

// place converts a coordinate of a point, which is in the range from -1 to 1, to a position in pixels.
func (o *sampler) place(v float64, size int) float64 {
	n := float64(size)
	low, high := -0.5, n-0.5
	if o.align {
		v, low, high = (v+1)/2*(n-1), 0, n-1
	} else {
		v = ((v+1)*n - 1) / 2
	}
	if o.padding == outsideReflected {
		if high == low {
			return 0
		}
		v = math.Abs(v - low)
		turns, rest := math.Floor(v/(high-low)), math.Mod(v, high-low)
		if math.Mod(turns, 2) == 1 {
			rest = high - low - rest
		}
		v = rest + low
	}
	if o.padding != outsideZero {
		v = min(max(v, 0), n-1)
	}
	return v
}

// Tolerance depends on the rounding of a position, which moves a point by a part of a pixel. A point near
// the middle between two pixels can get either of them.
func (o *sampler) Tolerance(r *reference.Ref, _ graph.ValueID) reference.Tolerance {
	x := r.Tensor(o.x)
	if o.mode == sampleNearest {
		return reference.Tolerance{
			Abs: 2 * r.Largest(o.x), Why: "a point near the middle of two pixels may get either",
		}
	}
	moved := 8 * reference.Rounding * float64(max(x.Dims[2], x.Dims[3])) * (1 + r.Largest(o.grid))
	return reference.Tolerance{
		Abs: (4*moved + 16*reference.Rounding) * r.Largest(o.x),
		Why: "a position in x rounded to f32, and an interpolation of 4 pixels",
	}
}
